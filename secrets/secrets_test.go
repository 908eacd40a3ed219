package secrets_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
	"github.com/souvenir-ai/souvenir/secrets"
)

// Invented secrets, each in two parts so that scanners of this repository do not find them.
const (
	awsKey = "AKIA" + "Y7QW3ERTU5OPASDF"
	github = "ghp_" + "x7Kd93kfLq02mZpRtB5vNcY81HsWgJ6uAeT4"
	header = "-----BEGIN RSA " + "PRIVATE KEY-----"
	body   = "MIIEowIBAAKCAQEAx7Kd93kfLq02mZpRtB5vNcY81HsWgJ6uAeT4qPzXoI3nVbEr\nMIIEowIBAAKCAQEAx7Kd93kfLq02mZpRtB5v\n"
	key    = header + "\n" + body + "-----END RSA " + "PRIVATE KEY-----"
)

// wordsOf returns the words of all rules, sorted.
func wordsOf(tb testing.TB) []string {
	tb.Helper()
	var known struct{ Rules []struct{ Keywords []string } }
	content, err := os.ReadFile("rules.json")
	if err == nil {
		err = json.Unmarshal(content, &known)
	}
	if err != nil {
		tb.Fatal(err)
	}
	all := map[string]bool{}
	for _, r := range known.Rules {
		for _, w := range r.Keywords {
			all[w] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

func newFinder(tb testing.TB, mode secrets.Mode) *secrets.Finder {
	tb.Helper()
	f, err := secrets.New(mode)
	if err != nil {
		tb.Fatal(err)
	}
	return f
}

func TestSecretsAreFoundWhereTheyAre(t *testing.T) {
	f := newFinder(t, secrets.Mask)
	for text, want := range map[string]string{
		"":                           "",
		"We deploy on Thursdays.":    "We deploy on Thursdays.",
		"The key is " + awsKey + ".": "The key is [secret: aws-access-token].",
		"token=" + github + " and\n" + awsKey + "\n":  "token=[secret: github-pat] and\n[secret: aws-access-token]\n",
		"密钥是 " + github + " 。":                        "密钥是 [secret: github-pat] 。",
		"Here:\n" + key + "\nend":                     "Here:\n[secret: private-key]\nend",
		header + "\ncut off":                          header + "\ncut off",
		`api_key = "q8Zt5xNw2LpV7rYb3KdM9sHf"`:        `api_key = "[secret: generic-api-key]"`,
		"AKIAIOSFODNN7EXAMPLE is in the manual":       "AKIAIOSFODNN7EXAMPLE is in the manual",
		"key: 0b1f0d5e-4c1e-4a57-9f0e-2f6f3b8f1c44":   "key: 0b1f0d5e-4c1e-4a57-9f0e-2f6f3b8f1c44",
		`token="0b1f0d5e-4c1e-4a57-9f0e-2f6f3b8f1c4"`: `token="[secret: generic-api-key]"`,
		`api_key = "changeme"`:                        `api_key = "changeme"`,
		"commit 420a0f55f4a7a03dfe701ceb1f4f66a7c68b26b4 fixed the token": "commit " +
			"420a0f55f4a7a03dfe701ceb1f4f66a7c68b26b4 fixed the token",
	} {
		if got, _, whole := f.MaskText(text); got != want || !whole {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

// open opens a store with hooks that handle secrets.
func open(t *testing.T, mode secrets.Mode) *souvenir.Store {
	t.Helper()
	store, err := souvenir.Open(t.Context(), filepath.Join(t.TempDir(), "store.db"),
		&souvenir.Options{Hooks: []souvenir.Hooks{newFinder(t, mode).Hooks()}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return store
}

func TestFlaggedMemoriesNameTheRulesUntilTheSecretIsGone(t *testing.T) {
	s := open(t, secrets.Flag)
	added, err := s.AddMemory(t.Context(), souvenir.NewMemory{Content: "use " + awsKey,
		Metadata: map[string]any{"a": map[string]any{"token": github}}})
	if err != nil {
		t.Fatal(err)
	}
	flag := func() any {
		m, err := s.GetMemory(t.Context(), added.ID)
		if err != nil {
			t.Fatal(err)
		}
		return m.Metadata[secrets.Key]
	}
	if got, want := fmt.Sprint(flag()), "[aws-access-token github-pat]"; got != want {
		t.Errorf("got %v, want %v", got, want)
	}
	clean := "use the key in the vault"
	if _, err := s.UpdateMemory(t.Context(), added.ID, souvenir.MemoryUpdate{Content: &clean,
		Metadata: map[string]any{"a": nil}}); err != nil {
		t.Fatal(err)
	}
	if got := flag(); got != nil {
		t.Errorf("after the secret is gone got %v, want no flag", got)
	}
	again := "use " + github
	if _, err := s.UpdateMemory(t.Context(), added.ID, souvenir.MemoryUpdate{Content: &again}); err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(flag()), "[github-pat]"; got != want {
		t.Errorf("after an update got %v, want %v", got, want)
	}
}

// A part that an update leaves unchanged still has its secret.
func TestAFlagStaysWhileAnotherPartHasASecret(t *testing.T) {
	s := open(t, secrets.Flag)
	clean := "nothing to see"
	for name, c := range map[string]struct {
		memory souvenir.NewMemory
		update souvenir.MemoryUpdate
		want   string
	}{
		"tags": {souvenir.NewMemory{Content: "use " + awsKey, Tags: []string{github}},
			souvenir.MemoryUpdate{Content: &clean}, "[github-pat]"},
		"metadata": {souvenir.NewMemory{Content: "use " + awsKey, Metadata: map[string]any{"a": github, "b": "c"}},
			souvenir.MemoryUpdate{Content: &clean, Metadata: map[string]any{"b": nil}}, "[github-pat]"},
		"the text": {souvenir.NewMemory{Content: "use " + awsKey, Metadata: map[string]any{"a": github}},
			souvenir.MemoryUpdate{Metadata: map[string]any{"a": nil}}, "[aws-access-token]"},
		"another of the metadata": {souvenir.NewMemory{Content: "x", Metadata: map[string]any{"a": github, "b": awsKey}},
			souvenir.MemoryUpdate{Metadata: map[string]any{"a": "gone"}}, "[aws-access-token]"},
		"a key": {souvenir.NewMemory{Content: "x " + awsKey, Metadata: map[string]any{github: "b"}},
			souvenir.MemoryUpdate{Content: &clean}, "[github-pat]"},
		"nothing": {souvenir.NewMemory{Content: "x", Metadata: map[string]any{github: "b"}, Tags: []string{awsKey}},
			souvenir.MemoryUpdate{Metadata: map[string]any{github: nil}, Tags: &[]string{}}, "<nil>"},
		"only the tags are gone": {souvenir.NewMemory{Content: "x", Tags: []string{awsKey}},
			souvenir.MemoryUpdate{Tags: &[]string{"密钥"}}, "<nil>"},
		"both": {souvenir.NewMemory{Content: "use " + awsKey}, souvenir.MemoryUpdate{Tags: &[]string{github}},
			"[aws-access-token github-pat]"},
		"an update without texts": {souvenir.NewMemory{Content: "use " + awsKey},
			souvenir.MemoryUpdate{Importance: new(souvenir.ImportanceHigh)}, "[aws-access-token]"},
	} {
		added, err := s.AddMemory(t.Context(), c.memory)
		if err != nil {
			t.Fatal(err)
		}
		changed, err := s.UpdateMemory(t.Context(), added.ID, c.update)
		if got := fmt.Sprint(changed.Metadata[secrets.Key]); err != nil || got != c.want {
			t.Errorf("%s: got %v, %v; want %v", name, got, err, c.want)
		}
	}
	if _, err := s.UpdateMemory(t.Context(), "none", souvenir.MemoryUpdate{Content: &clean}); !errors.Is(err,
		souvenir.ErrNotFound) {
		t.Errorf("an unknown memory gives %v, want ErrNotFound", err)
	}
}

func TestKeysOfMetadataAreMasked(t *testing.T) {
	s := open(t, secrets.Mask)
	added, err := s.AddMemory(t.Context(), souvenir.NewMemory{Content: "x",
		Metadata: map[string]any{github: "a", "ghp_" + "y7Kd93kfLq02mZpRtB5vNcY81HsWgJ6uAeT4": "b", "ok": "c"}})
	want := "map[[secret: github-pat]:a [secret: github-pat] 2:b ok:c]"
	if got := fmt.Sprint(added.Metadata); err != nil || got != want {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
	_, err = open(t, secrets.Refuse).AddMemory(t.Context(), souvenir.NewMemory{Content: "x",
		Metadata: map[string]any{"a": map[string]any{github: "b"}}})
	if !errors.Is(err, souvenir.ErrInvalid) {
		t.Errorf("a key in an object gives %v, want ErrInvalid", err)
	}
}

// everywhere stores text in every place that hooks reach, and returns the stored texts.
func everywhere(t *testing.T, s *souvenir.Store, text string) (stored []string, errs []error) {
	t.Helper()
	id, err := s.AddMemory(t.Context(), souvenir.NewMemory{Content: "clean", ProjectID: "p"})
	if err != nil {
		t.Fatal(err)
	}
	read := func(err error) {
		errs = append(errs, err)
		for m, err := range s.Memories(t.Context(), souvenir.MemoryList{}) {
			if err != nil {
				t.Fatal(err)
			}
			stored = append(stored, fmt.Sprint(m.Content, m.Metadata, m.Tags))
		}
	}
	_, err = s.AddMemory(t.Context(), souvenir.NewMemory{Content: text})
	read(err)
	_, err = s.AddMemory(t.Context(), souvenir.NewMemory{Content: "x", Metadata: map[string]any{"list": []any{text}}})
	read(err)
	_, err = s.AddMemory(t.Context(), souvenir.NewMemory{Content: "x", Tags: []string{text}})
	read(err)
	_, err = s.AddMemories(t.Context(), []souvenir.NewMemory{{Content: "x"}, {Content: text}}, nil)
	read(err)
	_, err = s.UpdateMemory(t.Context(), id.ID, souvenir.MemoryUpdate{Content: &text})
	read(err)
	_, err = s.UpdateMemory(t.Context(), id.ID, souvenir.MemoryUpdate{Metadata: map[string]any{"a": text}})
	read(err)
	_, err = s.SetRule(t.Context(), souvenir.NewRule{ProjectID: "p", Type: souvenir.RuleDo, Content: text})
	read(err)
	_, err = s.SetTodo(t.Context(), souvenir.NewTodo{ProjectID: "p",
		Content: "## Constitution\n\n## Spec\n\n" + text + "\n\n## Plan\n\n## Tasks\n\n## Gaps\n"})
	read(err)
	_, err = s.SetIdentityMemory(t.Context(), souvenir.IdentityMemory{Content: text})
	read(err)
	_, err = s.Conversation("c", souvenir.ConversationPlace{}).Append(t.Context(), souvenir.Turn{Content: text})
	read(err)
	return stored, errs
}

func TestMaskedSecretsAreStoredNowhere(t *testing.T) {
	stored, errs := everywhere(t, open(t, secrets.Mask), "use "+awsKey+" today")
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	all := strings.Join(stored, "\n")
	if strings.Contains(all, awsKey) || !strings.Contains(all, "use [secret: aws-access-token] today") {
		t.Errorf("got %s, want the name of the rule in place of the secret", all)
	}
}

func TestRefusedSecretsAreNotRepeated(t *testing.T) {
	stored, errs := everywhere(t, open(t, secrets.Refuse), "use "+awsKey+" today")
	for i, err := range errs {
		var refused *souvenir.Error
		if !errors.As(err, &refused) || refused.Kind != souvenir.KindInvalid ||
			!slices.Contains([]string{"content", "metadata", "tags"}, refused.Argument) ||
			!strings.Contains(err.Error(), "aws-access-token") || strings.Contains(err.Error(), awsKey[4:]) {
			t.Errorf("call %d: got %v, want ErrInvalid with the argument and the rule, and without the secret", i, err)
		}
	}
	if all := strings.Join(stored, "\n"); strings.Contains(all, awsKey) {
		t.Errorf("got %s, want no secret", all)
	}
}

func TestEveryRuleCompiles(t *testing.T) {
	f := newFinder(t, secrets.Flag)
	words := wordsOf(t)
	// All words in one text try every rule.
	if found, whole := f.Find(strings.Join(words, " ")); !whole || len(words) < 150 || len(found) > 5 {
		t.Errorf("got %d words and %v, want at least 150 and few findings", len(words), found)
	}
	if _, err := secrets.New("hide"); err == nil {
		t.Error("got no error for the mode hide, want one")
	}
}

func TestTheWorkOnATextIsBounded(t *testing.T) {
	longtest.Only(t)
	f := newFinder(t, secrets.Refuse)
	long := strings.Repeat(strings.Join(wordsOf(t), "9 "), 60)
	if _, whole := f.Find(long); whole {
		t.Error("got the whole text looked at, want an end before")
	}
	m := souvenir.NewMemory{Content: long}
	if err := f.Hooks().BeforeStore(t.Context(), souvenir.Operation{}, &m); !errors.Is(err, souvenir.ErrInvalid) {
		t.Errorf("got %v, want ErrInvalid", err)
	}
	prose := strings.Repeat("The token of the team is a secret, the key hangs on the wall. ", 16_000)
	if _, whole := f.Find(prose + awsKey); !whole {
		t.Error("got a part of a long text looked at, want all of it")
	}
	long = strings.Repeat("key", 50_000) // without white space, which must not take quadratic time
	if masked, _, _ := f.MaskText(long); masked != long {
		t.Error("got another text, want the same")
	}
}

// FuzzFindingsAreInTheText checks that findings are in the text, in order and without overlap.
func FuzzFindingsAreInTheText(f *testing.F) {
	finder := newFinder(f, secrets.Mask)
	for _, text := range []string{awsKey, key, github + github, "token: \xff" + github, "İ" + awsKey} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		after := 0
		found, _ := finder.Find(text)
		for _, g := range found {
			if g.Start < after || g.End <= g.Start || g.End > len(text) {
				t.Fatalf("got %+v after %d in %d bytes, want it behind that and inside", g, after, len(text))
			}
			after = g.End
		}
	})
}

func BenchmarkFind(b *testing.B) {
	f := newFinder(b, secrets.Flag)
	line := "We deploy on Thursdays, never on Fridays, with the token from the vault and the key of the team. "
	for name, text := range map[string]string{"200 bytes": strings.Repeat(line, 2), "2 KiB": strings.Repeat(line, 21),
		"1 MiB":               strings.Repeat(line, 10_700),
		"1 MiB of every word": strings.Repeat(strings.Join(wordsOf(b), " "), 700)} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				f.Find(text)
			}
		})
	}
}

// The number of possible secrets that are compared with the allowed values is limited, and so are those values.
func TestManyFindingsAreBounded(t *testing.T) {
	f, err := secrets.New(secrets.Flag)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&text, "key=a%dZ9x%dQ7w%d ", i*7919, i*104729, i)
	}
	if found, whole := f.Find("import " + text.String()); whole || len(found) > 1000 {
		t.Errorf("got %d findings, whole %v; want at most 1,000, and not the whole", len(found), whole)
	}
}
