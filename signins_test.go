package souvenir

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

func mustAddSignIn(t *testing.T, s *Store, n NewSignIn) AddedSignIn {
	t.Helper()
	added, err := s.Accounts().AddSignIn(t.Context(), n)
	if err != nil {
		t.Fatal(err)
	}
	return added
}

func TestSignInsAndInvitationsOutliveABackupAndAreInNoExport(t *testing.T) {
	s := openWords(t, filepath.Join(t.TempDir(), "s.db"), Options{})
	mustAddUser(t, s, NewUser{ID: "ann", Name: "ann", Role: RoleAdmin})
	session, invitation := mustAddSignIn(t, s, NewSignIn{User: "ann"}), mustInvite(t, s, NewInvitation{CreatedBy: "ann"})
	backup, restored := filepath.Join(t.TempDir(), "backup.db"), filepath.Join(t.TempDir(), "restored.db")
	if err := s.Upkeep().Backup(t.Context(), backup, nil); err != nil {
		t.Fatal(err)
	}
	if err := Restore(t.Context(), Restoration{From: backup, To: restored}); err != nil {
		t.Fatal(err)
	}
	again, elsewhere := openWords(t, restored, Options{}), openWords(t, "", Options{})
	imported(t, elsewhere, exported(t, s, ExportOptions{Credentials: true}), ImportOptions{})
	for _, c := range []struct {
		store   *Store
		refused *Error
		unknown *Error
	}{{again, nil, nil}, {elsewhere, ErrUnauthenticated, ErrNotFound}} {
		_, err := c.store.Accounts().CheckSignIn(t.Context(), session.Value)
		_, err2 := c.store.Accounts().CheckInvitation(t.Context(), invitation.Value)
		if c.refused == nil && errors.Join(err, err2) != nil || c.refused != nil &&
			(!errors.Is(err, c.refused) || !errors.Is(err2, c.unknown)) {
			t.Errorf("the session gives %v, the invitation %v, want them refused as the table says", err, err2)
		}
	}
	if u, err := elsewhere.Accounts().GetUser(t.Context(), "ann"); err != nil || u.Name != "ann" {
		t.Errorf("the import has brought %+v, %v; want name \"ann\"", u, err)
	}
}

func TestDamagedSignInsAndInvitationsAreFound(t *testing.T) {
	longtest.Only(t)
	for statement, table := range map[string]string{
		`UPDATE session SET hash = x'ff'`: "session", `UPDATE session SET uid = ''`: "session",
		`UPDATE session SET user_agent = CAST(x'ff' AS TEXT)`: "session",
		`UPDATE session SET expires_at = 9223372036854775807`: "session", `UPDATE invitation SET hash = x''`: "invitation",
		`UPDATE invitation SET email = 'nowhere'`:              "invitation",
		`UPDATE invitation SET note = CAST(x'ff' AS TEXT)`:     "invitation",
		`UPDATE invitation SET used_at = -9223372036854775807`: "invitation",
	} {
		s := openWords(t, "", Options{})
		mustAddUser(t, s, NewUser{ID: "ann", Name: "ann", Role: RoleAdmin})
		mustAddSignIn(t, s, NewSignIn{User: "ann"})
		mustInvite(t, s, NewInvitation{CreatedBy: "ann"})
		report := mustCheck(t, s, nil)
		if !report.OK || report.Checked["session"] != 1 || report.Checked["invitation"] != 1 {
			t.Fatalf("undamaged: %+v, want OK, session 1 and invitation 1", report)
		}
		mustExec(t, s, statement)
		if report := mustCheck(t, s, nil); report.OK || len(report.Findings) != 1 || report.Findings[0].Table != table {
			t.Errorf("%s gives %+v, want not OK, 1 finding and table %v", statement, report, table)
		}
	}
}

func TestSignInsAreCheckedTogether(t *testing.T) {
	clock := newMovingClock(time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC))
	s := openWords(t, filepath.Join(t.TempDir(), "s.db"), Options{Now: clock.Now})
	mustAddUser(t, s, NewUser{ID: "ann", Name: "ann"})
	session := mustAddSignIn(t, s, NewSignIn{User: "ann"})
	clock.Pass(time.Hour)
	outcomes := make(chan error)
	for range 32 {
		go func() {
			p, err := s.Accounts().CheckSignIn(t.Context(), session.Value)
			if err == nil && p.SignInID != session.ID {
				err = errors.New("another session: " + p.SignInID)
			}
			outcomes <- err
		}()
	}
	for range 32 {
		if err := <-outcomes; err != nil {
			t.Error(err)
		}
	}
	if all, err := s.As(Access{User: "ann"}).Accounts().SignIns(t.Context()); err != nil ||
		!all[0].LastUsedAt.Equal(clock.Now()) {
		t.Errorf("the use is not noted: %+v, %v", all, err)
	}
}

// An account and its external identity are added atomically.
func TestAccountsThatBeginWithAnIdentity(t *testing.T) {
	s := openWords(t, filepath.Join(t.TempDir(), "u.db"), Options{})
	there := Identity{Issuer: testIssuer, Subject: "ann-there", Email: "ann@there.example"}
	ann := mustAddUser(t, s, NewUser{Name: "ann", Identity: there})
	found, err := s.Accounts().GetUserByIdentity(t.Context(), testIssuer, "ann-there")
	if err != nil || found.ID != ann.ID {
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

func mustInvite(t *testing.T, s *Store, n NewInvitation) AddedInvitation {
	t.Helper()
	added, err := s.Accounts().AddInvitation(t.Context(), n)
	if err != nil {
		t.Fatal(err)
	}
	return added
}
