package sealedrows

import "github.com/souvenir-ai/souvenir/internal/db"

// Searching is a Sealing with its own full text and vectors.
type Searching interface {
	// Search returns full text and the comparison of vectors, for a transaction of the engine. sealer is [SealerOf] of
	// the transaction.
	Search(tx db.Tx, sealer func(owner int64) (Sealer, error)) (db.Words, db.Vectors)
}

// search gets full text and vectors from a Sealing that has its own.
func (o *opening) search() {
	if s, able := o.sealing.(Searching); able {
		o.words, o.vectors = s.Search(o.Tx, func(owner int64) (Sealer, error) { return SealerOf(o, owner) })
	} else {
		o.words, o.vectors = o.Tx.Words(), o.Tx.Vectors()
	}
}

// Words returns the full text of a [Searching], or else the engine's.
func (o *opening) Words() db.Words {
	if o.words == nil {
		o.search()
	}
	return o.words
}

// Vectors returns the vectors of a [Searching], or else the engine's.
func (o *opening) Vectors() db.Vectors {
	if o.vectors == nil {
		o.search()
	}
	return o.vectors
}

// StoredBytes returns the length of a value sealed by [SealBytes].
func StoredBytes(plain int) int { return len(mark) + 1 + plain + SealOverhead }

// SealedBytes returns the sealed bytes of a stored value in a column of bytes; false if it is not a sealed value of the
// column.
func SealedBytes(c SealedColumn, stored []byte) ([]byte, bool) {
	if len(stored) <= len(mark) || string(stored[:len(mark)]) != mark || stored[len(mark)] != byte(c) {
		return nil, false
	}
	return stored[len(mark)+1:], true
}
