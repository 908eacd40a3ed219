package conventions

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// strange are words and phrases that read as translated. Name who acts, or say what happens.
var strange = []string{"nobody", "somebody", "anybody", "everybody", "whoever", "is told", "are told", "hears of",
	"of whom", "that there is", "that there are", "goes by", "shall", "so many as", "lives in", "lies in", "lie in",
	"turned down", "come along", "comes along", "as ever", "such a one", "stay behind", "stays behind", "some hundred",
	"hangs on it", "is still to come", "fits to", "granted are", "stands on", "stand on",
	"knows no", "know no"}

// scarce are phrases that read as translated where a noun would do, and how often code and documents may still have
// them. A number may only get smaller, and must if there are slack fewer.
var scarce = map[string]int{"whatever": 31, "of which": 45, "those that": 35, "is what": 29, "what became of": 3,
	"what is": 150, "anew": 20, "any more": 8, "exists already": 4, "is answered with": 16, "keys of users": 15,
	"leave it out": 4}

const slack = 10

// countScarce adds the occurrences of scarce words in a text.
func countScarce(text []byte, counts map[string]int) {
	words := strings.FieldsFunc(strings.ToLower(string(text)), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsNumber(r) && r != '\'' && r != '_'
	})
	joined := " " + strings.Join(words, "  ") + " "
	for word := range scarce {
		counts[word] += strings.Count(joined, " "+strings.ReplaceAll(word, " ", "  ")+" ")
	}
}

// strangeIn returns the first strange phrase of a text and the number of its line, or "". A single word in quotes is a
// name and allowed. A phrase may span two lines, also of a comment.
func strangeIn(text []byte) (word string, line int) {
	var joined []byte
	var starts []int // where each line starts in joined
	for line := range bytes.Lines(bytes.ToLower(text)) {
		starts = append(starts, len(joined))
		joined = append(append(joined, bytes.TrimLeft(bytes.TrimSpace(line), "/#> ")...), ' ')
	}
	inWord := func(at int) bool {
		if at < 0 || at >= len(joined) || bytes.HasPrefix(joined[at:], []byte("'s ")) {
			return false
		}
		return joined[at] >= 'a' && joined[at] <= 'z' || joined[at] == '"' || joined[at] == '\''
	}
	for _, word := range strange {
		for at := 0; ; at += len(word) {
			next := bytes.Index(joined[at:], []byte(word))
			if next < 0 {
				break
			}
			if at += next; !inWord(at-1) && !inWord(at+len(word)) && !bytes.HasSuffix(joined[:at], []byte("http.")) {
				line, _ := slices.BinarySearch(starts, at+1)
				return word, line
			}
		}
	}
	return "", 0
}

// strangeNames are further words that names of tests must not have.
var strangeNames = []string{"whatever", "whichever", "of which", "those that", "so many", "any more", "taken back",
	"put out"}

// testName matches the declaration of a test, and humps match where words of its name begin.
var (
	testName = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark|Example)\w+)\(`)
	humps    = regexp.MustCompile(`[A-Z_]`)
)

// strangeNameIn returns the first test of a source whose name has a strange word, and this word, or "".
func strangeNameIn(source []byte) (name, word string) {
	for _, m := range testName.FindAllSubmatch(source, -1) {
		words := strings.ToLower(humps.ReplaceAllString(string(m[1]), " $0")) + " "
		for _, word := range slices.Concat(strange, strangeNames) {
			if strings.Contains(words, " "+word+" ") {
				return string(m[1]), word
			}
		}
	}
	return "", ""
}

// TestTextsAreInPlainEnglish finds strange phrases in code, comments, documents and pages.
func TestTextsAreInPlainEnglish(t *testing.T) {
	atRoot(t)
	except := []string{
		"english_test.go",
		"internal/retrieval/similarity/wordclasses.go", "internal/text/stopwords.go", // words of languages
		"internal/sqlite/migrations", // a released one never changes
		"internal/seed", "internal/embedding/static/distill", "examples", "eval", "testdata", "exact_test.go",
		"tools/rules_test.go",
		"server/internal/dashboard/projecttodo_test.go", // invented memories
		"cmd/souvenir/cli_test.go", "server/routes_scenarios_test.go", "internal/testing/storetest/projectinvitations.go",
		"e2e/dashboard/flows/projects.mjs", // a user with this name
	}
	kinds := []string{".go", ".md", ".html", ".css", ".js", ".mjs", ".py", ".sh", ".yml", ".yaml", ".toml", ".service",
		".env", "Dockerfile", ".ci/run"} // how names end
	read, counts := 0, map[string]int{}
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		name := filepath.ToSlash(path)
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (name == ".git" || entry.Name() == "node_modules"),
			slices.Contains(except, name) || slices.Contains(except, entry.Name()):
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		case entry.IsDir() || !slices.ContainsFunc(kinds, func(kind string) bool { return strings.HasSuffix(name, kind) }):
			return nil
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		read++
		countScarce(content, counts)
		if word, line := strangeIn(content); word != "" {
			t.Errorf("%s:%d: got %q, want a plain word for it", name, line, word)
		}
		if test, word := strangeNameIn(content); word != "" {
			t.Errorf("%s: got %q in %s, want a plain word for it", name, word, test)
		}
		return nil
	})
	for word, most := range scarce {
		if got := counts[word]; got > most || got < most-slack {
			t.Errorf("%q: got it %d times, want at most %d: say it with a noun; with fewer, lower the number", word, got, most)
		}
	}
	for text, want := range map[string]string{"Name \"nobody\".\nIt is told so.": "is told",
		"// Name.\n\t// It is\n\t// told so.": "is told", "The 'nobody' user.\nThat is nobody's file.": "nobody"} {
		if word, line := strangeIn([]byte(text)); word != want || line != 2 {
			t.Errorf("%q: got %q in line %d, want %s in line 2", text, word, line, want)
		}
	}
	sample := []byte("func TestOne(t *testing.T) {}\nfunc TestATaskIsToldToNobody(t *testing.T) {}\n")
	if name, word := strangeNameIn(sample); name != "TestATaskIsToldToNobody" || word != "nobody" {
		t.Errorf("got %q in %q, want nobody in TestATaskIsToldToNobody", word, name)
	}
	if err != nil || read < 500 {
		t.Errorf("got %v after %d files, want at least 500 files", err, read)
	}
}
