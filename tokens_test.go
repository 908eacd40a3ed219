package souvenir

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
)

func mustAddToken(t *testing.T, s *Store, n NewToken) AddedToken {
	t.Helper()
	added, err := s.Accounts().AddToken(t.Context(), n)
	if err != nil {
		t.Fatal(err)
	}
	return added
}

func mustExec(t testing.TB, s *Store, statement string, args ...any) {
	t.Helper()
	err := s.db.Write(t.Context(), func(tx db.Tx) error {
		_, err := tx.Exec(statement, args...)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestNeitherFileNorLogHoldsATokenOrAPassword(t *testing.T) {
	dir := t.TempDir()
	var log bytes.Buffer
	s := openWords(t, filepath.Join(dir, "t.db"),
		Options{Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	mustAddUser(t, s, NewUser{ID: "ann", Name: "ann", Password: "highly confidential"})
	view := s.As(Access{User: "ann"})
	added := mustAddToken(t, view, NewToken{Name: "laptop"})
	if _, err := s.Accounts().CheckToken(t.Context(), added.Value); err != nil {
		t.Fatal(err)
	}
	if err := view.Accounts().RevokeToken(t.Context(), added.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Accounts().CheckToken(t.Context(), added.Value); !errors.Is(err, ErrUnauthenticated) ||
		strings.Contains(err.Error(), added.Value[4:]) {
		t.Errorf("a deleted one: %v, want ErrUnauthenticated and no %q in the error", err, added.Value[4:])
	}
	if !strings.Contains(log.String(), "deleted=true") {
		t.Errorf(`the log does not say why: %s, want "deleted=true" in the log`, log.String())
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("got %v %v, want no error and some files", files, err)
	}
	session := mustAddSignIn(t, s, NewSignIn{User: "ann"})
	if _, err := s.Accounts().CheckSignIn(t.Context(), session.Value); err != nil {
		t.Fatal(err)
	}
	invitation := mustInvite(t, s, NewInvitation{})
	if _, err := s.Accounts().AcceptInvitation(t.Context(),
		InvitationAcceptance{Value: invitation.Value, Name: "ben", Password: "highly confidential"}); err != nil {
		t.Fatal(err)
	}
	all := map[string][]byte{"log": log.Bytes()}
	for _, file := range files {
		if all[file], err = os.ReadFile(file); err != nil {
			t.Fatal(err)
		}
	}
	for name, data := range all {
		for _, secret := range []string{added.Value, added.Value[8:], session.Value[4:], invitation.Value[4:],
			"highly confidential"} {
			if bytes.Contains(data, []byte(secret)) {
				t.Errorf("%s contains %q, want it without", name, secret)
			}
		}
	}
}

// A limit that cannot be read must not become unlimited access.
func TestDamagedTokensGiveErrorsAndNoAccess(t *testing.T) {
	s := openWords(t, filepath.Join(t.TempDir(), "t.db"), Options{})
	mustAdd(t, s, NewMemory{Content: "x", ProjectID: "p"})
	for column, values := range map[string][]string{
		"projects": {"null", "", "{}", `"p"`, "[1]", `["p"`}, "scopes": {"", "{}", `["memory:read"`},
	} {
		for _, value := range values {
			added := mustAddToken(t, s, NewToken{Name: "x", Projects: []string{"p"}})
			mustExec(t, s, `UPDATE token SET `+column+` = ? WHERE uid = ?`, value, added.ID)
			p, err := s.Accounts().CheckToken(t.Context(), added.Value)
			if !errors.Is(err, ErrCorrupt) || p.User.ID != "" || p.Access.User != "" {
				t.Errorf("%s = %q gives %+v, %v, want ErrCorrupt, no ID and no user", column, value, p, err)
			}
			if _, err := s.Accounts().Tokens(t.Context()); !errors.Is(err, ErrCorrupt) {
				t.Errorf("listing with %s = %q gives %v, want ErrCorrupt", column, value, err)
			}
			mustExec(t, s, `DELETE FROM token`)
		}
	}
	added := mustAddToken(t, s, NewToken{Name: "x"})
	mustExec(t, s, `UPDATE token SET scopes = 'null'`)
	if p, err := s.Accounts().CheckToken(t.Context(), added.Value); err != nil || p.Allows(ScopeMemoryRead) ||
		!p.Access.ReadOnly {
		t.Errorf("no scopes give %+v, %v, want no error, read-only access and no scope %v", p, err, ScopeMemoryRead)
	}
}

func TestCheckingATokenOrASessionNeverWaitsForAnotherProcessesWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.db")
	clock := newMovingClock(time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC))
	s, other := openWords(t, path, Options{Now: clock.Now}), openWords(t, path, Options{})
	added := mustAddToken(t, s, NewToken{Name: "x"})
	mustAddUser(t, s, NewUser{ID: "ann", Name: "ann"})
	session := mustAddSignIn(t, s, NewSignIn{User: "ann"})
	clock.Pass(time.Hour)
	holding, release, released := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		released <- other.db.Write(context.WithoutCancel(t.Context()), func(tx db.Tx) error {
			_, err := tx.Exec(`UPDATE setting SET value = value`)
			close(holding)
			<-release
			return err
		})
	}()
	<-holding
	letGo := sync.OnceFunc(func() { close(release) })
	defer letGo()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for range 100 { // if each waited, even for a quarter of a second, the deadline would pass
		if _, err := s.Accounts().CheckToken(ctx, added.Value); err != nil {
			t.Fatalf("while another writes: %v", err)
		}
		if _, err := s.Accounts().CheckSignIn(ctx, session.Value); err != nil {
			t.Fatalf("while another writes: %v", err)
		}
	}
	letGo()
	if err := <-released; err != nil {
		t.Fatal(err)
	}
	if all, err := s.Accounts().Tokens(t.Context()); err != nil || !all[0].LastUsedAt.IsZero() {
		t.Errorf("noted in spite of it: %+v, %v, want no error and no last used at", all, err)
	}
	if all, err := s.As(Access{User: "ann"}).Accounts().SignIns(t.Context()); err != nil || all[0] != session.SignIn {
		t.Errorf("noted in spite of it: %+v, %v; want %v", all, err, session.SignIn)
	}
}

func TestTokensAreListedAsTheyWereAdded(t *testing.T) {
	s := openWords(t, filepath.Join(t.TempDir(), "t.db"), Options{})
	for _, n := range []NewToken{{Name: "never"}, {Name: "in", ExpiresIn: time.Hour + 7*time.Nanosecond},
		{Name: "at", ExpiresAt: time.Now().Add(time.Hour)}} {
		added := mustAddToken(t, s, n)
		all, err := s.Accounts().Tokens(t.Context())
		if err != nil || !reflect.DeepEqual(all[0], added.Token) {
			t.Errorf("got %+v listed, %v, want %+v and no error", all, err, added.Token)
		}
	}
}

func TestPurgeDeletesTokensThatEndedLongAgo(t *testing.T) {
	clock := newMovingClock(time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC))
	s := openWords(t, filepath.Join(t.TempDir(), "t.db"), Options{Now: clock.Now})
	live := mustAddToken(t, s, NewToken{Name: "live"})
	mustAddToken(t, s, NewToken{Name: "expiring", ExpiresIn: time.Hour})
	deleted := mustAddToken(t, s, NewToken{Name: "deleted"})
	if err := s.Accounts().RevokeToken(t.Context(), deleted.ID); err != nil {
		t.Fatal(err)
	}
	purge := func() (n int64) {
		err := s.db.Write(t.Context(), func(tx db.Tx) (err error) {
			n, err = s.purgeTokens(tx, s.now())
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	for i, step := range []struct {
		passes time.Duration
		want   int64
	}{{0, 0}, {30 * 24 * time.Hour, 0}, {time.Microsecond, 1}, {time.Hour, 1}, {10 * 365 * 24 * time.Hour, 0}} {
		clock.Pass(step.passes)
		if got := purge(); got != step.want {
			t.Errorf("step %d purges %d, want %d", i, got, step.want)
		}
	}
	if all, err := s.Accounts().Tokens(t.Context()); err != nil || len(all) != 1 || all[0].ID != live.ID {
		t.Errorf("left: %+v, %v, want no error and only %v", all, err, live.ID)
	}
}

func TestTokensAreCheckedTogether(t *testing.T) {
	s := openWords(t, filepath.Join(t.TempDir(), "t.db"), Options{})
	added := mustAddToken(t, s, NewToken{Name: "x"})
	outcomes := make(chan error)
	for range 32 {
		go func() {
			p, err := s.Accounts().CheckToken(t.Context(), added.Value)
			if err == nil && p.TokenID != added.ID {
				err = fmt.Errorf("another token's: %+v", p)
			}
			outcomes <- err
		}()
	}
	for range 32 {
		if err := <-outcomes; err != nil {
			t.Error(err)
		}
	}
	if all, err := s.Accounts().Tokens(t.Context()); err != nil || all[0].LastUsedAt.IsZero() {
		t.Errorf("the use is not noted: %+v, %v, want no error and a last used at that is not zero", all, err)
	}
}
