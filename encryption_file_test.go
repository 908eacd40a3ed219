//go:build !souvenir_cgo

package souvenir

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

// Every method that copies or repairs files keeps an encrypted store encrypted and complete.
func TestAnEncryptedStoreIsCopiedUnderItsKey(t *testing.T) {
	longtest.Only(t)
	folder, key, next := t.TempDir(), GenerateMasterKey(), GenerateMasterKey()
	at := func(name string) string { return filepath.Join(folder, name) }
	s := openWords(t, at("store.db"), Options{MasterKey: key})
	settle(t, s)
	want := rowsOf(t, s)
	noError(t, s.Upkeep().Backup(t.Context(), at("backup.db"), nil))
	noError(t, s.Upkeep().ChangeMasterKey(t.Context(), next))
	noError(t, s.Close())

	noError(t, Restore(t.Context(), Restoration{From: at("backup.db"), To: at("restored.db"), MasterKey: key}))
	report, err := Recover(t.Context(), at("backup.db"), at("recovered.db"), &RecoveryOptions{MasterKey: key})
	if err != nil || !report.OK {
		t.Fatalf("got %+v, %v; want all recovered", report, err)
	}
	noError(t, Reencrypt(t.Context(), Reencryption{From: at("backup.db"), To: at("again.db"), FromKey: key, ToKey: next}))
	noError(t, Reencrypt(t.Context(), Reencryption{From: at("backup.db"), To: at("plain.db"), FromKey: key}))
	noError(t, Reencrypt(t.Context(), Reencryption{From: at("plain.db"), To: at("sealed.db"), ToKey: key}))

	keys := map[string]MasterKey{"store.db": next, "backup.db": key, "restored.db": key, "recovered.db": key,
		"again.db": next, "plain.db": {}, "sealed.db": key}
	for _, name := range slices.Sorted(maps.Keys(keys)) {
		for _, wrong := range []MasterKey{{}, key, next} {
			if wrong.Equal(keys[name]) {
				continue
			}
			other, err := Open(t.Context(), at(name), &Options{MasterKey: wrong, Embedder: wordEmbedder("words-1")})
			if !errors.Is(err, ErrMasterKey) {
				t.Errorf("%s with the %v: got %v, want ErrMasterKey", name, wrong, err)
			}
			if err == nil {
				_ = other.Close()
			}
		}
		s := openWords(t, at(name), Options{MasterKey: keys[name]})
		report, err := s.Upkeep().Check(t.Context(), nil)
		if err != nil || !report.OK {
			t.Errorf("%s: got %+v, %v; want a sound store", name, report, err)
		}
		if name == "backup.db" && rowsOf(t, s) != want {
			t.Error("backup.db: got other rows than the store had, want the same")
		}
		noError(t, s.Close())
	}
}

func TestAFileBesideAnEncryptedStoreNeedsNoKey(t *testing.T) {
	path := filepath.Join(t.TempDir(), "empty.db")
	noError(t, os.WriteFile(path, nil, 0o600))
	if _, err := Open(t.Context(), path, &Options{MasterKey: GenerateMasterKey()}); !errors.Is(err, ErrMasterKey) {
		t.Errorf("an empty file: got %v, want ErrMasterKey", err)
	}
	if err := Reencrypt(t.Context(), Reencryption{From: path, To: path + "2"}); !errors.Is(err, ErrInvalid) {
		t.Errorf("no key at all: got %v, want ErrInvalid", err)
	}
	for _, text := range []string{"", "secret", "zz"} {
		if key, err := ParseMasterKey(text); !errors.Is(err, ErrInvalid) || !key.IsZero() {
			t.Errorf("ParseMasterKey(%q) gives %v, %v; want ErrInvalid", text, key, err)
		}
	}
}

func TestAMasterKeyIsMadeOfTheBytesOfItsText(t *testing.T) {
	want := GenerateMasterKey()
	raw, err := hex.DecodeString(want.Text())
	noError(t, err)
	if got, err := NewMasterKey(raw); err != nil || !got.Equal(want) {
		t.Errorf("NewMasterKey of the bytes of %v: got %v, %v; want the same key", want, got, err)
	}
	for _, wrong := range [][]byte{nil, raw[:31], append(raw, 0)} {
		key, err := NewMasterKey(wrong)
		if !errors.Is(err, ErrInvalid) || !key.IsZero() {
			t.Errorf("NewMasterKey of %d bytes: got %v, %v; want ErrInvalid", len(wrong), key, err)
		}
	}
}

// Another process changes the key of a file that this one has open.
func TestBackupsHaveTheKeyThatTheFileHasNow(t *testing.T) {
	longtest.Only(t)
	folder, old, next := t.TempDir(), GenerateMasterKey(), GenerateMasterKey()
	at := func(name string) string { return filepath.Join(folder, name) }
	given := old
	s := openWords(t, at("store.db"), Options{MasterKey: old,
		MasterKeyNow: func(context.Context) (MasterKey, error) { return given, nil }})
	mustAdd(t, s, NewMemory{Content: "kept"})
	other := openWords(t, at("store.db"), Options{MasterKey: old})
	noError(t, other.Upkeep().ChangeMasterKey(t.Context(), next))
	for _, step := range []struct {
		name  string
		given MasterKey
		want  MasterKey
	}{{"not given yet", old, old}, {"a wrong one", GenerateMasterKey(), old}, {"the new one", next, next},
		{"the old one again", old, next}} {
		given = step.given
		path := at(step.name + ".db")
		noError(t, s.Upkeep().Backup(t.Context(), path, nil))
		var stream bytes.Buffer
		if _, err := s.Upkeep().BackupTo(t.Context(), &stream, nil); err != nil {
			t.Fatal(err)
		}
		noError(t, os.WriteFile(path+".stream", stream.Bytes(), 0o600))
		for _, path := range []string{path, path + ".stream"} {
			opened, err := Open(t.Context(), path, &Options{MasterKey: step.want, Embedder: wordEmbedder("words-1")})
			if err != nil {
				t.Errorf("%s: %s gives %v, want that it opens", step.name, path, err)
				continue
			}
			noError(t, opened.Close())
		}
	}
	mustAdd(t, s, NewMemory{Content: "it goes on"})
}
