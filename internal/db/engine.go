package db

import "context"

// Words is the full-text index of passages: each has the terms of its content, and the first passage of a memory also
// those of its tags. Passages of one partition have ids in one range. A query is a list of terms and matches any of
// them; an invalid term matches nothing.
type Words interface {
	// Put sets the terms of a passage: those of its content and of its tags, separated by spaces. Only with replaces may
	// the passage have terms already; these are removed. The passage's row may come later in the transaction, but must
	// exist at its end. If the row is deleted after Put, the terms go with it. If it is missing otherwise, that is no
	// error: an engine may keep the terms, until Drop, Clear or the next Put that replaces, or leave them out.
	Put(passage int64, content, tags string, replaces bool) error
	// Drop deletes passages. Missing ones are ignored.
	Drop(passages ...int64) error
	// Clear deletes everything, including damaged data.
	Clear() error

	// Count returns how many passages match.
	Count(in Range, terms []string) (int, error)
	// CountMemories returns how many memories have a passage that matches, at most limit.
	CountMemories(in Range, terms []string, limit int) (int, error)
	// Best returns at most limit passages that match best, by the engine's own ranking.
	Best(in Range, terms []string, limit int) ([]int64, error)

	// Each calls fn for each passage, without a column, and then for each term of each: its column ("content" or
	// "tags") and its place there. The transaction must come from [Scratch].
	Each(fn func(passage int64, column string, offset int, term string) error) error
}

// Tidying is a Words in which terms of dropped passages remain.
type Tidying interface {
	// Tidy removes them, one portion at a time; more is false once nothing is left.
	Tidy(first bool) (more bool, err error)
}

// Tidy removes the remaining terms of dropped passages from full text, one portion at a time, until more is false.
func Tidy(tx Tx, first bool) (more bool, err error) {
	if t, leaves := Stored(tx).Words().(Tidying); leaves {
		return t.Tidy(first)
	}
	return false, nil
}

// Counting is a Words of an engine that knows how often a passage has a term.
type Counting interface {
	// Frequencies calls fn for each of the given passages and each of the given terms that it has, with the number of
	// times that [Words.Each] names the term. The passages are in the range.
	Frequencies(in Range, passages []int64, terms []string, fn func(Frequency) error) error
}

// Frequency is how often a passage has a term, in its content and its tags.
type Frequency struct {
	Passage, Memory int64
	Start, Length   int // bytes of the memory's content
	Term            int // place in the list of terms, from 0
	Times           int
	Terms           int // of the passage: all that it has
}

// Range is the ids of passages from First to Last, both included.
type Range struct{ First, Last int64 }

// Vectors compares the vectors of passages, exactly. A vector is stored in passage.vector by the SQL that all engines
// share, as bytes in one of the forms of package vectorform, which compares them. Only vectors of the same number of
// dimensions and one of the given profiles (passage.profile_id) are comparable.
type Vectors interface {
	// Compare calls fn for each passage of a range that has a vector of the same dimensions, in either form, and of one
	// of the profiles. The argument vector has the exact form.
	Compare(in Range, vector []byte, profiles []int64, fn func(Compared) error) error
}

// Compared is the comparison of a passage with a vector.
type Compared struct {
	Passage, Memory int64
	Start, Length   int     // bytes of the memory's content
	Cosine          float64 // NaN where a vector has no direction
}

// Nearer is a Vectors of an engine that may have an index of the vectors of large ranges.
type Nearer interface {
	// Nearest returns passages of a partition's range, compared as by Compare. nearest has about limit passages, the
	// nearest ones according to the index, which may miss a few. besides has all passages that the index does not have
	// yet, and those with the given ids. If found is false, the index is of no use for this range, and the caller has to
	// use Compare.
	Nearest(in Range, vector []byte, profiles []int64, limit int, ids []int64) (nearest, besides []Compared, found bool,
		err error)
	// WithVectors counts the memories of a range that Compare would name, if Nearest has found something in it; keep,
	// unless it is nil, selects among them.
	WithVectors(in Range, vector []byte, keep func(memory int64) bool) (int, error)
}

// Selective is a Vectors of an engine that finds the vectors of some memories faster than all of a range.
type Selective interface {
	// CompareOf is Compare for the passages of some memories.
	CompareOf(in Range, vector []byte, profiles, memories []int64, fn func(Compared) error) error
}

// Maintainer is a DB with background work of its own, such as an index that is filled after the writes.
type Maintainer interface {
	// Maintain does the work that is due. One process on a database does it at a time; with wait it waits for its turn,
	// otherwise it leaves the work to the other.
	Maintain(ctx context.Context, wait bool) error
}

// Changes is the log of memories written or deleted by any process. Triggers add to it when the row of a memory is
// inserted, updated or deleted, and when the vector of a passage is updated. Inserting or deleting a passage adds
// nothing, even with a vector: its memory is written in the same transaction, or [Changes.Add] is called.
type Changes interface {
	// Add adds a memory whose passages were rebuilt, and then runs [MarkStale] for it. A missing memory is no error.
	Add(memory int64) error
	// Mark returns the log's position in the transaction's snapshot. A mark from a Write that has changed memories is of
	// use only after the commit: from it, [Changes.Since] finds the later changes of the Write, but need not do so within
	// the Write. If the Write is undone, later changes may be missed.
	Mark() (Mark, error)
	// Since returns the memories that changed between a mark and the transaction's own, each once, at most limit, and the
	// later of the two marks. If the transaction's snapshot is older than the mark, it returns no memories and the mark
	// itself, so that data from a newer snapshot is not replaced from an older one. It may include a memory that changed
	// earlier, but misses none. complete is false if there are more, or if the log does not reach back far enough. A
	// Write finds its own changes, too, from a mark that was taken before it; next is then a mark as [Changes.Mark]
	// returns it.
	Since(mark Mark, limit int) (memories []int64, next Mark, complete bool, err error)
}

// MarkStale is a statement that each engine's [Changes.Add] runs, with the memory as its argument: stored segments of
// the search index no longer count for that memory. For all other changes, triggers do the same (migration 0033).
const MarkStale = `INSERT INTO segment_stale (partition_id, memory_id) SELECT s.partition_id, m.id FROM memory m
	JOIN segmented s ON s.partition_id = m.partition_id WHERE m.id = ? AND m.id <= s.upto ON CONFLICT DO NOTHING`

// Mark is a position in the log of changes, as the engine writes it; "" is before everything. Between equal marks
// nothing changed. Callers cannot order marks: an engine whose commits come out of order records in the mark which
// transactions were running.
type Mark string
