package sqlite

import (
	"net/url"
	"testing"
)

func TestWindowsPathsBecomeURIs(t *testing.T) {
	for path, want := range map[string]string{
		`C:\Users\a b\x.db`:   "/C:/Users/a%20b/x.db",
		`\\host\share\50%.db`: "//host/share/50%25.db",
		`C:/mixed\x?.db`:      "/C:/mixed/x%3F.db",
	} {
		if got := escapePath(uriPath(path, true)); got != want {
			t.Errorf("%s becomes %s, want %s", path, got, want)
		}
	}
}

func FuzzFileDSN(f *testing.F) {
	f.Add("/a b/c?mode=memory&x=#y%00.db")
	f.Add("/\xff")
	f.Fuzz(func(t *testing.T, path string) {
		u, err := url.Parse(fileDSN("/"+path, modeReadOnly))
		if err != nil {
			t.Fatal(err)
		}
		if u.Path != uriPath("/"+path, false) || u.Fragment != "" || u.Host != "" || u.Query().Get("mode") != "ro" ||
			len(u.Query()) != 2 {
			t.Errorf("%q becomes %v, want the path, with the mode ro", path, u)
		}
	})
}
