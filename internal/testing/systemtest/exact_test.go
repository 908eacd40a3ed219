package systemtest

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

// exactKinds are identifiers and names, each with similar ones: %d stands for a number, %c for a letter.
var exactKinds = []struct{ kind, exact, similar string }{
	{"error code", "ERR_X7731", "ERR_X78%02d"},
	{"ticket", "PAY-4412", "PAY-45%02d"},
	{"issue number", "#48213", "#483%02d"},
	{"long number", "83920417", "839205%02d"},
	{"hexadecimal", "0x1f3ab", "0x1f4%02d"},
	{"commit", "3f9ac21", "3f9bd%02d"},
	{"sha-256", "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
		"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a%02d"},
	{"UUID", "0193b2e4-7c1a-7def-8123-456789abcdef", "0193b2e4-7c1a-7def-8123-4567890000%02d"},
	{"e-mail address", "mara.quill@example.com", "mara.quill%02d@example.com"},
	{"URL", "https://status.example.org/incidents/blue-harbour", "https://status.example.org/incidents/blue-harbour-%02d"},
	{"host with port", "db-primary.internal:5432", "db-replica%02d.internal:5432"},
	{"IPv4 address", "10.20.30.40", "10.20.31.%d"},
	{"IPv6 address", "2001:db8:85a3::8a2e:370:7334", "2001:db8:85a3::8a2e:370:74%02d"},
	{"path", "/etc/nginx/sites-enabled/shop.conf", "/etc/nginx/sites-enabled/shop%02d.conf"},
	{"Windows path", `C:\Jobs\Nightly\ledger.ini`, `C:\Jobs\Nightly\ledger%02d.ini`},
	{"camelCase", "parseInvoiceHeader", "parseInvoiceFooter%c"},
	{"snake_case", "max_retry_backoff", "max_retry_limit_%c"},
	{"qualified name", "orders.repository.FindOverdue", "orders.repository.FindPaid%c"},
	{"version", "v4.17.2", "v4.18.%d"},
	{"serial number", "SN-8841-KQ", "SN-88%02d-KP"},
	{"IBAN", "DE89370400440532013000", "DE893704004405320131%02d"},
	{"phone number", "+49 170 9912345", "+49 170 99100%02d"},
	{"name", "Okonkwo", "Okon%ca"},
	{"full name", "Zsófia Kálmánffy", "Zsófia Kálmán%c"},
	{"Cyrillic name", "Верхозимова", "Верхозим%c"},
	{"Chinese name", "欧阳明哲", "欧阳明%c"},
	{"Japanese name", "久我山凛", "久我山%c"},
	{"constant", "ENOTCAPABLE", "ENOT%cABLE"},
	{"signal", "SIGWINCH", "SIG%cINT"},
}

// similarOf returns the i-th text similar to an identifier.
func similarOf(form string, i int) string {
	if !strings.Contains(form, "%c") {
		return fmt.Sprintf(form, 10+i)
	}
	letters := []rune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRST")
	switch {
	case strings.ContainsAny(form, "欧久"):
		letters = []rune("山川田林森石水火木金土日月星空海風花鳥雪雲光影夢心手足目耳口竹松梅桃桜菊蘭雨雷電")
	case strings.Contains(form, "Верх"):
		letters = []rune("абвгдежзийклмнпрстуфхцчшщэюяБВГДЖЗКЛМНПРС")
	}
	return fmt.Sprintf(form, letters[i])
}

var exactQueries = []struct{ form, text string }{
	{"bare", "%s"},
	{"question", "what do we know about %s?"},
	{"longer question", "Can you tell me why the nightly job failed with %s last week?"},
	{"punctuation", "see “%s”, (again)."},
	{"who", "who or what is %s and where did it come up"},
	{"lower case", "what do we know about lower(%s)?"},
	{"upper case", "what do we know about upper(%s)?"},
	{"German", "Was wissen wir über %s?"},
	{"Chinese", "关于%s我们知道什么？"},
	{"Japanese", "%sについて何が分かっていますか？"},
}

func exactQuery(form, exact string) string {
	switch {
	case strings.Contains(form, "lower("):
		return strings.Replace(form, "lower(%s)", strings.ToLower(exact), 1)
	case strings.Contains(form, "upper("):
		return strings.Replace(form, "upper(%s)", strings.ToUpper(exact), 1)
	}
	return fmt.Sprintf(form, exact)
}

// around returns a text of the given number of words with a sentence in the middle.
func around(sentence string, words int) string {
	filler := strings.Fields("The garden club met on the terrace and talked about tulips, compost and the price of " +
		"seeds. " +
		"Later the choir sang two old songs while someone cut the cake into very small pieces. " +
		"Rain came in from the west, so the chairs were carried inside and the lanterns were put away until summer. " +
		"Our neighbours brought apples, a ladder and a long story about a ferry that never left the pier.")
	var b strings.Builder
	for i := range max(0, words-len(strings.Fields(sentence))) {
		if i == words/2 {
			b.WriteString(sentence + " ")
		}
		b.WriteString(filler[i%len(filler)] + " ")
	}
	if !strings.Contains(b.String(), sentence) {
		b.WriteString(sentence)
	}
	return b.String()
}

var exactLengths = []int{12, 2000, 240} // in words

// triedExact says whether a kind is tried in a length: in the short form, each kind has one.
func triedExact(kind, length int) bool {
	return longtest.All() || length == kind%2
}

// addExact makes a store with a collection for each kind and length, and returns the ids of the memories that have the
// identifier, by collection.
func addExact(t *testing.T, path string) (wanted map[string]string) {
	t.Helper()
	store, err := souvenir.Open(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	wanted = map[string]string{}
	for i, k := range exactKinds {
		for j, words := range exactLengths {
			if !triedExact(i, j) {
				continue
			}
			collection := fmt.Sprint(k.kind, " ", words)
			if _, err := store.AddCollection(t.Context(), souvenir.NewCollection{Name: collection}); err != nil {
				t.Fatal(err)
			}
			var all []souvenir.NewMemory
			for i := range 40 {
				all = append(all, souvenir.NewMemory{Collection: collection, Content: "We know about the job that failed with " +
					similarOf(k.similar, i) + " last week."})
			}
			all = append(all, souvenir.NewMemory{Collection: collection,
				Content: around("It was "+k.exact+" that the team looked into.", words)})
			stored, err := store.AddMemories(t.Context(), all, nil)
			if err != nil {
				t.Fatal(err)
			}
			wanted[collection] = stored[40].ID
		}
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	return wanted
}

// TestExactIdentifierComesFirst searches for identifiers that one memory contains, among 40 short ones with similar
// ones.
func TestExactIdentifierComesFirst(t *testing.T) {
	longtest.Only(t)
	path := filepath.Join(t.TempDir(), "exact.db")
	wanted := addExact(t, path)
	for _, at := range []struct {
		name   string
		memory int64
	}{{"memory", 0}, {"disk", -1}} {
		t.Run(at.name, func(t *testing.T) {
			store, err := souvenir.Open(t.Context(), path, &souvenir.Options{IndexMemory: at.memory})
			if err != nil {
				t.Fatal(err)
			}
			defer store.Close()
			asked, first := 0, 0
			for i, k := range exactKinds {
				for j, words := range exactLengths {
					if !triedExact(i, j) {
						continue
					}
					collection := fmt.Sprint(k.kind, " ", words)
					for n, q := range exactQueries {
						if !longtest.Part(i+n, 1, 3) {
							continue
						}
						text := exactQuery(q.text, k.exact)
						found, err := store.Search(t.Context(), souvenir.Query{Text: text, Collections: []string{collection}, Limit: 41})
						if err != nil {
							t.Fatal(err)
						}
						rank := 1 + slices.IndexFunc(found.Hits, func(h souvenir.Hit) bool { return h.ID == wanted[collection] })
						if asked++; rank == 1 {
							first++
						} else {
							t.Errorf("%s, %d words, %s: %q has rank %d of %d", k.kind, words, q.form, text, rank, len(found.Hits))
						}
						for _, h := range found.Hits {
							if h.Score < 0 || h.Score > 1 || h.Parts.Text < 0 || h.Parts.Text > 1.000001 {
								t.Fatalf("%q: score %v of %+v is out of its bounds, want score at least 0, score at most 1, text at least 0 "+
									"and text at most 1.000001", text, h.Score, h.Parts)
							}
						}
					}
				}
			}
			t.Logf("%d of %d first", first, asked)
		})
	}
}
