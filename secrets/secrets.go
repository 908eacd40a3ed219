// Package secrets recognises API keys, tokens and private keys in stored texts, and flags, masks or refuses them. Its
// rules are those of Gitleaks (rules.json, LICENSES.txt): a word that a text must contain, then a regular expression in
// linear time, then the entropy of the match.
//
//	finder, err := secrets.New(secrets.Mask)
//	if err != nil {
//		return err
//	}
//	store, err := souvenir.Open(ctx, "memory.db", &souvenir.Options{Hooks: []souvenir.Hooks{finder.Hooks()}})
//
// No rules recognise all secrets: a password in plain words looks like any other word.
package secrets

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/souvenir-ai/souvenir"
)

// Mode is the treatment of a secret in content that is to be stored.
type Mode string

// The values of [Mode].
const (
	Off    Mode = "off"
	Flag   Mode = "flag"   // the secret is stored; the memory's metadata names the rules under [Key]
	Mask   Mode = "mask"   // [secret: RULE] is stored instead
	Refuse Mode = "refuse" // the call fails with ErrInvalid, which does not repeat the secret
)

// Key is the key of metadata under which flagged memories have a list of rules, such as "aws-access-token".
const Key = "possible_secrets"

// Finding is a secret in a text.
type Finding struct {
	Rule       string
	Start, End int // bytes
}

// Finder finds secrets. It is safe for concurrent use.
type Finder struct {
	mode  Mode
	rules []*rule
	words []word
	allow []allowance // for all rules

	reader  souvenir.DocumentReader // of [Finder.Documents]
	reading chan struct{}           // holds a value for each new file that is being read
}

// word is a lower-case word that one or several rules need.
type word struct {
	text  string
	rules []int
}

// rule is a rule of Gitleaks. Its expression is compiled when a text first has one of its words.
type rule struct {
	ID       string      `json:"id"`
	Regex    string      `json:"regex"`
	Keywords []string    `json:"keywords"`
	Entropy  float64     `json:"entropy"` // a match must have more, in bits per byte; 0: any
	Group    int         `json:"group"`   // group of the expression with the secret; 0: the first that is not empty
	Allow    []allowance `json:"allow"`

	compiled func() *regexp.Regexp
}

// allowance describes texts that look like secrets but are not.
type allowance struct {
	Regexes   []string `json:"regexes"`
	Stopwords []string `json:"stopwords"`
	Target    string   `json:"target"` // of the expressions: "match", "line", or empty for the secret

	compiled func() []*regexp.Regexp
}

//go:embed rules.json
var rules []byte

// New returns a finder of all secrets for which there are rules.
func New(mode Mode) (*Finder, error) {
	if !slices.Contains([]Mode{Off, Flag, Mask, Refuse}, mode) {
		return nil, fmt.Errorf("secrets: the mode is %q; give off, flag, mask or refuse", mode)
	}
	var known struct {
		Allow []allowance `json:"allow"`
		Rules []*rule     `json:"rules"`
	}
	if err := json.Unmarshal(rules, &known); err != nil {
		return nil, fmt.Errorf("secrets: the rules cannot be read: %w", err)
	}
	f := &Finder{mode: mode, rules: known.Rules, allow: known.Allow, reading: make(chan struct{}, readers)}
	byWord := map[string][]int{}
	for i, r := range f.rules {
		r.compiled = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(r.Regex) })
		if r.ID == general { // "key: " precedes ids as often as secrets
			r.Allow = append(r.Allow, allowance{Regexes: []string{uuids}})
		}
		prepare(r.Allow)
		for _, w := range r.Keywords {
			byWord[w] = append(byWord[w], i)
		}
	}
	prepare(f.allow)
	for _, text := range slices.Sorted(maps.Keys(byWord)) {
		f.words = append(f.words, word{text, byWord[text]})
	}
	return f, nil
}

func prepare(list []allowance) {
	for i := range list {
		a := &list[i]
		a.compiled = sync.OnceValue(func() (all []*regexp.Regexp) {
			for _, expression := range a.Regexes {
				all = append(all, regexp.MustCompile(expression))
			}
			return all
		})
	}
}

const (
	// A secret has at least shortest bytes without white space, and does not look like a word.
	shortest = 10
	// around is the maximum distance in bytes between the words of a rule and the secret.
	around = 250
	// most is the number of bytes that all rules together examine in one text, which bounds the time to about a second.
	most = 2 << 20
	// mostFound is the maximum number of matches in one text that are compared with the allowances.
	mostFound = 1000
)

// Find returns the secrets in a text, in order and without overlaps. whole is false if it has not examined the whole
// text, because too much of it may be a secret.
func (f *Finder) Find(text string) (found []Finding, whole bool) {
	left, hits := most, 0
	for start, end := range candidates(text) {
		part := lower(text[start:end])
		near := map[int][][2]int{} // by rule: the places of its words
		for _, w := range f.words {
			for at := strings.Index(part, w.text); at >= 0; {
				for _, i := range w.rules {
					near[i] = append(near[i], [2]int{start + at, start + at + len(w.text)})
				}
				next := strings.Index(part[at+1:], w.text)
				if at += next + 1; next < 0 {
					break
				}
			}
		}
		for i, words := range near {
			for _, span := range spans(text, words, start, end, strings.Contains(f.rules[i].Regex, `[\s\S`)) {
				if left -= span[1] - span[0]; left < 0 {
					return apart(found), false
				}
				looked := f.with(f.rules[i], text[span[0]:span[1]], &hits)
				if hits > mostFound {
					return apart(found), false
				}
				for _, g := range looked {
					found = append(found, Finding{g.Rule, span[0] + g.Start, span[0] + g.End})
				}
			}
		}
	}
	return apart(found), true
}

// lower is strings.ToLower for ASCII letters only, so that all bytes keep their places.
func lower(text string) string {
	b := []byte(text)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

func blank(c byte) bool { return c == ' ' || '\t' <= c && c <= '\r' }

// candidates iterates over the parts of a text that may contain secrets and the words around them. Prose has none.
func candidates(text string) iter.Seq2[int, int] {
	return func(yield func(int, int) bool) {
		start, end := -1, -1
		for at := 0; at < len(text); {
			if blank(text[at]) {
				at++
				continue
			}
			run := at
			for at < len(text) && !blank(text[at]) {
				at++
			}
			if at-run < shortest || !odd(text[run:at]) {
				continue
			}
			if start >= 0 && run-around > end {
				if !yield(start, end) {
					return
				}
				start = -1
			}
			if start < 0 {
				start = max(run-around, 0, end)
			}
			end = min(at+around, len(text))
		}
		if start >= 0 {
			yield(start, end)
		}
	}
}

// odd reports whether a run without white space has a digit or an inner capital letter, or is very long. Ordinary words
// rarely do.
func odd(run string) bool {
	if len(run) >= 3*shortest {
		return true
	}
	for i := range len(run) {
		if '0' <= run[i] && run[i] <= '9' || i > 0 && 'A' <= run[i] && run[i] <= 'Z' {
			return true
		}
	}
	return false
}

// spans returns the surroundings of a rule's words within a part of a text, extended to whole runs without white space,
// and joined where they meet. For a rule that spans lines, they extend to the end of the part.
func spans(text string, words [][2]int, start, end int, lines bool) (joined [][2]int) {
	slices.SortFunc(words, func(a, b [2]int) int { return a[0] - b[0] })
	for _, w := range words {
		from, to := max(w[0]-around, start), min(w[1]+around, end)
		if n := len(joined); n > 0 && from <= joined[n-1][1] {
			from = joined[n-1][0]
			to = max(to, joined[n-1][1])
			joined = joined[:n-1]
		}
		for from > start && !blank(text[from-1]) {
			from--
		}
		for to < end && (lines || !blank(text[to])) {
			to++
		}
		joined = append(joined, [2]int{from, to})
	}
	return joined
}

// with returns the findings of one rule, and adds its matches to hits.
func (f *Finder) with(r *rule, text string, hits *int) (found []Finding) {
	for _, at := range r.compiled().FindAllStringSubmatchIndex(text, mostFound+1) {
		if *hits++; *hits > mostFound {
			return nil
		}
		start, end := at[0], at[1]
		if r.Group > 0 && 2*r.Group+1 < len(at) && at[2*r.Group] >= 0 {
			start, end = at[2*r.Group], at[2*r.Group+1]
		} else {
			for group := 2; group < len(at); group += 2 {
				if at[group] >= 0 && at[group] < at[group+1] {
					start, end = at[group], at[group+1]
					break
				}
			}
		}
		secret := text[start:end]
		if r.Entropy > 0 && entropy(secret) <= r.Entropy {
			continue
		}
		if !allowed(f.allow, text, at[0], at[1], secret) && !allowed(r.Allow, text, at[0], at[1], secret) {
			found = append(found, Finding{r.ID, start, end})
		}
	}
	return found
}

// allowed reports whether a match is not a secret.
func allowed(list []allowance, text string, start, end int, secret string) bool {
	lower := strings.ToLower(secret)
	for _, a := range list {
		if slices.ContainsFunc(a.Stopwords, func(w string) bool { return strings.Contains(lower, strings.ToLower(w)) }) {
			return true
		}
		target := secret
		switch a.Target {
		case "match":
			target = text[start:end]
		case "line":
			from, to := max(start-around, 0), min(end+around, len(text)) // of a long line
			line := from + strings.LastIndexByte(text[from:start], '\n') + 1
			rest, _, _ := strings.Cut(text[end:to], "\n")
			target = text[line : end+len(rest)]
		}
		if slices.ContainsFunc(a.compiled(), func(e *regexp.Regexp) bool { return e.MatchString(target) }) {
			return true
		}
	}
	return false
}

// entropy returns the entropy of a text, in bits per byte.
func entropy(text string) (bits float64) {
	var counts [256]int
	for i := range len(text) {
		counts[text[i]]++
	}
	for _, count := range counts {
		if count > 0 {
			p := float64(count) / float64(len(text))
			bits -= p * math.Log2(p)
		}
	}
	return bits
}

// general is the rule for secrets without a rule of their own.
const general = "generic-api-key"

// uuids is the form of UUIDs (RFC 9562).
const uuids = `^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$`

// apart joins overlapping findings, under the name of the most specific rule.
func apart(found []Finding) []Finding {
	slices.SortFunc(found, func(a, b Finding) int {
		if a.Start != b.Start {
			return a.Start - b.Start
		}
		return b.End - a.End
	})
	joined := found[:0]
	for _, g := range found {
		if len(joined) == 0 || joined[len(joined)-1].End <= g.Start {
			joined = append(joined, g)
			continue
		}
		last := &joined[len(joined)-1]
		last.End = max(last.End, g.End)
		if last.Rule == general {
			last.Rule = g.Rule
		}
	}
	return joined
}

// unexamined is the name in place of a rule for texts that were not examined completely.
const unexamined = "unexamined"

// MaskText returns a text with each secret replaced by the name of its rule, and these names; whole is as for
// [Finder.Find].
func (f *Finder) MaskText(text string) (masked string, names []string, whole bool) {
	found, whole := f.Find(text)
	masked, names = mask(text, found)
	return masked, names, whole
}

// masked is what replaces a secret.
func masked(rule string) string { return "[secret: " + rule + "]" }

// mask returns a text with masked secrets, and the names of their rules.
func mask(text string, found []Finding) (result string, names []string) {
	var b strings.Builder
	after := 0
	for _, g := range found {
		b.WriteString(text[after:g.Start] + masked(g.Rule))
		names, after = append(names, g.Rule), g.End
	}
	return b.String() + text[after:], names
}

// Hooks returns the functions that treat secrets in memories, rules, to-do documents and turns of conversations before
// they are stored or changed: in texts, tags, and in the keys and texts of metadata. [Mask] and [Refuse] also treat
// files: names, descriptions, tags, and the content of text files. [Finder.Documents] treats the texts that searches
// find; [Refuse] also refuses new files for these texts, and if not all of such a text could be read. Searches are not
// examined.
func (f *Finder) Hooks() souvenir.Hooks {
	if f.mode == Off {
		return souvenir.Hooks{}
	}
	return souvenir.Hooks{
		BeforeFile: f.file(),
		BeforeStore: func(_ context.Context, _ souvenir.Operation, m *souvenir.NewMemory) error {
			_, err := f.Treat(m)
			return err
		},
		BeforeUpdate: func(ctx context.Context, o souvenir.Operation, u *souvenir.MemoryUpdate) error {
			var c collector
			f.text(&c, "content", u.Content)
			if u.Tags != nil {
				f.list(&c, "tags", *u.Tags)
			}
			f.object(&c, "metadata", u.Metadata)
			f.object(&c, "metadata", u.ShownMetadata)
			if f.mode == Flag && c.err == nil && o.Method != "UpdateTodoSection" {
				return f.flag(ctx, o, u, c)
			}
			return c.err
		},
	}
}

// Treat treats the secrets in a new memory as [Finder.Hooks] does, and changes its lists and maps in place. It returns
// the names of their rules.
func (f *Finder) Treat(m *souvenir.NewMemory) (rules []string, err error) {
	if f.mode == Off {
		return nil, nil
	}
	var c collector
	f.text(&c, "content", &m.Content)
	f.list(&c, "tags", m.Tags)
	f.object(&c, "metadata", m.Metadata)
	if f.mode == Flag && len(c.names) > 0 {
		m.Metadata = flagged(m.Metadata, c.sorted())
	}
	slices.Sort(c.names)
	return slices.Compact(c.names), c.err
}

// flag updates the names of rules in an update with the findings c. It includes the parts of the memory that the update
// keeps.
func (f *Finder) flag(ctx context.Context, o souvenir.Operation, u *souvenir.MemoryUpdate, c collector) error {
	if u.Content == nil && u.Tags == nil && len(u.Metadata)+len(u.ShownMetadata) == 0 {
		return nil
	}
	if len(o.IDs) != 1 { // several memories keep different parts, so names are only added
		if len(c.names) > 0 {
			u.Metadata = flagged(u.Metadata, c.sorted())
		}
		return nil
	}
	m, err := o.Memory(ctx)
	if errors.Is(err, souvenir.ErrNotFound) {
		return nil // the update itself returns the error
	}
	if err != nil {
		return err
	}
	if u.Content == nil {
		f.text(&c, "content", &m.Content)
	}
	if u.Tags == nil {
		f.list(&c, "tags", m.Tags)
	}
	before := m.Metadata[Key]
	rest := maps.Clone(m.Metadata)
	for _, patch := range []map[string]any{{Key: nil}, u.ShownMetadata, u.Metadata} {
		for key := range patch {
			delete(rest, key)
		}
	}
	f.object(&c, "metadata", rest)
	if after := c.sorted(); before != nil || after != nil {
		u.Metadata = flagged(u.Metadata, after)
	}
	return c.err
}

// flagged returns metadata with the names of rules, or without names, metadata that removes them.
func flagged(metadata map[string]any, names []any) map[string]any {
	metadata = maps.Clone(metadata)
	if metadata == nil {
		metadata = map[string]any{}
	}
	if metadata[Key] = nil; names != nil {
		metadata[Key] = names
	}
	return metadata
}

// collector gathers the findings in one memory.
type collector struct {
	names []string
	err   error
}

func (c *collector) sorted() (names []any) {
	slices.Sort(c.names)
	for _, name := range slices.Compact(c.names) {
		names = append(names, name)
	}
	return names
}

// text treats a text in place.
func (f *Finder) text(c *collector, argument string, text *string) {
	if text == nil || c.err != nil {
		return
	}
	found, whole := f.Find(*text)
	if !whole {
		f.unexamined(c, argument)
	}
	if len(found) == 0 {
		return
	}
	masked, names := mask(*text, found)
	c.names = append(c.names, names...)
	switch f.mode {
	case Mask:
		*text = masked
	case Refuse:
		c.refuse(argument, names[0]+position(*text, found[0].Start))
	}
}

// unexamined handles a text that was not examined completely. It must not be stored unmasked.
func (f *Finder) unexamined(c *collector, argument string) {
	if c.names = append(c.names, unexamined); f.mode != Flag {
		c.err = &souvenir.Error{Kind: souvenir.KindInvalid, Argument: argument, Message: argument + " has too much that " +
			"may be a secret to look at all of it; store less at once, or the text without keys and encoded data"}
	}
}

// refuse sets the error for an argument with a secret, without the secret itself.
func (c *collector) refuse(argument, rule string) {
	c.err = &souvenir.Error{Kind: souvenir.KindInvalid, Argument: argument, Message: argument + " has what looks like " +
		"a secret (" + rule + "), which this store does not keep; omit it, or say where it is kept instead"}
}

func (f *Finder) list(c *collector, argument string, texts []string) {
	for i := range texts {
		f.text(c, argument, &texts[i])
	}
}

// object treats the keys and the texts in metadata in place. Many rules need a name before the secret, so each text is
// read as KEY = "TEXT".
func (f *Finder) object(c *collector, argument string, object map[string]any) {
	for _, key := range slices.Sorted(maps.Keys(object)) {
		value := object[key]
		if value == nil || c.err != nil {
			continue // in an update, null removes the key
		}
		value = f.value(c, argument, key, value)
		name := key
		if f.text(c, argument, &name); name != key {
			delete(object, key)
			for n, masked := 2, name; object[name] != nil; n++ {
				name = fmt.Sprintf("%s %d", masked, n)
			}
		}
		object[name] = value
	}
}

func (f *Finder) value(c *collector, argument, key string, value any) any {
	switch value := value.(type) {
	case map[string]any:
		f.object(c, argument, value)
	case []any:
		for i := range value {
			value[i] = f.value(c, argument, key, value[i])
		}
	case string:
		before := key + ` = "`
		text := value
		found, whole := f.Find(before + value + `"`)
		if !whole {
			f.unexamined(c, argument)
		}
		for _, g := range slices.Backward(found) {
			start, end := max(g.Start-len(before), 0), min(g.End-len(before), len(value))
			if start >= end {
				continue
			}
			c.names = append(c.names, g.Rule)
			switch f.mode {
			case Refuse:
				c.refuse(argument, g.Rule)
			case Mask:
				text = text[:start] + masked(g.Rule) + text[end:]
			}
		}
		return text
	}
	return value
}
