package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

// proven is a store with an export of a user's data and its receipt.
func proven(t *testing.T) (c call, key string) {
	t.Helper()
	c = newStore(t)
	store := openStore(t, filepath.Join(c.dir, "souvenir.db"))
	user, err := store.Accounts().AddUser(t.Context(), souvenir.NewUser{Name: "陈娜"})
	if err != nil {
		t.Fatal(err)
	}
	view := store.As(souvenir.Access{User: user.ID})
	for _, content := range []string{"one", "备份在星期二", "three"} {
		if _, err := view.AddMemory(t.Context(), souvenir.NewMemory{Content: content, ProjectName: "项目"}); err != nil {
			t.Fatal(err)
		}
	}
	c.ok(t, "export", "anna.jsonl", "--user", "陈娜", "--receipt", "export.json")
	key, _, _ = strings.Cut(c.ok(t, "receipt", "key"), " ")
	return c, key
}

func TestReceiptsOfExportsHold(t *testing.T) {
	c, key := proven(t)
	out := c.ok(t, "receipt", "verify", "export.json", "--export", "anna.jsonl", "--key", key)
	for _, want := range []string{"the signature is valid", "the key matches the given one", "byte for byte",
		"memory: 3 lines, unchanged", "export of 陈娜 (", "(command), from store"} {
		if !strings.Contains(out, want) {
			t.Errorf("got\n%s\nwant %q in it", out, want)
		}
	}
	if out := c.ok(t, "receipt", "verify", "export.json"); !strings.Contains(out, "give the store's key") {
		t.Errorf("without a key got\n%s\nwant a word about it", out)
	}
	v := decode[verified](t, c.ok(t, "receipt", "verify", "export.json", "--json"))
	entry := decode[struct{ Entries []souvenir.AuditEntry }](t,
		c.ok(t, "audit", "list", "--json", "--action", "export")).Entries[0]
	if v.Receipt.Audit.Seq != entry.Seq || v.Receipt.Audit.Hash != entry.Hash || v.Receipt.Counts["memory"] != 3 {
		t.Errorf("got %+v, want the entry %d:%s and 3 memories", v.Receipt, entry.Seq, entry.Hash)
	}
	c.fails(t, exitUsage, "already exists", "export", "other.jsonl", "--receipt", "export.json")
	c.fails(t, exitUsage, "--key", "receipt", "verify", "export.json", "--key", "nonsense")
	c.fails(t, exitError, "FILE is not a receipt", "receipt", "verify", "anna.jsonl")
}

func TestReceiptsOfDeletionsHold(t *testing.T) {
	longtest.Only(t)
	c, key := proven(t)
	c.ok(t, "user", "delete", "陈娜", "--with-memories", "--receipt", "deleted.json")
	out := c.ok(t, "receipt", "verify", "deleted.json", "--key", key)
	for _, want := range []string{"deletion of 陈娜 (", "  memory: 3\n", "  project: 1\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("got\n%s\nwant %q in it", out, want)
		}
	}
	if o := c.run(t, "receipt", "verify", "deleted.json", "--export", "anna.jsonl"); o.code != exitError ||
		!strings.Contains(o.stdout, "wrong: the receipt is about a deletion") {
		t.Errorf("with an export got %+v, want code %d", o, exitError)
	}
}

// Each change must be found and named.
func TestAlteredReceiptsAndExportsAreFound(t *testing.T) {
	longtest.Only(t)
	c, key := proven(t)
	read := func(name string) []byte {
		data, err := os.ReadFile(filepath.Join(c.dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	receipt, export := read("export.json"), read("anna.jsonl")
	var r souvenir.Receipt
	if err := json.Unmarshal(receipt, &r); err != nil {
		t.Fatal(err)
	}
	replaced := func(data []byte, old, with string) []byte {
		if !bytes.Contains(data, []byte(old)) {
			t.Fatalf("%s has no %q, want it there", data, old)
		}
		return bytes.Replace(data, []byte(old), []byte(with), 1)
	}
	parts := strings.Split(r.Signature, ".")
	lines := bytes.SplitAfter(export, []byte("\n"))
	memories := 0
	for i, line := range lines {
		if bytes.HasPrefix(line, []byte(`{"type":"memory"`)) {
			memories = i
			break
		}
	}
	swapped := slices.Clone(lines) // a memory is followed by its vectors
	swapped[memories], swapped[memories+2] = swapped[memories+2], swapped[memories]
	other, otherKey := proven(t)
	foreign, err := os.ReadFile(filepath.Join(other.dir, "export.json"))
	if err != nil {
		t.Fatal(err)
	}
	for name, a := range map[string]struct {
		receipt, export []byte
		key, says       string
	}{
		"a count": {replaced(receipt, `"memory": 3`, `"memory": 2`), export, key, "wrong: the readable part"},
		"a field more": {replaced(receipt, `"receipt": {`, `"receipt": {"note": "x",`), export, key,
			"wrong: the readable part"},
		"the payload": {replaced(receipt, "."+parts[1][:20], "."+parts[1][:19]+"A"), export, key, ""},
		"the signature": {replaced(receipt, "."+parts[2][:10], "."+strings.Repeat("A", 10)), export, key,
			"wrong: the signature"},
		"another's key":    {receipt, export, otherKey, "wrong: the receipt is signed with a different key"},
		"another's":        {foreign, export, key, "wrong: the receipt is signed with a different key"},
		"a changed text":   {receipt, replaced(export, "three", "threo"), key, "wrong: memory: 3 lines, changed"},
		"a missing line":   {receipt, bytes.Replace(export, lines[memories], nil, 1), key, "wrong: memory: 2 lines, not 3"},
		"another order":    {receipt, bytes.Join(swapped, nil), key, "wrong: memory: 3 lines, changed or reordered"},
		"cut off":          {receipt, export[:len(export)/2], key, "wrong: the export differs"},
		"a space":          {receipt, append(export[:len(export):len(export)], ' '), key, "wrong: the export differs"},
		"nothing exported": {receipt, nil, key, "wrong: memory: 0 lines, not 3"},
	} {
		for file, content := range map[string][]byte{"r.json": a.receipt, "e.jsonl": a.export} {
			if err := os.WriteFile(filepath.Join(c.dir, file), content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		o := c.run(t, "receipt", "verify", "r.json", "--export", "e.jsonl", "--key", a.key)
		if o.code != exitError || !strings.Contains(o.stdout+o.stderr, a.says) {
			t.Errorf("%s: got %+v, want code %d and %q", name, o, exitError, a.says)
		}
	}
}
