package questions

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
	"github.com/souvenir-ai/souvenir/internal/text"
)

func made(t *testing.T, size int) ([]Collection, []Question) {
	t.Helper()
	collections, questions, err := Make(size)
	if err != nil {
		t.Fatal(err)
	}
	return collections, questions
}

// memories returns the memories of a collection.
func memories(collections []Collection, name string) []Memory {
	for _, c := range collections {
		if c.Name == name {
			return c.Memories
		}
	}
	return nil
}

// evidence returns the memory that answers a question, and its place from 0 to 1.
func evidence(t *testing.T, collections []Collection, q Question) (Memory, float64) {
	t.Helper()
	all := memories(collections, q.Collection)
	for i, m := range all {
		if m.ID == q.Evidence {
			return m, float64(i) / float64(len(all))
		}
	}
	t.Fatalf("question %s names the memory %q, which is not in %s", q.ID, q.Evidence, q.Collection)
	return Memory{}, 0
}

func TestSetHasTheNumbersOfItsCard(t *testing.T) {
	written := 0
	for _, language := range Languages {
		m := makerOf(t, language)
		written += count(m.units)
	}
	if written < 1500 {
		t.Errorf("%d memories without distractors; at least 1,500 are promised, want at least 1500", written)
	}
	for _, size := range []int{100, DefaultSize} {
		collections, questions := made(t, size)
		byCategory, byLanguage, byHalf, ids := map[string]int{}, map[string]int{}, map[string]int{}, map[string]bool{}
		for _, q := range questions {
			byCategory[q.Category]++
			byLanguage[q.Language]++
			byHalf[q.Half]++
			ids[q.ID] = true
			if (q.Evidence == "") != (q.Category == Unanswerable) {
				t.Errorf("question %s of category %s has the evidence %q, got %v, want %v", q.ID, q.Category, q.Evidence,
					(q.Evidence == ""), (q.Category == Unanswerable))
			}
		}
		want := map[string]int{"decision": 30, "preference": 30, "bug": 30, "rule": 30, "conversation": 30, "identifier": 40,
			"paraphrase": 50, Unanswerable: 60}
		for category, n := range want {
			if byCategory[category] != n {
				t.Errorf("size %d: %d questions of category %s, want %d", size, byCategory[category], category, n)
			}
		}
		if len(ids) != 300 || byHalf["dev"] < 130 || byHalf["test"] < 130 {
			t.Errorf("size %d: %d questions, halves %v; want 300 in halves of at least 130", size, len(ids), byHalf)
		}
		for _, language := range Languages {
			if byLanguage[language] != 60 {
				t.Errorf("size %d: %d questions in %s, want 60", size, byLanguage[language], language)
			}
		}
		for _, c := range collections {
			if len(c.Memories) != size {
				t.Errorf("collection %s has %d memories, want %d", c.Name, len(c.Memories), size)
			}
		}
	}
}

func makerOf(t *testing.T, language string) *maker {
	t.Helper()
	content, err := files.ReadFile("texts/" + language + ".txt")
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := parse(language, string(content))
	if err != nil {
		t.Fatal(err)
	}
	m := &maker{texts: parsed, random: newRandom("questions " + language)}
	m.make()
	return m
}

// TestSetIsAlwaysTheSame pins the set, since figures of different sets cannot be compared. After an intended change,
// measure the figures of docs/retrieval.md again, and put the new hash here.
func TestSetIsAlwaysTheSame(t *testing.T) {
	collections, questions := made(t, DefaultSize)
	encoded, err := json.Marshal(struct {
		Collections []Collection
		Questions   []Question
	}{collections, questions})
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprintf("%x", sha256.Sum256(encoded)); got != setHash {
		t.Errorf("the set has the hash %s, want %s", got, setHash)
	}
}

const setHash = "e7ab571204eca4bc533476363da7bf68efb8df5d86c09abbb68f01cf022807d8"

func TestNoMemoryOrQuestionIsThereTwice(t *testing.T) {
	collections, questions := made(t, DefaultSize)
	for _, c := range collections {
		seen, ids := map[string]bool{}, map[string]bool{}
		for _, m := range c.Memories {
			key := strings.ToLower(strings.Join(strings.Fields(m.Text), " "))
			if seen[key] || ids[m.ID] {
				t.Errorf("%s: %s is there twice: %s", c.Name, m.ID, m.Text)
			}
			seen[key], ids[m.ID] = true, true
		}
	}
	seen := map[string]string{}
	for _, q := range questions {
		if other := seen[q.Text]; other != "" {
			t.Errorf("%s and %s ask the same: %s; want none", q.ID, other, q.Text)
		}
		seen[q.Text] = q.ID
	}
}

func TestTextsAreFilledIn(t *testing.T) {
	collections, questions := made(t, DefaultSize)
	for _, c := range collections {
		for _, m := range c.Memories {
			if strings.ContainsAny(m.Text, "{}|") || strings.Contains(m.Text, "  ") || m.Text == "" {
				t.Errorf("%s: %s: got %q, want a text without gaps or placeholders", c.Name, m.ID, m.Text)
			}
		}
	}
	for _, q := range questions {
		if strings.ContainsAny(q.Text, "{}|") || q.Text == "" {
			t.Errorf("%s: got %q, want a question without placeholders", q.ID, q.Text)
		}
	}
}

// TestOneMemoryAnswersAQuestion searches the texts for the fact that each question asks for: it is only in the named
// memory. If a question has no answer, it is in none.
func TestOneMemoryAnswersAQuestion(t *testing.T) {
	makers := map[string]*maker{}
	for _, language := range Languages {
		makers[language] = makerOf(t, language)
	}
	for i, size := range []int{100, DefaultSize} {
		if !longtest.Part(i, 1, 2) {
			continue
		}
		collections, questions := made(t, size)
		checked := 0
		for _, q := range questions {
			pattern := makers[q.Language].factAsked(q)
			if pattern == nil {
				continue
			}
			checked++
			var found []string
			for _, m := range memories(collections, q.Collection) {
				if pattern.MatchString(m.Text) {
					found = append(found, m.ID)
				}
			}
			want := []string{q.Evidence}
			if q.Evidence == "" {
				want = nil
			}
			if !slices.Equal(found, want) {
				t.Errorf("size %d: %s (%s) is answered by %v, want %v", size, q.ID, q.Text, found, want)
			}
		}
		if checked != 190 { // in each language: 24 and 6 frames without an answer, and 8 identifiers
			t.Errorf("size %d: %d questions were checked, want 190", size, checked)
		}
	}
}

// factAsked matches a memory that answers the question of a frame or about an identifier.
func (m *maker) factAsked(q Question) *regexp.Regexp {
	for _, f := range slices.Concat(m.frames, m.identifiers) {
		before, after, _ := strings.Cut(f.question, "{x}")
		if f.subjects == "" {
			before, after, _ = strings.Cut(f.question, "{id}")
		}
		asked, begins := strings.CutPrefix(q.Text, before)
		asked, ends := strings.CutSuffix(asked, after)
		if !begins || !ends {
			continue
		}
		var forms []string
		for _, wording := range f.wordings {
			form := regexp.QuoteMeta(strings.NewReplacer("{x}", asked, "{id}", asked, "{y}", "\x00").Replace(wording))
			form = strings.ReplaceAll(form, "\x00", ".+")
			if form[:2] == ".+" { // the first word is capitalized now
				form = form[2:]
			}
			forms = append(forms, form)
		}
		return regexp.MustCompile(strings.Join(forms, "|"))
	}
	return nil
}

// functionWords shape a sentence and say nothing about its subject. The analyser keeps many of them, so that they can
// be found.
var functionWords = map[string]string{
	"en": "how much more no not",
	"de": `der die das den dem des welche welcher welches um bei zu im in an am es gibt sich er sie mag muss musste bald
		keinen gegen unser unsere uns ein eine`,
	"es": `el la los las un una de del a al en por para se nos le y o que cuanto algun alguna más hay contra ahora muy me
		tiene esta`,
	"zh": "",
	"ja": "",
}

// TestParaphrasesShareNoContentWord compares the terms of question and memory, from the analyser that searches use. In
// Chinese and Japanese, terms are pairs of characters; pairs of hiragana alone are endings and particles.
func TestParaphrasesShareNoContentWord(t *testing.T) {
	collections, questions := made(t, DefaultSize)
	n := 0
	for _, q := range questions {
		if q.Category != "paraphrase" {
			continue
		}
		n++
		memory, _ := evidence(t, collections, q)
		stored := text.Terms(memory.Text)
		without := text.Terms(functionWords[q.Language])
		for _, term := range text.QueryTerms(q.Text) {
			if slices.Contains(stored, term.Text) && !slices.Contains(without, term.Text) && !isHiragana(term.Text) {
				t.Errorf("%s: %q is in the question (%s) and in the memory (%s); want it in neither", q.ID, term.Text,
					q.Text, memory.Text)
			}
		}
	}
	if n != 50 {
		t.Errorf("%d paraphrases, want 50", n)
	}
}

func isHiragana(s string) bool {
	for _, r := range s {
		if r < 'ぁ' || r > 'ん' {
			return false
		}
	}
	return true
}

func TestIdentifiersStandInLongTextsAmongSimilarOnes(t *testing.T) {
	collections, questions := made(t, DefaultSize)
	for _, q := range questions {
		if q.Category != "identifier" {
			continue
		}
		memory, _ := evidence(t, collections, q)
		if n := len(text.Terms(memory.Text)); n < 80 {
			t.Errorf("%s: the memory has %d terms; want a long text", q.ID, n)
		}
	}
}

// TestOnlyTextsLeadToAnswers checks that nothing makes the set easy without reading: the position of answers, ids and
// categories in texts or metadata, or a length that only answers have.
func TestOnlyTextsLeadToAnswers(t *testing.T) {
	collections, questions := made(t, DefaultSize)
	var thirds [3]int
	for _, q := range questions {
		if q.Evidence == "" {
			continue
		}
		memory, place := evidence(t, collections, q)
		thirds[int(place*3)]++
		encoded, err := json.Marshal(memory.Metadata)
		if err != nil {
			t.Fatal(err)
		}
		for _, secret := range []string{q.ID, memory.ID, memory.key} {
			if strings.Contains(string(encoded), secret) || strings.Contains(memory.Text, secret) ||
				strings.Contains(q.Text, secret) {
				t.Errorf("%s: %q is in the memory or the question: %s %s, want it in neither", q.ID, secret, memory.Text, encoded)
			}
		}
	}
	for i, n := range thirds {
		if n < 50 {
			t.Errorf("%d of 240 answers are in third %d of the collections; want them everywhere: %v", n, i+1, thirds)
		}
	}
	answers := map[string]bool{}
	for _, q := range questions {
		answers[q.Collection+q.Evidence] = true
	}
	for _, c := range collections {
		long := 0
		for _, m := range c.Memories {
			if !answers[c.Name+m.ID] && len(text.Terms(m.Text)) >= 80 {
				long++
			}
		}
		if long < 8 {
			t.Errorf("%s: %d long memories answer nothing; want as many as there are questions about long ones", c.Name, long)
		}
	}
}

func TestBadTextsAreRefused(t *testing.T) {
	for _, content := range []string{"no colon", "m: outside of a section", "frame: bug, cities", "syllables: a/b",
		"paraphrase:\nz: what", "projects: A\nframe: bug, projects\nz: what"} {
		if _, err := parse("en", content); err == nil {
			t.Errorf("%q: no error, want an error", content)
		}
	}
}
