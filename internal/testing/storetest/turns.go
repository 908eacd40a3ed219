package storetest

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/souvenir-ai/souvenir"
)

// turns are the promises about memories that are turns of a conversation.
func turns() concept {
	return concept{"Conversations", []promise{
		{"lend the evidence of a question to its answer", turnsAnswer},
		{"never lend across conversations, collections or projects", turnsApart},
		{"are in the order of their times, then of arrival", turnsInOrder},
		{"lend nothing that is deleted or was moved away", turnsDeleted},
		{"lend what a filter leaves out, but do not show it", turnsFiltered},
		{"are those of one project and day for the event type conversation", turnsOfADay},
		{"survive export and trash", turnsKept},
		{"stay the same when something else changes", turnsRewritten},
		{"explain each score", turnsExplained},
		{"give pages that form one order", turnsPaged},
		{"answer the same with and without an index in memory", turnsOnDisk},
	}}
}

// said stores a memory of a conversation.
func (f *fixture) said(conversation, content string, metadata map[string]any) souvenir.StoredMemory {
	f.Helper()
	all := map[string]any{"conv": conversation}
	for key, value := range metadata {
		all[key] = value
	}
	return f.add(souvenir.NewMemory{Content: content, ShownMetadata: all})
}

// lenders returns the contents of a memory's lenders, with their places.
func (f *fixture) lenders(id string, q souvenir.Query) (all []string) {
	f.Helper()
	q.Explain, q.Limit = true, souvenir.MaxLimit
	for _, h := range f.search(q).Hits {
		if h.ID != id {
			continue
		}
		for _, l := range h.Explanation.Neighbours {
			if l.ID != id {
				all = append(all, fmt.Sprintf("%+d %s", l.Place, f.get(l.ID).Content))
			}
		}
		return all
	}
	f.Errorf("got no memory %s, want it among the hits", id)
	return nil
}

func turnsAnswer(f *fixture) {
	alone := f.addTexts("by train to the coast")[0]
	f.said("a", "how did the heron get there?", nil)
	answer := f.said("a", "by train to the coast", nil)
	f.said("b", "something else about herons", nil)
	results := f.search(souvenir.Query{Text: "heron", Explain: true})
	at := func(id string) int {
		return slices.IndexFunc(results.Hits, func(h souvenir.Hit) bool { return h.ID == id })
	}
	if at(answer.ID) < 0 || at(alone) < 0 || at(answer.ID) > at(alone) {
		f.Errorf("the answer has place %d, the same text alone %d; want the answer before it", at(answer.ID), at(alone))
	}
	f.equal("lenders", f.lenders(answer.ID, souvenir.Query{Text: "heron"}), []string{"-1 how did the heron get there?"})
	if l := results.Hits[at(answer.ID)].Explanation.Neighbours; !l[0].Asks {
		f.Errorf("%+v: want that it asks", l)
	}
	if e := results.Hits[at(alone)].Explanation; len(e.Neighbours) > 0 {
		f.Errorf("a memory without a conversation gains from %+v; want none", e.Neighbours)
	}
}

func turnsApart(f *fixture) {
	f.addCollection(souvenir.NewCollection{Name: "other"})
	metadata := map[string]any{"conv": "a"}
	f.said("b", "the heron of another conversation", nil)
	f.add(souvenir.NewMemory{Content: "the heron of another collection", Collection: "other", ShownMetadata: metadata})
	f.add(souvenir.NewMemory{Content: "the heron of a project", ProjectID: "p", ShownMetadata: metadata})
	f.as(souvenir.Access{User: "ann"}).add(souvenir.NewMemory{Content: "the heron of another user",
		ShownMetadata: metadata})
	f.addTexts("the heron of none")
	quiet := f.said("a", "yes, they do", nil)
	f.equal("lenders", f.lenders(quiet.ID, souvenir.Query{Text: "heron"}), []string(nil))
}

func turnsInOrder(f *fixture) {
	at := func(minute int) map[string]any {
		return map[string]any{"session_ts": fmt.Sprintf("2024-05-01T10:%02d:00", minute)}
	}
	answer := f.said("a", "yes, they do", at(3))
	f.said("a", "the heron last", at(4))
	f.said("a", "the heron first", at(1))
	f.said("a", "the heron second", at(2))
	f.said("a", "the heron at the same time", at(3))
	f.equal("lenders", f.lenders(answer.ID, souvenir.Query{Text: "heron"}),
		[]string{"-2 the heron first", "-1 the heron second", "+1 the heron at the same time", "+2 the heron last"})
}

func turnsDeleted(f *fixture) {
	question := f.said("a", "where is the heron?", nil)
	answer := f.said("a", "yes, they do", nil)
	lenders := func() []string { return f.lenders(answer.ID, souvenir.Query{Text: "heron"}) }
	want := []string{"-1 where is the heron?"}
	f.equal("lenders", lenders(), want)
	f.patch(question.ID, map[string]any{"conv": "b"})
	f.equal("lenders of a question moved to another conversation", lenders(), []string(nil))
	f.patch(question.ID, map[string]any{"conv": "a"})
	f.equal("lenders of a question moved back", lenders(), want)
	f.patch(answer.ID, map[string]any{"conv": nil})
	f.equal("lenders of what is in no conversation", lenders(), []string(nil))
	f.patch(answer.ID, map[string]any{"conv": "a"})
	f.rewrite(question.ID, "where is the otter?")
	f.equal("lenders after a change", lenders(), []string(nil))
	f.rewrite(question.ID, "where is the heron?")
	f.delete(question.ID)
	f.equal("lenders of a deleted question", lenders(), []string(nil))
}

func turnsFiltered(f *fixture) {
	f.said("a", "where is the heron?", map[string]any{"speaker": "Ann"})
	answer := f.said("a", "in the reeds", map[string]any{"speaker": "Ben"})
	q := souvenir.Query{Text: "heron", Filter: souvenir.Filter{"speaker": "Ben"}}
	f.equal("lenders", f.lenders(answer.ID, q), []string{"-1 where is the heron?"})
	results := f.search(q)
	f.equal("hits", []any{len(results.Hits), results.Total, results.Hits[0].ID}, []any{1, 1, answer.ID})
}

// turnsRewritten changes another property of one of two turns: it is read again, and must stay in the same
// conversation.
func turnsRewritten(f *fixture) {
	for i, metadata := range []map[string]any{
		{"session": 7}, {"thread_id": 12345678901234567}, {"chat_id": 0.5}, {"conversation": " x "},
		{"conv": "a", "session": 3, "time": 1683554160}, {"session_id": "s", "time": "2023-05-08T13:56:00"},
	} {
		word := []string{"heron", "otter", "lynx", "badger", "walrus", "pelican"}[i]
		f.add(souvenir.NewMemory{Content: "where is the " + word + "?", ShownMetadata: metadata})
		answer := f.add(souvenir.NewMemory{Content: "yes, they do", ShownMetadata: metadata})
		want := []string{"-1 where is the " + word + "?"}
		f.equal("lenders", f.lenders(answer.ID, souvenir.Query{Text: word}), want)
		f.patch(answer.ID, map[string]any{"note": "seen"})
		f.equal("lenders after a change of something else", f.lenders(answer.ID, souvenir.Query{Text: word}), want)
	}
}

func turnsOfADay(f *fixture) {
	say := func(content, project string) string {
		return f.add(souvenir.NewMemory{Content: content, EventType: "conversation", ProjectID: project}).ID
	}
	say("where is the heron?", "p")
	answer, elsewhere, own := say("yes, they do", "p"), say("yes, they do", "q"), say("yes, they do", "")
	f.clock.Pass(24 * time.Hour)
	later := say("yes, they do", "p")
	for id, want := range map[string][]string{answer: {"-1 where is the heron?"}, elsewhere: nil, own: nil, later: nil} {
		f.equal("lenders", f.lenders(id, souvenir.Query{Text: "heron"}), want)
	}
}

func turnsKept(f *fixture) {
	question := f.said("a", "where is the heron?", nil)
	f.clock.Pass(time.Second)
	answer := f.said("a", "yes, they do", nil)
	want := []string{"-1 where is the heron?"}
	export := f.exported()
	f.inAnother(func(other *fixture) {
		other.imported(export)
		other.equal("lenders in another store", other.lenders(answer.ID, souvenir.Query{Text: "heron"}), want)
	})
	f.delete(question.ID)
	_, err := f.store.Trash().Restore(f.ctx, f.trash()[0].ID)
	f.check("Trash.Restore", err)
	f.equal("lenders from the trash", f.lenders(answer.ID, souvenir.Query{Text: "heron"}), want)
}

func turnsExplained(f *fixture) {
	for i := range 12 {
		f.said("a", fmt.Sprint([]string{"where is the heron", "the car", "a dog", "coffee by the ocean?"}[i%4], " ", i),
			map[string]any{"speaker": []string{"Ann", "Ben"}[i%2]})
	}
	f.addTexts("the heron in a car", "coffee")
	f.add(souvenir.NewMemory{Content: "ticket PAY-4412 about the heron"})
	for _, text := range []string{"heron", "what did Ann say about the vehicle", "PAY-4412", "hound espresso"} {
		for _, h := range f.search(souvenir.Query{Text: text, Explain: true, Limit: 50}).Hits {
			e := h.Explanation
			sum := e.Words.Gain + e.Meaning.Gain + e.Late.Gain + e.Exact + e.Asking + e.Speaker
			for _, l := range e.Neighbours {
				sum += l.Gain
				if l.Place < -8 || l.Place > 8 || l.Gain <= 0 {
					f.Errorf("%s: %q gains from %+v, want place at least %v, place at most 8 and gain more than 0", text, h.Content, l,
						-8)
				}
			}
			if math.Abs(min(1, max(0, sum))-h.Score) > 1e-5 {
				f.Errorf("%s: the gains of %q add up to %v, want its score %v: %+v", text, h.Content, sum, h.Score, e)
			}
		}
	}
	for _, q := range []souvenir.Query{{Text: "heron"}, {}, {Explain: true},
		{Explain: true, Vector: Words{}.Vector("car")}} {
		for _, h := range f.search(q).Hits {
			if h.Explanation != nil {
				f.Errorf("%+v: %q is explained by %+v, want nil", q, h.Content, h.Explanation)
			}
		}
	}
}

// chat stores a conversation with neighbours of all kinds.
func (f *fixture) chat(turns int) {
	f.Helper()
	subjects := []string{"car", "automobile", "dog", "house", "coffee", "ocean", "gardening"}
	for i := range turns {
		content := fmt.Sprint("the ", subjects[i%7], " and the ", subjects[i*i%5], " of ", i%11)
		if i%3 == 0 {
			content += "?"
		}
		f.said(fmt.Sprint("c", i%4), content, map[string]any{"speaker": []string{"Ann", "Ben", "Mara"}[i%3]})
	}
}

func turnsPaged(f *fixture) {
	f.chat(130)
	for _, q := range []souvenir.Query{{Text: "what did Ann say about the vehicle"}, {Text: "dog of 7"},
		{Text: "sea", Filter: souvenir.Filter{"speaker": "Ben"}}} {
		q.Limit = 100
		all := f.search(q)
		q.Offset = 100
		all.Hits = append(all.Hits, f.search(q).Hits...)
		f.equal("hits and total", len(all.Hits), all.Total)
		var paged []souvenir.Hit
		for q.Limit, q.Offset = 7, 0; q.Offset < all.Total; q.Offset += q.Limit {
			paged = append(paged, f.search(q).Hits...)
		}
		seen := map[string]bool{}
		for i, h := range paged {
			if h.ID != all.Hits[i].ID || h.Rank != i+1 || seen[h.ID] {
				f.Fatalf("%s: place %d of the pages is %q with rank %d, want %q", q.Text, i, h.Content, h.Rank, all.Hits[i].Content)
			}
			if seen[h.ID] = true; i > 0 && cmp.Compare(h.Score, paged[i-1].Score) > 0 || h.Score < 0 || h.Score > 1 {
				f.Fatalf("%s: place %d has the score %v after %v, want it from 0 to 1, and not above", q.Text, i, h.Score,
					paged[i-1].Score)
			}
		}
	}
}

func turnsOnDisk(f *fixture) {
	f.chat(90)
	var others []*souvenir.Store
	for _, bytes := range []int64{-1, 0} { // no index, and one in memory
		options := f.options(f.embedder)
		options.IndexMemory = bytes
		others = append(others, f.open(f.T, options))
	}
	for _, q := range []souvenir.Query{{Text: "what did Ann say about the vehicle"}, {Text: "dog of 7"}, {Text: "coffee?"},
		{Text: "sea", Filter: souvenir.Filter{"speaker": "Ben"}}, {Text: "house", Vector: Words{}.Vector("puppy")}} {
		q.Limit = 100
		a := f.search(q)
		for _, other := range others {
			b, err := other.Search(f.ctx, q)
			f.check("Search", err)
			f.sameHits(brief(q.Text), a, b)
		}
	}
}
