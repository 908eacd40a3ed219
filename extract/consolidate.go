package extract

import (
	"context"
	"crypto/sha256"
	_ "embed" // the instructions
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir"
)

const (
	maxGroup  = 8   // memories of a group
	maxGroups = 200 // groups per call
	nearFrom  = 0.5 // the confidence from which the model sees two memories together
)

// Consolidator is an [Extractor] that can also propose changes to memories that seem to repeat or contradict each
// other. A Target is the id of one of them, and proposals have no Sources.
type Consolidator interface {
	Consolidate(ctx context.Context, group []souvenir.Memory) (Extraction, error)
}

// Consolidate looks for near duplicates and contradictions among the memories of the learner's place, and keeps
// proposals for review. It does not change the memories itself. Proposals with the same Group belong together. An
// Extractor that is a [Consolidator], such as a [Model], gets each memory with others that are probably about the same,
// and makes the proposals. Otherwise Consolidate proposes to forget all but the most complete of near duplicates, and
// the older of two memories that differ in a word at the end or in a negation.
//
// It does not repeat a proposal that waits for review, or was refused, while the memory has the same text, nor ask the
// model again about a group it left alone. A call handles up to 200 groups; More reports that there may be others.
func (l *Learner) Consolidate(ctx context.Context) (Report, error) {
	var r Report
	s, err := l.scope(ctx)
	if err != nil {
		return r, err
	}
	run := &run{Learner: l, scope: s, report: &r}
	err = l.checkWritable(s)
	if err == nil {
		err = run.checkRoom(ctx)
	}
	if err != nil {
		return r, err
	}
	waiting, err := run.waiting(ctx)
	if err != nil {
		return r, err
	}
	groups, err := run.groups(ctx)
	if err != nil {
		return r, err
	}
	for i, g := range groups {
		if waiting+len(r.Kept)+maxGroup > MaxPending {
			r.More = true
			return r, nil
		}
		proposals, bounded, err := run.settle(ctx, g)
		if err != nil || bounded {
			r.More = r.More || bounded
			return r, err
		}
		if err := run.offer(ctx, g, proposals); err != nil {
			return r, err
		}
		run.progress(i + 1)
	}
	return r, nil
}

// group is a list of memories that seem to be about the same thing, the oldest first.
type group struct {
	memories      []souvenir.Memory
	contradiction bool
}

// mark identifies the group and the current state of its memories.
func (g group) mark() string {
	states := make([]string, len(g.memories))
	for i, m := range g.memories {
		states[i] = fmt.Sprintf("%s/%d", m.ID, m.Revision)
	}
	slices.Sort(states)
	sum := sha256.Sum256([]byte(strings.Join(states, " ")))
	return hex.EncodeToString(sum[:16])
}

// groups finds the groups of the place, without memories that already have proposals.
func (r *run) groups(ctx context.Context) ([]group, error) {
	taken, left, err := r.offered(ctx)
	if err != nil {
		return nil, err
	}
	_, asks := r.options.Extractor.(Consolidator)
	var all []group
	find := func(some []souvenir.Memory) error {
		texts := make([]string, len(some))
		for i, m := range some {
			texts[i] = m.Content
		}
		found, err := r.similar(ctx, r.scope, texts)
		if err != nil {
			return err
		}
		for i, m := range some {
			if taken[state(m)] {
				continue
			}
			free := slices.DeleteFunc(found[i], func(h souvenir.Hit) bool {
				return h.ID == m.ID || taken[state(h.Memory)]
			})
			g := groupOf(m, free, asks)
			if len(g.memories) < 2 || asks && left[g.mark()] || !asks && len(g.bySimilarity()) == 0 {
				continue
			}
			for _, m := range g.memories {
				taken[state(m)] = true
			}
			all = append(all, g)
		}
		return nil
	}
	list := souvenir.MemoryList{Collections: []string{r.scope.collection}, ProjectID: r.scope.ref,
		Filter: r.scope.filter()}
	var some []souvenir.Memory
	for m, err := range r.store.Memories(ctx, list) {
		if errors.Is(err, souvenir.ErrNotFound) { // the collection is made with the first memory
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		if protected(m) || !r.scope.holds(m) {
			continue
		}
		if some = append(some, m); len(some) == souvenir.MaxQueries {
			if err := find(some); err != nil {
				return nil, err
			}
			some = some[:0]
		}
		if len(all) >= maxGroups {
			r.report.More = true
			return all, nil
		}
	}
	return all, find(some)
}

// state identifies a memory with its text. Other changes, such as of a tag, do not matter.
func state(m souvenir.Memory) string { return m.ID + "/" + digest(m.Content) }

// offered returns the states of the memories that proposals wait for, or were refused for; and the marks of the groups
// that a model left alone. After the first time it looks only at what others may have stored since.
func (r *run) offered(ctx context.Context) (states, left map[string]bool, err error) {
	states, left = map[string]bool{}, map[string]bool{}
	list := r.scope.proposals()
	if !r.offers.IsZero() {
		list.Filter["created_at"] = souvenir.Condition{AtLeast: r.offers.Add(-clocks)}
	}
	for m, err := range r.store.Memories(ctx, list) {
		if errors.Is(err, souvenir.ErrNotFound) {
			break
		}
		if err != nil {
			return nil, nil, err
		}
		if m.CreatedAt.After(r.offers) {
			r.offers = m.CreatedAt
		}
		if mark, ok := m.Metadata[markKey].(string); ok {
			left[mark] = true
			continue
		}
		m.State = ""
		if _, c, err := r.scope.read(m); err == nil {
			states[c.Target+"/"+c.was] = true
		}
	}
	return states, left, nil
}

const markKey = "left_alone"

// leave records, hidden like a refused proposal, that the model has nothing to propose for a group, or nothing that is
// allowed.
func (r *run) leave(ctx context.Context, g group) error {
	if r.options.DryRun {
		return nil
	}
	_, err := r.store.AddMemory(ctx, souvenir.NewMemory{Collection: r.scope.collection, ProjectID: r.scope.ref,
		Content: "Group without proposals", EventType: eventProposal, State: stateRefused, ValidFrom: long,
		Metadata: map[string]any{markKey: g.mark()}})
	return err
}

// groupOf returns a memory with the hits that have the same meaning, or else with one that contradicts it. A group for
// a model has all of these, and the hits that are probably about the same thing.
func groupOf(m souvenir.Memory, hits []souvenir.Hit, forModel bool) group {
	g := group{memories: []souvenir.Memory{m}}
	for _, h := range hits {
		contradicts := contradict(m.Content, h.Content)
		same := !contradicts && souvenir.Likeness(m.Content, h.Content) >= sameFrom
		if len(g.memories) < maxGroup && (same || forModel && (contradicts || h.Confidence >= nearFrom)) {
			g.memories = append(g.memories, h.Memory)
		}
	}
	for _, h := range hits {
		if len(g.memories) == 1 && contradict(m.Content, h.Content) {
			g.memories, g.contradiction = append(g.memories, h.Memory), true
		}
	}
	slices.SortStableFunc(g.memories, func(a, b souvenir.Memory) int { return timeOf(a).Compare(timeOf(b)) })
	return g
}

// timeOf returns the event time of a memory, or else the time it was stored.
func timeOf(m souvenir.Memory) time.Time {
	if m.EventTime.IsZero() {
		return m.CreatedAt
	}
	return m.EventTime
}

// negations are words that turn a sentence into its opposite, in some languages.
var negations = []string{"not", "no", "never", "nicht", "kein", "keine", "nie", "pas", "jamais", "nunca", "non", "mai",
	"longer", "more", "anymore", "mehr"}

// contradict reports whether two texts seem to contradict each other: they differ only in one word of their second
// half, or in a negation. It finds nothing in scripts without spaces.
func contradict(a, b string) bool {
	x, y := words(a), words(b)
	if len(x) < 3 || len(y) < 3 {
		return false
	}
	if len(x) == len(y) {
		differ := -1
		for i := range x {
			if x[i] == y[i] {
				continue
			}
			if differ >= 0 {
				return false
			}
			differ = i
		}
		return differ >= (len(x)+1)/2
	}
	without := func(text []string) []string {
		return slices.DeleteFunc(slices.Clone(text), func(w string) bool { return slices.Contains(negations, w) })
	}
	n, m := without(x), without(y)
	return slices.Equal(n, m) && (len(n) == len(x)) != (len(m) == len(y))
}

// settle returns the proposals for a group, or true if a limit was reached.
func (r *run) settle(ctx context.Context, g group) ([]Proposal, bool, error) {
	by, ok := r.options.Extractor.(Consolidator)
	if !ok {
		return g.bySimilarity(), false, nil
	}
	if r.exhausted(Conversation{Known: g.memories}) {
		return nil, true, nil
	}
	x, err := by.Consolidate(ctx, g.memories)
	r.report.Usage.add(x.Usage)
	if errors.Is(err, ErrAnswer) { // the next call asks again
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	var allowed []Proposal
	changed, forgotten := map[string]bool{}, 0
	for _, p := range x.Proposals {
		if p.Action == None {
			continue
		}
		why := p.fault()
		at := slices.IndexFunc(g.memories, func(m souvenir.Memory) bool { return m.ID == p.Target })
		switch {
		case why != "":
		case at < 0:
			why = "it names a memory that was not shown"
		case p.Action == Forget && g.memories[at].Supersedes != "":
			why = "the memory that it superseded would be valid again"
		case changed[p.Target]:
			why = "another proposal changes the same memory"
		case p.Action == Forget && forgotten == len(g.memories)-1:
			why = "the group would be empty"
		}
		if why != "" {
			r.refuse(p, why)
			continue
		}
		if changed[p.Target] = true; p.Action == Forget {
			forgotten++
		}
		p.Sources, p.Reason = nil, cut(cleaned(p.Reason), MaxReason)
		allowed = append(allowed, p)
	}
	if len(allowed) == 0 {
		return nil, false, r.leave(ctx, g)
	}
	stays := map[string]bool{}
	for _, m := range g.memories {
		stays[m.ID] = false
	}
	for _, p := range allowed {
		if stays[p.Target] = p.Action == Supersede; p.Action == Forget {
			delete(stays, p.Target)
		}
	}
	for i := range allowed {
		allowed[i].stays = stays
	}
	return allowed, false, nil
}

// bySimilarity proposes to keep the most complete of memories that say the same, or the latest of a contradiction. It
// keeps all that supersede another memory, which would be valid again.
func (g group) bySimilarity() []Proposal {
	stays, why := g.memories[len(g.memories)-1], "it may contradict the later memory"
	if !g.contradiction {
		why = "it repeats memory"
		for _, m := range g.memories {
			if len(m.Content) > len(stays.Content) {
				stays = m
			}
		}
	}
	var all []Proposal
	for _, m := range g.memories {
		if m.ID != stays.ID && m.Supersedes == "" {
			all = append(all, Proposal{Action: Forget, Target: m.ID, stays: map[string]bool{stays.ID: false},
				Reason: fmt.Sprintf("%s %s: %s", why, stays.ID, cut(stays.Content, MaxReason/2))})
		}
	}
	return all
}

// clocks is how much the clocks of two processes on a store may differ.
const clocks = time.Hour

// offer keeps the proposals for a group, if its memories are still the same, and no other call has made one about them.
func (r *run) offer(ctx context.Context, g group, proposals []Proposal) error {
	var kept []Pending
	err := r.transaction(ctx, func(ctx context.Context) error {
		kept = nil
		made, _, err := r.offered(ctx)
		if err != nil {
			return err
		}
		for _, m := range g.memories {
			if made[state(m)] {
				return errGone
			}
		}
		for _, p := range proposals {
			p.Group = g.memories[0].ID
			for _, m := range g.memories {
				if m.ID == p.Target {
					p.about(m)
				}
			}
			_, err := r.scope.target(ctx, p)
			if errors.Is(err, errGone) {
				kept = nil
				return errGone
			}
			if err != nil {
				return err
			}
			waits := Pending{Proposal: p}
			if !r.options.DryRun {
				waits, err = r.scope.keep(ctx, change{Proposal: p})
			}
			if err != nil {
				return err
			}
			kept = append(kept, waits)
		}
		return nil
	})
	if errors.Is(err, errGone) { // the next call tries the group again
		return nil
	}
	if err != nil {
		return err
	}
	r.report.Kept = append(r.report.Kept, kept...)
	return nil
}

//go:embed consolidate.txt
var consolidation string

// Consolidate asks the model for proposals about memories that seem to repeat or contradict each other.
func (m *Model) Consolidate(ctx context.Context, group []souvenir.Memory) (Extraction, error) {
	var x Extraction
	c := Conversation{Known: group}
	user, err := question(c)
	if err != nil {
		return x, err
	}
	answer, err := m.ask(ctx, consolidation+m.guidance, user, &x.Usage)
	x.Proposals = answer.proposals(c)
	return x, err
}
