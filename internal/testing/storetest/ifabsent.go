package storetest

import (
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/souvenir-ai/souvenir"
)

func ifAbsent() concept {
	return concept{"If absent", []promise{
		{"a content is stored once in its place", absentOnce},
		{"concurrent additions of the same content leave one memory", absentAtOnce},
		{"a content that is gone, or has changed, is stored again", absentAgain},
		{"a key, a rule and PutMemory have their own ways", absentRefused},
	}}
}

func absentOnce(f *fixture) {
	f.addCollection(souvenir.NewCollection{Name: "notes"})
	first := f.add(souvenir.NewMemory{Content: "we deploy on thursdays", Tags: []string{"deploy"}, IfAbsent: true})
	f.equal("the first", []any{first.Effect, first.Revision}, []any{souvenir.EffectAdded, 1})
	f.clock.Pass(time.Hour)
	f.embedder.Texts()
	again := f.add(souvenir.NewMemory{Content: "we deploy on thursdays", Tags: []string{"other"}, State: "new",
		IfAbsent: true})
	f.equal("the second", []any{again.Effect, again.Memory, again.Indexed},
		[]any{souvenir.EffectUnchanged, first.Memory, true})
	long := strings.Repeat("the same end ", 20_000)
	for _, m := range []souvenir.NewMemory{
		{Content: "we deploy on thursdayS"}, {Content: "We deploy on thursdays"}, {Content: "日本語で書いた記憶"}, {Content: long},
		{Content: "a" + long[1:]}, {Content: "one\x01byte"}, {Content: "one\x01bite"},
		{Content: "we deploy on thursdays", Collection: "notes"}, {Content: "we deploy on thursdays", ProjectID: "p"},
	} {
		m.IfAbsent = true
		added := f.add(m)
		f.equal("added "+brief(m.Content), added.Effect, souvenir.EffectAdded)
		f.equal("again "+brief(m.Content), []any{f.add(m).Effect, f.add(m).ID}, []any{souvenir.EffectUnchanged, added.ID})
	}
	f.equal("of another user", f.as(souvenir.Access{User: "ann"}).add(
		souvenir.NewMemory{Content: "we deploy on thursdays", IfAbsent: true}).Effect, souvenir.EffectAdded)
	f.equal("all", len(f.list(souvenir.MemoryList{})), 10)
	both, err := f.store.AddMemories(f.ctx, []souvenir.NewMemory{{Content: "twice", IfAbsent: true},
		{Content: "twice", IfAbsent: true}, {Content: "twice"}}, nil)
	f.check("AddMemories", err)
	f.equal("within one call", []any{both[0].ID == both[1].ID, both[1].Effect, both[2].ID == both[0].ID},
		[]any{true, souvenir.EffectUnchanged, false})
}

func absentAtOnce(f *fixture) {
	const callers = 32
	var wait sync.WaitGroup
	effects := make([]souvenir.Effect, callers)
	failed := make([]error, callers)
	for i := range callers {
		wait.Go(func() {
			m, err := f.store.AddMemory(f.ctx, souvenir.NewMemory{Content: "the one", IfAbsent: true})
			effects[i], failed[i] = m.Effect, err
		})
	}
	wait.Wait()
	f.check("AddMemory", errors.Join(failed...))
	added := 0
	for _, e := range effects {
		if e == souvenir.EffectAdded {
			added++
		}
	}
	f.equal("added, and there", []int{added, len(f.list(souvenir.MemoryList{}))}, []int{1, 1})
}

func absentAgain(f *fixture) {
	m := souvenir.NewMemory{Content: "a heron by the house", IfAbsent: true}
	first := f.add(m)
	f.rewrite(first.ID, "an otter")
	second := f.add(m)
	f.equal("after a change", second.Effect, souvenir.EffectAdded)
	f.delete(second.ID)
	third := f.add(m)
	f.equal("after a deletion", []any{third.Effect, third.Indexed}, []any{souvenir.EffectAdded, true})
	f.equal("found", len(f.find("heron")), 1)
}

func absentRefused(f *fixture) {
	for what, m := range map[string]souvenir.NewMemory{
		"a key":  {Content: "x", Key: "k"},
		"a rule": {Content: "x", EventType: souvenir.EventProjectRule, RuleType: souvenir.RuleDo, ProjectID: "p"},
	} {
		m.IfAbsent = true
		_, err := f.store.AddMemory(f.ctx, m)
		f.failsAt(what, err, souvenir.ErrInvalid, "IfAbsent")
	}
	_, err := f.store.PutMemory(f.ctx, souvenir.NewMemory{Content: "x", Key: "k", IfAbsent: true})
	f.failsAt("PutMemory", err, souvenir.ErrInvalid, "IfAbsent")
}
