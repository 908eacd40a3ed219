package main

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// The users' pages show commands and programs. These tests keep them correct.

const repository = "../.."

// pages returns the users' pages: name -> text.
func pages(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, name := range []string{"README.md", "docs/self-hosting.md", "docs/embedding.md", "docs/clients.md",
		"docs/proxy.md", "docs/security.md", "docs/operations.md"} {
		content, err := os.ReadFile(filepath.Join(repository, name))
		if err != nil {
			t.Fatal(err)
		}
		found[name] = string(content)
	}
	everyCommand(func(command *cobra.Command) { found[command.CommandPath()+" --help"] = command.Example })
	return found
}

// commandLine matches calls of the program in a shell's line or in running text, up to a pipe, a comment or two spaces.
var commandLine = regexp.MustCompile(
	"(?m)(?:^|[ `(\"]|/bin/)souvenir (?:-- souvenir )?([a-z-]+(?: [^`|()#\n]*?)?)(?:  |[`|()#\n]|$| && )")

func TestCommandsOfThePagesExist(t *testing.T) {
	tried := 0
	for name, page := range pages(t) {
		for _, match := range commandLine.FindAllStringSubmatch(strings.ReplaceAll(page, "\\\n", ""), -1) {
			words := strings.Fields(strings.NewReplacer(`"`, "", "'", "").Replace(match[1]))
			if strings.HasPrefix(words[0], "-") {
				continue // souvenir is an argument of another program
			}
			root := (&cli{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, lookup: os.LookupEnv}).rootCommand()
			root.InitDefaultHelpCmd()
			command, rest, err := root.Find(words)
			if err != nil || command == root {
				t.Errorf("%s: there is no command %q, want no error and a command other than %v", name, match[1], root)
				continue
			}
			tried++
			if err := command.ParseFlags(rest); err != nil && !errors.Is(err, pflag.ErrHelp) {
				t.Errorf("%s: flags of %q: got %v, want no error", name, match[1], err)
			}
		}
	}
	if tried < 40 {
		t.Errorf("only %d commands were found, want at least 40", tried)
	}
}

func TestVariablesOfThePagesExist(t *testing.T) {
	root := (&cli{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, lookup: os.LookupEnv}).rootCommand()
	for name, page := range pages(t) {
		for _, word := range regexp.MustCompile(`\bSOUVENIR_[A-Z_]+`).FindAllString(page, -1) {
			flag, exists := strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(word, "SOUVENIR_"), "_", "-")), false
			for _, command := range root.Commands() {
				exists = exists || command.Flags().Lookup(flag) != nil
			}
			if !exists && !slices.Contains(otherVariables, word) {
				t.Errorf("%s: got the flag %s, which no command has, want a known flag", name, word)
			}
		}
	}
}

// The programs of docs/embedding.md do what the page says.
func TestProgramsOfThePagesRun(t *testing.T) {
	longtest.Only(t)
	module, err := os.ReadFile(filepath.Join(repository, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	sums, err := os.ReadFile(filepath.Join(repository, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	here, err := filepath.Abs(repository)
	if err != nil {
		t.Fatal(err)
	}
	const path = "github.com/souvenir-ai/souvenir"
	const initialize = `{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18",
		"capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}}`
	folder, address := t.TempDir(), freeAddress(t)
	files := map[string]string{
		"go.sum": string(sums),
		"go.mod": strings.Replace(string(module), "module "+path+"\n", "module try\n", 1) +
			"\nrequire " + path + " v0.0.0\n\nreplace " + path + " => " + here + "\n",
	}
	programs := []struct{ has, in, out string }{
		{`ProjectName: "atlas"`, "", "Anna is allergic to peanuts."},
		{"tools.New(", "", "Tea is at four."},
		{"server.Serve(", "", "my application"},
		{"mcpserver.ServeStdio(", strings.ReplaceAll(initialize, "\n", " ") + "\n", `"protocolVersion":"2025-06-18"`},
		{`"letters-v1"`, "", "0 passages have vectors of letters-v1"},
	}
	found := 0
	for _, page := range pages(t) {
		for _, block := range regexp.MustCompile("(?s)```go\n(package main.*?)```").FindAllStringSubmatch(page, -1) {
			found++
			for i, p := range programs {
				if strings.Contains(block[1], p.has) {
					files["program"+strconv.Itoa(i)+"/main.go"] = strings.ReplaceAll(block[1], "127.0.0.1:8080", address)
				}
			}
		}
	}
	if found != len(programs) || len(files) != 2+found {
		t.Fatalf("got %d programs, want %d, one for each of %+v", found, len(programs), programs)
	}
	for name, content := range files {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(folder, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-s -w", "-o", folder+"/bin/", "./...")
	build.Dir = folder
	build.Env = append(os.Environ(), "GOFLAGS="+strings.TrimSpace(os.Getenv("GOFLAGS")+" -mod=mod"), "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	for i, p := range programs {
		var out bytes.Buffer
		answer := ""
		run := exec.CommandContext(t.Context(), filepath.Join(folder, "bin", "program"+strconv.Itoa(i)))
		run.Dir, run.Stdin, run.Stdout, run.Stderr = t.TempDir(), strings.NewReader(p.in), &out, &out
		if err := run.Start(); err != nil {
			t.Fatal(err)
		}
		if p.has == "server.Serve(" {
			answer = firstAnswer(t, "http://"+address+"/")
			if err := run.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
		}
		if err := run.Wait(); err != nil || !strings.Contains(answer+out.String(), p.out) {
			t.Errorf("the program with %s: got %v, %q and %q, want success and %q", p.has, err, answer, out.String(), p.out)
		}
	}
}

// freeAddress returns a loopback address on which nothing listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// firstAnswer returns the body of the first answer of a server that is starting.
func firstAnswer(t *testing.T, url string) string {
	t.Helper()
	for begun := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		r, err := http.Get(url)
		if err == nil {
			body, err := io.ReadAll(r.Body)
			if r.Body.Close(); err != nil {
				t.Fatal(err)
			}
			return string(body)
		}
		if time.Since(begun) > time.Minute {
			t.Fatalf("%s: got %v after a minute, want an answer", url, err)
		}
	}
}

// The operators' files set environment variables of existing flags, and call existing addresses.
func TestFilesForOperatorsSetExistingFlags(t *testing.T) {
	root := (&cli{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, lookup: os.LookupEnv}).rootCommand()
	serve, _, err := root.Find([]string{"serve"})
	if err != nil {
		t.Fatal(err)
	}
	tried := 0
	for _, name := range []string{"cmd/souvenir/compose.yaml", "packaging/kubernetes/souvenir.yaml",
		"packaging/systemd/souvenir.env", "packaging/container/Dockerfile"} {
		content, err := os.ReadFile(filepath.Join(repository, name))
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range regexp.MustCompile(`\bSOUVENIR_[A-Z_]+`).FindAllString(string(content), -1) {
			flag := strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(found, "SOUVENIR_")), "_", "-")
			if flag != "image" && serve.Flags().Lookup(flag) == nil {
				t.Errorf("%s sets %s, and serve has no flag --%s, want one", name, found, flag)
			}
			tried++
		}
	}
	if tried < 10 {
		t.Errorf("got %d variables, want at least 10", tried)
	}
}
