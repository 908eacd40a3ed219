package server_test

import (
	"github.com/souvenir-ai/souvenir/server/internal/servertest"

	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir/server"
)

var update = flag.Bool("update", false, "rewrite testdata from what the tests get")

// section is a part of a transcript in txtar format; the file's comment says what it is about.
type section struct{ name, text string }

// readTranscript parses a file.
func readTranscript(t *testing.T, path string) (comment string, sections []section) {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(content)) {
		name, isMarker := strings.CutPrefix(strings.TrimSpace(line), "-- ")
		switch {
		case isMarker && strings.HasSuffix(name, " --"):
			sections = append(sections, section{name: strings.TrimSuffix(name, " --")})
		case len(sections) == 0:
			comment += line
		default:
			sections[len(sections)-1].text += line
		}
	}
	return comment, sections
}

// TestMCPTranscripts sends the requests of testdata/mcp and compares the answers byte for byte, except for values that
// are new in each run. The section's name says how to send a request ("request, as reader"); lines before the message
// are headers. To rewrite the answers:
//
//	go test ./server -run Transcripts -update
func TestMCPTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/mcp/*.txtar")
	if err != nil || len(files) < 2 {
		t.Fatalf("%d transcripts, %v; want at least 2", len(files), err)
	}
	for _, path := range files {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			w := servertest.New(t, server.Options{Version: "1.2.3"})
			comment, sections := readTranscript(t, path)
			steady := steady(w)
			got := comment
			for i, s := range sections {
				caller, isRequest := strings.CutPrefix(s.name, "request, as ")
				if !isRequest {
					continue
				}
				answer := steady(replay(w, caller, s.text))
				got += "-- " + s.name + " --\n" + s.text + "-- answer --\n" + answer
				if *update {
					continue
				}
				if i+1 == len(sections) || sections[i+1].name != "answer" {
					t.Fatalf(`section %d has no answer; -update writes it, want i + 1 other than %v and name "answer"`, i+1,
						len(sections))
				}
				if want := sections[i+1].text; answer != want {
					t.Errorf("section %d, %s\nis answered\n%s\nwant\n%s", i+1, s.text, answer, want)
				}
			}
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// replay sends a request and returns its answer: status, the headers that matter to clients, and the indented body.
func replay(w *servertest.World, caller, request string) string {
	w.T.Helper()
	head, body, _ := strings.Cut(request, "\n\n")
	method := http.MethodPost
	headers := []string{}
	for line := range strings.Lines(head) {
		name, value, isHeader := strings.Cut(strings.TrimSpace(line), ": ")
		if !isHeader {
			method = name
			continue
		}
		headers = append(headers, name, value)
	}
	ids := strings.NewReplacer("{memory}", w.Memory, "{private}", w.Private, "{file}", w.File)
	r := w.Request(caller, method, "/mcp", strings.NewReader(ids.Replace(body)))
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], ids.Replace(headers[i+1]))
	}
	a := w.Send(r)
	var b strings.Builder
	fmt.Fprintf(&b, "%d %s\n", a.Status, http.StatusText(a.Status))
	for _, name := range []string{"Content-Type", "Cache-Control", "Allow", "Www-Authenticate"} {
		if value := a.Header.Get(name); value != "" {
			fmt.Fprintf(&b, "%s: %s\n", name, value)
		}
	}
	b.WriteString("\n")
	var indented bytes.Buffer
	if json.Indent(&indented, []byte(a.Body), "", "  ") == nil {
		b.WriteString(strings.TrimSpace(indented.String()) + "\n")
	} else {
		b.WriteString(strings.TrimSpace(a.Body) + "\n")
	}
	return b.String()
}

var (
	anyID   = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	anyTime = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)
	anyHash = regexp.MustCompile(`[0-9a-f]{64}`)
)

// steady returns a function that replaces ids and times, which are new in each run, with names.
func steady(w *servertest.World) func(string) string {
	names := map[string]string{w.Memory: "{memory}", w.Private: "{private}", w.File: "{file}", w.Hidden: "{hidden}"}
	for caller, id := range w.Users {
		names[id] = "{user " + caller + "}"
	}
	unknown := 0
	return func(text string) string {
		text = anyID.ReplaceAllStringFunc(text, func(id string) string {
			if names[id] == "" {
				unknown++
				names[id] = fmt.Sprintf("{id %d}", unknown)
			}
			return names[id]
		})
		return anyHash.ReplaceAllString(anyTime.ReplaceAllString(text, "{time}"), "{hash}")
	}
}
