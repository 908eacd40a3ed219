package souvenir

// Upkeep keeps a store in order: backup, check, export, import, statistics, the activity log, embeddings and indexes. Get it with
// [Store.Upkeep].
//
// It is for the Store that [Open] returned. On a view all methods give ErrForbidden, except Export, EmbeddingStatus and
// WaitEmbedded, which are limited to what the view's user has.
type Upkeep struct {
	s *Store
}

// Upkeep returns the methods that keep the store in order.
func (s *Store) Upkeep() *Upkeep {
	return &Upkeep{s}
}

// operator returns the store for a method that is about the whole store, and refuses it on a view.
func (h *Upkeep) operator(method string) (*Store, error) {
	return h.s, h.s.checkOperator(method)
}

// own returns the store for a method about all that the user has, and refuses it on a view that is limited to projects.
func (h *Upkeep) own(method string) (*Store, error) {
	return h.s, h.s.checkAccount(method)
}
