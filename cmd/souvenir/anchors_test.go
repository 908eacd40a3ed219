package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir"
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
		head, err := keepAnchor(t.Context(), store, path, *now)
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
		head, err := keepAnchor(t.Context(), store, path, *now)
		if err != nil || !strings.HasSuffix(read(), partial+"\n2026-11-28T03:17:00Z "+head+"\n") {
			t.Errorf("after an incomplete line: got %v and %q, want the anchor %s on another line", err, read(), head)
		}
	}

	_, other, _, _ := scheduled(t, 2) // with fewer entries, as if the newest were cut off
	before := read()
	_, err = keepAnchor(t.Context(), other, path, *now)
	if err == nil || !strings.Contains(err.Error(), "altered") || read() != before {
		t.Errorf("with another log: got %v and %q, want an error, and no new anchor", err, read())
	}
}

// A cut of entries that the newest anchor does not cover leaves it without a proof, unless the cut kept a new one.
func TestACutWithTheAnchorsOfBackupsLeavesThemOfUse(t *testing.T) {
	c := call{dir: t.TempDir()}
	path := filepath.Join(c.dir, anchorsFile)
	keep := func() error {
		store, err := souvenir.Open(t.Context(), filepath.Join(c.dir, defaultFile), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		_, err = keepAnchor(t.Context(), store, path, time.Now())
		return err
	}
	newest := func() string {
		lines := strings.Split(strings.TrimSpace(c.ok(t, "audit", "verify")), "\n")
		return lines[len(lines)-1]
	}
	c.ok(t, "user", "add", "anna", "--no-password")
	if err := keep(); err != nil {
		t.Fatal(err)
	}
	c.ok(t, "user", "add", "ben", "--no-password")
	c.ok(t, "audit", "cut", newest(), "--anchors", c.dir)
	if err := keep(); err != nil {
		t.Errorf("after a cut with the anchors: got %v, want a new anchor", err)
	}

	c.ok(t, "user", "add", "zoe", "--no-password")
	c.ok(t, "audit", "cut", newest())
	if err := keep(); err == nil || !strings.Contains(err.Error(), "proves nothing about the rest") {
		t.Errorf("after a cut without them: got %v, want an error", err)
	}
	before := newest()
	c.fails(t, exitError, "--anchors: it has been altered", "audit", "cut", before, "--anchors", c.dir)
	if got := newest(); got != before {
		t.Errorf("after a cut that the anchors do not allow: got the head %s, want %s", got, before)
	}
	c.fails(t, exitError, "--anchors", "audit", "cut", before, "--anchors", t.TempDir())

	c.fails(t, exitError, "audit anchor --start-over "+c.dir, "audit", "anchor", c.dir)
	old, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time they fit, and stay
		if got := c.ok(t, "audit", "anchor", "--start-over", c.dir); !strings.HasSuffix(got, before+"\n") {
			t.Errorf("got %q, want the new anchor %s", got, before)
		}
	}
	aside, err := filepath.Glob(filepath.Join(c.dir, "souvenir-audit-anchors-*.txt"))
	if err != nil || len(aside) != 1 {
		t.Fatalf("got %v, %v, want one file put aside", aside, err)
	}
	if kept, err := os.ReadFile(aside[0]); err != nil || string(kept) != string(old) {
		t.Errorf("got %q, %v, want the old anchors %q", kept, err, old)
	}
	if err := keep(); err != nil {
		t.Errorf("after starting over: got %v, want a new anchor", err)
	}
}

func TestAnchorsAreNotPutAsideForADamagedLog(t *testing.T) {
	c := call{dir: t.TempDir()}
	c.ok(t, "user", "add", "anna", "--no-password")
	c.ok(t, "audit", "anchor", c.dir)
	path := filepath.Join(c.dir, defaultFile)
	content, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, bytes.ReplaceAll(content, []byte("user.add"), []byte("user.aid")), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	c.fails(t, exitError, "check --repair --accept", "audit", "anchor", "--start-over", c.dir)
}
