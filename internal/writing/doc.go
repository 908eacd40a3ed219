// Package writing writes memories: it decides where they go and whether there is room for them, keeps past versions,
// and holds to the rules about identities, project rules, keys, and the memories that others supersede.
//
//   - [View] finds the project and the collection that a write names, and checks quotas.
//   - [Writer] writes the memories of a transaction, and creates projects and collections that are missing.
package writing

import (
	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/kernel"
)

// View is what a write has to know of a view of the store.
type View struct {
	User     string   // id of the view's user
	Projects []string // references of the projects that the view is limited to; nil: no limit
	Now      func() int64
	NewID    func() string
	Quota    func(tx db.Tx) (Quota, error)
	Caller   func(v kernel.Viewer) *db.Caller
	Profile  int64  // of the store's embedder
	Model    string // its name
	MaxInput int    // bytes of a text that it reads
	Keys     kernel.KeyGiver
}
