package mcpserver_test

import (
	"net/url"
	"strings"
	"testing"
)

func TestSharedContentNamesItsOwner(t *testing.T) {
	w := newWorld(t)
	for who, marked := range map[string]bool{"writer": true, "owner": false} {
		session := w.as(who)
		ref := map[bool]string{true: "anna/bridge", false: "bridge"}[marked]
		texts := map[string]string{}
		for _, prompt := range []string{"load_project_context", "save_session", "review_gaps"} {
			texts["prompt "+prompt] = promptText(t, session, prompt, map[string]string{"project": ref})
		}
		texts["prompt review_gaps of all"] = promptText(t, session, "review_gaps", nil)
		for _, part := range []string{"main", "rules", "todo"} {
			texts["resource "+part] = get(t, session, "souvenir://projects/"+url.PathEscape(ref)+"/"+part).Text
		}
		texts["resource memory"] = get(t, session, "souvenir://memories/"+w.ids["pillars"]).Text
		for name, text := range texts {
			has := strings.Contains(text, "of anna, who shares it") ||
				strings.Contains(text, "belongs to anna, who shares it") || strings.Contains(text, `"anna/bridge", shared by anna`)
			if has != marked {
				t.Errorf("%s for the %s is marked: %v, want %v:\n%s", name, who, has, marked, text)
			}
		}
		for _, r := range list(t, session) {
			if of := strings.Contains(r.URI, "bridge") && !strings.Contains(r.URI, "dora"); of &&
				strings.Contains(r.Description, "hared by anna") != marked {
				t.Errorf("%s for the %s is described as %q, want %v", r.URI, who, r.Description, marked)
			}
		}
		text, _ := call(t, session, "memory", `{"action": "search", "query": "granite pillars"}`)
		if strings.Contains(text, `"shared_by":"anna"`) != marked {
			t.Errorf("search for the %s gives %s, want %v", who, text, marked)
		}
		text, _ = call(t, session, "memory", `{"action": "get_context", "project_id": "`+ref+`"}`)
		if strings.Contains(text, `"shared_by":"anna"`) != marked {
			t.Errorf("get_context for the %s gives %s, want %v", who, text, marked)
		}
	}
}
