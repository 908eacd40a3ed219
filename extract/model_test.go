package extract_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/extract"
)

var talk = extract.Conversation{Turns: []souvenir.Turn{{ID: "turn-1", Role: "user",
	Content: "Fact: Anna works in Kiel."}}}

func TestAnswersAreReadAsTheServicesDocumentThem(t *testing.T) {
	data, err := os.ReadFile("testdata/answers.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Name, API, Content, Error string
		Body                      json.RawMessage
		Input, Output             int
	}
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			requests := 0
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				requests++
				w.Header().Set("Content-Type", "application/json")
				_, _ = w.Write(c.Body)
			}))
			defer server.Close()
			x := (&model{Server: server}).chat(t)
			if c.API == "messages" {
				x = (&model{Server: server}).messages(t)
			}
			got, err := x.Extract(t.Context(), talk)
			if c.Error != "" {
				if !errors.Is(err, extract.ErrAnswer) || !strings.Contains(err.Error(), c.Error) {
					t.Errorf("got the error %v, want ErrAnswer with %q", err, c.Error)
				}
				if requests != 2 || got.Usage.Calls != 2 {
					t.Errorf("got %d requests and usage %+v, want 2 of each", requests, got.Usage)
				}
				return
			}
			if err != nil {
				t.Fatalf("got the error %v, want none", err)
			}
			if want := (extract.Usage{Calls: 1, InputTokens: c.Input, OutputTokens: c.Output}); got.Usage != want {
				t.Errorf("got usage %+v, want %+v", got.Usage, want)
			}
			if c.Content == "" && len(got.Proposals) > 0 {
				t.Errorf("got %+v, want no proposals", got.Proposals)
			}
			if c.Content != "" && (len(got.Proposals) != 1 || got.Proposals[0].Content != c.Content ||
				got.Proposals[0].Sources[0] != "turn-1") {
				t.Errorf("got %+v, want %q of turn-1", got.Proposals, c.Content)
			}
		})
	}
}

func TestBothServicesAreAskedAsDocumented(t *testing.T) {
	m := newModel(t, factual)
	for _, x := range []*extract.Model{m.chat(t), m.messages(t)} {
		got, err := x.Extract(t.Context(), talk)
		if err != nil || len(got.Proposals) != 1 || got.Proposals[0].Content != "Anna works in Kiel." {
			t.Errorf("got %+v and the error %v, want the fact", got, err)
		}
	}
}

func TestTemporaryFailuresAreTriedAgainAndKeysStayOutOfErrors(t *testing.T) {
	for _, status := range []int{429, 500, 529} {
		m := newModel(t, factual)
		m.fail = func(request int, w http.ResponseWriter) bool {
			if request == 1 {
				w.Header().Set("Retry-After", "0")
				w.WriteHeader(status)
			}
			return request == 1
		}
		if got, err := m.chat(t).Extract(t.Context(), talk); err != nil || len(got.Proposals) != 1 || m.count() != 2 {
			t.Errorf("%d: got %+v, the error %v and %d requests, want the fact after 2", status, got, err, m.count())
		}
	}
	m := newModel(t, factual)
	m.fail = func(_ int, w http.ResponseWriter) bool {
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, "the key "+testKey+" is not allowed")
		return true
	}
	_, err := m.chat(t).Extract(t.Context(), talk)
	if err == nil || strings.Contains(err.Error(), testKey) || !strings.Contains(err.Error(), "403") || m.count() != 1 {
		t.Errorf("got the error %v after %d requests, want 403 without the key after 1", err, m.count())
	}
	if shown := fmt.Sprintf("%+v %#v", m.chat(t), m.messages(t)); strings.Contains(shown, testKey) {
		t.Errorf("got %s, want no key", shown)
	}
}

func TestASlowModelIsATimeoutAndAnEndlessAnswerIsRefused(t *testing.T) {
	m := newModel(t, factual)
	end := make(chan struct{})
	defer close(end)
	m.fail = func(int, http.ResponseWriter) bool { <-end; return true }
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := m.chat(t).Extract(ctx, talk); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got the error %v, want the deadline's", err)
	}
	endless := newModel(t, func(document) any { return strings.Repeat(" ", 2<<20) })
	if _, err := endless.chat(t).Extract(t.Context(), talk); !errors.Is(err, extract.ErrAnswer) {
		t.Errorf("got the error %v, want ErrAnswer", err)
	}
}

func TestOptionsOfModelsAreChecked(t *testing.T) {
	for want, o := range map[string]extract.ModelOptions{
		"Model is empty":          {Key: "k"},
		"Key is empty":            {Model: "m"},
		"BaseURL is not a URL":    {Model: "m", Key: "k", BaseURL: "localhost:8000"},
		"BaseURL has a user":      {Model: "m", Key: "k", BaseURL: "http://a:b@localhost"},
		"MaxOutput is 5":          {Model: "m", Key: "k", MaxOutput: 5},
		"Timeout is -1ns":         {Model: "m", Key: "k", Timeout: -1},
		"Guidance has 8001 bytes": {Model: "m", Key: "k", Guidance: strings.Repeat("x", 8001)},
		"Key has spaces, control": {Model: "m", Key: "a\nb"},
	} {
		for _, f := range []func(extract.ModelOptions) (*extract.Model, error){extract.Chat, extract.Anthropic} {
			if _, err := f(o); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got the error %v, want one with %q", err, want)
			}
		}
	}
}
