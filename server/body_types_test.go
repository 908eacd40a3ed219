package server

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/json/jsonobject"
)

var (
	readsBody = regexp.MustCompile(`read(?:JSON|OAuthForm)\(w, r, &(\w+)\)`)
	taken     = regexp.MustCompile(`takes\[([\w.]+)\]`)
	freeForm  = "map[string]any" // of preferences
)

// The document describes each body by the type that its handler reads, and no other type.
func TestBodiesAreDescribedByTheTypesThatAreRead(t *testing.T) {
	operations, err := os.ReadFile("operations.go")
	if err != nil {
		t.Fatal(err)
	}
	described := map[string]bool{"uploadForm": false} // it is read as a stream, into upload.Fields
	for _, found := range taken.FindAllStringSubmatch(string(operations), -1) {
		described[found[1]] = false
	}
	if len(described) < 9 {
		t.Errorf("operations.go names %d types of bodies, want at least 9", len(described))
	}
	files, err := filepath.Glob("*.go")
	more, err2 := filepath.Glob("internal/authserver/*.go")
	if err != nil || err2 != nil {
		t.Fatal(err, err2)
	}
	for _, file := range append(files, more...) {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		for _, at := range readsBody.FindAllStringSubmatchIndex(string(source), -1) {
			before, variable := string(source[:at[0]]), string(source[at[2]:at[3]])
			name := before[strings.LastIndex(before, "var "+variable+" ")+len("var "+variable+" "):]
			name, _, _ = strings.Cut(name, "\n")
			switch {
			case name == freeForm:
				continue
			case name == "souvenir.ClientRegistration": // it is read as this
				name = "clientmeta.Metadata"
			case strings.HasPrefix(file, "internal"):
				name = "authserver." + name
			}
			if _, known := described[name]; !known {
				t.Errorf("%s reads a body into %s, want takes[%s] in operations.go", file, name, name)
			}
			described[name] = true
		}
	}
	described["uploadForm"] = jsonobject.Fields(&uploadForm{})["memory_id"] != nil
	for name, read := range described {
		if !read {
			t.Errorf("operations.go describes %s, want a handler that reads it", name)
		}
	}
}
