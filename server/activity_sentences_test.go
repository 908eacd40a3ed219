package server_test

import (
	"encoding/json"
	"html"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
	"github.com/souvenir-ai/souvenir/server"
	"github.com/souvenir-ai/souvenir/server/internal/servertest"
	"github.com/souvenir-ai/souvenir/tools"
)

// The page shows every recorded call as a sentence: each action of a tool, each endpoint, and each change on a page.
func TestEveryRecordedCallIsASentence(t *testing.T) {
	w := servertest.New(t, server.Options{})
	var calls []souvenir.ToolAction
	for _, tool := range tools.List() {
		var takes struct {
			Properties struct {
				Action struct{ Enum []string } `json:"action"`
			} `json:"properties"`
		}
		if err := json.Unmarshal(tool.InputSchema, &takes); err != nil {
			t.Fatal(err)
		}
		actions := takes.Properties.Action.Enum
		if len(actions) == 0 {
			actions = []string{""}
		}
		for _, action := range actions {
			calls = append(calls, souvenir.ToolAction{Tool: tool.Name, Action: action})
		}
	}
	unrecorded := regexp.MustCompile(`^/(health|openapi\.json|api/activity|static)|/preview$`)
	for _, rt := range append(server.PageRoutes(), server.InterfaceRoutes()...) {
		page := rt.Method == http.MethodGet && !strings.HasPrefix(rt.Path, "/api/") && rt.Path != "/oauth/admin/clients"
		if !page && !unrecorded.MatchString(rt.Path) {
			calls = append(calls, souvenir.ToolAction{Tool: rt.Method + " " + rt.Path})
		}
	}
	b := w.SignedIn(servertest.Owner)
	for i, call := range calls {
		if !longtest.Part(i, 1, 6) {
			continue
		}
		n := souvenir.NewActivity{Client: "kite", Tool: call.Tool, Action: call.Action}
		n.Principal.Access.User = w.Users[servertest.Owner]
		if err := w.Store.Upkeep().RecordActivity(t.Context(), n); err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSpace(call.Tool + " " + call.Action)
		p := b.Get("/activity?client=kite")
		_, list, _ := strings.Cut(p.Body, `<div id="activity"`)
		sentence := regexp.MustCompile(`</a> ([^<]*)</p>`).FindStringSubmatch(list)
		if sentence == nil || strings.Contains(html.UnescapeString(sentence[1]), name) {
			t.Errorf("%s: got the sentence %q, want what was done in words", name, sentence)
		}
	}
	if len(calls) < 90 {
		t.Errorf("got %d kinds of calls, want at least 90", len(calls))
	}
}
