package web

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// The colours of the dark theme are defined twice: for readers whose system is dark, and for those who have chosen it.
func TestTheDarkThemeIsOne(t *testing.T) {
	for _, file := range []string{"static/souvenir.css", "static/dashboard.css"} {
		css, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		bySystem := regexp.MustCompile(`:root:not\(\[data-theme=light\]\) \{([^}]*)\}`).FindSubmatch(css)
		byChoice := regexp.MustCompile(`:root\[data-theme=dark\] \{([^}]*)\}`).FindSubmatch(css)
		if bySystem == nil || byChoice == nil {
			t.Fatalf("%s: got a block of colours missing, want both", file)
		}
		a := strings.Join(strings.Fields(string(bySystem[1])), " ")
		b := strings.Join(strings.Fields(strings.Replace(string(byChoice[1]), "color-scheme: dark;", "", 1)), " ")
		if a != b {
			t.Errorf("%s: got\n%s\nby the system, and\n%s\nby choice, want the same", file, a, b)
		}
	}
}
