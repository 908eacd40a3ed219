package souvenir

import (
	"path/filepath"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/souvenir-ai/souvenir/internal/filetype"
)

func TestCleanFilename(t *testing.T) {
	for name, want := range map[string]string{
		"plan.txt":                          "plan.txt",
		"":                                  "file",
		".":                                 "file",
		"..":                                "file",
		"/":                                 "file",
		" ... ":                             "file",
		"../../etc/passwd":                  "passwd",
		`C:\Users\ann\My Plan.docx`:         "My Plan.docx",
		`mixed/and\last.md`:                 "last.md",
		".bashrc":                           ".bashrc",
		"trailing. . ":                      "trailing",
		"what?:now|*.txt":                   "what__now__.txt",
		"a\x00b\nc\x7f.txt":                 "abc.txt",
		"annexe\u202egnp.exe":               "annexegnp.exe",
		"in\u200bvis\ufeffible\u2028":       "invisible",
		"tab\u00a0and\u3000wide":            "tab and wide",
		"cafe\u0301.txt":                    "caf\u00e9.txt",
		"bad\xff\xfebytes":                  "bad_bytes",
		"CON":                               "_CON",
		"nul.tar.gz":                        "_nul.tar.gz",
		"COM¹.txt":                          "_COM¹.txt",
		"Lpt1 .txt":                         "_Lpt1 .txt",
		"console.log":                       "console.log",
		"日本語のファイル.pdf":                      "日本語のファイル.pdf",
		"👩\u200d🚀.png":                      "👩\u200d🚀.png",
		strings.Repeat("a", 300) + ".tar":   strings.Repeat("a", 251) + ".tar",
		strings.Repeat("ä", 200) + ".md":    strings.Repeat("ä", 126) + ".md",
		strings.Repeat("a", 300):            strings.Repeat("a", 255),
		"x." + strings.Repeat("long", 100):  "x." + strings.Repeat("long", 63) + "l",
		strings.Repeat("a", 250) + " .json": strings.Repeat("a", 250) + ".json",
	} {
		if got := CleanFilename(name); got != want {
			t.Errorf("CleanFilename(%q) is %q, want %q", name, got, want)
		}
	}
}

func FuzzFilename(f *testing.F) {
	for _, name := range []string{"plan.txt", `C:\a\b.txt`, "../..", "con.txt", "a\u202eb", "e\u0301", "<\u0338", "a\xffb",
		strings.Repeat("ä.", 200), "con" + strings.Repeat(" ", 300) + "x.txt", "\u212bngstr\u00f6m"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		clean := CleanFilename(name)
		switch {
		case clean == "" || clean == "." || clean == "..":
			t.Errorf("%q becomes %q", name, clean)
		case len(clean) > filetype.MaxFilename:
			t.Errorf("%q becomes %d bytes long", name, len(clean))
		case !utf8.ValidString(clean) || !norm.NFC.IsNormalString(clean):
			t.Errorf("%q becomes %q, which is not in normal form", name, clean)
		case strings.ContainsAny(clean, `/\<>:"|?*`) || strings.TrimRight(clean, " .") != clean ||
			filepath.Base(clean) != clean:
			t.Errorf("%q becomes %q", name, clean)
		case strings.ContainsFunc(clean,
			func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) }):
			t.Errorf("%q becomes %q, with what is not seen", name, clean)
		case CleanFilename(clean) != clean:
			t.Errorf("%q becomes %q, then %q", name, clean, CleanFilename(clean))
		}
	})
}
