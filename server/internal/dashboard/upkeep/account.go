package upkeep

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"net/url"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/request"
	"github.com/souvenir-ai/souvenir/server/internal/web"
)

// Two steps of an admin on another user's account: one gives access to it, the other deletes it for good. Both ask the
// admin to confirm their identity.

// accountPage is the data of the page after such a step.
type accountPage struct {
	User     souvenir.User
	Password string     // the new one, shown this once; empty: the account was deleted
	Receipt  []web.Fact // of a deletion
	Signed   string     // the same, as JSON with a signature
}

// resetPassword gives a user a new password and shows it, this once.
func (s *Service) resetPassword(w http.ResponseWriter, r *http.Request, c request.Caller, form url.Values) (any,
	error) {
	if form.Get("id") == c.User.ID {
		return s.usersAgain(r, c, ownAccount)
	}
	if asks, err := s.signin.Confirm(w, r, c, form, "/users"); asks != nil || err != nil {
		return asks, err
	}
	password := rand.Text()[:16] // 80 bits
	u, err := s.store.Accounts().UpdateUser(r.Context(), form.Get("id"), souvenir.UserUpdate{Password: &password})
	if err != nil {
		return s.usersAgain(r, c, err)
	}
	s.log.InfoContext(r.Context(), "an admin reset a password", "user", u.ID, "admin", c.User.ID)
	return web.Page{Template: "useraccount", Title: "New password for " + u.Name,
		Data: accountPage{User: u, Password: password}}, nil
}

// deleteUser asks whether to delete a user with all of their data, does so, and shows a receipt.
func (s *Service) deleteUser(w http.ResponseWriter, r *http.Request, c request.Caller, form url.Values) (any, error) {
	if form.Get("id") == c.User.ID {
		return s.usersAgain(r, c, ownAccount)
	}
	u, err := s.store.Accounts().GetUser(r.Context(), form.Get("id"))
	if err != nil {
		return s.usersAgain(r, c, err)
	}
	holds, err := s.holdings(r.Context(), u)
	if err != nil {
		return nil, err
	}
	if form.Get("sure") == "" {
		return askDeleteUser(u, holds), nil
	}
	if asks, err := s.signin.Confirm(w, r, c, form, "/users"); asks != nil || err != nil {
		return asks, err
	}
	// Half a deletion is worse than a whole one: a browser that goes away does not end it.
	ctx := context.WithoutCancel(r.Context())
	var signed souvenir.Receipt
	err = s.store.Accounts().DeleteUser(ctx, u.ID, &souvenir.DeletionOptions{WithMemories: true, Receipt: &signed})
	if err != nil {
		return s.usersAgain(r, c, err)
	}
	proof, err := json.MarshalIndent(signed, "", "  ")
	if err != nil {
		return nil, err
	}
	s.log.InfoContext(ctx, "an admin deleted a user", "user", u.ID, "admin", c.User.ID)
	receipt := append([]web.Fact{{Key: "User", Value: u.Name}, {Key: "Id", Value: u.ID},
		{Key: "Deleted", Value: time.Now().In(web.ZoneOf(r).Location).Format("2 January 2006, 15:04:05 MST")},
		{Key: "Deleted by", Value: c.User.Name}}, holds...)
	return web.Page{Template: "useraccount", Title: u.Name + " is deleted",
		Data: accountPage{User: u, Receipt: receipt, Signed: string(proof)}}, nil
}

// holdings counts the data that is deleted with a user.
func (s *Service) holdings(ctx context.Context, u souvenir.User) ([]web.Fact, error) {
	view := s.store.As(souvenir.Access{User: u.ID})
	usage, err := view.Insights().Usage(ctx)
	if err != nil {
		return nil, err
	}
	files, err := view.FilePage(ctx, souvenir.FileQuery{Limit: 1})
	if err != nil {
		return nil, err
	}
	projects, err := view.Projects(ctx)
	if err != nil {
		return nil, err
	}
	own := 0
	for _, p := range projects {
		if p.Owner == u.ID {
			own++
		}
	}
	tokens, err := view.Accounts().Tokens(ctx)
	if err != nil {
		return nil, err
	}
	grants, err := view.Accounts().Grants(ctx)
	if err != nil {
		return nil, err
	}
	sessions, err := view.Accounts().SignIns(ctx)
	return []web.Fact{
		{Key: "Memories", Value: web.Thousands(usage.Memories) + ", with " + web.Count(usage.Revisions, "past version")},
		{Key: "Files", Value: web.Thousands(files.Total) + " visible, " + web.Bytes(usage.FileBytes) + " of their own"},
		{Key: "Projects", Value: web.Thousands(own) + ", with what others stored in them"},
		{Key: "Tokens and applications", Value: web.Thousands(len(tokens)) + " and " + web.Thousands(len(grants))},
		{Key: "Browsers signed in", Value: web.Thousands(len(sessions))},
	}, err
}

// askDeleteUser asks for confirmation, with the numbers.
func askDeleteUser(u souvenir.User, holds []web.Fact) web.Page {
	return web.Page{Template: "asks", Title: "Delete " + u.Name, Data: web.QuestionPage{Asks: &web.Question{
		ID: "delete", Title: "Delete " + u.Name + " and all their data?", Action: "/users", Button: "Delete " + u.Name,
		Back: "/users", Facts: holds,
		Text: "Nothing is moved to the trash, and this cannot be undone. What they stored in other people’s projects " +
			"stays there. Earlier backups still contain everything.",
		Kept: []web.Fact{{Key: "id", Value: u.ID}, {Key: "change", Value: "user-delete"}, {Key: "sure", Value: "yes"}},
	}}}
}
