package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/extract"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

const modelKey = "sk-secret-0123456789"

// factModel serves /chat/completions and /messages. Its model takes each turn that begins with "Fact: " for a fact. It
// counts the requests; before each answer it calls hold with the request's number.
func factModel(t *testing.T, hold func(n int)) (url string, requests *atomic.Int64) {
	t.Helper()
	requests = &atomic.Int64{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := requests.Add(1)
		var body struct{ Messages []struct{ Content string } }
		var said struct {
			Turns []struct {
				Turn int
				Text string
			}
		}
		err := json.NewDecoder(r.Body).Decode(&body)
		if err == nil {
			err = json.Unmarshal([]byte(body.Messages[len(body.Messages)-1].Content), &said)
		}
		if key := r.Header.Get("Authorization") + r.Header.Get("X-Api-Key"); err != nil ||
			strings.TrimPrefix(key, "Bearer ") != modelKey {
			http.Error(w, "wrong key "+key, http.StatusUnauthorized)
			return
		}
		if hold != nil {
			hold(int(n))
		}
		proposed := []map[string]any{}
		for _, turn := range said.Turns {
			if fact, ok := strings.CutPrefix(turn.Text, "Fact: "); ok {
				proposed = append(proposed, map[string]any{"action": "add", "content": fact, "memory": 0,
					"turns": []int{turn.Turn}, "reason": "It was said.", "confidence": 0.9})
			}
		}
		answer := map[string]any{"proposals": proposed}
		text, _ := json.Marshal(answer)
		reply := map[string]any{"choices": []any{map[string]any{"message": map[string]any{"content": string(text)}}},
			"usage": map[string]int{"prompt_tokens": 100, "completion_tokens": 10}}
		if r.URL.Path == "/v1/messages" {
			reply = map[string]any{"content": []any{map[string]any{"type": "tool_use", "name": "proposals", "input": answer}},
				"stop_reason": "tool_use", "usage": map[string]int{"input_tokens": 100, "output_tokens": 10}}
		}
		_ = json.NewEncoder(w).Encode(reply)
	}))
	t.Cleanup(server.Close)
	return server.URL + "/v1", requests
}

// talk appends turns to a conversation of the store souvenir.db in a folder.
func talk(t *testing.T, store *souvenir.Store, project, key string, texts ...string) {
	t.Helper()
	turns := make([]souvenir.Turn, len(texts))
	for i, text := range texts {
		turns[i] = souvenir.Turn{Role: "user", Content: text}
	}
	_, err := store.Conversation(key, souvenir.ConversationPlace{ProjectID: project}).Append(t.Context(), turns...)
	if err != nil {
		t.Fatal(err)
	}
}

// waits returns the number of pending proposals in a store.
func waits(t *testing.T, store *souvenir.Store) int {
	t.Helper()
	n, err := extract.NewReviewer(store).Count(t.Context(), 1000, nil)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestLearnKeepsProposalsForReview(t *testing.T) {
	c := call{dir: t.TempDir()}
	store := openStore(t, filepath.Join(c.dir, "souvenir.db"))
	url, requests := factModel(t, nil)
	c.env = []string{"SOUVENIR_MODEL=m", "SOUVENIR_MODEL_URL=" + url, "SOUVENIR_MODEL_KEY=" + modelKey}
	if got, want := c.ok(t, "learn"), "read 0 turns; completed 0 conversations\n"; !strings.HasPrefix(got, want) {
		t.Errorf("an empty store: got %q, want %q", got, want)
	}
	talk(t, store, "", "first", "Fact: Anna works in Kiel.", "Hello.", "Fact: 商店五月起八点开门。")
	talk(t, store, "atlas", "second", "Fact: The code is \x1b[31mred\u202e.")
	dry := decode[learned](t, c.ok(t, "learn", "--dry-run", "--json"))
	if !dry.DryRun || len(dry.Kept) != 3 || dry.Turns != 4 || dry.Conversations != 2 || waits(t, store) != 0 {
		t.Errorf("a dry run: got %+v and %d waiting, want three proposals and none", dry, waits(t, store))
	}
	got := c.ok(t, "learn")
	for _, part := range []string{"read 4 turns; completed 2 conversations",
		"asked the model 2 times: 200 tokens in, 20", "3 proposals: 3 for review, 0 applied", "waits for review",
		"商店五月起八点开门。"} {
		if !strings.Contains(got, part) {
			t.Errorf("got %q, want %q in it", got, part)
		}
	}
	if strings.ContainsAny(got, "\x1b\u202e") || waits(t, store) != 3 {
		t.Errorf("got %q and %d waiting, want plain text and three", got, waits(t, store))
	}
	before := requests.Load()
	if again := c.ok(t, "learn"); !strings.Contains(again, "read 0 turns; completed 2 conversations") ||
		requests.Load() != before {
		t.Errorf("again: got %q and %d requests, want nothing new", again, requests.Load()-before)
	}
	talk(t, store, "", "first", "Fact: Ben plays the cello in an orchestra.")
	got = c.ok(t, "learn", "first", "--review=false", "--model-api=anthropic")
	if !strings.Contains(got, "1 proposal: 0 for review, 1 applied") || waits(t, store) != 3 {
		t.Errorf("applied: got %q and %d waiting, want one applied", got, waits(t, store))
	}
	if found := c.ok(t, "search", "who plays the cello?"); !strings.Contains(found, "Ben plays the cello") {
		t.Errorf("got %q, want the fact, found by meaning, too", found)
	}
}

func TestLearnSaysWhatIsWrong(t *testing.T) {
	longtest.Only(t)
	c := call{dir: t.TempDir()}
	c.fails(t, exitError, "there is no store", "learn", "--model=m", "--model-key="+modelKey)
	store := openStore(t, filepath.Join(c.dir, "souvenir.db"))
	talk(t, store, "", "same", "Fact: Anna works in Kiel.")
	talk(t, store, "atlas", "same", "Fact: The code is red.")
	url, requests := factModel(t, nil)
	c.fails(t, exitUsage, "--model is missing", "learn")
	c.fails(t, exitUsage, "--model is missing", "learn", "--model-url", url)
	c.fails(t, exitUsage, "--model-key-file is missing", "learn", "--model=m")
	c.fails(t, exitUsage, "--model-url is not a URL", "learn", "--model=m", "--model-url=floppy")
	c.fails(t, exitUsage, `--model-api is "floppy"; give chat or anthropic`, "learn", "--model=m", "--model-api=floppy")
	c.fails(t, exitUsage, "--max-calls is -1", "learn", "--max-calls=-1")
	c.fails(t, exitUsage, "--max-tokens is -1", "learn", "--max-tokens=-1")
	c.fails(t, exitUsage, "omit CONVERSATION", "learn", "same", "--consolidate")
	c.env = []string{"SOUVENIR_MODEL=m", "SOUVENIR_MODEL_URL=" + url, "SOUVENIR_MODEL_KEY=" + modelKey}
	c.fails(t, exitError, `no conversation "other"`, "learn", "other")
	c.fails(t, exitUsage, `"same" exists in several projects|--project`, "learn", "same")
	c.fails(t, exitError, "--project: ", "learn", "--project=nowhere")
	if requests.Load() != 0 {
		t.Errorf("got %d requests, want none before all is in order", requests.Load())
	}
	if got := c.ok(t, "learn", "same", "--project=atlas"); !strings.Contains(got, "The code is red.") ||
		strings.Contains(got, "Kiel") {
		t.Errorf("got %q, want the fact of the project alone", got)
	}
	c.env = append(c.env, "SOUVENIR_MODEL_KEY=sk-wrong-0123456789")
	o := c.run(t, "learn")
	if o.code != exitError || !strings.Contains(o.stderr, `conversation "same"`) ||
		strings.Contains(o.stderr, "sk-wrong") {
		t.Errorf("a wrong key: got %+v, want an error without the key", o)
	}
}

func TestLearnKeepsToItsBudgetAndGoesOn(t *testing.T) {
	longtest.Only(t)
	c := call{dir: t.TempDir()}
	store := openStore(t, filepath.Join(c.dir, "souvenir.db"))
	talk(t, store, "", "first", "Fact: Anna works in Kiel.")
	talk(t, store, "", "second", "Fact: Ben plays the cello.")
	url, _ := factModel(t, nil)
	c.env = []string{"SOUVENIR_MODEL=m", "SOUVENIR_MODEL_URL=" + url, "SOUVENIR_MODEL_KEY=" + modelKey}
	for _, bound := range []string{"--max-tokens=50", "--max-calls=1", "--max-tokens=1700"} {
		o := c.run(t, "learn", bound)
		if o.code != exitOK || !strings.Contains(o.stderr, "a limit was reached") && waits(t, store) < 2 {
			t.Errorf("%s: got %+v, want that a limit was reached", bound, o)
		}
		if want := map[string]int{"--max-tokens=50": 0, "--max-calls=1": 1, "--max-tokens=1700": 2}[bound]; waits(t,
			store) != want {
			t.Errorf("%s: got %d waiting, want %d", bound, waits(t, store), want)
		}
	}
}

func TestLearnConsolidatesWithoutAModel(t *testing.T) {
	c := call{dir: t.TempDir()}
	store := openStore(t, filepath.Join(c.dir, "souvenir.db"))
	for _, text := range []string{"The deployment runs every Thursday at noon.",
		"The deployment runs each Thursday at noon."} {
		if _, err := store.AddMemory(t.Context(), souvenir.NewMemory{Content: text}); err != nil {
			t.Fatal(err)
		}
	}
	if got := c.ok(t, "learn", "--consolidate", "--dry-run"); !strings.Contains(got, "would wait") ||
		waits(t, store) != 0 {
		t.Errorf("a dry run: got %q and %d waiting, want one proposal and none", got, waits(t, store))
	}
	if got := c.ok(t, "learn", "--consolidate"); !strings.Contains(got, "forget") || waits(t, store) != 1 {
		t.Errorf("got %q and %d waiting, want one to forget", got, waits(t, store))
	}
}

func TestAReaderOfAProjectLearnsNothingThereAndPaysForNothing(t *testing.T) {
	longtest.Only(t)
	c := call{dir: t.TempDir()}
	store := openStore(t, filepath.Join(c.dir, "souvenir.db"))
	for _, name := range []string{"anna", "ben"} {
		if _, err := store.Accounts().AddUser(t.Context(), souvenir.NewUser{ID: name, Name: name}); err != nil {
			t.Fatal(err)
		}
	}
	anna := store.As(souvenir.Access{User: "anna"})
	talk(t, anna, "atlas", "talk", "Fact: The code is red.")
	if _, err := store.AddMember(t.Context(), souvenir.NewMember{Project: souvenir.ProjectRef{ID: "anna/atlas"},
		User: "ben", Role: souvenir.MemberReader}); err != nil {
		t.Fatal(err)
	}
	url, requests := factModel(t, nil)
	c.env = []string{"SOUVENIR_MODEL=m", "SOUVENIR_MODEL_URL=" + url, "SOUVENIR_MODEL_KEY=" + modelKey}
	c.fails(t, exitUsage, "--user is missing", "learn")
	if got := c.ok(t, "learn", "--user=ben"); !strings.Contains(got, "read 0 turns; completed 0 conversations") {
		t.Errorf("got %q, want that conversations of others are passed over", got)
	}
	c.fails(t, exitError, "shared read-only", "learn", "--user=ben", "--project=atlas")
	if requests.Load() != 0 || waits(t, anna) != 0 {
		t.Errorf("got %d requests and %d waiting, want none", requests.Load(), waits(t, anna))
	}
}

func TestLearnIsInterruptedAndGoesOn(t *testing.T) {
	longtest.Only(t)
	c := call{dir: t.TempDir()}
	store := openStore(t, filepath.Join(c.dir, "souvenir.db"))
	for _, key := range []string{"first", "second", "third"} {
		talk(t, store, "", key, "Fact: The door of "+key+" is number "+key[:1]+".")
	}
	second := make(chan struct{})
	release := make(chan struct{})
	url, _ := factModel(t, func(n int) {
		if n == 2 {
			close(second)
			<-release
		}
	})
	defer close(release)
	c.env = []string{"SOUVENIR_MODEL=m", "SOUVENIR_MODEL_URL=" + url, "SOUVENIR_MODEL_KEY=" + modelKey}
	cmd := c.command(t.Context(), "learn")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-second:
	case <-time.After(30 * time.Second):
		t.Fatal("the model was not asked twice")
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	err := cmd.Wait()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != exitError || !strings.Contains(stderr.String(), "interrupted") ||
		!strings.Contains(stdout.String(), "read 1 turn; completed 1 conversation") {
		t.Errorf("got %v, %q and %q, want exit status 1 with what was done", err, stdout.String(), stderr.String())
	}
	if waits(t, store) != 1 {
		t.Errorf("got %d waiting, want the first", waits(t, store))
	}
	if got := c.ok(t, "learn"); !strings.Contains(got, "read 2 turns; completed 3 conversations") || waits(t, store) != 3 {
		t.Errorf("got %q and %d waiting, want the rest", got, waits(t, store))
	}
}
