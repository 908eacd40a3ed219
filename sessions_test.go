package souvenir

import (
	"errors"
	"path/filepath"
	"testing"
	"time"
)

func mustAddSession(t *testing.T, s *Store, n NewSession) AddedSession {
	t.Helper()
	added, err := s.Accounts().AddSession(t.Context(), n)
	if err != nil {
		t.Fatal(err)
	}
	return added
}

func TestSessionsAndInvitationsOutliveABackupAndAreInNoExport(t *testing.T) {
	s := openWords(t, filepath.Join(t.TempDir(), "s.db"), Options{})
	mustAddUser(t, s, NewUser{ID: "ann", Name: "ann", Role: RoleAdmin})
	session, invitation := mustAddSession(t, s, NewSession{User: "ann"}), mustInvite(t, s, NewInvitation{CreatedBy: "ann"})
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
		_, err := c.store.Accounts().CheckSession(t.Context(), session.Value)
		_, err2 := c.store.Accounts().CheckInvitation(t.Context(), invitation.Value)
		if c.refused == nil && errors.Join(err, err2) != nil || c.refused != nil &&
			(!errors.Is(err, c.refused) || !errors.Is(err2, c.unknown)) {
			t.Errorf("the session gives %v, the invitation %v", err, err2)
		}
	}
	if u, err := elsewhere.Accounts().GetUser(t.Context(), "ann"); err != nil || u.Name != "ann" {
		t.Errorf("the import has brought %+v, %v", u, err)
	}
}

func TestDamagedSessionsAndInvitationsAreFound(t *testing.T) {
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
		mustAddSession(t, s, NewSession{User: "ann"})
		mustInvite(t, s, NewInvitation{CreatedBy: "ann"})
		report := mustCheck(t, s, nil)
		if !report.OK || report.Checked["session"] != 1 || report.Checked["invitation"] != 1 {
			t.Fatalf("undamaged: %+v", report)
		}
		mustExec(t, s, statement)
		if report := mustCheck(t, s, nil); report.OK || len(report.Findings) != 1 || report.Findings[0].Table != table {
			t.Errorf("%s gives %+v", statement, report)
		}
	}
}

func TestSessionsAreCheckedTogether(t *testing.T) {
	clock := newMovingClock(time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC))
	s := openWords(t, filepath.Join(t.TempDir(), "s.db"), Options{Now: clock.Now})
	mustAddUser(t, s, NewUser{ID: "ann", Name: "ann"})
	session := mustAddSession(t, s, NewSession{User: "ann"})
	clock.Pass(time.Hour)
	outcomes := make(chan error)
	for range 32 {
		go func() {
			p, err := s.Accounts().CheckSession(t.Context(), session.Value)
			if err == nil && p.SessionID != session.ID {
				err = errors.New("another session: " + p.SessionID)
			}
			outcomes <- err
		}()
	}
	for range 32 {
		if err := <-outcomes; err != nil {
			t.Error(err)
		}
	}
	if all, err := s.As(Access{User: "ann"}).Accounts().Sessions(t.Context()); err != nil ||
		!all[0].LastUsedAt.Equal(clock.Now()) {
		t.Errorf("the use is not noted: %+v, %v", all, err)
	}
}
