package db

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
