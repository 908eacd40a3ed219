package sealedrows

import "github.com/souvenir-ai/souvenir/internal/db"

// Searching is a Sealing that keeps full text and vectors of its own kind.
type Searching interface {
	// Search returns full text and the comparison of vectors, for a transaction of the engine. Sealer is [SealerOf] the
	// transaction.
	Search(tx db.Tx, sealer func(owner int64) (Sealer, error)) (db.Words, db.Vectors)
}

// search asks for what is of the keys' own kind.
func (o *opening) search() {
	if s, able := o.sealing.(Searching); able {
		o.words, o.vectors = s.Search(o.Tx, func(owner int64) (Sealer, error) { return SealerOf(o, owner) })
	} else {
		o.words, o.vectors = o.Tx.Words(), o.Tx.Vectors()
	}
}

// Words are those of the keys' own kind.
func (o *opening) Words() db.Words {
	if o.words == nil {
		o.search()
	}
	return o.words
}

// Vectors are those of the keys' own kind.
func (o *opening) Vectors() db.Vectors {
	if o.vectors == nil {
		o.search()
	}
	return o.vectors
}

// StoredBytes is how many bytes a value of some bytes has once [SealBytes] has sealed it.
func StoredBytes(plain int) int { return len(mark) + 1 + plain + SealOverhead }

// SealedBytes returns the sealed bytes of what is stored in a column of bytes; false if that is not a sealed value of
// the column.
func SealedBytes(c SealedColumn, stored []byte) ([]byte, bool) {
	if len(stored) <= len(mark) || string(stored[:len(mark)]) != mark || stored[len(mark)] != byte(c) {
		return nil, false
	}
	return stored[len(mark)+1:], true
}
