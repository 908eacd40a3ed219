package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

// terminal is a pseudo terminal: a person types at one end, and the program has the other.
type terminal struct {
	person, program *os.File

	mu      sync.Mutex
	printed bytes.Buffer
}

func openTerminal(t *testing.T) *terminal {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(int(person.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(person.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetWinsize(int(program.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 100}); err != nil {
		t.Fatal(err)
	}
	x := &terminal{person: person, program: program}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(x, person) // ends with an error when the other end is closed
	}()
	t.Cleanup(func() {
		program.Close()
		<-done
		person.Close()
	})
	return x
}

// Write records what the program shows.
func (x *terminal) Write(p []byte) (int, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.printed.Write(p)
}

func (x *terminal) text() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.printed.String()
}

// await waits until a condition holds.
func (x *terminal) await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(waitLimit); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the terminal shows %q, want %s in the time given", x.text(), what)
		}
	}
}

func (x *terminal) awaitText(t *testing.T, printed string) {
	t.Helper()
	x.await(t, printed, func() bool { return strings.HasSuffix(x.text(), printed) })
}

// echoes reports whether the terminal shows what is typed.
func (x *terminal) echoes(t *testing.T) bool {
	t.Helper()
	state, err := unix.IoctlGetTermios(int(x.program.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	return state.Lflag&unix.ECHO != 0
}

// typeHidden answers a question for a hidden value.
func (x *terminal) typeHidden(t *testing.T, question, answer string) {
	t.Helper()
	x.awaitText(t, question)
	x.await(t, "no echo", func() bool { return !x.echoes(t) })
	if _, err := x.person.WriteString(answer); err != nil {
		t.Fatal(err)
	}
}

func TestPasswordsAreAskedForWithoutEcho(t *testing.T) {
	for _, test := range []struct {
		again string
		code  int
	}{{"typed by hand", exitOK}, {"something else", exitError}} {
		c, x := call{dir: t.TempDir()}, openTerminal(t)
		cmd := c.command(context.Background(), "user", "add", "anna")
		cmd.Stdin, cmd.Stderr = x.program, x.program
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		x.typeHidden(t, "Password for anna: ", "typed by hand\n")
		x.typeHidden(t, "Again: ", test.again+"\n")
		_ = cmd.Wait()
		if got := cmd.ProcessState.ExitCode(); got != test.code {
			t.Errorf("exit status %d; want %d; the terminal shows %q", got, test.code, x.text())
		}
		if strings.Contains(x.text(), "typed") || strings.Contains(x.text(), "else") {
			t.Errorf(`the terminal shows the password: %q, want no "typed" and no "else" in the text`, x.text())
		}
		if test.code == exitOK {
			store := openStore(t, filepath.Join(c.dir, "souvenir.db"))
			if _, err := store.Accounts().CheckPassword(t.Context(),
				souvenir.Credentials{Name: "anna", Password: "typed by hand"}); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestInterruptedQuestionsLeaveTheTerminalAsItWas(t *testing.T) {
	c, x := call{dir: t.TempDir()}, openTerminal(t)
	cmd := c.command(context.Background(), "user", "add", "anna")
	cmd.Stdin, cmd.Stderr = x.program, x.program
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	x.typeHidden(t, "Password for anna: ", "")
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if got := cmd.ProcessState.ExitCode(); got != exitError {
		t.Errorf("exit status %d; want %d", got, exitError)
	}
	if !x.echoes(t) {
		t.Error("the terminal no longer echoes, want echo on")
	}
	if left := readFolder(t, c.dir); len(left) > 0 {
		t.Errorf("an interrupted question has made files: %d, want none", len(left))
	}
}

func TestProgressIsForTerminalsOnly(t *testing.T) {
	c, x := newStore(t), openTerminal(t)
	cmd := c.command(t.Context(), "check")
	var stdout bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, x.program
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	x.awaitText(t, " \r") // the bar is erased
	if !strings.Contains(x.text(), "\rmemories ") || !strings.Contains(x.text(), " %") {
		t.Errorf("the terminal shows %q; want a bar of each stage", x.text())
	}
	if !strings.HasPrefix(stdout.String(), "ok: ") {
		t.Errorf("standard output is %q, want at its start \"ok: \"", stdout.String())
	}
	c.ok(t, "check") // without a terminal, standard error stays empty
}

func TestLostOutputIsAnError(t *testing.T) {
	longtest.Only(t)
	c := newStore(t)
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	for _, args := range []string{"token add --user anna --name x", "user list", "user list --json", "export", "check",
		"version", "help"} {
		cmd := c.command(t.Context(), strings.Fields(args)...)
		var stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = full, &stderr
		_ = cmd.Run()
		if cmd.ProcessState.ExitCode() != exitError || !strings.Contains(stderr.String(), "no space left") {
			t.Errorf("souvenir %s: exit status %d, %q; want 1 and an error", args, cmd.ProcessState.ExitCode(), stderr.String())
		}
	}
}

func TestTablesFitTheTerminal(t *testing.T) {
	c, x := newStore(t), openTerminal(t)
	store, err := souvenir.Open(t.Context(), filepath.Join(c.dir, "souvenir.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.AddMemory(t.Context(),
		souvenir.NewMemory{Content: strings.Repeat("a long story about trains ", 20)}); err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	cmd := c.command(t.Context(), "search", "long story", "--user", "local")
	cmd.Stdout = x.program
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	x.awaitText(t, "…\r\n")
	for line := range strings.SplitSeq(x.text(), "\r\n") {
		if n := len([]rune(line)); n > 100 {
			t.Errorf("a line of %d characters on a terminal of 100: %q, want at most 100", n, line)
		}
	}
}

func TestEmptyingTheTrashAsks(t *testing.T) {
	longtest.Only(t)
	c, _, _ := trashed(t)
	for _, test := range []struct {
		answer  string
		code    int
		printed string
	}{{"n", exitError, "nothing was erased"}, {"", exitError, "nothing was erased"},
		{"yes", exitOK, "permanently? [y/N] "}} {
		x := openTerminal(t)
		cmd := c.command(context.Background(), "trash", "empty", "--user", "anna")
		cmd.Stdin, cmd.Stderr = x.program, x.program
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		x.awaitText(t, "Erase 3 entries permanently? [y/N] ")
		if _, err := x.person.WriteString(test.answer + "\n"); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		if got := cmd.ProcessState.ExitCode(); got != test.code {
			t.Errorf("%q gives exit status %d; the terminal shows %q, want %v", test.answer, got, x.text(), test.code)
		}
		x.await(t, test.printed, func() bool { return strings.Contains(x.text(), test.printed) })
	}
}
