package souvenir_test

import (
	"encoding/json"
	"io"
	"slices"
	"testing"

	. "github.com/souvenir-ai/souvenir"
)

func TestAReceiptOfPartOfAStoreSaysWhichPart(t *testing.T) {
	s, err := Open(t.Context(), ":memory:", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	view := s.As(Access{User: "anna", Namespace: "shop"})
	if _, err := view.AddMemory(t.Context(), NewMemory{Content: "one"}); err != nil {
		t.Fatal(err)
	}
	var exported Receipt
	_, err = s.Upkeep().Export(t.Context(), io.Discard, &ExportOptions{Namespaces: []string{"shop"}, WithoutFiles: true,
		Receipt: &exported})
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := json.Marshal(exported)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Receipt struct{ Namespaces, Without []string }
	}
	if err := json.Unmarshal(encoded, &got); err != nil || !slices.Equal(got.Receipt.Namespaces, []string{"shop"}) ||
		!slices.Equal(got.Receipt.Without, []string{"files"}) {
		t.Errorf("got %s, %v; want the namespace, and that the files are left out", encoded, err)
	}
}
