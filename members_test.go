package souvenir

import "testing"

// A change that makes its author a non-owner still succeeds.
func TestAnOwnerLowersTheirOwnRole(t *testing.T) {
	s := openWords(t, "", Options{})
	for _, u := range []string{"anna", "ben"} {
		if _, err := s.Accounts().AddUser(t.Context(), NewUser{ID: u, Name: u}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.As(Access{User: "anna"}).AddProject(t.Context(), NewProject{ID: "p", Name: "p"}); err != nil {
		t.Fatal(err)
	}
	p := ProjectRef{ID: "anna/p"}
	if _, err := s.AddMember(t.Context(), NewMember{Project: p, User: "ben", Role: MemberOwner}); err != nil {
		t.Fatal(err)
	}
	m, err := s.As(Access{User: "ben"}).UpdateMember(t.Context(), p, "ben", MemberUpdate{Role: MemberWriter})
	if err != nil || m.Role != MemberWriter {
		t.Errorf("got %+v, %v; want ben as a writer", m, err)
	}
}
