package memories

import (
	"testing"

	"github.com/souvenir-ai/souvenir"
)

// Many memories that are deleted at once come back with the links between them.
func TestUndoneDeletionsRestoreLinks(t *testing.T) {
	store, err := souvenir.Open(t.Context(), ":memory:", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	user, err := store.Accounts().AddUser(t.Context(), souvenir.NewUser{Name: "ada"})
	if err != nil {
		t.Fatal(err)
	}
	view := store.As(souvenir.Access{User: user.ID})
	var ids []string
	for i := range 20 {
		m, err := view.AddMemory(t.Context(), souvenir.NewMemory{Content: "some text", Related: ids[max(0, i-1):]})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, m.ID)
	}
	result := runBulk(t.Context(), view, ids, bulkStep{remove: true})
	if len(result.deleted) != len(ids) || result.failed != nil {
		t.Fatalf("got %d deleted, refused %v, failed %v, want all %d deleted", len(result.deleted), result.refused,
			result.failed, len(ids))
	}
	if err := takeBulkBack(t.Context(), view, result); err != nil {
		t.Error(err)
	}
	for i, id := range ids {
		m, err := view.GetMemory(t.Context(), id)
		if err != nil || len(m.Related) != min(i, 1) {
			t.Errorf("memory %d is back with links %v, %v, want %d and no error", i, m.Related, err, min(i, 1))
		}
	}
}
