package db

import (
	"context"
	"io"
)

// Words is the full text of passages: each has the terms of its content and, the first one of a memory, of its tags.
// Passages of one partition have ids in one range. Queries are lists of terms, any of which may match; what cannot be a
// term matches nothing.
type Words interface {
	// Put adds a passage. Its content and its tags are terms with spaces between them.
	Put(passage int64, content, tags string) error
	// Drop deletes passages, if they are there.
	Drop(passages ...int64) error
	// Clear deletes everything.
	Clear() error
	// Tidy removes what is left of dropped passages, one portion at a time; more is false once nothing is left.
	Tidy(first bool) (more bool, err error)

	// Count returns how many passages match.
	Count(in Range, terms []string) (int, error)
	// CountMemories returns how many memories have a passage that matches, at most limit.
	CountMemories(in Range, terms []string, limit int) (int, error)
	// Best returns the passages that match best, by the engine's own ranking, at most limit.
	Best(in Range, terms []string, limit int) ([]int64, error)

	// Passages returns the ids of all passages.
	Passages() ([]int64, error)
	// Occurrences calls fn for each term of each passage: its column ("content" or "tags") and its place there. The
	// transaction must be of [Upkeep.Scratch].
	Occurrences(fn func(passage int64, column string, offset int, term string) error) error
}

// Range is the ids of passages from First to Last, both included.
type Range struct{ First, Last int64 }

// Vectors compares the vectors of passages, exactly.
type Vectors interface {
	// Compare calls fn for each passage of a range that has a vector of as many dimensions and of one of the profiles.
	Compare(in Range, vector []byte, profiles []int64, fn func(Compared) error) error
}

// Compared is a passage beside a vector.
type Compared struct {
	Passage, Memory int64
	Start, Length   int     // bytes of the memory's content
	Cosine          float64 // NaN where a vector has no direction
}

// Changes is the log of memories that were written or deleted, by whichever process.
type Changes interface {
	// Mark is where the log stands in the transaction's snapshot.
	Mark() (Mark, error)
	// Since returns the memories that changed between a mark and the transaction's own, at most limit, and the later of
	// the two marks: a memory may appear that had changed before, none is missing. Where there are more, or the log does
	// not reach back so far, complete is false.
	Since(mark Mark, limit int) (memories []int64, next Mark, complete bool, err error)
}

// Mark is a place in the log of changes. Between marks that are equal nothing changed. What its numbers mean is the
// engine's affair: SQLite has the number of a row in High; where commits come out of order, Low is needed too.
type Mark struct{ Low, High int64 }

// Upkeep is what whoever runs a store asks of its engine.
type Upkeep interface {
	// Name is the engine and its version, such as "SQLite 3.51.0".
	Name() string
	// Path is where the database is: the absolute path of a file, or ":memory:".
	Path() string

	// Backup writes the database, as it is at one moment, to a new file, while others read and write; after an error
	// nothing is left of it. A path that is taken is fs.ErrExist. Progress, nil for none, counts pages.
	Backup(ctx context.Context, path string, progress func(done, total int)) error
	// Snapshot makes such a copy and returns it open for reading. Closing it deletes it.
	Snapshot(ctx context.Context, progress func(done, total int)) (io.ReadCloser, error)

	// Compact gives free space back to the system.
	Compact(ctx context.Context) error
	// Flush empties the log of writes, so that it holds nothing of what was deleted; ErrLogInUse while readers hold it.
	Flush(ctx context.Context) error
	// Room is an ErrFull while the disk has no room for what is written.
	Room(ctx context.Context) error

	// Scratch is Read on a connection of its own, whose function may make temporary tables. They go with it.
	Scratch(ctx context.Context, fn func(Tx) error) error
	// Size is what the database takes, as the transaction sees it.
	Size(tx Tx) (Size, error)
	// Check looks at the engine's own structures and returns at most so many problems.
	Check(tx Tx, limit int) ([]Problem, error)
	// Broken returns the references that lead nowhere.
	Broken(tx Tx) ([]Broken, error)
	// Reindex builds the indexes of tables anew.
	Reindex(tx Tx) error
}

// Size is what a database takes, in bytes.
type Size struct {
	Database int64 // all of it
	Free     int64 // of that, free for new content
	Log      int64 // the log of writes beside it
}

// Problem is something wrong in the engine's own structures.
type Problem struct {
	Text    string
	Words   bool // it is full text's, which can be built anew
	Indexes bool // it is an index's; see [Upkeep.Reindex]
}

// Broken is a reference of some rows to rows that do not exist.
type Broken struct {
	Table, Column string
	Parent, Key   string // where it should lead
	OnDelete      string // "CASCADE", "SET NULL" ...
	Rows          int
}
