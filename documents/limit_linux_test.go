package documents_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/documents"
)

// TestParent is the program that TestAReaderEndsWithItsProgram kills.
func TestParent(t *testing.T) {
	noted := os.Getenv("READER_NOTES")
	if noted == "" {
		t.Skip("only in a process of its own")
	}
	apart := documents.New(&documents.Options{Command: []string{"/bin/sh", "-c", "echo $$ >" + noted + "; exec sleep 90"}})
	_, err := apart.ReadDocument(t.Context(), souvenir.Document{Filename: "a.pdf", MIMEType: "application/pdf", Size: 1,
		Content: strings.NewReader("x")})
	t.Fatalf("got %v, want to be killed before", err)
}

// A killed program cannot end its reader, which may be in a loop.
func TestAReaderEndsWithItsProgram(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	noted := filepath.Join(t.TempDir(), "pid")
	program := exec.Command(self, "-test.run=^TestParent$")
	program.Env = append(os.Environ(), "READER_NOTES="+noted)
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	until := func(what string, done func() bool) {
		t.Helper()
		for began := time.Now(); !done(); time.Sleep(time.Millisecond) {
			if time.Since(began) > time.Minute {
				t.Fatalf("after a minute: got no %s, want one", what)
			}
		}
	}
	reader := 0
	until("reader", func() bool {
		note, _ := os.ReadFile(noted)
		reader, err = strconv.Atoi(strings.TrimSpace(string(note)))
		return err == nil && bytes.HasSuffix(note, []byte("\n"))
	})
	err = program.Process.Kill()
	_ = program.Wait()
	if err != nil {
		t.Fatal(err)
	}
	until("end of the reader", func() bool {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", reader))
		return err != nil || bytes.Contains(status, []byte("State:\tZ")) // it may remain a zombie
	})
}
