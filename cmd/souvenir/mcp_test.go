package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

// mcpProcess is a running "souvenir mcp" with its client.
type mcpProcess struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	stderr *bytes.Buffer // to be read after wait
	asked  int
}

// startMCP starts "souvenir mcp" and initializes the session.
func (c call) startMCP(t *testing.T, args ...string) *mcpProcess {
	t.Helper()
	cmd := c.command(t.Context(), append([]string{"mcp"}, args...)...)
	cmd.Stdin = nil
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p := &mcpProcess{cmd: cmd, in: in, out: bufio.NewReader(out), stderr: &bytes.Buffer{}}
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
	result, failure := p.ask("initialize",
		object{"protocolVersion": "2025-11-25", "capabilities": object{},
			"clientInfo": object{"name": "test", "version": "1"}})
	if failure != nil || !strings.Contains(string(result), `"souvenir"`) {
		p.in.Close()
		p.wait()
		t.Fatalf(`initialize: got %s, error %v, want no error and "souvenir" in the result; standard error: %s`, result,
			failure, p.stderr)
	}
	if err := p.send(object{"jsonrpc": "2.0", "method": "notifications/initialized"}); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *mcpProcess) send(message object) error {
	_, err := io.WriteString(p.in, compact(message)+"\n")
	return err
}

// ask sends a request and returns its result or error.
func (p *mcpProcess) ask(method string, params object) (json.RawMessage, error) {
	p.asked++
	if err := p.send(object{"jsonrpc": "2.0", "id": p.asked, "method": method, "params": params}); err != nil {
		return nil, err
	}
	line, err := p.out.ReadString('\n')
	if err != nil {
		return nil, err
	}
	var answer struct {
		ID     int
		Result json.RawMessage
		Error  *struct{ Message string }
	}
	if err := json.Unmarshal([]byte(line), &answer); err != nil {
		return nil, fmt.Errorf("%w: %s", err, line)
	}
	switch {
	case answer.ID != p.asked:
		return nil, fmt.Errorf("the answer to %d is %s", p.asked, line)
	case answer.Error != nil:
		return nil, errors.New(answer.Error.Message)
	}
	return answer.Result, nil
}

// memory calls the tool memory.
func (p *mcpProcess) memory(arguments object) (string, error) {
	result, err := p.ask("tools/call", object{"name": "memory", "arguments": arguments})
	if err != nil {
		return "", err
	}
	var called struct {
		IsError bool
		Content []struct{ Text string }
	}
	if err := json.Unmarshal(result, &called); err != nil {
		return "", err
	}
	if called.IsError {
		return "", errors.New(called.Content[0].Text)
	}
	return called.Content[0].Text, nil
}

func (p *mcpProcess) store(t *testing.T, content string) {
	t.Helper()
	if _, err := p.memory(object{"action": "store", "content": content}); err != nil {
		t.Fatal(err)
	}
}

// finds reports whether a search finds a text.
func (p *mcpProcess) finds(t *testing.T, text string) bool {
	t.Helper()
	found, err := p.memory(object{"action": "search", "query": text})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Contains(found, text)
}

func (p *mcpProcess) tools(t *testing.T) []string {
	t.Helper()
	result, err := p.ask("tools/list", object{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range decode[struct{ Tools []struct{ Name string } }](t, string(result)).Tools {
		names = append(names, tool.Name)
	}
	return names
}

// wait waits for the end and returns the exit status.
func (p *mcpProcess) wait() int {
	_, _ = io.Copy(io.Discard, p.out)
	_ = p.cmd.Wait()
	return p.cmd.ProcessState.ExitCode()
}

// end ends the input. The process must print nothing more, and remove the file's log.
func (p *mcpProcess) end(t *testing.T) {
	t.Helper()
	p.in.Close()
	if code := p.wait(); code != exitOK || p.stderr.Len() > 0 {
		t.Errorf("exit status %d, standard error %q; want 0 and nothing", code, p.stderr)
	}
}

func TestMCPServesTheFileOfItsUser(t *testing.T) {
	c := newStore(t)
	p := c.startMCP(t, "--user", "anna")
	p.store(t, "The spare key lies under the third pot.")
	if !p.finds(t, "The spare key lies under the third pot.") || !p.finds(t, "The kettle in the kitchen is blue.") {
		t.Error("got no hit for one of anna's memories, want both found")
	}
	if p.finds(t, "Trains to Husum leave on the hour.") {
		t.Error("ben's memory is found for anna, want it hidden")
	}
	if names := p.tools(t); len(names) != 8 {
		t.Errorf("the tools are %q; want the eight", names)
	}
	p.end(t)
	if _, err := os.Stat(filepath.Join(c.dir, "souvenir.db-wal")); err == nil {
		t.Error("the log of the file is left behind, want an error")
	}
	if found := c.ok(t, "search", "spare key", "--user", "anna"); !strings.Contains(found, "third pot") {
		t.Errorf(`what was stored is not in the file: %s, want "third pot" in it`, found)
	}
}

func TestMCPAnswersAllRequestsBeforeTheEndOfInput(t *testing.T) {
	c := newStore(t)
	c.stdin = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},` +
		`"clientInfo":{"name":"test","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
this is no message
{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"memory","arguments":{"action":"search",` +
		`"query":"kettle"}}}
{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"memory","arguments":{"action":"store","content":"` +
		strings.Repeat("x ", 5<<20) + `"}}}
{"jsonrpc":"2.0","id":4,"method":"resources/list"}
{"jsonrpc":"2.0","id":5,"method":"ping"}`
	o := c.run(t, "mcp", "--user", "anna")
	if o.code != exitOK || strings.Count(o.stdout, "\n") != 6 {
		t.Fatalf("exit status %d, standard output %q, standard error %q; want 0 and six answers", o.code, o.stdout, o.stderr)
	}
	answers := map[string]string{}
	for line := range strings.Lines(o.stdout) {
		answer := decode[struct {
			ID    json.RawMessage
			Error struct{ Code int }
		}](t, line)
		answers[string(answer.ID)] = fmt.Sprint(answer.Error.Code)
	}
	if want := map[string]string{"1": "0", "2": "0", "3": "-32600", "4": "0", "5": "0",
		"null": "-32700"}; fmt.Sprint(answers) != fmt.Sprint(want) {
		t.Errorf("answers: %v; want %v", answers, want)
	}
	if !strings.Contains(o.stdout, "kettle in the kitchen") || strings.Count(o.stderr, "\n") != 1 ||
		!strings.Contains(o.stderr, "too long") {
		t.Errorf("standard output %q, standard error %q; want what was found, and a warning of what was too long", o.stdout,
			o.stderr)
	}
}

func TestMCPMakesTheFileAtItsFirstStart(t *testing.T) {
	c := call{dir: t.TempDir()}
	path := filepath.Join(c.dir, "my memories.db")
	p := c.startMCP(t, "--db", path)
	p.store(t, "The first thing to remember.")
	p.end(t)
	if found := c.ok(t, "search", "first thing", "--db", path); !strings.Contains(found, "The first thing to remember.") {
		t.Errorf(`what was stored is not in the file: %s, want "The first thing to remember." in it`, found)
	}
}

func TestReadOnlyMCPChangesNothing(t *testing.T) {
	c := newStore(t)
	before := readFolder(t, c.dir)
	p := c.startMCP(t, "--user", "anna", "--read-only")
	if !p.finds(t, "The kettle in the kitchen is blue.") {
		t.Error("got no hit for anna's memory of the kettle, want it found")
	}
	if names := p.tools(t); slices.Contains(names, "create_collection") || !slices.Contains(names, "memory") {
		t.Errorf("the tools are %q; want the ones that read", names)
	}
	if _, err := p.memory(object{"action": "store", "content": "no"}); err == nil {
		t.Error("a memory was stored, want an error")
	}
	p.end(t)
	if after := readFolder(t, c.dir); fmt.Sprint(before) != fmt.Sprint(after) {
		t.Errorf("the file has changed: got %v, want %v", fmt.Sprint(before), fmt.Sprint(after))
	}
}

func TestMCPOffersTheChosenTools(t *testing.T) {
	longtest.Only(t)
	c := newStore(t)
	c.env = []string{"SOUVENIR_TOOLSETS=chatgpt", "SOUVENIR_USER=anna"}
	p := c.startMCP(t)
	if names := p.tools(t); !slices.Equal(names, []string{"search", "fetch"}) {
		t.Errorf("the tools are %q; want search and fetch", names)
	}
	p.end(t)
	p = c.startMCP(t, "--toolsets", "memory, chatgpt")
	if names := p.tools(t); len(names) != 10 {
		t.Errorf("the tools are %q; want ten", names)
	}
	p.end(t)
}

func TestMCPRefusesADisabledUser(t *testing.T) {
	longtest.Only(t)
	c := newStore(t)
	c.ok(t, "user", "disable", "ben")
	c.fails(t, exitError, "ben is disabled|souvenir user enable ben", "mcp", "--user", "ben")
}

func TestMCPLeavesForeignFilesAsTheyAre(t *testing.T) {
	c := call{dir: t.TempDir()}
	if err := os.WriteFile(filepath.Join(c.dir, "notes.txt"), []byte(strings.Repeat("not a store\n", 100)),
		0o600); err != nil {
		t.Fatal(err)
	}
	before := readFolder(t, c.dir)
	c.fails(t, exitError, "notes.txt|not a Souvenir store", "mcp", "--db", "notes.txt")
	if after := readFolder(t, c.dir); fmt.Sprint(before) != fmt.Sprint(after) {
		t.Errorf("the folder has changed: got %v, want %v", fmt.Sprint(before), fmt.Sprint(after))
	}
}

func TestMCPEndsBySignal(t *testing.T) {
	longtest.Only(t)
	c := newStore(t)
	for _, signal := range []os.Signal{syscall.SIGTERM, os.Interrupt} {
		p := c.startMCP(t, "--user", "anna")
		p.store(t, fmt.Sprintf("It got the signal %s.", signal))
		if err := p.cmd.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		if code := p.wait(); code != exitOK || p.stderr.Len() > 0 {
			t.Errorf("%s: exit status %d, standard error %q; want 0 and nothing", signal, code, p.stderr)
		}
		if _, err := os.Stat(filepath.Join(c.dir, "souvenir.db-wal")); err == nil {
			t.Errorf("%s: the log of the file is left behind, want an error", signal)
		}
	}
}

func TestMCPClosesTheFileWhenItsClientIsGone(t *testing.T) {
	c := newStore(t)
	cmd := c.command(t.Context(), "mcp", "--user", "anna")
	cmd.Stdin = nil
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	out.Close()
	_, _ = io.WriteString(in, `{"jsonrpc":"2.0","id":1,"method":"ping"}`+"\n")
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != exitError ||
		!strings.Contains(stderr.String(), "can no longer be reached") {
		t.Errorf("exit status %d, standard error %q; want 1, and that the client can no longer be reached", code, &stderr)
	}
	if _, err := os.Stat(filepath.Join(c.dir, "souvenir.db-wal")); err == nil {
		t.Error("the log of the file is left behind, want an error")
	}
}

func TestMCPFindsTheFile(t *testing.T) {
	longtest.Only(t)
	root := t.TempDir()
	elsewhere := func(name string) call {
		folder := filepath.Join(root, name)
		if err := os.MkdirAll(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		return call{dir: folder, env: atHome(filepath.Join(root, "home"))}
	}
	client, first, second := elsewhere("client"), elsewhere("first"), elsewhere("second")
	finds := func(text string) bool {
		t.Helper()
		p := client.startMCP(t)
		defer p.end(t)
		return p.finds(t, text)
	}
	p := client.startMCP(t)
	p.store(t, "This is in the data folder.")
	p.end(t)
	if left := readFolder(t, client.dir); len(left) > 0 {
		t.Errorf("it left something in its working directory: %v, want none", left)
	}
	if !finds("This is in the data folder.") {
		t.Error("the memory in the data folder is not found again, want it found")
	}

	server := first.start(t, "serve", "--listen", "127.0.0.1:0", "--db", "of a server.db")
	p = client.startMCP(t)
	p.store(t, "This is in the file of a server.")
	beside := client.startMCP(t)
	if !beside.finds(t, "This is in the file of a server.") || beside.finds(t, "This is in the data folder.") {
		t.Error("got the memories of another file, want only the memory in the file of the server")
	}
	beside.end(t)
	p.end(t)
	if found := first.ok(t, "search", "server", "--db", "of a server.db"); !strings.Contains(found,
		"This is in the file of a server.") {
		t.Errorf("the server's file lacks a stored memory: %s; want in it \"This is in the file of a server.\"",
			found)
	}

	same := first.start(t, "serve", "--listen", "127.0.0.1:0", "--db", "of a server.db")
	if !finds("This is in the file of a server.") {
		t.Error("the memory in the file of two servers is not found, want it found")
	}
	same.stop(t)
	other := second.start(t, "serve", "--listen", "127.0.0.1:0")
	client.fails(t, exitError, "--db is missing|of a server.db|"+filepath.Join("second", "souvenir.db"), "mcp")
	if found := second.startMCP(t); true { // souvenir.db is in its working directory
		found.end(t)
	}
	other.stop(t)
	if err := server.cmd.Process.Kill(); err != nil { // its leftovers are recognized as old
		t.Fatal(err)
	}
	_ = server.cmd.Wait()
	if !finds("This is in the data folder.") {
		t.Error("without servers, the memory in the data folder is not found, want it found")
	}
}

func TestManyMCPProcessesAndAServerShareAFile(t *testing.T) {
	longtest.Only(t)
	c := newStore(t)
	token := strings.TrimSpace(c.ok(t, "token", "add", "--user", "anna", "--name", "test"))
	server := c.start(t, "serve", "--listen", "127.0.0.1:0")
	const processes, each = 4, 10
	var clients []*mcpProcess
	for range processes {
		clients = append(clients, c.startMCP(t, "--user", "anna"))
	}
	var writing sync.WaitGroup
	name := func(process, i int) string { return fmt.Sprintf("Process %d stored thing %d.", process, i) }
	for process, p := range clients {
		writing.Go(func() {
			for i := range each {
				if _, err := p.memory(object{"action": "store", "content": name(process, i)}); err != nil {
					t.Error(err)
				}
				// What one process has answered, every other process finds in its next search. Here, the process itself searches.
				if found, err := p.memory(object{"action": "search", "query": name(process, i)}); err != nil ||
					!strings.Contains(found, name(process, i)) {
					t.Errorf("%s is not found: %v, want no error and a hit", name(process, i), err)
				}
			}
		})
	}
	for i := range each {
		status, body := request(t, "POST", server.url+"/tools/call", token, strings.NewReader(compact(object{
			"name": "memory", "arguments": object{"action": "store", "content": name(processes, i)}})))
		if status != http.StatusOK {
			t.Errorf("%d %s; want %v", status, body, http.StatusOK)
		}
	}
	writing.Wait()
	for process := range processes + 1 {
		if !clients[0].finds(t, name(process, each-1)) {
			t.Errorf("the first process does not find %s, want it found", name(process, each-1))
		}
	}
	for _, p := range clients {
		p.end(t)
	}
	server.stop(t)
	store := openStore(t, filepath.Join(c.dir, "souvenir.db"))
	anna, err := store.Accounts().GetUser(t.Context(), "anna")
	if err != nil {
		t.Fatal(err)
	}
	times := map[string]int{}
	for m, err := range store.As(souvenir.Access{User: anna.ID}).Memories(t.Context(), souvenir.MemoryList{}) {
		if err != nil {
			t.Fatal(err)
		}
		times[m.Content]++
	}
	for process := range processes + 1 {
		for i := range each {
			if times[name(process, i)] != 1 {
				t.Errorf("%s is there %d times; want once", name(process, i), times[name(process, i)])
			}
		}
	}
	c.ok(t, "check")
}

func TestMCPRecordsCalls(t *testing.T) {
	c := call{dir: t.TempDir()}
	p := c.startMCP(t, "--db", "new.db")
	p.store(t, "what only its owner may read")
	if _, err := p.memory(object{"action": "retrieve", "id": "nowhere"}); err == nil {
		t.Error("a memory was found, want an error")
	}
	p.end(t)
	store, err := souvenir.Open(t.Context(), filepath.Join(c.dir, "new.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	page, err := store.Insights().ActivityPage(t.Context(), souvenir.ActivityQuery{})
	if err != nil || len(page.Activities) != 3 {
		t.Fatalf("recorded are %+v, %v; got %v, want 3", page, err, len(page.Activities))
	}
	for i, want := range []string{"memory retrieve not_found", "memory store ok", "initialize  ok"} {
		a := page.Activities[i]
		if got := a.Tool + " " + a.Action + " " + string(a.Outcome); got != want || a.Client != "test 1" ||
			a.User != souvenir.LocalUser || a.Credential != (souvenir.Credential{}) {
			t.Errorf("a call is %+v, want %s", a, want)
		}
	}
}
