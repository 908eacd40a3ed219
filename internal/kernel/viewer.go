package kernel

import (
	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/sealing/sealedrows"
)

// LocalUser is the id of the user for whom a store works by default.
const LocalUser = "local"

// DefaultCollection is the collection for memories stored without naming one.
const DefaultCollection = "default"

// ConversationCollection is the collection for the turns of conversations.
const ConversationCollection = "conversations"

// TextCollection is the name of the collections with the texts of files, one for each owner: no caller can name it. The
// memories in it hold the contents of files. Only searches for documents see it ([Viewer.VisibleTexts]).
const TextCollection = ""

// TextPartitions selects the partitions with the texts of files.
const TextPartitions = `SELECT tp.id FROM collection tc JOIN partition tp ON tp.collection_id = tc.id ` +
	`WHERE tc.name = ''`

// Viewer is the caller in terms of rows: it determines what a view of the store can see. It is read at the beginning of
// each transaction.
type Viewer struct {
	User      int64   // row of the user; 0: has stored nothing yet and is a member of no project
	Limited   bool    // sees data in projects only
	Projects  []int64 // rows, when limited
	Bounds            // expired memories do not exist, and memories that are not valid now are not shown
	Namespace string  // of the user: ids and names that the caller gives are those of users in it
	target    *int64  // the profile that new vectors must have, as read with the bounds; nil: not read
}

// FromMemory joins the tables that the visibility conditions refer to.
const FromMemory = `FROM memory m JOIN partition p ON p.id = m.partition_id JOIN collection c ON c.id = p.collection_id`

// The conditions below are the only ones that decide visibility. They refer to a row of partition p and
// its collection c; every statement that touches memories joins these two.

// SharedWith selects the rows of the projects that a user owns or is a member of (two arguments: the user, twice);
// WritableBy selects the ones in which the user may write.
const (
	SharedWith = `SELECT id FROM project WHERE owner_id = ? UNION ALL SELECT project_id FROM project_member ` +
		`WHERE user_id = ?`
	WritableBy = SharedWith + ` AND role IN ('writer', 'owner')`
)

// Namespaces need no condition of their own: a user's row belongs to one, and triggers ensure that all members of a
// project are of one namespace.

// Visible is the condition for seeing a partition: data in a project belongs to the project, so only its members see
// it; only the owner of the collection sees the rest. A limited view sees its projects only. The texts of files are not
// among it.
func (v Viewer) Visible() (condition string, args []any) {
	return v.partitions(SharedWith, `c.name <> ''`)
}

// VisibleCollection is the condition for seeing a collection c: the caller's own, and those with memories that the
// caller can see. The texts of files are not among them.
func (v Viewer) VisibleCollection() (condition string, args []any) {
	visible, args := v.Visible()
	condition = `EXISTS (SELECT 1 FROM partition p WHERE p.collection_id = c.id AND p.memories > 0 AND ` + visible + `)`
	if !v.Limited {
		condition = `(c.owner_id = ? OR ` + condition + `)`
		args = append([]any{v.User}, args...)
	}
	return condition + ` AND c.name <> ''`, args
}

// VisibleOfAll is Visible for a statement that looks for all visible partitions, rather than at some: it first names
// the partitions of the user and of the projects, which have indexes. With an OR of two tables, an engine reads both as
// a whole.
func (v Viewer) VisibleOfAll() (condition string, args []any) {
	visible, visibleArgs := v.Visible()
	return `p.id IN (SELECT o.id FROM collection k JOIN partition o ON o.collection_id = k.id WHERE k.owner_id = ?
		UNION ALL SELECT o.id FROM partition o WHERE o.project_id IN (` + SharedWith + `)) AND ` + visible,
		append([]any{v.User, v.User, v.User}, visibleArgs...)
}

// VisibleTexts is the condition for searching a partition with texts of files, which are in the places of the files.
func (v Viewer) VisibleTexts() (condition string, args []any) {
	return v.partitions(SharedWith, `c.name = ''`)
}

// Writable is the condition for changing data in a partition.
func (v Viewer) Writable() (condition string, args []any) {
	return v.partitions(WritableBy, `c.name <> ''`)
}

func (v Viewer) partitions(projects, collections string) (condition string, args []any) {
	return v.limit(`(p.project_id IS NULL AND c.owner_id = ? OR p.project_id IN (`+projects+`)) AND `+collections, v.User,
		v.User, v.User)
}

func (v Viewer) limit(condition string, args ...any) (string, []any) {
	if !v.Limited {
		return condition, args
	}
	return condition + ` AND p.project_id IN ` + db.Integers, append(args, db.List(v.Projects))
}

// Owners returns the rows of the users whose memories and files the caller may see: the caller's own, and those of the
// owners of shared projects. In a store without user keys it returns none, as nothing has to be looked up by them.
func (v Viewer) Owners(tx db.Tx) ([]int64, error) {
	if !sealedrows.Seals(tx) {
		return nil, nil
	}
	owners, err := db.Column[int64](tx, `SELECT DISTINCT owner_id FROM project WHERE owner_id <> ? AND id IN (`+
		SharedWith+`)`, v.User, v.User, v.User)
	return append(owners, v.User), err
}

// VisibleProject is the condition for seeing a project j and its members.
func (v Viewer) VisibleProject() (condition string, args []any) {
	condition, args = `j.id IN (`+SharedWith+`)`, []any{v.User, v.User}
	if !v.Limited {
		return condition, args
	}
	return condition + ` AND j.id IN ` + db.Integers, append(args, db.List(v.Projects))
}

// ProjectRole is the caller's role in a visible project j: the owner of record is an owner, too.
func (v Viewer) ProjectRole() (expression string, args []any) {
	return `CASE WHEN j.owner_id = ? THEN 'owner' ELSE (SELECT role FROM project_member WHERE project_id = j.id ` +
		`AND user_id = ?) END`, []any{v.User, v.User}
}

// The conditions for files refer to a row of file f, left-joined with the partition p and the collection c of the
// memory it is linked to (FromFile). The members of a project see its files, which lie there directly or through their
// memory. Only the owner of the memory sees any other file, or the file's own owner if it has no memory.

// FromFile joins the tables that the conditions for files refer to.
const FromFile = `FROM file f LEFT JOIN memory m ON m.id = f.memory_id ` +
	`LEFT JOIN partition p ON p.id = m.partition_id LEFT JOIN collection c ON c.id = p.collection_id`

// ProjectOfFile is the row of a file's project, NULL for none.
const ProjectOfFile = `CASE WHEN f.memory_id IS NULL THEN f.project_id ELSE p.project_id END`

// VisibleFile is the condition for seeing a file.
func (v Viewer) VisibleFile() (condition string, args []any) { return v.file(SharedWith) }

// WritableFile is the condition for changing or deleting a file.
func (v Viewer) WritableFile() (condition string, args []any) { return v.file(WritableBy) }

func (v Viewer) file(projects string) (condition string, args []any) {
	condition = `f.state = 'stored' AND (` + ProjectOfFile + ` IS NULL AND coalesce(c.owner_id, f.owner_id) = ? OR ` +
		ProjectOfFile + ` IN (` + projects + `))`
	args = []any{v.User, v.User, v.User}
	if !v.Limited {
		return condition, args
	}
	return condition + ` AND ` + ProjectOfFile + ` IN ` + db.Integers, append(args, db.List(v.Projects))
}

// VisibleTrash returns the condition for seeing and restoring an entry t: the user owns the place or, for single
// memories and files, may write in the project. A limited view only sees entries of its projects. Only their owners see
// projects and collections.
func (v Viewer) VisibleTrash() (condition string, args []any) {
	single := `t.kind IN ('memory', 'file')`
	condition = `(t.owner_id = ? OR t.project_id IN (` + WritableBy + `) AND ` + single + `)`
	args = []any{v.User, v.User, v.User}
	if !v.Limited {
		return condition, args
	}
	return condition + ` AND ` + single + ` AND t.project_id IN ` + db.Integers, append(args, db.List(v.Projects))
}
