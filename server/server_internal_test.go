package server

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/failure"
	"github.com/souvenir-ai/souvenir/server/internal/request"
	"github.com/souvenir-ai/souvenir/server/internal/upload"
)

// panicking is a server with routes that panic.
func panicking(t *testing.T) (at *httptest.Server, log *strings.Builder) {
	t.Helper()
	store, err := souvenir.Open(t.Context(), filepath.Join(t.TempDir(), "panic.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	log = &strings.Builder{}
	s := New(store, &Options{Logger: slog.New(slog.NewTextHandler(log, nil))})
	s.mux.HandleFunc("/before", func(http.ResponseWriter, *http.Request) { panic("before the answer") })
	s.mux.HandleFunc("/within", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, strings.Repeat("x", 10_000))
		panic("within the answer")
	})
	s.mux.HandleFunc("/unwritable",
		func(w http.ResponseWriter, r *http.Request) { s.answer(w, r, http.StatusOK, func() {}) })
	at = httptest.NewServer(s)
	t.Cleanup(func() {
		at.Close()
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return at, log
}

func TestPanicsAreAnsweredAndLoggedOnce(t *testing.T) {
	at, log := panicking(t)
	for _, path := range []string{"/before", "/unwritable"} {
		response, err := http.Get(at.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil || response.StatusCode != http.StatusInternalServerError ||
			!strings.Contains(string(body), `"isError":true`) || strings.Contains(string(body), "panic") {
			t.Errorf(`%s: got %d %s %v, want no error, status code %v, "isError":true and no "panic" in the body`,
				path, response.StatusCode, body, err, http.StatusInternalServerError)
		}
	}
	response, err := http.Get(at.URL + "/within")
	if err == nil {
		_, err = io.ReadAll(response.Body)
		response.Body.Close()
	}
	if err == nil {
		t.Error("an answer that broke off looks complete, want an error")
	}
	at.Close() // waits for the last request
	for _, what := range []string{`panic="before the answer"`, `panic="within the answer"`} {
		if n := strings.Count(log.String(), what); n != 1 {
			t.Errorf("%d times %s in\n%s; want 1", n, what, log.String())
		}
	}
	if strings.Count(log.String(), "msg=request") != 3 {
		t.Errorf("not every request is in the log, want 3:\n%s", log.String())
	}
}

func TestEveryKindHasAStatus(t *testing.T) {
	for kind, want := range map[souvenir.Kind]int{
		souvenir.KindInvalid: 400, souvenir.KindNotFound: 404, souvenir.KindUnauthenticated: 401, souvenir.KindForbidden: 403,
		souvenir.KindConflict: 400,
		souvenir.KindTooLarge: 400, souvenir.KindReadOnly: 403, souvenir.KindClosed: 500, souvenir.KindBusy: 503,
		souvenir.KindFull: 507, souvenir.KindForeign: 500, souvenir.KindOutcomeUnknown: 500,
		souvenir.KindNewer: 503, souvenir.KindCorrupt: 500, souvenir.KindInternal: 500,
	} {
		const cause = "the cause of it"
		status, message := failure.Describe(&souvenir.Error{Kind: kind, Message: cause})
		if status != want || (message == cause) != (want < 500) {
			t.Errorf("%s is %d %q, want the cause below 500 alone", kind, status, message)
		}
	}
	if status, message := failure.Describe(errors.New("a path of this machine")); status != 500 ||
		message != failure.Internal {
		t.Errorf("got %d %q, want status 500 and message %v", status, message, failure.Internal)
	}
}

func TestEveryRouteIsDescribed(t *testing.T) {
	known := operations()
	all := slices.DeleteFunc(roomsOnly("https://memory.example").routes(),
		func(rt dialectRoute) bool { return rt.dialect == request.Pages })
	for _, rt := range all {
		name := rt.Method + " " + rt.Pattern
		if known[name].summary == "" {
			t.Errorf("%s is not described: got %v, want a summary", name, known[name].summary)
		}
		delete(known, name)
	}
	for name := range known {
		t.Errorf("%s is described and not served", name)
	}
	var ids []string
	for _, rt := range all {
		ids = append(ids, operationID(rt.Route))
	}
	slices.Sort(ids)
	if len(slices.Compact(slices.Clone(ids))) != len(ids) {
		t.Errorf("ids of operations repeat: got %v, want each once", ids)
	}
}

// For any request id or path, a log entry stays one line and contains no token.
func FuzzLoggedPath(f *testing.F) {
	f.Add("/api/mcp-tokens/mcp_abc")
	f.Add("/mcp_/mcp_x/xmcp_mcp_y")
	f.Fuzz(func(t *testing.T, path string) {
		logged := withoutTokens(path)
		for rest := logged; ; {
			_, after, found := strings.Cut(rest, request.MCPTokenPrefix)
			if !found {
				break
			}
			if !strings.HasPrefix(after, "…") {
				t.Fatalf("%q is logged as %q, got %v, want at its start \"…\"", path, logged, after)
			}
			rest = after
		}
		if again := withoutTokens(logged); again != logged {
			t.Fatalf("without tokens once more: got %q, want %q", again, logged)
		}
	})
}

// Reading any form ends. An error says what is wrong with the form, and only a form with its last boundary counts as
// complete.
func FuzzForm(f *testing.F) {
	f.Add([]byte("--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\ntext\r\n--x--\r\n"))
	f.Add([]byte("--x\r\nContent-Disposition: form-data; name=\"tags[]\"\r\n\r\na\r\n--x\r\nContent-Disposition: " +
		"form-data; name=\"category\"\r\n\r\nb\r\n--x--"))
	f.Add([]byte("preamble\r\n--x\r\n\r\n--x\r\nContent-Dis"))
	s := &Server{options: Options{MaxBody: 1 << 20}}
	f.Fuzz(func(t *testing.T, body []byte) {
		r := httptest.NewRequest(http.MethodPost, "/api/files/upload", bytes.NewReader(body))
		r.Header.Set("Content-Type", "multipart/form-data; boundary=x")
		in, err := upload.Open(r, s.options.MaxBody)
		if err != nil {
			t.Fatal(err)
		}
		var fields upload.Fields
		for {
			part, err := in.ReadFields(&fields)
			if err != nil {
				if status, _ := failure.Describe(err); status != http.StatusBadRequest {
					t.Fatalf("%d %v, want %v", status, err, http.StatusBadRequest)
				}
				return
			}
			if part == nil {
				break
			}
			if _, err := io.Copy(io.Discard, part); err != nil {
				return
			}
		}
		if !bytes.Contains(body, []byte("--x--")) {
			t.Fatalf(`%q counts as a complete form, want "--x--" in the body`, body)
		}
	})
}

// A lock by another process, and a full disk, are reported with advice, without names of server files.
func TestTemporaryFailuresAreNotInternalErrors(t *testing.T) {
	s := &Server{log: slog.New(slog.DiscardHandler)}
	for kind, want := range map[souvenir.Kind]int{souvenir.KindBusy: http.StatusServiceUnavailable,
		souvenir.KindFull:     http.StatusInsufficientStorage,
		souvenir.KindInternal: http.StatusInternalServerError, souvenir.KindCorrupt: http.StatusInternalServerError} {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodPost, "/tools/call", nil)
		r = r.WithContext(request.With(r.Context(), &request.State{}))
		s.fail(w, r, fmt.Errorf("storing: %w", &souvenir.Error{Kind: kind, Message: "/srv/memory.db is locked"}))
		if w.Code != want || strings.Contains(w.Body.String(), "/srv") {
			t.Errorf("%s: got %d %s, want %d without the file's name", kind, w.Code, w.Body, want)
		}
		if again := w.Header().Get("Retry-After"); (again != "") != (want == http.StatusServiceUnavailable) {
			t.Errorf("%s: got Retry-After %q, want it only with status 503", kind, again)
		}
	}
}
