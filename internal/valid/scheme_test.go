package valid_test

import (
	"testing"

	"github.com/souvenir-ai/souvenir/internal/valid"
)

func TestAddressesHaveASchemeAndPathsHaveNone(t *testing.T) {
	for place, want := range map[string]string{
		"postgres://anna@db/x": "postgres", "ENGINE://x": "engine", "x+tls://": "x+tls",
		"": "", "notes.db": "", "C://notes.db": "", `C:\notes.db`: "", "/a/b://c": "", "./b://c": "", "file:notes.db": "",
	} {
		if got := valid.Scheme(place); got != want {
			t.Errorf("the scheme of %q: got %q, want %q", place, got, want)
		}
	}
}
