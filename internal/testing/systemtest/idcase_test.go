package systemtest

import (
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir"
)

func TestIDsAreFoundInAnyCase(t *testing.T) {
	ctx := t.Context()
	store, err := souvenir.Open(ctx, ":memory:", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	stored, err := store.AddMemory(ctx, souvenir.NewMemory{Content: "a car"})
	if err != nil {
		t.Fatal(err)
	}
	upper := strings.ToUpper(stored.ID)
	if got, err := store.GetMemory(ctx, upper); err != nil || got.ID != stored.ID {
		t.Errorf("GetMemory(%s): got %q, %v; want %s", upper, got.ID, err, stored.ID)
	}
	linked, err := store.AddMemory(ctx, souvenir.NewMemory{Content: "a bus", Related: []string{upper}})
	if err != nil {
		t.Errorf("AddMemory related to %s: %v", upper, err)
	}
	if got, err := store.GetMemory(ctx, linked.ID); err != nil || len(got.Related) != 1 || got.Related[0] != stored.ID {
		t.Errorf("related: got %q, %v; want %s", got.Related, err, stored.ID)
	}
	file, err := store.AddFile(ctx, souvenir.NewFile{Filename: "a.txt", MemoryID: upper}, strings.NewReader("text"))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := store.GetFile(ctx, strings.ToUpper(file.ID)); err != nil || got.ID != file.ID {
		t.Errorf("GetFile: got %q, %v; want %s", got.ID, err, file.ID)
	}
	token, err := store.Accounts().AddToken(ctx, souvenir.NewToken{Name: "n"})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Accounts().RevokeToken(ctx, strings.ToUpper(token.ID)); err != nil {
		t.Errorf("RevokeToken: %v", err)
	}
	if err := store.DeleteMemory(ctx, upper, nil); err != nil {
		t.Errorf("DeleteMemory(%s): %v", upper, err)
	}
}
