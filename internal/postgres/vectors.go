package postgres

import (
	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/vectorform"
)

// Vectors compares vectors in this program, as they come from the table of passages.
func (tx *Tx) Vectors() db.Vectors { return vectors{tx} }

type vectors struct{ *Tx }

func (v vectors) Compare(in db.Range, vector []byte, profiles []int64, fn func(db.Compared) error) error {
	return vectorform.Compare(v.Tx, in, vector, profiles, nil, fn)
}

func (v vectors) CompareOf(in db.Range, vector []byte, profiles, memories []int64,
	fn func(db.Compared) error) error {
	return vectorform.CompareOf(v.Tx, in, vector, profiles, memories, nil, fn)
}
