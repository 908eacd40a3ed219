package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Each scheduled backup verifies the audit log with the last anchor, which a shorter or rewritten log does not fit.
func TestScheduledBackupsKeepAnchorsOfTheAuditLog(t *testing.T) {
	b, store, now, _ := scheduled(t, 2)
	path := filepath.Join(b.dir, anchorsFile)
	read := func() string {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(content)
	}
	var heads []string
	for range 2 {
		if _, err := b.run(t.Context(), store); err != nil { // which adds an entry
			t.Fatal(err)
		}
		head, err := b.verifyWith(t.Context(), store, path)
		if err != nil {
			t.Fatal(err)
		}
		heads, *now = append(heads, head), now.Add(b.every)
	}
	if got, want := read(), "2026-11-26T03:17:00Z "+heads[0]+"\n2026-11-27T03:17:00Z "+heads[1]+"\n"; got != want ||
		heads[0] == heads[1] {
		t.Errorf("the file has %q, want %q", got, want)
	}
	at, err := parseAnchor("", heads[0])
	if err != nil {
		t.Fatal(err)
	}
	if r, err := store.Upkeep().CheckAudit(t.Context(), &at); err != nil || !r.OK {
		t.Errorf("got %+v, %v with an anchor of the file, want that it fits", r, err)
	}
	for _, partial := range []string{"2026-11-28T03:1", "2026-11-28T03:17:00Z 3:ab"} { // a crash
		if err := os.WriteFile(path, []byte(read()+partial), 0o600); err != nil {
			t.Fatal(err)
		}
		head, err := b.verifyWith(t.Context(), store, path)
		if err != nil || !strings.HasSuffix(read(), partial+"\n2026-11-28T03:17:00Z "+head+"\n") {
			t.Errorf("after an incomplete line: got %v and %q, want the anchor %s on another line", err, read(), head)
		}
	}

	_, other, _, _ := scheduled(t, 2) // with fewer entries, as if the newest were cut off
	before := read()
	_, err = b.verifyWith(t.Context(), other, path)
	if err == nil || !strings.Contains(err.Error(), "altered") || read() != before {
		t.Errorf("with another log: got %v and %q, want an error, and no new anchor", err, read())
	}
}
