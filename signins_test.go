package souvenir

import (
	"errors"
	"github.com/souvenir-ai/souvenir/internal/longtest"
	"path/filepath"
	"testing"
	"time"
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
			t.Errorf("the session gives %v, the invitation %v", err, err2)
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
