package server_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir/server"
)

// TestUnknownParametersOfQueriesAreRefused goes through every GET route of the API that the document describes.
func TestUnknownParametersOfQueriesAreRefused(t *testing.T) {
	w := newWorld(t, server.Options{PublicURL: "https://memory.example"})
	checked := 0
	for path, methods := range readDocument(t, w).Paths {
		if _, gets := methods["get"]; !gets || !strings.HasPrefix(path, "/api/") {
			continue
		}
		checked++
		for _, method := range []string{"GET", "HEAD"} {
			a := w.do(owner, method, strings.NewReplacer("{id}", "x", "{user}", "x").Replace(path)+"?limt=1", "")
			if a.expect(http.StatusBadRequest); method == "GET" && !strings.Contains(a.body, "limt") {
				t.Errorf("%s answers %s", path, a.body)
			}
		}
		if a := w.do(guest, "GET", strings.NewReplacer("{id}", "x", "{user}", "x").Replace(path)+"?limt=1",
			""); a.status != http.StatusUnauthorized {
			t.Errorf("%s tells a guest %d %s; want %v", path, a.status, a.body, http.StatusUnauthorized)
		}
	}
	if checked < 8 {
		t.Errorf("only %d routes were looked at, want at least 8", checked)
	}
	for path, status := range map[string]int{
		"/api/files?limit=1&offset=0&tags=a&token=x": http.StatusOK, "/api/activity?limit=1&token=x": http.StatusOK,
		"/api/projects?token=x": http.StatusOK,
		"/health?x=1":           http.StatusOK, "/tools?x=1": http.StatusOK,
		"/.well-known/oauth-authorization-server?x=1": http.StatusOK,
	} {
		w.do(owner, "GET", path, "").expect(status)
	}
	a := w.do(owner, "GET", "/api/files?project=x", "").expect(http.StatusBadRequest)
	for _, name := range []string{"project_id", "project_name", "memory_id", "tags"} {
		if !strings.Contains(a.body, name) {
			t.Errorf("the error names no %s: %s", name, a.body)
		}
	}
}

// TestParametersGivenTwiceAreRefused does so, too: of two values the endpoint would use one and ignore the other.
func TestParametersGivenTwiceAreRefused(t *testing.T) {
	w := newWorld(t, server.Options{})
	checked := 0
	for path, methods := range readDocument(t, w).Paths {
		get, gets := methods["get"]
		if !gets || !strings.HasPrefix(path, "/api/") {
			continue
		}
		for _, p := range get.Parameters {
			if p.In != "query" {
				continue
			}
			checked++
			query := url.QueryEscape(p.Name) + "=1&" + url.QueryEscape(p.Name) + "=2"
			a := w.do(owner, "GET", strings.NewReplacer("{id}", "x", "{user}", "x").Replace(path)+"?"+query, "")
			a.expect(http.StatusBadRequest, p.Name, "is given 2 times")
		}
	}
	if checked < 10 {
		t.Errorf("only %d parameters were looked at, want at least 10", checked)
	}
	w.do(owner, "GET", "/api/files?token=x&token=y", "").expect(http.StatusBadRequest)
}

func TestTagsOfAFormAreAListHoweverTheyAreWritten(t *testing.T) {
	w := newWorld(t, server.Options{})
	for name, fields := range map[string][]part{
		"JSON":           {{name: "tags", value: `["a","b, c"]`}},
		"JSON in tags[]": {{name: "tags[]", value: ` ["a", "b, c"] `}},
		"repeated":       {{name: "tags[]", value: "a"}, {name: "tags[]", value: "b, c"}},
	} {
		a := w.upload(owner, append(fields, part{name: "file", filename: "f.txt", value: "text"})...).expect(http.StatusOK)
		var stored server.ChangedFile
		if a.decode(&stored); !slices.Equal(stored.File.Tags, []string{"a", "b, c"}) {
			t.Errorf("%s: %q", name, stored.File.Tags)
		}
	}
}
