package souvenir

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

// FuzzImport: whatever comes in, an import ends with a report or a typed error, the store keeps its invariants, and
// what it has then can be exported and imported again without loss.
func FuzzImport(f *testing.F) {
	for _, lines := range [][]string{
		{`{"type":"memory","content":"the kettle is blue","tags":["a"],"metadata":{"n":1.10}}`},
		{`{"type":"memory","id":"m","content":"x","revision":3}`,
			`{"type":"revision","memory":"m","revision":2,"content":"y","created_at":"2024-01-01T00:00:00Z"}`,
			`{"type":"link","memory":"m","related_memory_ids":["m","n"]}`},
		{`{"type":"collection","collection_name":"c","own_vectors":1}`,
			`{"type":"memory","collection_name":"c","id":"v","content":"x"}`,
			`{"type":"vectors","memory":"v","profile":"own:1","passages":[{"start":0,"length":1,"vector":"AACAPw=="}]}`},
		{`{"type":"memory","collection_name":"c","id":"v","content":"x"}`,
			`{"type":"vectors","memory":"v","profile":"own:1","passages":[{"start":0,"length":1,"vector":"AACAPw=="}]}`},
		{`{"type":"user","id":"u","name":"U"}`, `{"type":"project","owner":"u","project_id":"p","project_name":"P"}`,
			`{"type":"member","project_owner":"u","project_id":"p","user":"u","role":"reader"}`,
			`{"type":"preference","user":"u","value":{}}`},
		{fileLines("f", "local", "data")},
		{`{"type":"memory","content":"r","event_type":"project-rule","rule_type":"do"}`,
			`{"type":"memory","content":"s","event_type":"project-rule","rule_type":"do"}`},
		{`{"type":"token","id":"t","user":"local","hash":"` + base64Of(strings.Repeat("h", 32)) + `","scopes":[]}`},
		{`{"type":"end","counts":{},"sha256":""}`},
	} {
		f.Add([]byte(byHand(lines...)), true)
		f.Add([]byte(strings.Join(lines, "\n")), false)
	}
	f.Fuzz(func(t *testing.T, data []byte, whole bool) {
		if !whole {
			data = append([]byte(byHand()), data...)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		s := openWords(t, "", Options{Now: sealedClock})
		for _, o := range []ImportOptions{{}, {OnConflict: ConflictReplace}} {
			_, err := s.Upkeep().Import(ctx, bytes.NewReader(data), &o)
			var known *Error
			if err != nil && (!errors.As(err, &known) ||
				!isAny(err, ErrInvalid, ErrTooLarge, ErrForeign, ErrNewer, ErrNotFound, ErrConflict)) {
				t.Fatalf("got %v, want an error of a known kind", err)
			}
		}
		invariants(t, s)
		if err := s.Upkeep().WaitEmbedded(ctx); err != nil {
			t.Fatal(err)
		}
		export := exported(t, s, ExportOptions{Credentials: true})
		if bytes.Count(export, []byte("\n")) == 2 {
			return // nothing came in
		}
		copied := openWords(t, "", Options{Now: sealedClock})
		imported(t, copied, export, ImportOptions{})
		if again := exported(t, copied, ExportOptions{Credentials: true}); !bytes.Equal(again, export) {
			t.Errorf("got %v, want %.200q", lineDiff(again, export), export)
		}
	})
}
