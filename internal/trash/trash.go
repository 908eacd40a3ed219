// Package trash moves deleted items out of the live tables into the trash, restores them, and erases them. It also
// erases what a deleted user owned, sessions, tokens and grants included, and counts it for receipts. It handles rows;
// the root package decides who may delete and restore.
package trash

import (
	"errors"
	"fmt"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/fault"
)

// Kind is the kind of an entry.
type Kind string

// The kinds of entries.
const (
	Memories    Kind = "memory"
	Files       Kind = "file"
	Projects    Kind = "project"
	Collections Kind = "collection"
)

// Entry is an item that one call deleted: a memory, a file, or a project or collection with all of its memories.
type Entry struct {
	Row           int64
	ID            string // for a memory or a file: its original id
	Kind          Kind
	Item          string // the id of the deleted item, for a collection its name
	Title         string
	Owner         int64 // row of the owner of its place
	CollectionRow int64 // 0 for none, or if it no longer exists
	ProjectRow    int64 // the same
	Collection    string
	ProjectID     string
	ProjectName   string
	Size          int64  // bytes
	until         int64  // how long it can be restored; 0: Mover.Until
	Data          string // of a collection or a project, as JSON
}

const version = 1 // of the forms in the trash

// collection is a collection in the trash, as JSON.
type collection struct {
	Version     int    `json:"v"`
	Description string `json:"description,omitempty"`
	OwnSize     int    `json:"own_vectors,omitempty"` // dimensions
	Created     int64  `json:"created_at"`
	Updated     int64  `json:"updated_at"`

	Retention Retention `json:"retention,omitzero"`
}

// project is a project in the trash, as JSON.
type project struct {
	Version int          `json:"v"`
	Created int64        `json:"created_at"`
	Updated int64        `json:"updated_at"`
	Members []Member     `json:"members,omitempty"`
	Former  []formerName `json:"former_names,omitempty"`

	Retention Retention `json:"retention,omitzero"`
}

// formerName is a former name of a project.
type formerName struct {
	Name  string `json:"name"`
	Key   string `json:"name_key"`
	Until int64  `json:"until"`
}

// Member is a member of a project in the trash.
type Member struct {
	User    string `json:"user"` // user id
	Role    string `json:"role"`
	Created int64  `json:"created_at"`
}

// Portion limits a transaction that deletes or erases. On a full disk, deletions go through the log, and so must fit
// into the reserve.
type Portion struct {
	Rows  int // memories, entries of the trash, or parts of one
	Bytes int64
}

const (
	// FullRows is the number of memories that one transaction deletes.
	FullRows = 1000

	fullBytes = 16 << 20 // approximate number of bytes that one transaction moves
)

// FullPortion is the portion that one transaction deletes unless the disk is full.
func FullPortion() Portion { return Portion{FullRows, fullBytes} }

// smaller returns a smaller portion, and whether there is one.
func (p Portion) smaller() (Portion, bool) {
	return Portion{max(p.Rows/8, 1), max(p.Bytes/8, 1)}, p.Rows > 1
}

// InPortions calls fn, which uses its own transaction, until it reports that all is done. If the disk has no room for a
// portion, it tries a smaller one.
func InPortions(fn func(p Portion) (done bool, err error)) error {
	for p := FullPortion(); ; {
		done, err := fn(p)
		if errors.Is(err, db.ErrFull) || isKind(err, fault.KindFull) {
			if smaller, more := p.smaller(); more {
				p = smaller
				continue
			}
		}
		if err != nil || done {
			return err
		}
	}
}

// fileID returns the id of an entry's file while it is in the trash. Callers cannot name it, and the original id is
// free.
func fileID(entry int64) string { return fmt.Sprintf("trash/%d", entry) }

func isKind(err error, kind fault.Kind) bool { return errors.Is(err, &fault.Error{Kind: kind}) }

// first returns the first row of a list, 0 if it is empty.
func first(rows []int64) int64 {
	if len(rows) == 0 {
		return 0
	}
	return rows[0]
}
