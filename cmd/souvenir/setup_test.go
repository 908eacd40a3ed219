package main

import (
	"path/filepath"
	"testing"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

// A user with only tokens, such as scripts create before the setup, does not end it: the link is printed, and the first
// user of the settings gets that account if it has the name.
func TestAnAccountWithoutAPasswordLeavesTheSetUpOpen(t *testing.T) {
	longtest.Only(t)
	c := call{dir: t.TempDir()}
	c.ok(t, "user", "add", "anna", "--no-password")
	c.ok(t, "token", "add", "--user", "anna", "--name", "laptop")
	p := c.start(t, "serve", "--listen", "127.0.0.1:0")
	p.stop(t)
	setUpLink(t, p.stderr.String())
	c.env = []string{"SOUVENIR_ADMIN_USER=anna", "SOUVENIR_ADMIN_PASSWORD=first-password"}
	p = c.start(t, "serve", "--listen", "127.0.0.1:0")
	p.stop(t)
	store := openStore(t, filepath.Join(c.dir, "souvenir.db"))
	user, err := store.Accounts().CheckPassword(t.Context(),
		souvenir.Credentials{Name: "anna", Password: "first-password"})
	if err != nil || user.Role != souvenir.RoleAdmin {
		t.Errorf("got %+v, %v; want anna, an admin with the password", user, err)
	}
	if page, err := store.Accounts().UserPage(t.Context(), souvenir.UserQuery{}); err != nil || page.Total != 1 {
		t.Errorf("got %d users, %v; want 1", page.Total, err)
	}
}
