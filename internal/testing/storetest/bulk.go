package storetest

import (
	"fmt"

	"github.com/souvenir-ai/souvenir"
)

func bulks() concept {
	return concept{"Many at once", []promise{
		{"what fits is deleted, and can be restored", bulkDelete},
		{"what fits is updated, and nothing else", bulkUpdate},
		{"a dry run counts and changes nothing", bulkDryRun},
		{"memories shared for reading only stay unchanged", bulkShared},
		{"everything needs a word more", bulkAll},
	}}
}

// numbers adds memories; every third is a draft.
func (f *fixture) numbers(n int) {
	f.Helper()
	var many []souvenir.NewMemory
	for i := range n {
		m := souvenir.NewMemory{Content: fmt.Sprint("number ", i), ShownMetadata: map[string]any{"nr": i}}
		if i%3 == 0 {
			m.State = "draft"
		}
		many = append(many, m)
	}
	_, err := f.store.AddMemories(f.ctx, many, nil)
	f.check("AddMemories", err)
}

var drafts = souvenir.MemoryList{Filter: souvenir.Filter{"state": "draft"}}

func bulkDelete(f *fixture) {
	f.numbers(30)
	f.as(souvenir.Access{User: "another"}).numbers(3)
	last := 0
	done, err := f.store.DeleteMemories(f.ctx, souvenir.MemoriesDeletion{MemoryList: drafts,
		Progress: func(stage string, done, total int) { last = done }})
	f.check("DeleteMemories", err)
	f.equal("done", done, souvenir.BulkReport{Selected: 10, Changed: 10})
	f.equal("progress", last, 10)
	f.equal("left", len(f.list(souvenir.MemoryList{})), 20)
	f.equal("drafts left", len(f.list(drafts)), 0)
	f.equal("found", len(f.byWord("0")), 0)
	f.equal("another's", len(f.as(souvenir.Access{User: "another"}).list(souvenir.MemoryList{})), 3)
	entries, err := f.store.Trash().Page(f.ctx, souvenir.TrashQuery{})
	f.check("Trash.Page", err)
	f.equal("entries", entries.Total, 10)
	_, err = f.store.Trash().Restore(f.ctx, entries.Entries[0].ID)
	f.check("Trash.Restore", err)
	f.equal("restored", len(f.list(drafts)), 1)
	done, err = f.store.DeleteMemories(f.ctx, souvenir.MemoriesDeletion{MemoryList: drafts})
	f.check("again", err)
	f.equal("again", done.Changed, 1)
}

func bulkUpdate(f *fixture) {
	f.numbers(450)
	u := souvenir.MemoriesUpdate{MemoryList: drafts,
		Change: souvenir.MemoryUpdate{ShownMetadata: object(`{"tags":["old"],"state":"archived","nr":null}`)}}
	done, err := f.store.UpdateMemories(f.ctx, u)
	f.check("UpdateMemories", err)
	f.equal("done", done, souvenir.BulkReport{Selected: 150, Changed: 150})
	changed := f.list(souvenir.MemoryList{Tags: []string{"old"}})
	f.equal("changed", len(changed), 150)
	for _, m := range changed {
		if m.State != "archived" || m.Revision != 2 || len(m.Metadata) != 0 {
			f.Fatalf(`a changed memory is %+v, want state "archived", revision 2 and no metadata`, m)
		}
	}
	f.equal("others", len(f.list(souvenir.MemoryList{Filter: souvenir.Filter{"nr": souvenir.Between(0, 1000)}})), 300)
	u.MemoryList = souvenir.MemoryList{Tags: []string{"old"}}
	done, err = f.store.UpdateMemories(f.ctx, u)
	f.check("again", err)
	f.equal("again", done, souvenir.BulkReport{Selected: 150})
}

func bulkDryRun(f *fixture) {
	f.numbers(9)
	done, err := f.store.DeleteMemories(f.ctx, souvenir.MemoriesDeletion{MemoryList: drafts, DryRun: true})
	f.check("DeleteMemories", err)
	f.equal("to delete", done, souvenir.BulkReport{Selected: 3})
	done, err = f.store.UpdateMemories(f.ctx, souvenir.MemoriesUpdate{MemoryList: drafts, DryRun: true,
		Change: souvenir.MemoryUpdate{ShownMetadata: object(`{"state":null}`)}})
	f.check("UpdateMemories", err)
	f.equal("to update", done, souvenir.BulkReport{Selected: 3})
	f.equal("drafts", len(f.list(drafts)), 3)
}

func bulkShared(f *fixture) {
	owner := f.as(souvenir.Access{User: "owner"})
	stored := owner.add(souvenir.NewMemory{Content: "shared", ProjectID: "p", State: "draft"})
	_, err := f.operator.AddMember(f.ctx, souvenir.NewMember{Project: souvenir.ProjectRef{ID: "owner/p"},
		User: souvenir.LocalUser, Role: souvenir.MemberReader})
	f.check("AddMember", err)
	f.numbers(1)
	done, err := f.store.UpdateMemories(f.ctx, souvenir.MemoriesUpdate{MemoryList: drafts,
		Change: souvenir.MemoryUpdate{ShownMetadata: object(`{"tags":["seen"]}`)}})
	f.check("UpdateMemories", err)
	f.equal("updated", done, souvenir.BulkReport{Selected: 1, Changed: 1, ReadOnly: 1})
	done, err = f.store.DeleteMemories(f.ctx, souvenir.MemoriesDeletion{MemoryList: drafts})
	f.check("DeleteMemories", err)
	f.equal("deleted", done, souvenir.BulkReport{Selected: 1, Changed: 1, ReadOnly: 1})
	f.equal("the owner's", owner.get(stored.ID).Revision, 1)
}

func bulkAll(f *fixture) {
	f.numbers(2)
	_, err := f.store.DeleteMemories(f.ctx, souvenir.MemoriesDeletion{})
	f.failsAt("DeleteMemories", err, souvenir.ErrInvalid, "filter", "All")
	_, err = f.store.UpdateMemories(f.ctx,
		souvenir.MemoriesUpdate{Change: souvenir.MemoryUpdate{ShownMetadata: object(`{"a":1}`)}})
	f.failsAt("UpdateMemories", err, souvenir.ErrInvalid, "filter", "All")
	_, err = f.store.UpdateMemories(f.ctx, souvenir.MemoriesUpdate{MemoryList: drafts})
	f.failsAt("UpdateMemories without a patch", err, souvenir.ErrInvalid, "Change")
	f.equal("left", len(f.list(souvenir.MemoryList{})), 2)
	done, err := f.store.DeleteMemories(f.ctx, souvenir.MemoriesDeletion{All: true})
	f.check("DeleteMemories", err)
	f.equal("all", []int{done.Changed, len(f.list(souvenir.MemoryList{}))}, []int{2, 0})
}
