package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

// The tests run the program itself. In the long form, it is built as released, without C and without symbols, which
// compiles everything once more. Otherwise the test binary acts as the program, and commands that end by themselves run
// within its process.

// builtBinary is the path of the program, and home the folder that it takes for its user's home.
var builtBinary, home string

// asProgram is the environment variable that makes the test binary act as the program.
const asProgram = "TEST_AS_SOUVENIR"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" && !slices.Contains(os.Args, "-test.fuzzworker") {
		main()
	}
	os.Exit(buildAndRun(m))
}

func buildAndRun(m *testing.M) int {
	folder, err := os.MkdirTemp("", "souvenir-cmd-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(folder)
	builtBinary, home = filepath.Join(folder, "souvenir"), filepath.Join(folder, "home")
	if runtime.GOOS == "windows" {
		builtBinary += ".exe"
	}
	if err := makeProgram(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return longtest.MainWithCheapPasswords(m)
}

// makeProgram puts the program at builtBinary.
func makeProgram() error {
	if !longtest.On() {
		self, err := os.Executable()
		if err != nil {
			return err
		}
		if err := os.Setenv(asProgram, "1"); err != nil { // for everything that the tests start
			return err
		}
		if os.Link(self, builtBinary) == nil {
			return nil
		}
		content, err := os.ReadFile(self)
		if err != nil {
			return err
		}
		return os.WriteFile(builtBinary, content, 0o700) //nolint:gosec // a program
	}
	build := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", builtBinary, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", build, err, out)
	}
	return nil
}

// call is a run of the program.
type call struct {
	dir   string   // the working directory
	env   []string // in addition to the test's own environment without its SOUVENIR_ variables
	stdin string
}

// outcome is the result of a run.
type outcome struct {
	stdout, stderr string
	code           int
}

func (c call) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, builtBinary, args...)
	cmd.Dir = c.dir
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "SOUVENIR_") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(cmd.Env, atHome(home)...)
	cmd.Env = append(cmd.Env, c.env...)
	cmd.Stdin = strings.NewReader(c.stdin)
	return cmd
}

// atHome returns the variables for a user's folders.
func atHome(folder string) []string {
	return []string{"HOME=" + folder, "XDG_CACHE_HOME=" + filepath.Join(folder, ".cache"), "XDG_DATA_HOME=",
		"LocalAppData=" + folder}
}

func (c call) run(t *testing.T, args ...string) outcome {
	t.Helper()
	if c.canRunHere(args) {
		return c.runHere(t, args...)
	}
	cmd := c.command(t.Context(), args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return outcome{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

// canRunHere reports whether a run needs no process of its own: in the short form, if it does not serve, does not ask
// for the path of the program, and needs no other environment than the program's variables.
func (c call) canRunHere(args []string) bool {
	if longtest.On() || slices.ContainsFunc(args, func(arg string) bool {
		return slices.Contains([]string{"serve", "mcp", "demo", "client-config"}, arg)
	}) {
		return false
	}
	return !slices.ContainsFunc(c.env, func(v string) bool { return !strings.HasPrefix(v, "SOUVENIR_") })
}

// here is held by a run within the tests' process, because the run changes the working directory and environment.
var here sync.Mutex

// runHere runs the program within the tests' process, which is much cheaper than a process of its own.
func (c call) runHere(t *testing.T, args ...string) outcome {
	t.Helper()
	here.Lock()
	defer here.Unlock()
	folder := t.TempDir()
	open := func(name, content string) *os.File {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		file, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		return file
	}
	in, out, errs := open("in", c.stdin), open("out", ""), open("err", "")
	defer in.Close()
	before, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	if c.dir != "" {
		if err := os.Chdir(c.dir); err != nil { //nolint:usetesting // restored below
			t.Fatal(err)
		}
		defer func() {
			if err := os.Chdir(before); err != nil { //nolint:usetesting // as above
				t.Fatal(err)
			}
		}()
	}
	for _, v := range atHome(home) {
		name, value, _ := strings.Cut(v, "=")
		if old, had := os.LookupEnv(name); had {
			defer func() { _ = os.Setenv(name, old) }() //nolint:usetesting // as below
		} else {
			defer func() { _ = os.Unsetenv(name) }()
		}
		if err := os.Setenv(name, value); err != nil { //nolint:usetesting // restored above
			t.Fatal(err)
		}
	}
	lookup := func(name string) (string, bool) {
		for _, v := range slices.Backward(c.env) {
			if key, value, _ := strings.Cut(v, "="); key == name {
				return value, true
			}
		}
		if strings.HasPrefix(name, "SOUVENIR_") {
			return "", false
		}
		return os.LookupEnv(name)
	}
	code := (&cli{stdin: in, stdout: out, stderr: errs, lookup: lookup}).run(t.Context(), args)
	printed := func(file *os.File) string {
		content, err := os.ReadFile(file.Name())
		if err := errors.Join(err, file.Close()); err != nil {
			t.Fatal(err)
		}
		return string(content)
	}
	return outcome{printed(out), printed(errs), code}
}

// ok runs the program, which must succeed with empty standard error, and returns its output.
func (c call) ok(t *testing.T, args ...string) string {
	t.Helper()
	o := c.run(t, args...)
	if o.code != exitOK || o.stderr != "" {
		t.Fatalf("souvenir %s: exit status %d, standard error %q; want %v", strings.Join(args, " "), o.code, o.stderr, exitOK)
	}
	return o.stdout
}

// fails runs the program, which must end with a status, print nothing on standard output, and print each of some words
// on standard error.
func (c call) fails(t *testing.T, code int, words string, args ...string) {
	t.Helper()
	o := c.run(t, args...)
	if o.code != code || o.stdout != "" || !strings.HasPrefix(o.stderr, "souvenir: ") {
		t.Errorf("souvenir %s: exit status %d, standard output %q, standard error %q; want status %d, nothing, and an error",
			strings.Join(args, " "), o.code, o.stdout, o.stderr, code)
	}
	for word := range strings.SplitSeq(words, "|") {
		if !strings.Contains(o.stderr, word) {
			t.Errorf("souvenir %s: got the standard error %q, want one that contains %q", strings.Join(args, " "),
				o.stderr, word)
		}
	}
}

// process is a running server.
type process struct {
	cmd    *exec.Cmd
	url    string
	stdout *bufio.Reader
	stderr *syncBuffer // complete after wait
}

// syncBuffer is a buffer that a process writes while a test reads.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func (b *syncBuffer) Len() int { return len(b.String()) }

// start starts a server and waits until it reports that it is ready.
func (c call) start(t *testing.T, args ...string) *process {
	t.Helper()
	cmd := c.command(context.Background(), args...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{cmd: cmd, stdout: bufio.NewReader(out), stderr: &syncBuffer{}}
	cmd.Stderr = p.stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if cmd.ProcessState == nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	})
	line, err := p.stdout.ReadString('\n')
	url, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "listening on ")
	if !ok {
		_ = cmd.Wait()
		t.Fatalf("the first line is %q (%v), want the address it listens on; standard error: %s", line, err, p.stderr)
	}
	p.url = url
	return p
}

// stop ends a server and returns its exit status and the rest of its output.
func (p *process) stop(t *testing.T) (int, string) {
	t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	return p.wait(t)
}

func (p *process) wait(t *testing.T) (int, string) {
	t.Helper()
	var rest bytes.Buffer
	if _, err := p.stdout.WriteTo(&rest); err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := p.cmd.Wait(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return p.cmd.ProcessState.ExitCode(), rest.String()
}

// openStore opens a store, while the program may have it open, too.
func openStore(t *testing.T, path string) *souvenir.Store {
	t.Helper()
	store, err := souvenir.Open(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return store
}

// newStore returns the folder of a new store with the users anna, an admin, and ben, and a memory of each. All of them
// are copies of one file.
func newStore(t *testing.T) call {
	t.Helper()
	content, err := filledStore()
	if err != nil {
		t.Fatal(err)
	}
	c := call{dir: t.TempDir()}
	if err := os.WriteFile(filepath.Join(c.dir, "souvenir.db"), content, 0o600); err != nil {
		t.Fatal(err)
	}
	return c
}

// filledStore returns the bytes of such a store.
var filledStore = sync.OnceValues(func() ([]byte, error) {
	folder, err := os.MkdirTemp("", "souvenir-filled-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	path := filepath.Join(folder, "souvenir.db")
	if err := fillStore(context.Background(), path); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
})

func fillStore(ctx context.Context, path string) (err error) {
	store, err := souvenir.Open(ctx, path, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	for _, u := range []struct {
		name, memory string
		role         souvenir.Role
	}{{"anna", "The kettle in the kitchen is blue.", souvenir.RoleAdmin},
		{"ben", "Trains to Husum leave on the hour.", souvenir.RoleUser}} {
		user, err := store.Accounts().AddUser(ctx, souvenir.NewUser{Name: u.name, Role: u.role})
		if err != nil {
			return err
		}
		if _, err := store.As(souvenir.Access{User: user.ID}).AddMemory(ctx,
			souvenir.NewMemory{Content: u.memory, ProjectName: "home", Tags: []string{"everyday"}}); err != nil {
			return err
		}
	}
	return nil
}

func decode[T any](t *testing.T, text string) T {
	t.Helper()
	var value T
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		t.Fatalf("no JSON: %v\n%s", err, text)
	}
	return value
}

// readFolder returns the files of a folder: name -> content.
func readFolder(t *testing.T, folder string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, e := range entries {
		content, err := os.ReadFile(filepath.Join(folder, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		files[e.Name()] = string(content)
	}
	return files
}

const waitLimit = 30 * time.Second // for events that must come; a passing test never waits that long
