package topic

import (
	"fmt"
	"slices"
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
		t.Errorf("languages: got %q", read.Languages)
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

// Nothing that is stored makes it fail, or takes more than its share of the names.
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
