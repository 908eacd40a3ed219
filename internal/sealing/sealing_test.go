package sealing

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestABlockOpensInItsPlaceAlone(t *testing.T) {
	key, err := NewFile()
	if err != nil {
		t.Fatal(err)
	}
	other, err := NewFile()
	if err != nil {
		t.Fatal(err)
	}
	plain := bytes.Repeat([]byte("secret"), 100)
	sealed := make([]byte, len(plain)+Overhead)
	key.Seal(sealed, plain, 'p', 7)
	open := func(f *File, kind Kind, at int64, change int) error {
		b := bytes.Clone(sealed)
		if change >= 0 {
			b[change] ^= 1
		}
		got := b[:len(plain)]
		err := f.Open(got, b, kind, at)
		if want := plain; err == nil && !bytes.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		if err != nil && !zeros(got) {
			t.Errorf("after %v got %q, want zeros", err, got)
		}
		return err
	}
	if err := open(key, 'p', 7, -1); err != nil {
		t.Errorf("got %v, want the block", err)
	}
	for name, err := range map[string]error{"another place": open(key, 'p', 8, -1),
		"another kind": open(key, 'h', 7, -1),
		"another file": open(other, 'p', 7, -1)} {
		if !errors.Is(err, ErrBlock) {
			t.Errorf("%s: got %v, want ErrBlock", name, err)
		}
	}
	for change := range sealed {
		if err := open(key, 'p', 7, change); !errors.Is(err, ErrBlock) {
			t.Errorf("byte %d changed: got %v, want ErrBlock", change, err)
		}
	}
}

// A header opens only with its key. While the master key changes, one of the two keys opens it at any moment.
func TestHeaders(t *testing.T) {
	old, next := GenerateMasterKey(), GenerateMasterKey()
	header, _, err := NewRing(old).New()
	if err != nil {
		t.Fatal(err)
	}
	opens := func(header []byte, key MasterKey) bool { _, err := NewRing(key).Open(header); return err == nil }
	if !opens(header, old) || opens(header, next) || opens(header, MasterKey{}) {
		t.Error("the header opens with another key than its own, or not with that; want its own")
	}
	slots, err := NewRing(old).Rewrap(header, next)
	if err != nil {
		t.Fatal(err)
	}
	for _, slot := range slots {
		for torn := range len(slot.Data) + 1 {
			b := bytes.Clone(header)
			copy(b[slot.At:], slot.Data[:torn])
			if !opens(b, old) && !opens(b, next) {
				t.Fatalf("%d bytes of the slot at %d written: neither key opens the file, want one", torn, slot.At)
			}
		}
		copy(header[slot.At:], slot.Data)
	}
	if opens(header, old) || !opens(header, next) {
		t.Error("the old key still opens the file, or the new one does not; want the new one")
	}
	for _, damaged := range [][]byte{header[:100], append([]byte(magic), make([]byte, HeaderSize)...)} {
		if _, err := NewRing(next).Open(damaged); !IsDamaged(err) {
			t.Errorf("got %v, want a damaged header", err)
		}
	}
}

func TestKeysDoNotShow(t *testing.T) {
	key := GenerateMasterKey()
	for _, format := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		if text := fmt.Sprintf(format, key); strings.Contains(text, key.Text()[:16]) {
			t.Errorf("%s: got %s, want no part of the key", format, text)
		}
	}
	again, err := ParseMasterKey(" " + key.Text() + "\n")
	if err != nil || !again.Equal(key) || again.ID() != key.ID() {
		t.Errorf("got %v, %v; want the same key", again, err)
	}
}
