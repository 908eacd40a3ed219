package documents

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir"
)

const (
	softMemory = 256 << 20 // bytes, from which the process for a file collects garbage more often
	hardMemory = 768 << 20 // bytes that the process may use
	maxAnswer  = 16 << 20  // bytes of the process's answer
	patience   = 30 * time.Second
)

// answer is the output of Serve.
type answer struct {
	souvenir.DocumentText
	Error string
}

// apart reads a PDF file in a process of its own.
func (r *reader) apart(ctx context.Context, d souvenir.Document) (souvenir.DocumentText, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errors.New("it takes too long"))
	defer cancel()
	process := exec.CommandContext(ctx, r.command[0], r.command[1:]...)
	process.Env = []string{"GOMAXPROCS=1", "GOTRACEBACK=none"}
	process.Stdin = io.NewSectionReader(d.Content, 0, d.Size)
	process.WaitDelay = time.Second
	var out, failed bounded
	out.most, failed.most = maxAnswer, 4096
	process.Stdout, process.Stderr = &out, &failed
	endWithUs(process)
	runtime.LockOSThread() // Linux treats the end of this thread as the end of this process
	err := process.Run()
	runtime.UnlockOSThread()
	var a answer
	switch {
	case ctx.Err() != nil:
		return souvenir.DocumentText{}, context.Cause(ctx)
	case err != nil && strings.Contains(failed.String(), "out of memory"):
		return souvenir.DocumentText{}, errors.New("it takes too much memory")
	case err != nil:
		return souvenir.DocumentText{}, fmt.Errorf("its reader ended: %w", err)
	}
	if err := json.Unmarshal(out.Bytes(), &a); err != nil {
		return souvenir.DocumentText{}, fmt.Errorf("its reader gave no answer: %w", err)
	}
	if a.Error != "" {
		return souvenir.DocumentText{}, errors.New(a.Error)
	}
	return a.DocumentText, nil
}

// bounded is a buffer that keeps up to a number of bytes and ignores the rest.
type bounded struct {
	bytes.Buffer
	most int
}

func (b *bounded) Write(p []byte) (int, error) {
	b.Buffer.Write(p[:min(len(p), max(0, b.most-b.Len()))])
	return len(p), nil
}

// Serve reads a PDF file from in and writes its text to out, for [Options].Command. It limits the memory of its process
// where the system can, so a program must do nothing else after calling it.
func Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	debug.SetMemoryLimit(softMemory)
	limitProcess()
	time.AfterFunc(patience, func() { os.Exit(1) }) // a loop in the library ignores the context
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	data, err := io.ReadAll(io.LimitReader(in, maxPacked))
	if err != nil {
		return err
	}
	var a answer
	if a.DocumentText, err = readPDF(ctx, bytes.NewReader(data), int64(len(data))); err != nil {
		a.Error = err.Error()
	}
	return json.NewEncoder(out).Encode(a)
}
