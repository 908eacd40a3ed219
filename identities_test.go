package souvenir

import (
	"errors"
	"path/filepath"
	"testing"
)

// An account and who it is elsewhere are made together, or not at all.
func TestAccountsThatBeginWithAnIdentity(t *testing.T) {
	s := openWords(t, filepath.Join(t.TempDir(), "u.db"), Options{})
	there := Identity{Issuer: testIssuer, Subject: "ann-there", Email: "ann@there.example"}
	ann := mustAddUser(t, s, NewUser{Name: "ann", Identity: there})
	if found, err := s.Accounts().UserByIdentity(t.Context(), testIssuer, "ann-there"); err != nil || found.ID != ann.ID {
		t.Errorf("the identity is that of %+v, %v; want ID %v", found, err, ann.ID)
	}
	if all, err := s.Accounts().Identities(t.Context(), "ann"); err != nil || len(all) != 1 ||
		all[0].Email != there.Email || all[0].CreatedAt.IsZero() {
		t.Errorf("ann has %+v, %v, want no error and one identity with email %v and a time", all, err, there.Email)
	}
	for name, identity := range map[string]Identity{"another's": there, "no subject": {Issuer: testIssuer},
		"no issuer": {Subject: "x"}, "no address": {Issuer: testIssuer, Subject: "x", Email: "x"}} {
		want := ErrInvalid
		if name == "another's" {
			want = ErrConflict
		}
		if _, err := s.Accounts().AddUser(t.Context(), NewUser{Name: "ben", Identity: identity}); !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", name, err, want)
		}
		if _, err := s.Accounts().GetUser(t.Context(), "ben"); !errors.Is(err, ErrNotFound) {
			t.Errorf("%s: the account is there: %v, want ErrNotFound", name, err)
		}
	}
}
