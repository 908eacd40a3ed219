package passwords_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/auth/passwords"
	"github.com/souvenir-ai/souvenir/internal/fault"
)

// The hashes are from the tests of the reference implementation (phc-winner-argon2, src/test.c).
const (
	strong = "$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc"
	weak   = "$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4"
)

func TestHashesAreComparedAndOnlyWeakOnesRenewed(t *testing.T) {
	h := make(passwords.Hasher, 1)
	for _, stored := range []string{strong, weak} {
		for password, want := range map[string]bool{"password": true, "passwort": false, "": false, "pass\x00": false} {
			if right, err := h.Compare(t.Context(), stored, password); err != nil || right != want {
				t.Errorf("%q against %s gives %v, %v; want %v", password, stored, right, err, want)
			}
		}
	}
	if renewed, err := h.Renew(t.Context(), strong, "password"); err != nil || renewed != "" {
		t.Errorf("a strong hash is renewed to %q, %v; want none", renewed, err)
	}
	renewed, err := h.Renew(t.Context(), weak, "password")
	if err != nil || passwords.CheckHash(renewed) != nil {
		t.Fatalf("a weak hash is renewed to %q, %v", renewed, err)
	}
	if right, err := h.Compare(t.Context(), renewed, "password"); err != nil || !right {
		t.Errorf("the renewed hash: got match %v, %v, want true and no error", right, err)
	}
}

func TestDifferentEncodingsOfAPasswordAreTheSame(t *testing.T) {
	h := make(passwords.Hasher, 1)
	hash, err := h.New(t.Context(), "password", "gru\u0308ne\u00a0Heidelbeeren", "anna") // decomposed, no-break space
	if err != nil {
		t.Fatal(err)
	}
	if right, err := h.Compare(t.Context(), hash, "gr\u00fcne Heidelbeeren"); err != nil || !right {
		t.Errorf("the composed form: got match %v, %v, want true and no error", right, err)
	}
}

func TestInvalidPasswordsAreNotQuoted(t *testing.T) {
	h := make(passwords.Hasher, 1)
	for password, kind := range map[string]fault.Kind{
		strings.Repeat("xy ", 400): fault.KindTooLarge, "a\x07bcdefgh": fault.KindInvalid, "\xffabcdefgh": fault.KindInvalid,
		"kurz7": fault.KindInvalid, "Anna Lindqvist": fault.KindInvalid, "password1": fault.KindInvalid,
	} {
		_, err := h.New(t.Context(), "new_password", password, "anna lindqvist")
		var known *fault.Error
		if !errors.As(err, &known) || known.Kind != kind || known.Argument != "new_password" ||
			strings.Contains(err.Error(), password) {
			t.Errorf(`%.20q gives %v, want an error of kind %v about "new_password" without the password`, password,
				err, kind)
		}
	}
}

func TestAFullHasherWaitsUntilTheContextEnds(t *testing.T) {
	h := make(passwords.Hasher, 1)
	h <- struct{}{}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := h.Compare(ctx, "", "password"); !errors.Is(err, context.Canceled) {
		t.Errorf("it gives %v, want context.Canceled", err)
	}
	<-h
	if right, err := h.Compare(t.Context(), "", "password"); right || err != nil {
		t.Errorf("without a hash: got match %v, %v, want false and no error", right, err)
	}
}

// New hashes cost what the OWASP Password Storage Cheat Sheet requires, and programs cannot make them cheaper.
func TestNewHashesHaveTheFullCost(t *testing.T) {
	hash, err := make(passwords.Hasher, 1).New(t.Context(), "password", "ten blue kettles", "anna")
	if err != nil || !strings.HasPrefix(hash, "$argon2id$v=19$m=19456,t=2,p=1$") {
		t.Errorf("a new hash is %q, %v; want 19456 KiB and two passes", hash, err)
	}
	root := os.DirFS(filepath.Join("..", "..", ".."))
	err = fs.WalkDir(root, ".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") ||
			path == "internal/testing/longtest/longtest.go" { // for tests; no program imports it
			return err
		}
		source, err := fs.ReadFile(root, path)
		if strings.Contains(string(source), "passwords.CheapForTests") {
			t.Errorf("got cheap passwords in %s, want them in a TestMain only", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
