package db

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
