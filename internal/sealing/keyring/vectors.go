package keyring

import (
	"errors"
	"fmt"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/sealing/sealedrows"
	"github.com/souvenir-ai/souvenir/internal/vectorform"
)

// vectors compares sealed and plain vectors in this program. It leaves out vectors of erased users. An engine's index
// of vectors ([db.Nearer]) has no sealed vectors.
type vectors struct{ in *transactionKeys }

func (v vectors) Compare(in db.Range, vector []byte, profiles []int64, fn func(db.Compared) error) error {
	return vectorform.Compare(v.in.tx, in, vector, profiles, v.sealed(), fn)
}

func (v vectors) CompareOf(in db.Range, vector []byte, profiles, memories []int64,
	fn func(db.Compared) error) error {
	return vectorform.CompareOf(v.in.tx, in, vector, profiles, memories, v.sealed(), fn)
}

func (v vectors) sealed() *vectorform.Sealed {
	open := opening{ring: v.in.ring, purpose: sealedrows.PassageVector.Purpose()}
	return &vectorform.Sealed{Length: sealedrows.StoredBytes,
		Open: func(passage int64, stored []byte) ([]byte, bool, error) {
			sealed, is := sealedrows.SealedBytes(sealedrows.PassageVector, stored)
			if !is {
				return stored, true, nil
			}
			vector, err := open.open(v.in.tx.Context(), sealed)
			switch {
			case errors.Is(err, ErrErased):
				return nil, false, nil
			case err != nil:
				return nil, false, fmt.Errorf("the vector of passage %d: %w", passage, err)
			}
			return vector, true, nil
		}}
}
