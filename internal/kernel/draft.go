package kernel

import (
	"cmp"
	"maps"
	"slices"

	"github.com/souvenir-ai/souvenir/internal/fault"
	"github.com/souvenir-ai/souvenir/internal/json/jsonobject"
	"github.com/souvenir-ai/souvenir/internal/lifespan"
	"github.com/souvenir-ai/souvenir/internal/text"
	"github.com/souvenir-ai/souvenir/internal/tododoc"
	"github.com/souvenir-ai/souvenir/internal/valid"
)

// Draft is a memory that is checked, split and embedded: all work that can be done before the transaction.
type Draft struct {
	Attributes
	Collection string
	Content    string
	Key        string // the caller's own; empty: none
	EventTime  *int64 // time of the event; nil: not given
	Created    *int64 // nil: now
	Times      lifespan.Times
	IfAbsent   bool      // store it only if no memory in its place has this content
	Stored     bool      // already stored under this key or, with IfAbsent, at all: it needs no vectors
	Vector     []float32 // the caller's own, of unit length; else nil
	Similar    int       // how many near duplicates the caller asks for
	WordsOnly  bool      // the collection takes the caller's vectors, and the caller gave none
	Passages   []Passage
}

// DraftFields are the parts of a memory as callers give it. The known attributes that are set come before the keys of
// the same names in the metadata.
type DraftFields struct {
	Collection, Content string
	Known               Attributes
	Own                 map[string]any // the caller's own, under any names
	Metadata            map[string]any // as callers give and see it: known and own keys
	Embedding           []float32
	Key                 string
	EventTime, Created  *int64 // nil: not given
	Times               lifespan.Times
}

// CheckRule refuses a new rule with a key.
func (d Draft) CheckRule() error {
	if d.Key == "" || d.RuleType == "" {
		return nil
	}
	return fault.Invalid("key", "{} is %s on a rule; a project has one rule of each type, which needs no key",
		fault.Show(d.Key))
}

// NewDraft checks a memory, but allows content that is only white space, for imports. An empty collection is the
// default one.
func NewDraft(m DraftFields) (Draft, error) {
	d := Draft{Collection: cmp.Or(m.Collection, DefaultCollection), Content: m.Content}
	if err := valid.Name("collection_name", d.Collection); err != nil {
		return d, err
	}
	if err := valid.Content(m.Content); err != nil {
		return d, err
	}
	if m.Key != "" {
		if err := valid.Key(m.Key); err != nil {
			return d, err
		}
	}
	for _, at := range []struct {
		argument string
		given    *int64
	}{{"event_time", m.EventTime}, {"created_at", m.Created}} {
		if at.given != nil {
			if err := valid.Time(at.argument, *at.given); err != nil {
				return d, err
			}
		}
	}
	if err := m.Times.Check(); err != nil {
		return d, err
	}
	d.Key, d.EventTime, d.Created, d.Times = m.Key, m.EventTime, m.Created, m.Times
	metadata, err := jsonobject.Canonical("metadata", m.Metadata)
	if err != nil {
		return d, err
	}
	own, err := jsonobject.Canonical("metadata", m.Own)
	if err != nil {
		return d, err
	}
	if err := CheckCustom(metadata); err != nil {
		return d, err
	}
	if d.Attributes, err = AttributesOf(metadata); err != nil {
		return d, err
	}
	for _, key := range slices.Sorted(maps.Keys(own)) {
		if _, twice := d.Own[key]; twice {
			return d, fault.Invalid("metadata", "{} has the key %s twice: as an own key, and as it is shown",
				fault.Show(key))
		}
		d.Own[key] = own[key]
	}
	d.set(m.Known)
	if err := d.Check(); err != nil {
		return d, err
	}
	if err := CheckRuleTimes(d.RuleType, d.Times); err != nil {
		return d, err
	}
	if d.RuleType == RuleTodo {
		if _, err := tododoc.Parse(d.Content); err != nil {
			return d, err
		}
	}
	if m.Embedding != nil {
		if d.Vector, err = UnitVector(m.Embedding, len(m.Embedding)); err != nil {
			return d, fault.Invalid("embedding", "{}: %v", err)
		}
	}
	return d, nil
}

// set replaces the known attributes that are set.
func (a *Attributes) set(known Attributes) {
	a.EventType = cmp.Or(known.EventType, a.EventType)
	if known.ProjectID != "" || known.ProjectName != "" {
		a.ProjectID, a.ProjectName = known.ProjectID, known.ProjectName
	}
	a.State = cmp.Or(known.State, a.State)
	a.Importance = cmp.Or(known.Importance, a.Importance)
	a.Classification = cmp.Or(known.Classification, a.Classification)
	a.RuleType = cmp.Or(known.RuleType, a.RuleType)
	if len(known.Tags) > 0 {
		a.Tags = known.Tags
	}
	if len(known.Related) > 0 {
		a.Related = known.Related
	}
}

// CheckRuleTimes refuses times for a rule: a rule is valid until it is changed or deleted.
func CheckRuleTimes(ruleType string, t lifespan.Times) error {
	if ruleType == "" || t.IsZero() {
		return nil
	}
	return fault.Invalid("rule_type", "{} is %s, but a rule neither expires nor replaces another memory; "+
		"omit {expires_at}, {valid_from}, {valid_until} and {supersedes}", fault.Show(ruleType))
}

// EmbedDrafts splits drafts into passages of at most maxInput bytes, and embeds these with one call.
func EmbedDrafts(drafts []Draft, maxInput int,
	embed func(texts []string) (vectors [][]float32, warnings []string, err error)) (warnings []string, err error) {
	var texts []string
	var into []*Passage
	for i := range drafts {
		d := &drafts[i]
		if d.Vector != nil {
			// One vector stands for the whole memory, so the memory is one passage, however long.
			d.Passages = []Passage{{Length: len(d.Content), Indexed: text.Indexed(d.Content)}}
			continue
		}
		d.Passages = Split(d.Content, maxInput)
		if d.WordsOnly || d.Stored {
			continue
		}
		for j := range d.Passages {
			p := &d.Passages[j]
			if p.Blank {
				continue
			}
			texts, into = append(texts, d.Content[p.Start:p.Start+p.Length]), append(into, p)
		}
	}
	vectors, warnings, err := embed(texts)
	for i, v := range vectors {
		into[i].Vector = v
	}
	return warnings, err
}
