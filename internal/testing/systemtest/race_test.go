package systemtest

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	. "github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

// Things that may be used once, raced by several processes.

// Of many processes, one gets tokens for a code. The tokens are then revoked, because the code was used twice.
func TestRacingProcessesExchangeACodeOnce(t *testing.T) {
	longtest.Only(t)
	in := emptyInFile(t)
	s := openWords(t, in, Options{})
	c, err := s.Accounts().RegisterClient(t.Context(), ClientRegistration{RedirectURIs: []string{testCallback}})
	if err != nil {
		t.Fatal(err)
	}
	others := make([]*process, 3)
	for i := range others {
		others[i] = startProcess(t, job{Path: in.where(), Work: "exchange codes"})
	}
	for range 5 {
		request := mustAuthorize(t, s, c)
		encoded, err := json.Marshal(request)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range others {
			if _, err := fmt.Fprintln(p.in, string(encoded)); err != nil {
				t.Fatal(err)
			}
		}
		var tokens []string
		if own, err := s.Accounts().ExchangeCode(t.Context(), request); err == nil {
			tokens = append(tokens, own.AccessToken)
		}
		for _, p := range others {
			switch line := p.line(); {
			case strings.HasPrefix(line, "ey"):
				tokens = append(tokens, line)
			case line != OAuthInvalidGrant:
				t.Errorf("a process answers %s", line)
			}
		}
		if len(tokens) != 1 {
			t.Fatalf("%d processes got tokens for one code, want 1 token", len(tokens))
		}
		_, err = s.Accounts().CheckAccessToken(t.Context(), checkOf(tokens[0]))
		var refused *OAuthError
		if !errors.Is(err, ErrUnauthenticated) || !errors.As(err, &refused) || refused.Code != OAuthInvalidToken {
			t.Errorf("the token of a code that was used twice: got %v, want %s", err, OAuthInvalidToken)
		}
	}
	for _, p := range others {
		if err := p.in.Close(); err != nil {
			t.Error(err)
		}
		if _, err := p.rest(); err != nil {
			t.Error(err)
		}
	}
	keys, err := s.Accounts().SigningKeys(t.Context())
	if err != nil || len(keys) != 1 {
		t.Errorf("the processes made %d keys, %v; want 1", len(keys), err)
	}
}

// exchangeOnDemand exchanges the code on each line of its input, and prints an access token or an OAuth error code.
func exchangeOnDemand(ctx context.Context, s *Store) error {
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		var x CodeExchange
		if err := json.Unmarshal(lines.Bytes(), &x); err != nil {
			return err
		}
		tokens, err := s.Accounts().ExchangeCode(ctx, x)
		var known *OAuthError
		switch {
		case err == nil:
			fmt.Println(tokens.AccessToken)
		case errors.As(err, &known):
			fmt.Println(known.Code)
		default:
			return err
		}
	}
	return nil
}

// acceptOnDemand accepts the invitation on each line of its input, and prints the result.
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
	in := emptyInFile(t)
	s := openWords(t, in, Options{})
	var processes []*process
	for range 3 {
		processes = append(processes, startProcess(t, job{Path: in.where(), Work: "accept invitations"}))
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
