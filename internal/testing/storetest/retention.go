package storetest

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir"
)

func retention() concept {
	return concept{"Retention", []promise{
		{"memories that have not changed for the time of a rule go to the trash", retentionIsDue},
		{"a rule that deletes leaves nothing", retentionDeletes},
		{"rules, dos and don'ts, the identity and main memories stay, and so do files", retentionSpares},
		{"of two rules the one that ends earlier counts", retentionOfBoth},
		{"a restored memory is young, and its place keeps its rule", retentionRestored},
		{"only who may manage a place sets its rule, and only its owner one that deletes", retentionRights},
		{"a rule is out of the usual bounds only with an error", retentionRefusals},
		{"a rule is counted before it is set", retentionPreview},
		{"a clock that is ahead removes nothing", retentionClock},
		{"a rule is noted once in the audit log", retentionAudit},
		{"an export has the rules", retentionExport},
	}}
}

const retentionDay = 24 * time.Hour

// keep gives a collection a rule, and keepIn a project.
func (f *fixture) keep(collection string, r souvenir.Retention) {
	f.Helper()
	_, err := f.store.UpdateCollection(f.ctx, collection, souvenir.CollectionUpdate{Retention: &r})
	f.check("UpdateCollection", err)
	f.equal("the rule of "+collection, f.collection(collection).Retention, r)
}

func (f *fixture) keepIn(project string, r souvenir.Retention) {
	f.Helper()
	updated, err := f.store.UpdateProject(f.ctx, souvenir.ProjectRef{ID: project}, souvenir.ProjectUpdate{Retention: &r})
	f.check("UpdateProject", err)
	f.equal("the rule of "+project, updated.Retention, r)
}

// passDays lets some days pass, with a program at work on each, and applies the rules.
func (f *fixture) passDays(n int) {
	f.Helper()
	for range n {
		f.clock.Pass(retentionDay)
		f.purged()
	}
}

// titles returns the titles in the trash.
func (f *fixture) titles() []string {
	f.Helper()
	var titles []string
	for e, err := range f.reader.Trash().All(f.ctx, souvenir.TrashList{}) {
		f.check("Trash.All", err)
		titles = append(titles, e.Title)
	}
	return titles
}

func (f *fixture) kept() []string {
	f.Helper()
	var contents []string
	for _, m := range f.list(souvenir.MemoryList{}) {
		contents = append(contents, m.Content)
	}
	slices.Sort(contents)
	return contents
}

func retentionIsDue(f *fixture) {
	f.addCollection(souvenir.NewCollection{Name: "日记"})
	old := f.add(souvenir.NewMemory{Content: "昨天的会议记录", Collection: "日记"})
	changed := f.add(souvenir.NewMemory{Content: "a plan", Collection: "日记"})
	f.add(souvenir.NewMemory{Content: "elsewhere"})
	f.keep("日记", souvenir.Retention{After: 10 * retentionDay})
	f.passDays(5)
	f.rewrite(changed.ID, "a new plan")
	young := f.add(souvenir.NewMemory{Content: "young", Collection: "日记"})
	f.passDays(4)
	f.same("before", f.kept(), "a new plan", "elsewhere", "young", "昨天的会议记录")
	f.passDays(1)
	f.same("after ten days", f.kept(), "a new plan", "elsewhere", "young")
	e, err := f.reader.Trash().Get(f.ctx, old.ID)
	f.check("Trash.Get", err)
	f.equal("the entry", []any{e.Title, e.Through, e.DeletedBy == e.Owner, e.Until.After(f.clock.Now())},
		[]any{"昨天的会议记录", "retention", true, true})
	f.keep("日记", souvenir.Retention{})
	f.passDays(10)
	f.equal("without a rule", f.get(young.ID).Content, "young")
}

func retentionDeletes(f *fixture) {
	f.add(souvenir.NewMemory{Content: "a heron", ProjectID: "p"})
	f.keepIn("p", souvenir.Retention{After: 2 * retentionDay, Delete: true})
	f.passDays(2)
	f.equal("left", []any{f.stats().Memories, len(f.titles())}, []any{0, 0})
}

func retentionSpares(f *fixture) {
	var ids []string
	for _, m := range []souvenir.NewMemory{
		{Content: "always call first", Classification: souvenir.ClassDo},
		{Content: "never call before nine", Classification: souvenir.ClassDont},
		{Content: "I am Robin", EventType: "Identity"},
		{Content: "the ferry, in short", EventType: "Project-Main"},
		{Content: "be kind", EventType: souvenir.EventProjectRule, RuleType: souvenir.RuleDo},
		{Content: "goes", EventType: "note"},
	} {
		m.ProjectID = "p"
		ids = append(ids, f.add(m).ID)
	}
	file, err := f.store.AddFile(f.ctx, souvenir.NewFile{Filename: "a.txt", MemoryID: ids[5]}, strings.NewReader("herons"))
	f.check("AddFile", err)
	f.keepIn("p", souvenir.Retention{After: retentionDay})
	f.passDays(3)
	f.same("left", f.kept(), "I am Robin", "always call first", "be kind", "never call before nine",
		"the ferry, in short")
	shown, err := f.reader.GetFile(f.ctx, file.ID)
	f.check("GetFile", err)
	f.equal("the file without its memory", []any{shown.MemoryID, shown.ProjectID}, []any{"", "p"})
	_, err = f.store.Trash().Restore(f.ctx, ids[5])
	f.check("Restore", err)
	shown, err = f.reader.GetFile(f.ctx, file.ID)
	f.check("GetFile", err)
	f.equal("the file with it", shown.MemoryID, ids[5])
}

func retentionOfBoth(f *fixture) {
	for _, c := range []string{"c", "d"} {
		f.addCollection(souvenir.NewCollection{Name: c})
	}
	for _, m := range []souvenir.NewMemory{{Content: "both", Collection: "c", ProjectID: "p"},
		{Content: "collection", Collection: "c"}, {Content: "project", Collection: "d", ProjectID: "p"},
		{Content: "none", Collection: "d"}} {
		f.add(m)
	}
	f.keep("c", souvenir.Retention{After: 6 * retentionDay})
	f.keepIn("p", souvenir.Retention{After: 3 * retentionDay, Delete: true})
	f.passDays(2)
	f.same("two days", f.kept(), "both", "collection", "none", "project")
	f.passDays(1)
	f.same("three days", f.kept(), "collection", "none")
	f.passDays(3)
	f.same("six days", f.kept(), "none")
	f.same("the trash", f.titles(), "collection")
	f.add(souvenir.NewMemory{Content: "at once", Collection: "c", ProjectID: "p"})
	f.keep("c", souvenir.Retention{After: 3 * retentionDay})
	f.passDays(3)
	f.same("of two at once the one that can be undone", f.titles(), "at once", "collection")
}

func retentionRestored(f *fixture) {
	f.addCollection(souvenir.NewCollection{Name: "c"})
	m := f.add(souvenir.NewMemory{Content: "a heron", Collection: "c", ProjectID: "p"})
	f.keep("c", souvenir.Retention{After: 3 * retentionDay})
	f.keepIn("p", souvenir.Retention{After: 9 * retentionDay, Delete: true})
	f.passDays(3)
	f.equal("gone", len(f.kept()), 0)
	_, err := f.store.Trash().Restore(f.ctx, m.ID)
	f.check("Restore", err)
	back := f.get(m.ID)
	f.equal("young", []any{back.UpdatedAt, back.CreatedAt, back.Revision}, []any{f.clock.Now(), m.CreatedAt, m.Revision})
	f.passDays(2)
	f.equal("stays", f.get(m.ID).Content, "a heron")
	all := &souvenir.DeletionOptions{WithMemories: true}
	f.check("DeleteProject", f.store.DeleteProject(f.ctx, souvenir.ProjectRef{ID: "p"}, all))
	f.check("DeleteCollection", f.store.DeleteCollection(f.ctx, "c", all))
	f.passDays(5)
	for range 2 {
		for e, err := range f.store.Trash().All(f.ctx, souvenir.TrashList{}) {
			f.check("Trash.All", err)
			if e.Kind == souvenir.TrashCollection || f.hasCollection("c") {
				_, err = f.store.Trash().Restore(f.ctx, e.ID)
				f.check("Restore "+e.Title, err)
			}
		}
	}
	project, err := f.reader.GetProject(f.ctx, souvenir.ProjectRef{ID: "p"})
	f.check("GetProject", err)
	f.equal("rules", []any{f.collection("c").Retention, project.Retention}, []any{
		souvenir.Retention{After: 3 * retentionDay}, souvenir.Retention{After: 9 * retentionDay, Delete: true}})
	f.passDays(2)
	f.equal("young again", f.get(m.ID).Content, "a heron")
	f.passDays(1)
	f.equal("due again", len(f.kept()), 0)
}

func (f *fixture) hasCollection(name string) bool {
	_, err := f.reader.GetCollection(f.ctx, name)
	return err == nil
}

func retentionRights(f *fixture) {
	f.add(souvenir.NewMemory{Content: "a heron", ProjectID: "p"})
	view := map[souvenir.MemberRole]*fixture{}
	for _, role := range []souvenir.MemberRole{souvenir.MemberReader, souvenir.MemberWriter, souvenir.MemberOwner} {
		_, err := f.operator.Accounts().AddUser(f.ctx, souvenir.NewUser{ID: string(role), Name: string(role)})
		f.check("AddUser", err)
		_, err = f.operator.AddMember(f.ctx, souvenir.NewMember{Project: souvenir.ProjectRef{ID: "local/p"},
			User: string(role), Role: role})
		f.check("AddMember", err)
		view[role] = f.as(souvenir.Access{User: string(role)})
	}
	set := func(of *fixture, r souvenir.Retention) error {
		_, err := of.store.UpdateProject(f.ctx, souvenir.ProjectRef{ID: "local/p"}, souvenir.ProjectUpdate{Retention: &r})
		return err
	}
	day := souvenir.Retention{After: retentionDay}
	for _, role := range []souvenir.MemberRole{souvenir.MemberReader, souvenir.MemberWriter} {
		f.fails(string(role), set(view[role], day), souvenir.ErrForbidden)
		_, err := view[role].reader.Insights().CountDue(f.ctx, souvenir.DueQuery{Retention: day,
			Project: souvenir.ProjectRef{ID: "local/p"}})
		f.fails("CountDue", err, souvenir.ErrForbidden)
		_, err = view[role].store.UpdateCollection(f.ctx, "default", souvenir.CollectionUpdate{Retention: &day})
		f.fails("the collection", err, souvenir.ErrForbidden)
	}
	stranger := f.as(souvenir.Access{User: "stranger"})
	f.fails("a stranger", set(stranger, day), souvenir.ErrNotFound)
	f.fails("a view of the project", set(f.as(souvenir.Access{User: "local", Projects: []string{"p"}}), day),
		souvenir.ErrForbidden)
	owner := view[souvenir.MemberOwner]
	f.failsAt("an owner who is a member", set(owner, souvenir.Retention{After: retentionDay, Delete: true}),
		souvenir.ErrForbidden, "retention", "only the owner")
	f.check("an owner who is a member", set(owner, day))
	p, err := view[souvenir.MemberReader].reader.GetProject(f.ctx, souvenir.ProjectRef{ID: "local/p"})
	f.check("GetProject", err)
	f.equal("readers see the rule", p.Retention, day)
	f.passDays(1)
	page, err := f.reader.Trash().Page(f.ctx, souvenir.TrashQuery{})
	f.check("Page", err)
	f.equal("in the trash of the owner", []any{len(page.Entries), page.Entries[0].Own, page.Entries[0].DeletedBy},
		[]any{1, true, "local"})
}

func retentionRefusals(f *fixture) {
	f.add(souvenir.NewMemory{Content: "a heron", ProjectID: "p"})
	for _, r := range []souvenir.Retention{{After: time.Hour}, {After: -retentionDay}, {After: 36_501 * retentionDay},
		{Delete: true}} {
		_, err := f.store.UpdateCollection(f.ctx, "default", souvenir.CollectionUpdate{Retention: &r})
		f.failsAt(fmt.Sprint(r), err, souvenir.ErrInvalid, "retention", "24h0m0s")
		_, err = f.store.UpdateProject(f.ctx, souvenir.ProjectRef{ID: "p"}, souvenir.ProjectUpdate{Retention: &r})
		f.failsAt(fmt.Sprint(r), err, souvenir.ErrInvalid, "retention", "24h0m0s")
		_, err = f.reader.Insights().CountDue(f.ctx, souvenir.DueQuery{Collection: "default", Retention: r})
		f.failsAt(fmt.Sprint(r), err, souvenir.ErrInvalid, "retention", "24h0m0s")
	}
	_, err := f.reader.Insights().CountDue(f.ctx, souvenir.DueQuery{})
	f.failsAt("no place", err, souvenir.ErrInvalid, "project_id", "missing")
	_, err = f.reader.Insights().CountDue(f.ctx, souvenir.DueQuery{Collection: "default",
		Project: souvenir.ProjectRef{ID: "p"}})
	f.failsAt("two places", err, souvenir.ErrInvalid, "collection_name", "one of them")
}

func retentionPreview(f *fixture) {
	f.add(souvenir.NewMemory{Content: "a heron", ProjectID: "p"})
	f.add(souvenir.NewMemory{Content: "never swim", ProjectID: "p", Classification: souvenir.ClassDont})
	f.passDays(2)
	f.add(souvenir.NewMemory{Content: "a swan", ProjectID: "p"})
	for _, c := range []struct {
		days, want int
	}{{1, 1}, {2, 1}, {3, 0}, {0, 0}} {
		for _, q := range []souvenir.DueQuery{{Collection: "default"}, {Project: souvenir.ProjectRef{ID: "p"}}} {
			q.Retention.After = time.Duration(c.days) * retentionDay
			n, err := f.reader.Insights().CountDue(f.ctx, q)
			f.check("CountDue", err)
			f.equal(fmt.Sprint(c.days, " days"), n, c.want)
		}
	}
	f.keepIn("p", souvenir.Retention{After: 3 * retentionDay})
	f.clock.Pass(retentionDay)
	n, err := f.reader.Insights().CountDue(f.ctx, souvenir.DueQuery{Project: souvenir.ProjectRef{ID: "p"}})
	f.check("CountDue", err)
	f.equal("by the rule that it has", n <= 1, true) // the worker may have applied it first
}

func retentionClock(f *fixture) {
	f.purged() // records the time
	m := f.add(souvenir.NewMemory{Content: "a heron"})
	f.keep("default", souvenir.Retention{After: retentionDay, Delete: true})
	f.clock.Pass(366 * retentionDay)
	f.equal("held", f.purged().HeldUntil.IsZero(), false)
	f.equal("stays", f.get(m.ID).Content, "a heron")
}

func retentionAudit(f *fixture) {
	f.add(souvenir.NewMemory{Content: "a heron", ProjectID: "p"})
	for range 2 {
		f.keep("default", souvenir.Retention{After: retentionDay})
		f.keepIn("p", souvenir.Retention{After: 2 * retentionDay, Delete: true})
	}
	var got []string
	for e, err := range f.operator.Upkeep().AuditEntries(f.ctx, souvenir.AuditQuery{}) {
		f.check("Audit", err)
		if e.Action == "retention.set" {
			got = append(got, fmt.Sprint(e.Kind, " ", e.Details["seconds"], " ", e.Details["delete"]))
		}
	}
	f.same("noted", got, "project 172800 true", "collection 86400 false")
}

func retentionExport(f *fixture) {
	f.addCollection(souvenir.NewCollection{Name: "日记"})
	f.add(souvenir.NewMemory{Content: "a heron", Collection: "日记", ProjectID: "p"})
	f.keep("日记", souvenir.Retention{After: 5 * retentionDay})
	f.keepIn("p", souvenir.Retention{After: 36_500 * retentionDay, Delete: true})
	var out strings.Builder
	_, err := f.reader.Upkeep().Export(f.ctx, &out, nil)
	f.check("Export", err)
	all := &souvenir.DeletionOptions{WithMemories: true, Erase: true}
	f.check("DeleteProject", f.store.DeleteProject(f.ctx, souvenir.ProjectRef{ID: "p"}, all))
	f.check("DeleteCollection", f.store.DeleteCollection(f.ctx, "日记", all))
	for range 2 {
		report, err := f.operator.Upkeep().Import(f.ctx, strings.NewReader(out.String()), nil)
		f.check("Import", err)
		f.equal("conflicts", len(report.Conflicts), 0)
	}
	p, err := f.reader.GetProject(f.ctx, souvenir.ProjectRef{ID: "p"})
	f.check("GetProject", err)
	f.equal("rules", []any{f.collection("日记").Retention, p.Retention}, []any{souvenir.Retention{After: 5 * retentionDay},
		souvenir.Retention{After: 36_500 * retentionDay, Delete: true}})
	wrong := strings.ReplaceAll(out.String(), `"retention_seconds":432000`, `"retention_seconds":1`)
	end := strings.LastIndex(strings.TrimSpace(wrong), "\n") + 1
	sum := func(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text))) }
	before := out.String()[:strings.LastIndex(strings.TrimSpace(out.String()), "\n")+1]
	wrong = strings.Replace(wrong, sum(before), sum(wrong[:end]), 1)
	f.check("DeleteCollection", f.store.DeleteCollection(f.ctx, "日记", all))
	_, err = f.operator.Upkeep().Import(f.ctx, strings.NewReader(wrong), nil)
	f.fails("a second", err, souvenir.ErrInvalid)
	f.equal("the error", strings.Contains(err.Error(), "retention_seconds is 1; expected 86400 to"), true)
}
