package mcpserver

import (
	"strings"
	"testing"
)

func TestURIsAreReadAsTheyAreWritten(t *testing.T) {
	for _, id := range []string{"x", "anna/bridge", "The shop", "50%", "Größe", "..", "?#&", "a+b", "日本"} {
		for _, of := range []kind{kindProject, kindRules, kindTodo, kindMain, kindMemory, kindFile} {
			want := address{of, id}
			if got, ok := parseURI(want.uri()); !ok || got != want {
				t.Errorf("%s is read as %+v %v, want %+v", want.uri(), got, ok, want)
			}
		}
	}
	for _, of := range []kind{kindProjects, kindGeneralRules} {
		if got, ok := parseURI(address{kind: of}.uri()); !ok || got.kind != of {
			t.Errorf("%s is read as %+v, want kind %v", of, got, of)
		}
	}
}

// Every address that can be read names something, and its URI names the same.
func FuzzURI(f *testing.F) {
	for _, seed := range []string{"souvenir://projects/anna%2Fbridge/rules", "souvenir://memories/x",
		"souvenir://files/%zz", "souvenir://projects//main", "souvenir://rules", "souvenir://", "file:///x"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, uri string) {
		a, ok := parseURI(uri)
		if !ok {
			return
		}
		if again, ok := parseURI(a.uri()); !ok || again != a || !strings.HasPrefix(uri, uriStart) || a.id == "" &&
			a.kind != kindProjects && a.kind != kindGeneralRules {
			t.Errorf("%q is %+v, whose URI %q is %+v, want the same address back", uri, a, a.uri(), again)
		}
	})
}
