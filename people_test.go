package souvenir

import (
	"testing"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/foldname"
)

// addAccount makes a user with an account, or without one if the name is empty.
func addAccount(t *testing.T, s *Store, user, name string) {
	t.Helper()
	if _, err := s.As(Access{User: user}).AddMemories(t.Context(), nil,
		nil); err != nil { // a user exists from the first write on
		t.Fatal(err)
	}
	if name == "" {
		return
	}
	err := s.db.Write(t.Context(), func(tx db.Tx) error {
		_, err := tx.Exec(`UPDATE users SET name = ?, name_key = ? WHERE uid = ?`, name, foldname.Key(name), user)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// share makes a user a member of a project of the view's user, as an operator does.
func share(t *testing.T, owner *Store, project, user string, role MemberRole) {
	t.Helper()
	operator := &Store{shared: owner.shared, access: Access{User: LocalUser}, operator: true}
	if _, err := operator.AddMember(t.Context(),
		NewMember{Project: ProjectRef{ID: owner.access.User + "/" + project}, User: user, Role: role}); err != nil {
		t.Fatal(err)
	}
}

// recordCalls records calls and waits until they are in the file.
func recordCalls(t *testing.T, s *Store, calls ...NewActivity) {
	t.Helper()
	for _, n := range calls {
		if err := s.Upkeep().RecordActivity(t.Context(), n); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.activity.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
}
