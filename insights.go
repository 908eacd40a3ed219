package souvenir

// Insights answers what a dashboard shows about memories: overview, graph and map, the tags and modules in use, recorded
// activity, and who may do what with a memory or a file. Get it with [Store.Insights]; it sees what its view sees.
type Insights struct {
	s *Store
}

// Insights returns the methods for dashboards.
func (s *Store) Insights() *Insights {
	return &Insights{s}
}

// own returns the store for a method about all that the user has, and refuses it on a view that is limited to projects.
func (h *Insights) own(method string) (*Store, error) {
	return h.s, h.s.checkAccount(method)
}
