package server_test

import (
	"github.com/souvenir-ai/souvenir/server/internal/servertest"

	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
	"github.com/souvenir-ai/souvenir/server"
)

// TestUnknownParametersOfQueriesAreRefused tries every GET route of the API in the document.
func TestUnknownParametersOfQueriesAreRefused(t *testing.T) {
	w := servertest.New(t, server.Options{PublicURL: "https://memory.example"})
	checked := 0
	for path, methods := range servertest.ReadDocument(t, w).Paths {
		if _, gets := methods["get"]; !gets || !strings.HasPrefix(path, "/api/") {
			continue
		}
		checked++
		for _, method := range []string{"GET", "HEAD"} {
			a := w.Do(servertest.Owner, method, strings.NewReplacer("{id}", "x", "{user}", "x").Replace(path)+"?limt=1", "")
			if a.Expect(http.StatusBadRequest); method == "GET" && !strings.Contains(a.Body, "limt") {
				t.Errorf(`%s answers %s, want "limt" in the body`, path, a.Body)
			}
		}
		if a := w.Do(servertest.Guest, "GET", strings.NewReplacer("{id}", "x", "{user}", "x").Replace(path)+"?limt=1",
			""); a.Status != http.StatusUnauthorized {
			t.Errorf("%s answers a guest with %d %s; want %v", path, a.Status, a.Body, http.StatusUnauthorized)
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
		w.Do(servertest.Owner, "GET", path, "").Expect(status)
	}
	a := w.Do(servertest.Owner, "GET", "/api/files?project=x", "").Expect(http.StatusBadRequest)
	for _, name := range []string{"project_id", "project_name", "memory_id", "tags"} {
		if !strings.Contains(a.Body, name) {
			t.Errorf("got the error %s, want one that names %s", a.Body, name)
		}
	}
}

// TestParametersGivenTwiceAreRefused does so, too. Otherwise the endpoint would use one of two values and ignore the
// other.
func TestParametersGivenTwiceAreRefused(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{})
	checked := 0
	for path, methods := range servertest.ReadDocument(t, w).Paths {
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
			a := w.Do(servertest.Owner, "GET", strings.NewReplacer("{id}", "x", "{user}", "x").Replace(path)+"?"+query, "")
			a.Expect(http.StatusBadRequest, p.Name, "is given 2 times")
		}
	}
	if checked < 10 {
		t.Errorf("only %d parameters were looked at, want at least 10", checked)
	}
	w.Do(servertest.Owner, "GET", "/api/files?token=x&token=y", "").Expect(http.StatusBadRequest)
}

func TestTagsOfAFormAreAListHoweverTheyAreWritten(t *testing.T) {
	w := servertest.New(t, server.Options{})
	for name, fields := range map[string][]servertest.Part{
		"JSON":           {{Name: "tags", Value: `["a","b, c"]`}},
		"JSON in tags[]": {{Name: "tags[]", Value: ` ["a", "b, c"] `}},
		"repeated":       {{Name: "tags[]", Value: "a"}, {Name: "tags[]", Value: "b, c"}},
	} {
		a := upload(w, servertest.Owner, append(fields, servertest.Part{Name: "file", Filename: "f.txt",
			Value: "text"})...).Expect(http.StatusOK)
		var stored server.ChangedFile
		if a.Decode(&stored); !slices.Equal(stored.File.Tags, []string{"a", "b, c"}) {
			t.Errorf("%s: got %q, want %v", name, stored.File.Tags, []string{"a", "b, c"})
		}
	}
}
