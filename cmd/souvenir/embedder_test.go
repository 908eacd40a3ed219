package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir"
)

// embeddings serves POST /embeddings, with one dimension for each of a few meanings.
func embeddings(t *testing.T, key string) string {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+key {
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = io.WriteString(w, `{"error":{"message":"wrong key `+r.Header.Get("Authorization")+`"}}`)
			return
		}
		var q struct{ Input []string }
		_ = json.NewDecoder(r.Body).Decode(&q) // an empty list also gets an answer
		data := []map[string]any{}
		for i, text := range q.Input {
			v := []float64{0.1, 0, 0}
			for at, words := range [][]string{{"Anna", "peanuts", "food"}, {"train", "railway"}, {"cello", "music"}} {
				for _, word := range words {
					if strings.Contains(text, word) {
						v[at]++
					}
				}
			}
			data = append(data, map[string]any{"index": i, "embedding": v})
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"data": data})
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func TestAnEmbedderIsChosenByFlagsAndTestedByTheDoctor(t *testing.T) {
	c := call{dir: t.TempDir()}
	const key = "sk-secret-0123456789"
	for name, content := range map[string]string{"key": key + "\n", "wrong": "sk-other-0123456789"} {
		if err := os.WriteFile(filepath.Join(c.dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	chosen := []string{"--embedder=openai", "--embedder-model=m", "--embedder-dimensions=3",
		"--embedder-url=" + embeddings(t, key)}
	with := func(file string, args ...string) []string {
		return append(append(args, chosen...), "--embedder-key-file="+file)
	}
	if got := c.ok(t, with("key", "doctor")...); !strings.Contains(got, "openai/m returns vectors with 3 dimensions") {
		t.Errorf("the doctor printed %q, want that the embedder works", got)
	}
	got := c.run(t, with("wrong", "doctor")...)
	if got.code != exitError || !strings.Contains(got.stdout, "401 Unauthorized") ||
		strings.Contains(got.stdout+got.stderr, "sk-other") {
		t.Errorf("with a wrong key: got %+v, want exit 1, 401 and no key", got)
	}

	path := filepath.Join(c.dir, "souvenir.db")
	store := openStore(t, path)
	if _, err := store.AddMemory(t.Context(), souvenir.NewMemory{Content: "The train leaves at eight."}); err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	c.ok(t, with("key", "reindex")...)
	if got := c.ok(t, with("key", "search", "railway")...); !strings.Contains(got, "The train leaves at eight.") {
		t.Errorf("a search by meaning printed %q, want the train", got)
	}
	c.ok(t, "purge") // without the flags: the store keeps its model
	if got := c.ok(t, with("key", "search", "railway")...); !strings.Contains(got, "The train leaves at eight.") {
		t.Errorf("after a command without the flags: a search by meaning printed %q, want the train", got)
	}
	c.ok(t, "reindex") // without the flags: the built-in model
	if got := c.run(t, with("key", "search", "railway")...); strings.Contains(got.stdout, "train") ||
		!strings.Contains(got.stderr, "words") {
		t.Errorf("after reindex without the flags: got %+v, want a search by words", got)
	}
}

func TestWrongEmbedderFlags(t *testing.T) {
	c := call{dir: t.TempDir()}
	for words, args := range map[string][]string{
		`--embedder is "word2vec"; give one of builtin, cohere`: {"--embedder=word2vec"},
		"the flags --embedder-... need --embedder":              {"--embedder-model=m"},
		"--embedder-key-file is missing":                        {"--embedder=voyage"},
		"--embedder-dimensions is 0":                            {"--embedder=ollama", "--embedder-model=unknown"},
		"--embedder-url is not a URL":                           {"--embedder=ollama", "--embedder-url=localhost"},
	} {
		c.fails(t, exitUsage, words, append([]string{"doctor"}, args...)...)
	}
	c.fails(t, exitUsage, "needs a URL, --embedder or --backups", "doctor")
}
