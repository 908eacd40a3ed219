package souvenir

// Accounts manages users and their credentials: identities, invitations, sessions, MCP tokens, and the clients, grants, codes
// and keys of OAuth. Get it with [Store.Accounts].
//
// On the Store that [Open] returned it manages all accounts. On a view it is limited to the account of the view's user: their own
// tokens, sessions, identities, clients and grants. Other methods give ErrForbidden there, and on a view that is limited to
// projects all but Me do.
type Accounts struct {
	s *Store
}

// Accounts returns the methods for users and their credentials.
func (s *Store) Accounts() *Accounts {
	return &Accounts{s}
}

// operator returns the store for a method that is about all accounts, and refuses it on a view.
func (h *Accounts) operator(method string) (*Store, error) {
	return h.s, h.s.checkOperator(method)
}

// own returns the store for a method about the account of the user, and refuses it on a view that is limited to projects.
func (h *Accounts) own(method string) (*Store, error) {
	return h.s, h.s.checkAccount(method)
}
