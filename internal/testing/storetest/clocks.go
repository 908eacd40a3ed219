package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir"
)

const year = 365 * 24 * time.Hour

func clocks() concept {
	return concept{"Clocks", []promise{
		{"a memory stored by a clock that is ahead is the newest only until another is stored", clockAhead},
		{"several such times keep their order", clockAheadOften},
		{"a change by a clock that is ahead does not count for ever either", clockAheadUpdate},
		{"a change by the right time takes it", clockAheadMended},
		{"a clock that starts at its beginning leaves times and order", clockReset},
		{"a memory restored from the trash is no measure", clockAheadRestored},
		{"a clock that is a year ahead deletes nothing that expires, until it has said so for a day", clockAheadPurge},
		{"the operator can say that the clock is right", clockTrusted},
	}}
}

// newestKind is a kind of memory of which only the newest counts.
type newestKind struct {
	name   string
	memory souvenir.NewMemory
	listed func(f *fixture) []string // the contents, the newest first, or the newest alone
}

func newestKinds() []newestKind {
	first := func(m souvenir.Memory) []string { return []string{m.Content} }
	return []newestKind{
		{"identity", souvenir.NewMemory{EventType: "IDENTITY"}, func(f *fixture) []string { return []string{f.identity()} }},
		{"conversation", souvenir.NewMemory{EventType: "conversation"}, func(f *fixture) []string {
			return first(f.get(f.context(souvenir.ContextQuery{}).ConversationID))
		}},
		{"main memory", souvenir.NewMemory{EventType: "project-main", ProjectID: "p"}, func(f *fixture) []string {
			return first(f.mainMemory(souvenir.ProjectRef{ID: "p"}).Memory)
		}},
		{"dos and don'ts", souvenir.NewMemory{Classification: souvenir.ClassDo}, func(f *fixture) []string {
			return listed(f.context(souvenir.ContextQuery{}).GeneralDoDont)
		}},
		{"dos of a project", souvenir.NewMemory{Classification: souvenir.ClassDo, ProjectID: "p"}, func(f *fixture) []string {
			return listed(f.context(souvenir.ContextQuery{ProjectID: "p"}).ProjectDoDont)
		}},
		{"module", souvenir.NewMemory{ShownMetadata: named("billing")}, func(f *fixture) []string {
			var all []string
			for _, m := range f.module(souvenir.ModuleQuery{Module: "billing"}).Memories {
				all = append(all, m.Content)
			}
			return all
		}},
		{"related", souvenir.NewMemory{},
			func(f *fixture) []string { return listed(f.context(souvenir.ContextQuery{}).Related) }},
		{"the newest one related", souvenir.NewMemory{}, func(f *fixture) []string {
			return listed(f.context(souvenir.ContextQuery{Related: 1}).Related)
		}},
	}
}

// eachNewest runs a test for each kind, each in a store of its own. see checks which of the memories stored by add
// appear.
func (f *fixture) eachNewest(test func(f *fixture, add func(content string) string,
	see func(what string, contents ...string))) {
	for _, kind := range newestKinds() {
		f.Run(kind.name, func(t *testing.T) {
			g := newFixture(t, f.open, f.reader != f.store)
			add := func(content string) string {
				m := kind.memory
				m.Content = content
				return g.add(m).ID
			}
			see := func(what string, contents ...string) {
				g.Helper()
				seen := kind.listed(g)
				g.same(what, seen, contents[:max(1, min(len(seen), len(contents)))]...)
			}
			test(g, add, see)
		})
	}
}

func clockAhead(f *fixture) {
	f.eachNewest(func(f *fixture, add func(string) string, see func(string, ...string)) {
		add("before")
		f.clock.Pass(year)
		add("ahead")
		see("by the clock that is ahead", "ahead", "before")
		f.clock.Pass(time.Second - year)
		see("by the right time", "ahead", "before")
		add("after")
		see("with one more", "after", "ahead", "before")
		f.clock.Pass(time.Hour)
		see("an hour later", "after", "ahead", "before")
		add("later")
		see("with another one", "later", "after", "ahead", "before")
	})
}

func clockAheadOften(f *fixture) {
	f.eachNewest(func(f *fixture, add func(string) string, see func(string, ...string)) {
		add("0")
		for i := range 2 {
			f.clock.Pass(year)
			add(fmt.Sprint(3*i + 1))
			f.clock.Pass(time.Second)
			add(fmt.Sprint(3*i + 2))
			f.clock.Pass(time.Minute - year)
			add(fmt.Sprint(3*i + 3))
		}
		see("two times ahead", "6", "5", "4", "3", "2", "1", "0")
	})
}

func clockAheadUpdate(f *fixture) {
	f.eachNewest(func(f *fixture, add func(string) string, see func(string, ...string)) {
		one := add("one")
		f.clock.Pass(time.Hour)
		add("two")
		f.clock.Pass(time.Hour)
		f.rewrite(one, "one again")
		f.clock.Pass(year)
		f.rewrite(one, "one ahead")
		see("by the clock that is ahead", "one ahead", "two")
		f.clock.Pass(time.Minute - year)
		see("by the right time", "one ahead", "two") // its last revision is newer
		add("three")
		see("with one more", "three", "one ahead", "two")
	})
}

func clockAheadMended(f *fixture) {
	f.add(souvenir.NewMemory{Content: "x"})
	f.clock.Pass(year)
	m := f.add(souvenir.NewMemory{Content: "y"})
	f.setRule(souvenir.NewRule{Type: souvenir.RuleDo, Content: "a"})
	file := f.addFile(souvenir.NewFile{Filename: "a.txt"}, "text")
	f.clock.Pass(time.Minute - year)
	now := f.clock.Now()
	updated := f.rewrite(m.ID, "z")
	f.equal("updated_at", updated.UpdatedAt, now)
	f.equal("created_at", updated.CreatedAt, m.CreatedAt)
	f.equal("revision", updated.Revision, 2)
	f.equal("updated_at of the rule", f.setRule(souvenir.NewRule{Type: souvenir.RuleDo, Content: "b"}).UpdatedAt, now)
	changed, err := f.store.UpdateFile(f.ctx, file.ID, souvenir.FileUpdate{Description: new("new")})
	f.check("UpdateFile", err)
	f.equal("updated_at of the file", changed.UpdatedAt, now)
	f.clock.Pass(-time.Minute)
	f.equal("a clock somewhat behind", f.rewrite(m.ID, "y").UpdatedAt, now)
}

func clockReset(f *fixture) {
	f.eachNewest(func(f *fixture, add func(string) string, see func(string, ...string)) {
		one := add("one")
		f.clock.Pass(time.Hour)
		add("two")
		f.clock.Pass(time.Hour)
		at := f.rewrite(one, "one again").UpdatedAt
		back := f.clock.Now().Sub(time.Unix(5, 0))
		f.clock.Pass(-back)
		see("at the beginning", "one again", "two")
		f.equal("updated_at", f.rewrite(one, "one more").UpdatedAt, at)
		f.clock.Pass(back)
		see("by the right time", "one more", "two")
	})
}

func clockAheadRestored(f *fixture) {
	old := f.add(souvenir.NewMemory{Content: "old"})
	f.clock.Pass(24 * time.Hour)
	f.add(souvenir.NewMemory{Content: "before", EventType: "IDENTITY"})
	f.clock.Pass(24 * time.Hour)
	f.delete(old.ID)
	_, err := f.store.Trash().Restore(f.ctx, old.ID)
	f.check("Trash.Restore", err)
	f.clock.Pass(year)
	f.add(souvenir.NewMemory{Content: "ahead", EventType: "IDENTITY"})
	f.clock.Pass(-year)
	f.equal("the identity", f.identity(), "ahead")
}

func (f *fixture) purgeWith(o souvenir.PurgeOptions) souvenir.PurgeReport {
	f.Helper()
	p, err := f.operator.Upkeep().Purge(f.ctx, &o)
	f.check("Purge", err)
	return p
}

// timeLimited creates a memory in the trash and a recorded call.
func (f *fixture) timeLimited() (id string) {
	f.Helper()
	id = f.addTexts("thrown away")[0]
	f.delete(id)
	f.check("RecordActivity", f.operator.Upkeep().RecordActivity(f.ctx,
		souvenir.NewActivity{Tool: "memory", StartedAt: f.clock.Now()}))
	f.purgeWith(souvenir.PurgeOptions{})
	f.equal("calls", len(f.recorded()), 1)
	return id
}

func (f *fixture) recorded() []souvenir.Activity {
	f.Helper()
	p, err := f.store.Insights().ActivityPage(f.ctx, souvenir.ActivityQuery{})
	f.check("ActivityPage", err)
	return p.Activities
}

func clockAheadPurge(f *fixture) {
	id := f.timeLimited()
	start := f.clock.Now()
	f.clock.Pass(year)
	for range 2 {
		p := f.purgeWith(souvenir.PurgeOptions{})
		f.equal("deleted by a clock that is ahead", []any{p.Trash, p.Activity}, []any{0, 0})
		f.equal("held back until", p.HeldUntil, start.Add(year+24*time.Hour))
	}
	f.clock.Pass(-year)
	f.equal("by the right time again", f.purgeWith(souvenir.PurgeOptions{}), souvenir.PurgeReport{})
	f.equal("calls", len(f.recorded()), 1)
	f.restore(id)

	f.delete(id)
	f.clock.Pass(year)
	f.equal("held back", f.purgeWith(souvenir.PurgeOptions{}).HeldUntil.IsZero(), false)
	f.clock.Pass(24 * time.Hour)
	f.equal("a day later", f.purgeWith(souvenir.PurgeOptions{}).HeldUntil, time.Time{})
	f.equal("calls", len(f.recorded()), 0)
	f.clock.Pass(-year)
	f.same("in the trash", f.inTrash())
}

func clockTrusted(f *fixture) {
	f.timeLimited()
	f.clock.Pass(year)
	p := f.purgeWith(souvenir.PurgeOptions{TrustClock: true})
	f.equal("held back until", p.HeldUntil, time.Time{})
	f.equal("calls", len(f.recorded()), 0)
	f.clock.Pass(-year)
	f.same("in the trash", f.inTrash())
}
