// Package writing decides where memories go, and whether there is room for them.
//
//   - [Store] finds the project and the collection that a write names, and checks quotas.
//   - [Writer] creates missing ones, and counts what a transaction adds.
package writing

import (
	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/kernel"
)

// Store is what a write has to know of a view of the store.
type Store struct {
	User     string   // id of the view's user
	Projects []string // references of the projects that the view is limited to; nil: no limit
	Now      func() int64
	NewID    func() string
	Quota    func(tx db.Tx) (Quota, error)
	Caller   func(v kernel.Viewer) *db.Caller
}
