//go:build !souvenir_cgo

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/postgres/pgtest"
	"github.com/souvenir-ai/souvenir/internal/records/receipt"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

// sealedStore copies a store without user keys into one with them.
func sealedStore(t *testing.T) (c call) {
	t.Helper()
	c = newStore(t)
	c.ok(t, "key", "generate", "master.key")
	c.env = []string{"SOUVENIR_MASTER_KEY_FILE=master.key", "SOUVENIR_USER_KEYS=on"}
	if out := c.ok(t, "copy", "--from", "souvenir.db", "--from-keys", "none", "--to", "sealed.db"); !strings.Contains(out,
		"all rows match") {
		t.Fatalf("copy: got %q, want every row", out)
	}
	return c
}

func (c call) keysOf(t *testing.T, db string) souvenir.UserKeysReport {
	t.Helper()
	return decode[souvenir.UserKeysReport](t, c.ok(t, "key", "users", "status", "--db", db, "--json"))
}

func (c call) file(name string) string { return filepath.Join(c.dir, name) }

func TestACopyAddsAndRemovesUserKeys(t *testing.T) {
	longtest.Only(t)
	c := sealedStore(t)
	if _, err := os.Stat(c.file("keys-of-sealed.db.ring")); err != nil {
		t.Errorf("the ring: %v; want it beside the store", err)
	}
	if r := c.keysOf(t, "sealed.db"); r.Keys == 0 || r.Erased != 0 {
		t.Errorf("key users status: got %+v, want keys", r)
	}
	if out := c.ok(t, "search", "kettle", "--db", "sealed.db", "--user", "anna"); !strings.Contains(out, "blue") {
		t.Errorf("search: got %q, want the memory about the kettle", out)
	}
	c.ok(t, "key", "users", "check", "--db", "sealed.db")
	c.ok(t, "check", "--db", "sealed.db")
	c.ok(t, "copy", "--from", "sealed.db", "--to", "plain.db", "--to-keys", "none")
	c.ok(t, "copy", "--from", "sealed.db", "--to", "encrypted.db", "--to-keys", "file")
	c.ok(t, "copy", "--from", "encrypted.db", "--from-keys", "file", "--to", "users.db", "--to-keys", "users")
	without := c
	without.env = nil
	if got, want := rowsOf(t, without, "plain.db"), rowsOf(t, without, "souvenir.db"); got != want {
		t.Errorf("the copy of the copy has other rows:\n got %s\nwant %s", got, want)
	}
	users := c
	users.env = append([]string{"SOUVENIR_MASTER_KEY_FOR=users"}, c.env...)
	users.ok(t, "check", "--db", "users.db")
	content, err := os.ReadFile(c.file("users.db"))
	if err != nil || !bytes.HasPrefix(content, []byte("SQLite format 3")) || bytes.Contains(content, []byte("kettle")) {
		t.Errorf("users.db: got %d bytes and %v, want a file that is not encrypted, and a memory that is", len(content), err)
	}

	c.fails(t, exitUsage, "--from-keys", "copy", "--from", "sealed.db", "--from-keys", "some", "--to", "x.db")
	key := c
	key.env = c.env[:1]
	key.fails(t, exitError, "SOUVENIR_USER_KEYS", "check", "--db", "sealed.db")
	key.fails(t, exitError, "has no user keys", "key", "users", "status", "--db", "encrypted.db")
	ring := c
	ring.env = c.env[1:]
	ring.fails(t, exitUsage, "no master key", "check", "--db", "souvenir.db")
	elsewhere := c
	elsewhere.env = []string{c.env[0], "SOUVENIR_USER_KEYS=./nowhere.ring"}
	elsewhere.fails(t, exitError, "there are none at ./nowhere.ring", "check", "--db", "sealed.db")
	c.fails(t, exitError, "souvenir copy", "search", "x", "--db", "encrypted.db")
	wrong := c
	wrong.env = append([]string{"SOUVENIR_MASTER_KEY_FOR=me"}, c.env...)
	wrong.fails(t, exitUsage, "SOUVENIR_MASTER_KEY_FOR", "check", "--db", "sealed.db")
}

// The whole procedure: a backup, the deletion of a user, and the backup restored with the current ring.
func TestABackupOpensWithoutWhatDeletedUsersHad(t *testing.T) {
	longtest.Only(t)
	c := sealedStore(t)
	c.stdin = "password of carl\n"
	c.ok(t, "user", "add", "carl", "--db", "sealed.db", "--password-stdin")
	c.stdin = ""
	store := c.openKeyed(t, "master.key", "master.key")
	carl, err := store.Accounts().GetUser(t.Context(), "carl")
	if err == nil {
		_, err = store.As(souvenir.Access{User: carl.ID}).AddMemory(t.Context(),
			souvenir.NewMemory{Content: "the gate opens with 4711"})
	}
	if closed := store.Close(); err != nil || closed != nil {
		t.Fatal(err, closed)
	}
	c.ok(t, "backup", "backup.db", "--db", "sealed.db")
	c.ok(t, "key", "users", "backup", "copy.ring", "--db", "sealed.db")
	if out := c.ok(t, "doctor", "--backups", "."); !strings.Contains(out, "copy.ring") {
		t.Errorf("doctor: got %q, want a warning about the ring", out)
	}
	c.ok(t, "user", "delete", "carl", "--with-memories", "--db", "sealed.db", "--receipt", "receipt.json")
	content, err := os.ReadFile(c.file("receipt.json"))
	if err != nil {
		t.Fatal(err)
	}
	var r receipt.Receipt
	if err := json.Unmarshal(content, &r); err != nil || r.Claims.Key == nil || time.Since(r.Claims.Key.At) > time.Hour {
		t.Errorf("the receipt: got %s and %v, want the key that was erased", content, err)
	}
	if out := c.ok(t, "receipt", "verify", "receipt.json"); !strings.Contains(out, "key erased: ") {
		t.Errorf("receipt verify: got %q, want the key that was erased", out)
	}

	elsewhere := c
	elsewhere.env = []string{c.env[0], "SOUVENIR_USER_KEYS=./keys-of-sealed.db.ring"}
	if o := c.run(t, "restore", "--drill", "backup.db", "--db", "sealed.db"); o.code != exitError ||
		!strings.Contains(o.stdout, "erased") {
		t.Errorf("restore --drill: got %+v, want what is under the key that was erased", o)
	}
	elsewhere.ok(t, "restore", "backup.db", "--db", "restored.db")
	if out := elsewhere.ok(t, "search", "kettle", "--db", "restored.db", "--user", "anna"); !strings.Contains(out,
		"blue") {
		t.Errorf("search as Anna: got %q, want the memory about the kettle", out)
	}
	if o := elsewhere.run(t, "search", "gate 4711", "--db", "restored.db", "--user", "carl"); o.code != exitOK ||
		o.stdout != "" {
		t.Errorf("search as Carl: got %+v, want none of his former data", o)
	}
	if o := elsewhere.run(t, "key", "users", "check", "--db", "restored.db"); o.code != exitOK ||
		!strings.Contains(o.stderr, "souvenir check --repair") {
		t.Errorf("key users check: got %+v, want the way to remove what is under the key that was erased", o)
	}
	elsewhere.ok(t, "check", "--repair", "--db", "restored.db")
	elsewhere.ok(t, "check", "--db", "restored.db")

	// An earlier copy of the ring, in its place.
	ring := c.file("keys-of-sealed.db.ring")
	if err := os.Remove(ring); err != nil {
		t.Fatal(err)
	}
	c.fails(t, exitError, "there are none at", "check", "--db", "sealed.db")
	old, err := os.ReadFile(c.file("copy.ring"))
	if err == nil {
		err = os.WriteFile(ring, old, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	c.fails(t, exitError, "souvenir key users repair", "check", "--db", "sealed.db")
	c.ok(t, "key", "users", "repair", "--db", "sealed.db")
	if r := c.keysOf(t, "sealed.db"); r.Erased != 1 {
		t.Errorf("key users status after the repair: got %+v, want Carl's key erased", r)
	}
	c.ok(t, "check", "--db", "sealed.db")
	elsewhere.ok(t, "recover", "sealed.db", "recovered.db")
	elsewhere.ok(t, "check", "--db", "recovered.db")
	c.env = c.env[:1]
	c.fails(t, exitError, "SOUVENIR_USER_KEYS", "recover", "sealed.db", "other.db")
}

// A mistyped on or off must not be taken for the path of a ring.
func TestTheRingsPlaceHasAFolder(t *testing.T) {
	c := newStore(t)
	c.ok(t, "key", "generate", "master.key")
	for _, value := range []string{"true", "On", "1", "yes", "false", "0", "none", "my.ring"} {
		c.env = []string{"SOUVENIR_MASTER_KEY_FILE=master.key", "SOUVENIR_USER_KEYS=" + value}
		c.fails(t, exitError, "a path with a folder", "copy", "--from", "souvenir.db", "--from-keys", "none", "--to",
			"new.db")
		for _, name := range []string{value, "new.db"} {
			if _, err := os.Stat(c.file(name)); err == nil {
				t.Errorf("with %s there is a file %s, want none", value, name)
			}
		}
	}
	c.env[1] = "SOUVENIR_USER_KEYS=./my.ring"
	c.ok(t, "copy", "--from", "souvenir.db", "--from-keys", "none", "--to", "new.db")
}

func TestAServerGoesOnWhileTheMasterKeyOfItsUsersChanges(t *testing.T) {
	longtest.Only(t)
	c := sealedStore(t)
	if err := os.Mkdir(c.file("backups"), 0o700); err != nil {
		t.Fatal(err)
	}
	p := c.start(t, "serve", "--listen", "127.0.0.1:0", "--db", "sealed.db", "--backup-to", "backups")
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		if names, err := backups(c.file("backups")); err != nil || len(names) == 1 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the server has made no backup: %s", p.stderr)
		}
	}
	token := strings.TrimSpace(c.ok(t, "token", "add", "--user", "anna", "--name", "x", "--db", "sealed.db"))
	c.ok(t, "key", "generate", "next.key")
	c.ok(t, "key", "change", "--db", "sealed.db", "--to", "next.key")
	if status, body := request(t, "GET", p.url+"/api/owner-ids/me", token, nil); status != 200 {
		t.Errorf("a request to the server: got %d %s, want 200", status, body)
	}
	c.fails(t, exitError, "", "check", "--db", "sealed.db")
	next := c
	next.env = []string{"SOUVENIR_MASTER_KEY_FILE=next.key", "SOUVENIR_USER_KEYS=on"}
	next.ok(t, "check", "--db", "sealed.db")
	if code, _ := p.stop(t); code != exitOK {
		t.Errorf("exit status %d, want %d: %s", code, exitOK, p.stderr)
	}

	// A change that was interrupted between the ring and the file.
	store := c.openKeyed(t, "next.key", "next.key")
	err := store.Upkeep().ChangeUserKeysMaster(t.Context(), keyIn(t, c, "master.key"))
	if closed := store.Close(); err != nil || closed != nil {
		t.Fatal(err, closed)
	}
	next.fails(t, exitError, "ring", "check", "--db", "sealed.db")
	next.ok(t, "key", "change", "--db", "sealed.db", "--to", "master.key")
	c.ok(t, "check", "--db", "sealed.db")
}

// openKeyed opens the store with user keys in this process.
func (c call) openKeyed(t *testing.T, file, ring string) *souvenir.Store {
	t.Helper()
	store, err := souvenir.Open(t.Context(), c.file("sealed.db"), &souvenir.Options{MasterKey: keyIn(t, c, file),
		UserKeys: souvenir.UserKeys{MasterKey: keyIn(t, c, ring)}, KeepModel: true})
	if err != nil {
		t.Fatal(err)
	}
	return store
}

func keyIn(t *testing.T, c call, name string) souvenir.MasterKey {
	t.Helper()
	key, err := readMasterKey(c.file(name))
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func TestACopyToADatabaseAddsUserKeysInItsSchema(t *testing.T) {
	address := pgtest.Address(t)
	pgtest.NotOnCitus(t, "user keys are in a schema on the coordinator")
	schema := pgtest.SchemaOf(address) + "_keys"
	t.Cleanup(func() { pgtest.Query(t, pgtest.Server(t), `DROP SCHEMA IF EXISTS "`+schema+`" CASCADE`) })
	c := sealedStore(t)
	c.ok(t, "copy", "--from", "souvenir.db", "--from-keys", "none", "--to", address)
	if n := pgtest.Query(t, pgtest.Server(t), `SELECT count(*) FROM "`+schema+`".user_key`); n[0] == "0" {
		t.Error("the schema of the keys has none, want some")
	}
	if n := pgtest.Query(t, address, `SELECT count(*) FROM memory WHERE content LIKE '%kettle%'`); n[0] != "0" {
		t.Errorf("memories that can be read in the database: got %s, want none", n[0])
	}
	c.ok(t, "check", "--db", address)
	c.ok(t, "key", "users", "check", "--db", address)
	c.ok(t, "key", "generate", "next.key")
	c.ok(t, "key", "change", "--db", address, "--to", "next.key")
	c.fails(t, exitError, "master key", "check", "--db", address)
	c.env[0] = "SOUVENIR_MASTER_KEY_FILE=next.key"
	c.ok(t, "key", "users", "backup", "db.ring", "--db", address)
	c.ok(t, "copy", "--from", address, "--to", "plain.db", "--to-keys", "none")
	without := c
	without.env = nil
	if got, want := rowsOf(t, without, "plain.db"), rowsOf(t, without, "souvenir.db"); got != want {
		t.Errorf("the copy of the copy has other rows:\n got %s\nwant %s", got, want)
	}
	without.fails(t, exitError, "SOUVENIR_USER_KEYS", "check", "--db", address)
}
