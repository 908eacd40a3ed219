package extract

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/souvenir-ai/souvenir"
)

const (
	similarHits = 5    // memories compared with a turn or a proposal
	maxKnown    = 30   // memories that an extraction gets
	maxQuery    = 2000 // bytes of a text that is searched for
	sameFrom    = 0.8  // the likeness from which two texts count as the same; this is right for nine of ten pairs
)

// known returns stored memories about the things that turns mention, the nearest first.
func (r *run) known(ctx context.Context, turns []souvenir.Turn) ([]souvenir.Memory, error) {
	texts := make([]string, len(turns))
	for i, t := range turns {
		texts[i] = t.Content
	}
	found, err := r.similar(ctx, r.scope, texts)
	if err != nil {
		return nil, err
	}
	best := map[string]souvenir.Hit{}
	for _, h := range slices.Concat(found...) {
		if before, ok := best[h.ID]; !ok || h.Confidence > before.Confidence {
			best[h.ID] = h
		}
	}
	hits := make([]souvenir.Hit, 0, len(best))
	for _, h := range best {
		hits = append(hits, h)
	}
	slices.SortFunc(hits, func(a, b souvenir.Hit) int {
		return cmp.Or(cmp.Compare(b.Confidence, a.Confidence), cmp.Compare(a.ID, b.ID))
	})
	known := make([]souvenir.Memory, 0, min(len(hits), maxKnown))
	for _, h := range hits[:min(len(hits), maxKnown)] {
		known = append(known, h.Memory)
	}
	return known, nil
}

// similar returns, for each text, the nearest memories of the place that a proposal may change.
func (l *Learner) similar(ctx context.Context, s scope, texts []string) ([][]souvenir.Hit, error) {
	all := make([][]souvenir.Hit, len(texts))
	for from := 0; from < len(texts); from += souvenir.MaxQueries {
		some := texts[from:min(len(texts), from+souvenir.MaxQueries)]
		queries := make([]souvenir.Query, len(some))
		for i, text := range some {
			queries[i] = s.query(cut(cleaned(text), maxQuery))
		}
		results, err := l.store.SearchBatch(ctx, queries)
		if errors.Is(err, souvenir.ErrNotFound) { // the collection is made with the first memory
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		for i, r := range results {
			all[from+i] = slices.DeleteFunc(r.Hits, func(h souvenir.Hit) bool {
				return !s.holds(h.Memory) || protected(h.Memory)
			})
		}
	}
	return all, nil
}

// meet checks that proposals are only about known memories, and turns additions into None or Update if the store has
// them already. It returns the allowed proposals; the others are in the report.
func (r *run) meet(ctx context.Context, c Conversation, given []Proposal) ([]Proposal, error) {
	turns, known := map[string]bool{}, map[string]souvenir.Memory{}
	for _, t := range c.Turns {
		turns[t.ID] = true
	}
	for _, m := range c.Known {
		known[m.ID] = m
	}
	var allowed []Proposal
	changed := map[string]bool{}
	for i, p := range given {
		why := p.fault()
		target, isKnown := known[p.Target]
		switch {
		case why != "":
		case i >= MaxProposals:
			why = fmt.Sprintf("there are more than %d proposals", MaxProposals)
		case len(p.Sources) == 0:
			why = "it names no turn that it comes from"
		case slices.ContainsFunc(p.Sources, func(id string) bool { return !turns[id] }):
			why = "it names a turn that was not shown"
		case p.Target != "" && !isKnown:
			why = "it names a memory that was not shown"
		case p.Action != None && changed[p.Target]:
			why = "another proposal changes the same memory"
		}
		if why != "" {
			r.refuse(p, why)
			continue
		}
		p.Reason, p.Group = cut(cleaned(p.Reason), MaxReason), ""
		p.about(target)
		changed[p.Target] = p.Target != "" && p.Action != None
		allowed = append(allowed, p)
	}
	return r.withoutRepetitions(ctx, allowed, changed)
}

func (r *run) refuse(p Proposal, why string) {
	p.Content = cut(cleaned(p.Content), MaxContent)
	p.Reason = cut(cleaned(p.Reason), MaxReason)
	if len(r.report.Refused) < MaxPending {
		r.report.Refused = append(r.report.Refused, Refused{p, why})
	}
}

// withoutRepetitions compares additions with the store and with each other.
func (r *run) withoutRepetitions(ctx context.Context, proposals []Proposal, changed map[string]bool) ([]Proposal,
	error) {
	var texts []string
	for _, p := range proposals {
		if p.Action == Add {
			texts = append(texts, p.Content)
		}
	}
	found, err := r.similar(ctx, r.scope, texts)
	if err != nil {
		return nil, err
	}
	var kept []Proposal
	for _, p := range proposals {
		if p.Action == Add {
			hits := found[0]
			found = found[1:]
			if slices.ContainsFunc(kept, func(k Proposal) bool {
				return k.Content != "" && souvenir.Likeness(k.Content, p.Content) >= sameFrom
			}) {
				r.refuse(p, "another proposal says the same")
				continue
			}
			p.meetHits(hits, changed)
		}
		kept = append(kept, p)
	}
	return kept, nil
}

// meetHits turns an addition into None or Update if one of the hits has the same meaning.
func (p *Proposal) meetHits(hits []souvenir.Hit, changed map[string]bool) {
	for _, h := range hits {
		more, continued := extends(p.Content, h.Content)
		if changed[h.ID] || !continued && souvenir.Likeness(p.Content, h.Content) < sameFrom {
			continue
		}
		if !more {
			p.Action, p.Target, p.Content = None, h.ID, ""
			p.about(h.Memory)
			return
		}
		if h.EventType == EventFact {
			p.Action, p.Target, changed[h.ID] = Update, h.ID, true
			p.about(h.Memory)
			return
		}
	}
}

// words returns the words of a text in lower case.
func words(text string) []string {
	between := func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) }
	return strings.FieldsFunc(strings.ToLower(text), between)
}

// extends reports whether a text has all words of another one, and more; and whether it begins with them.
func extends(text, other string) (more, continued bool) {
	all, of := words(text), words(other)
	has := map[string]bool{}
	for _, w := range all {
		has[w] = true
	}
	different := len(has)
	held := map[string]bool{}
	for _, w := range of {
		if !has[w] {
			return false, false
		}
		held[w] = true
	}
	more = len(held) > 0 && len(held) < different
	return more, more && len(of) < len(all) && slices.Equal(of, all[:len(of)])
}
