package conventions

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

// The first program of the README runs, does what it says, and its binary is small.
func TestTheProgramOfTheReadmeRunsAndIsSmall(t *testing.T) {
	atRoot(t)
	longtest.Only(t)
	const most = 22_000_000
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(readme), "\n```go\n")
	lines, _, closed := strings.Cut(rest, "```\n")
	if !found || !closed {
		t.Fatal("got no complete Go program in README.md, want one")
	}
	const head = "package main\n\nimport (\n\"context\"\n\"fmt\"\n\"log\"\n\n\"github.com/souvenir-ai/souvenir\"\n)\n\n" +
		"func main() {\nctx := context.Background()\n"
	folder := t.TempDir()
	source, program := filepath.Join(folder, "main.go"), filepath.Join(folder, "ten.exe")
	if err := os.WriteFile(source, []byte(head+lines+"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	build := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", program, source)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", build, err, out)
	}
	info, err := os.Stat(program)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d bytes", info.Size())
	if info.Size() > most {
		t.Errorf("the program has %d bytes, want at most %d", info.Size(), most)
	}
	run := exec.Command(program)
	run.Dir = folder
	out, err := run.CombinedOutput()
	if want := "Anna is allergic to peanuts.\n"; err != nil || string(out) != want {
		t.Errorf("the program: got %q, %v; want %q", out, err, want)
	}
}
