package souvenir

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"github.com/souvenir-ai/souvenir/internal/longtest"
	"os"
	"path/filepath"
	"testing"
)

func mustInvite(t *testing.T, s *Store, n NewInvitation) AddedInvitation {
	t.Helper()
	added, err := s.Accounts().AddInvitation(t.Context(), n)
	if err != nil {
		t.Fatal(err)
	}
	return added
}

// acceptOnDemand accepts the invitation of each line of its input, and prints what came of it.
func acceptOnDemand(ctx context.Context, s *Store) error {
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		var a InvitationAcceptance
		if err := json.Unmarshal(lines.Bytes(), &a); err != nil {
			return err
		}
		switch _, err := s.Accounts().AcceptInvitation(ctx, a); {
		case err == nil:
			fmt.Println("accepted")
		case errors.Is(err, ErrNotFound):
			fmt.Println("refused")
		default:
			return err
		}
	}
	return nil
}

func TestOneOfSeveralProcessesAcceptsAnInvitation(t *testing.T) {
	longtest.Only(t)
	path := filepath.Join(t.TempDir(), "i.db")
	s := openWords(t, path, Options{})
	var processes []*process
	for range 3 {
		processes = append(processes, startProcess(t, job{Path: path, Work: "accept invitations"}))
	}
	for round, n := range []NewInvitation{{Purpose: InvitationSetup}, {}, {Role: RoleAdmin}, {}} {
		value := mustInvite(t, s, n).Value
		for i, p := range processes {
			encoded, err := json.Marshal(InvitationAcceptance{Value: value, Name: fmt.Sprintf("guest %d of %d", i, round),
				Password: "long and unusual"})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := fmt.Fprintln(p.in, string(encoded)); err != nil {
				t.Fatal(err)
			}
		}
		accepted := 0
		for _, p := range processes {
			if p.line() == "accepted" {
				accepted++
			}
		}
		page, err := s.Accounts().UserPage(t.Context(), UserQuery{})
		users := page.Users
		if err != nil || accepted != 1 || len(users) != round+1 {
			t.Errorf("round %d: %d processes accepted the invitation, and there are %d users, %v, want no error, accepted 1 "+
				"and %v users", round, accepted, len(users), err, round+1)
		}
	}
	for _, p := range processes {
		if err := p.in.Close(); err != nil {
			t.Error(err)
		}
		if _, err := p.rest(); err != nil {
			t.Error(err)
		}
	}
}
