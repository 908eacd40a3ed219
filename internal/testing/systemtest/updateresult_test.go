package systemtest

import (
	"context"
	"encoding/json"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir"
)

// updatesOfAllKinds changes, sets and removes each part of a memory.
func updatesOfAllKinds(other string) []souvenir.MemoryUpdate {
	text := func(s string) *string { return &s }
	list := func(all ...string) *[]string { return &all }
	moment := func(s string) *time.Time {
		t, err := time.Parse(time.RFC3339Nano, s)
		if err != nil {
			panic(err)
		}
		return &t
	}
	high, none := souvenir.ImportanceHigh, souvenir.Importance("")
	notes := souvenir.ClassNotes
	return []souvenir.MemoryUpdate{
		{State: text("archived")}, {State: text("")}, {EventType: text("decision")}, {Importance: &high},
		{Importance: &none}, {Classification: &notes}, {Tags: list("b", " a ", "b")}, {Tags: list()},
		{Content: text("Ömer drinks tea with bergamot.")}, {Content: text(" \n ö, and more")},
		{Metadata: map[string]any{"n": 1, "f": 1.5, "big": json.Number("12345678901234567890"), "list": []any{1, nil, "x"},
			"deep": map[string]any{"a": map[string]any{"b": true}}}},
		{Metadata: map[string]any{"n": nil, "deep": map[string]any{"a": map[string]any{"c": 2}}}},
		{ShownMetadata: map[string]any{"custom": map[string]any{"state": "California"}, "state": "active", "x": "<&>\u2028"}},
		{Metadata: map[string]any{"conversation_id": "c1", "speaker": "Ann"}}, {Content: text("Bob: said in it")},
		{Metadata: map[string]any{"conversation_id": nil}},
		{EventTime: moment("2024-02-03T04:05:06.123456789+02:00")}, {EventTime: &time.Time{}},
		{ExpiresAt: moment("2990-02-03T04:05:06.123456789Z")}, {ValidFrom: moment("2001-02-03T04:05:06Z")},
		{ValidUntil: moment("2980-02-03T04:05:06Z")}, {ExpiresAt: &time.Time{}, ValidUntil: &time.Time{}},
		{Related: list(other, other)}, {State: text("linked")}, {Related: list()},
		{ProjectName: text("Tea house")}, {State: text("moved"), Tags: list("t")}, {ProjectName: text("")},
		{State: text("moved")}, // changes nothing
	}
}

func TestAnUpdateReturnsTheMemoryAsItIsRead(t *testing.T) {
	ctx := context.Background()
	store, err := souvenir.Open(ctx, filepath.Join(t.TempDir(), "store.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	other, err := store.AddMemory(ctx, souvenir.NewMemory{Content: "It is related."})
	if err != nil {
		t.Fatal(err)
	}
	m, err := store.AddMemory(ctx, souvenir.NewMemory{Content: "Ömer drinks tea.", Key: "tea", Tags: []string{"a"}})
	if err != nil {
		t.Fatal(err)
	}
	for i, u := range updatesOfAllKinds(other.ID) {
		updated, err := store.UpdateMemory(ctx, m.ID, u)
		if err != nil {
			t.Fatalf("update %d: %v", i, err)
		}
		read, err := store.GetMemory(ctx, m.ID)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(updated.Memory, read) {
			t.Errorf("update %d returned %#v, but the memory is read as %#v; want the same", i, updated.Memory, read)
		}
	}
	successor, err := store.AddMemory(ctx, souvenir.NewMemory{Content: "Ömer drinks coffee.", Supersedes: m.ID})
	if err != nil {
		t.Fatal(err)
	}
	state := "replaced"
	updated, err := store.UpdateMemory(ctx, m.ID, souvenir.MemoryUpdate{State: &state})
	if err != nil || updated.SupersededBy != successor.ID || updated.ValidUntil.IsZero() {
		t.Errorf("update of a superseded memory: got %#v, %v; want the successor and the end", updated.Memory, err)
	}
	for _, put := range []souvenir.NewMemory{{Key: "tea", Content: "Anew.", Metadata: map[string]any{"n": 1}},
		{Key: "tea", Content: "Anew.", EventTime: time.Now()}, {Key: "tea", Content: "Anew."}} {
		stored, err := store.PutMemory(ctx, put)
		if err != nil {
			t.Fatal(err)
		}
		if read, err := store.GetMemory(ctx, stored.ID); err != nil || !reflect.DeepEqual(stored.Memory, read) {
			t.Errorf("a put returned %#v, but the memory is read as %#v, %v; want the same", stored.Memory, read, err)
		}
	}
	if report, err := store.Upkeep().Check(ctx, nil); err != nil || !report.OK {
		t.Errorf("check after the updates: got %+v, %v; want no problems", report, err)
	}
}
