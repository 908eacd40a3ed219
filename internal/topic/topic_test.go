package topic

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestGroupsAreNamedByTheirWords(t *testing.T) {
	texts := []string{
		"The deploy of Berth is on Thursdays.", "Deploys to production need two reviews.", "We deploy after the tests.",
		"Grandma's bread needs rye flour.", "The bread is baked at 230 degrees.", "Flour for the bread is from the mill.",
		"部署在星期四。", "我们的部署需要两次审查。", "部署之后运行测试。",
	}
	read := Read(texts)
	got := read.Names([][]int{{0, 1, 2}, {3, 4, 5}, {6, 7, 8}, nil}, 2)
	want := [][]string{{"deploy"}, {"bread", "flour"}, {"部署"}, {}}
	for i := range want {
		if len(got[i]) < len(want[i]) || !slices.Equal(got[i][:len(want[i])], want[i]) {
			t.Errorf("group %d: got %q, want %q first", i, got[i], want[i])
		}
	}
	if read.Languages[0] != "en" || read.Languages[7] != "Han" {
		t.Errorf("languages: got %q, want en first and Han eighth", read.Languages)
	}
}

func TestSharedWordsAreTheRarestFirst(t *testing.T) {
	read := Read([]string{"The team deploys Berth with Kubernetes.", "Kubernetes runs what the team deploys.",
		"The team deploys.", "The team eats.", "And the cat?", "Das Team deployt mit dem Ball.", ""})
	for _, test := range []struct {
		a, b int
		want []string
	}{
		{0, 1, []string{"Kubernetes", "deploys"}}, {1, 0, []string{"Kubernetes", "deploys"}}, {0, 3, []string{"team"}},
		{0, 4, []string{}}, {0, 6, []string{}},
	} {
		if got := read.Shared(test.a, test.b, 2); !slices.Equal(got, test.want) {
			t.Errorf("%d and %d: got %q, want %q", test.a, test.b, got, test.want)
		}
	}
}

// No stored text makes it fail, or takes more than its share of the names.
func TestOddTexts(t *testing.T) {
	for _, s := range []string{"", "\xff\xfe", "---", "'", "1 2 3", "的", "a", "\u0301", "x\x00y", "<script>"} {
		read := Read([]string{s, s, s})
		if got := read.Names([][]int{{0, 1, 2}}, 3); len(got) != 1 {
			t.Errorf("%q: got %q, want one group", s, got)
		}
		read.Shared(0, 1, 3)
	}
	long := ""
	for i := range 500 {
		long += fmt.Sprintf("word%c%c ", 'a'+i%26, 'a'+i/26)
	}
	if n := len(Read([]string{long}).words[0]); n != mostWords {
		t.Errorf("%d words of a long text count, want %d", n, mostWords)
	}
}

// The names of groups are content words in each language, even if other words are as typical of the group.
func TestNamesAreContentWords(t *testing.T) {
	for language, texts := range map[string][]string{
		"en": {"What happens never again: the ferry sank.", "It happens that one ferry is never full.",
			"Never happens: a big ferry."},
		"de": {"Wir bleiben immer noch bei der Fähre.", "Wir bleiben immer auf der Fähre.", "Die Fähre soll immer bleiben."},
		"es": {"Después compramos así el barco que está en el puerto.", "Después el barco es así de grande.",
			"El barco está así después."},
		"fr": {"Le bateau est toujours ici avec nous.", "Nous avons toujours le bateau ici.", "Le bateau est ici, toujours."},
		"it": {"La nave è sempre qui con noi, perché è così.", "La nave non è sempre qui.", "Così la nave è sempre qui."},
		"pt": {"O navio está sempre aqui com você, também.", "Também o navio não está sempre aqui.",
			"O navio está aqui também, sempre, por isso."},
		"nl": {"De veerboot is altijd hier bij ons.", "Wij zijn altijd op de veerboot hier.",
			"Hier is de veerboot altijd op tijd."},
		"Cyrillic": {"Паром всегда здесь, потому что так надо.", "Здесь всегда паром.", "Паром здесь всегда, потому что."},
	} {
		subject := map[string]string{"en": "ferry", "de": "fähre", "es": "barco", "fr": "bateau", "it": "nave",
			"pt": "navio", "nl": "veerboot", "Cyrillic": "паром"}[language]
		others := []string{"Kubernetes deploy", "Rye bread", "Kubernetes bread"}
		names := Read(append(texts, others...)).Names([][]int{{0, 1, 2}}, 3)[0]
		if len(names) == 0 || !strings.EqualFold(names[0], subject) || len(names) > 1 {
			t.Errorf("%s: got %q, want %q alone", language, names, subject)
		}
	}
}
