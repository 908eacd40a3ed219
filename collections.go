package souvenir

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/sealing/sealedrows"
	"github.com/souvenir-ai/souvenir/internal/trash"
	"github.com/souvenir-ai/souvenir/internal/valid"
	"github.com/souvenir-ai/souvenir/internal/writing"
)

// DefaultCollection is the collection for memories stored without naming one. It is created when first needed.
const DefaultCollection = kernel.DefaultCollection

// Collection is a named set of memories of one owner.
type Collection struct {
	Name        string    `json:"collection_name"`
	Description string    `json:"description"`
	Owner       string    `json:"owner"`        // user id
	VectorSize  int       `json:"vector_size"`  // dimensions of its vectors
	Embedder    string    `json:"embedder"`     // the model that makes its vectors; "own" when callers supply them
	MemoryCount int       `json:"memory_count"` // of the memories visible through this view
	CreatedAt   time.Time `json:"created_at"`
	UpdatedAt   time.Time `json:"updated_at"`

	Retention Retention `json:"-"` // how long its memories stay
}

// OwnVectors is the Embedder of a [Collection] whose vectors the callers supply.
const OwnVectors = kernel.OwnVectors

// NewCollection describes a collection to add.
type NewCollection struct {
	Name        string // 1 to 128 characters, unique among the owner's collections
	Description string // for people and models; at most 4,096 characters

	// VectorSize is the number of dimensions; zero means the embedder's. A size other than the embedder's is an error
	// unless OwnVectors is set.
	VectorSize int

	// OwnVectors creates a collection in which no text is embedded: each [NewMemory] may have an Embedding, of exactly
	// VectorSize dimensions, and searches pass theirs as [Query].Vector. Search by words works as in any other collection.
	OwnVectors bool
}

func (c NewCollection) check(embedder Embedder) error {
	if err := valid.Name("collection_name", c.Name); err != nil {
		return err
	}
	if err := valid.Description(c.Description); err != nil {
		return err
	}
	size := embedder.Dimensions()
	switch {
	case c.VectorSize < 0 || c.VectorSize > valid.MaxVector:
		return invalid("vector_size", "{} is %d; expected 1 to %d, or 0 for the embedder's %d", c.VectorSize,
			valid.MaxVector, size)
	case c.OwnVectors && c.VectorSize == 0:
		return invalid("vector_size", "{} is missing; a collection with own vectors needs their number of dimensions")
	case !c.OwnVectors && c.VectorSize != 0 && c.VectorSize != size:
		return invalid("vector_size",
			"{} is %d, but the embedder %s makes vectors of %d dimensions; leave {} out, or set {own_vectors} "+
				"to pass your own vectors",
			c.VectorSize, show(embedder.Model()), size)
	}
	return nil
}

// AddCollection adds a collection. A name that the owner already has is ErrConflict.
func (s *Store) AddCollection(ctx context.Context, c NewCollection) (_ Collection, err error) {
	defer setGoNames[NewCollection](&err)
	if err := c.check(s.embedder); err != nil {
		return Collection{}, err
	}
	if s.access.Projects != nil {
		return Collection{}, newError(KindForbidden, "collection_name",
			"a view limited to projects adds no collections; store into %s or into a collection that exists",
			show(DefaultCollection))
	}
	var added Collection
	err = s.write(ctx, func(tx db.Tx, v viewer) (err error) {
		var profile int64
		if c.OwnVectors {
			if profile, err = kernel.ProfileRow(tx, kernel.OwnProfile(c.VectorSize), s.now()); err != nil {
				return err
			}
		}
		if _, err := s.writing().AddCollection(tx, v, v.User, c.Name, c.Description, profile); err != nil {
			return err
		}
		added, err = s.collection(tx, v, c.Name)
		return err
	})
	return added, err
}

// GetCollection returns a collection by name: the caller's own, or else one that holds memories shared with the caller.
// An unknown name is ErrNotFound.
func (s *Store) GetCollection(ctx context.Context, name string) (_ Collection, err error) {
	defer setGoNames[struct{}](&err, "collection_name", "name")
	var found Collection
	err = s.read(ctx, func(tx db.Tx, v viewer) (err error) {
		found, err = s.collection(tx, v, name)
		return err
	})
	return found, err
}

// Collections returns the collections visible through this view, by name: the caller's own, and collections that hold
// memories shared with the caller. A view limited to projects sees the collections with memories of these projects.
func (s *Store) Collections(ctx context.Context) ([]Collection, error) {
	var all []Collection
	err := s.read(ctx, func(tx db.Tx, v viewer) (err error) {
		all, err = s.listCollections(tx, v, "")
		return err
	})
	return all, err
}

func (s *Store) collection(tx db.Tx, v viewer, name string) (Collection, error) {
	if err := valid.Name("collection_name", name); err != nil {
		return Collection{}, err
	}
	found, err := s.listCollections(tx, v, name)
	if err != nil {
		return Collection{}, err
	}
	for _, c := range found {
		if c.Owner == s.access.User {
			return c, nil
		}
	}
	if len(found) == 0 {
		return Collection{}, writing.UnknownCollection(tx, v, name)
	}
	return found[0], nil
}

// listCollections lists the visible collections; if name is not empty, only the ones with this name.
func (s *Store) listCollections(tx db.Tx, v viewer, name string) ([]Collection, error) {
	visible, visibleArgs := v.Visible()
	condition, args := v.VisibleCollection()
	args = slices.Concat(visibleArgs, args)
	if name != "" {
		owners, err := v.Owners(tx)
		if err != nil {
			return nil, err
		}
		is, stored, err := sealedrows.IsAny(tx, sealedrows.CollectionName, owners, `c.name`, name)
		if err != nil {
			return nil, err
		}
		condition += ` AND ` + is
		args = append(args, stored)
	}
	all := []Collection{}
	err := tx.Each(func(row db.Rows) error {
		var c Collection
		var created, updated int64
		var own *int64
		var after int64
		var deletes bool
		if err := row.Scan(&c.Name, &c.Description, &c.Owner, &own, &c.MemoryCount, &created, &updated, &after,
			&deletes); err != nil {
			return err
		}
		c.Retention = retentionOf(after, deletes)
		c.Embedder, c.VectorSize = s.embedder.Model(), s.embedder.Dimensions()
		if own != nil {
			c.Embedder, c.VectorSize = OwnVectors, int(*own)
		}
		if c.Owner != s.access.User {
			c.Description = "" // an owner's description of a collection is not shared with a project
		}
		c.CreatedAt, c.UpdatedAt = kernel.ToTime(created), kernel.ToTime(updated)
		all = append(all, c)
		return nil
	}, `SELECT c.name, c.description, u.uid, f.dimensions,
			(SELECT coalesce(sum(`+v.Held()+`), 0) FROM partition p WHERE p.collection_id = c.id AND `+visible+
		`), c.created_at, c.updated_at, coalesce(c.retention, 0), coalesce(c.retention_deletes, 0)
		FROM collection c JOIN users u ON u.id = c.owner_id LEFT JOIN profile f ON f.id = c.own_profile
		WHERE `+condition+` ORDER BY c.id`, args...)
	// By name here, as names may be sealed.
	slices.SortStableFunc(all, func(a, b Collection) int { return strings.Compare(a.Name, b.Name) })
	return all, err
}

// CollectionUpdate describes a change of a collection. Fields that are nil change nothing.
type CollectionUpdate struct {
	Name        *string // 1 to 128 characters, unique among the owner's collections; DefaultCollection keeps its name
	Description *string // at most 4,096 characters

	// Retention replaces the rule for how long its memories stay; the zero value removes it. It is noted in the audit log.
	// [Insights.CountDue] says how many memories a rule would remove.
	Retention *Retention
}

func (u CollectionUpdate) check() error {
	if u.Retention != nil {
		if err := u.Retention.check(); err != nil {
			return err
		}
	}
	if u.Name != nil {
		if err := valid.Name("name", *u.Name); err != nil {
			return err
		}
	}
	if u.Description != nil {
		return valid.Description(*u.Description)
	}
	return nil
}

// UpdateCollection renames one of the caller's own collections, or replaces its description or its rule for how long
// memories stay. A name that the owner already has is ErrConflict.
func (s *Store) UpdateCollection(ctx context.Context, name string, u CollectionUpdate) (_ Collection, err error) {
	defer setGoNames[CollectionUpdate](&err, "collection_name", "name")
	if err := u.check(); err != nil {
		return Collection{}, err
	}
	var updated Collection
	err = s.write(ctx, func(tx db.Tx, v viewer) error {
		row, err := s.writableCollection(tx, v, name)
		if err != nil {
			return err
		}
		now := name
		if u.Name != nil {
			now = *u.Name
			if err := renameCollection(tx, v, row, name, now); err != nil {
				return err
			}
		}
		if u.Description != nil {
			if err := kernel.DescribeCollection(tx, v.User, row, *u.Description); err != nil {
				return err
			}
		}
		if u.Retention != nil {
			if err := s.setRetention(ctx, tx, "collection", row, *u.Retention,
				AuditID("collection", s.access.User, now)); err != nil {
				return err
			}
		}
		if u.Name != nil || u.Description != nil {
			if _, err := tx.Exec(`UPDATE collection SET updated_at = ? WHERE id = ?`, s.now(), row); err != nil {
				return err
			}
		}
		updated, err = s.collection(tx, v, now)
		return err
	})
	return updated, err
}

func renameCollection(tx db.Tx, v viewer, row int64, before, after string) error {
	if before == after {
		return nil
	}
	if before == DefaultCollection {
		return invalid("name", "{collection_name} %s cannot be renamed to %s: memories stored without a {collection_name} "+
			"go there", show(before), show(after))
	}
	_, _, taken, err := kernel.OwnCollection(tx, v.User, after)
	if err != nil {
		return err
	}
	if taken {
		return newError(KindConflict, "name", "{collection_name} %s already exists; choose another new name for %s",
			show(after), show(before))
	}
	return kernel.RenameCollection(tx, v.User, row, after)
}

// DeleteCollection deletes one of the caller's own collections, which goes to the trash as one entry. It deletes
// memories a thousand at a time, so that other writers get their turn; after an error some of them may be gone, and a
// second call moves the rest to the same entry.
func (s *Store) DeleteCollection(ctx context.Context, name string, options *DeletionOptions) error {
	if err := s.outside(ctx, "DeleteCollection"); err != nil {
		return err
	}
	return s.hookedDelete(ctx, "DeleteCollection", func(ctx context.Context, h *operation) (err error) {
		defer setGoNames[DeletionOptions](&err, "collection_name", "name")
		if h != nil {
			h.Collection = name
		}
		if err := h.delete(ctx, options); err != nil {
			return err
		}
		o := options.orDefault()
		return s.deleteInPortions(ctx, o.Erase, func(tx db.Tx, v viewer, p trash.Portion) (bool, error) {
			return s.deleteCollection(tx, v, name, o, p)
		})
	})
}

// deleteCollection deletes one portion, and reports whether it was the last.
func (s *Store) deleteCollection(tx db.Tx, v viewer, name string, o DeletionOptions, p trash.Portion) (done bool,
	err error) {
	row, err := s.writableCollection(tx, v, name)
	if err != nil {
		return false, err
	}
	counts, err := db.Column[int64](tx, `SELECT coalesce(sum(`+v.Held()+`), 0) FROM partition p WHERE p.collection_id = ?`,
		row)
	if err != nil {
		return false, err
	}
	if counts[0] > 0 && !o.WithMemories {
		return false, newError(KindConflict, "collection_name",
			"{} %s holds %d memories; move or delete them first, or delete the collection together with its "+
				"memories",
			show(name), counts[0])
	}
	t := s.newTrasher(tx, v, p)
	t.Forever = t.Forever || o.Erase
	entry, err := t.Collection(row)
	if err != nil {
		return false, err
	}
	if done, err = t.Memories(entry, `p.collection_id = ?`, row); err != nil || !done {
		return false, err
	}
	_, err = tx.Exec(`DELETE FROM collection WHERE id = ?`, row)
	return true, err
}

// writableCollection returns the row of a collection that the caller may change: one of their own, through a view not
// limited to projects.
func (s *Store) writableCollection(tx db.Tx, v viewer, name string) (int64, error) {
	visible, err := s.collection(tx, v, name)
	if err != nil {
		return 0, err
	}
	if v.Limited || visible.Owner != s.access.User {
		return 0, newError(KindForbidden, "collection_name",
			"{} %s belongs to %s; only its owner, through a view that is not limited to projects, may change it",
			show(name), kernel.UserName(tx, v, visible.Owner))
	}
	row, _, _, err := kernel.OwnCollection(tx, v.User, name)
	return row, err
}
