package keyring

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/lru"
	"github.com/souvenir-ai/souvenir/internal/sealing/sealedrows"
)

// Search returns full text with blinded terms, and the comparison of sealed vectors.
func (r *Ring) Search(tx db.Tx, sealer func(owner int64) (sealedrows.Sealer, error)) (db.Words, db.Vectors) {
	in := &transactionKeys{tx: tx, ring: r, sealer: sealer, owners: map[int64]int64{}, blinders: map[int64]*blinder{}}
	return in.words(tx.Words()), vectors{in}
}

// transactionKeys holds the keys of one transaction, by the partitions of their owners. Like the transaction, it is for
// one goroutine at a time.
type transactionKeys struct {
	tx       db.Tx // the engine's transaction
	ring     *Ring
	sealer   func(owner int64) (sealedrows.Sealer, error)
	owners   map[int64]int64 // of partitions: rows of users
	blinders map[int64]*blinder
}

// ownerOf returns the owner of a partition.
func (in *transactionKeys) ownerOf(partition int64) (owner int64, err error) {
	if known, ok := in.owners[partition]; ok {
		return known, nil
	}
	if owner, err = kernel.OwnerOfPartition(in.tx, partition); err == nil {
		in.owners[partition] = owner
	}
	return owner, err
}

// forWriting returns a blinder for terms to store in a partition.
func (in *transactionKeys) forWriting(partition int64) (*blinder, error) {
	owner, err := in.ownerOf(partition)
	if err != nil {
		return nil, err
	}
	if b := in.blinders[owner]; b != nil && b.sure {
		return b, nil
	}
	s, err := in.sealer(owner)
	if err != nil {
		return nil, err
	}
	b := s.(*key).blinder()
	b.sure, in.blinders[owner] = true, b
	return b, nil
}

// forSearch returns a blinder for terms to search in a range of one partition; nil if its owner has no key, and so no
// terms.
func (in *transactionKeys) forSearch(r db.Range) (*blinder, error) {
	partition := r.First >> kernel.PassageBits
	if partition != r.Last>>kernel.PassageBits {
		return nil, fmt.Errorf("the range %d to %d is of several partitions, whose owners have different keys", r.First,
			r.Last)
	}
	owner, err := in.ownerOf(partition)
	if errors.Is(err, db.ErrNoRows) {
		return nil, nil //nolint:nilnil // nothing is in a partition that does not exist
	}
	if b := in.blinders[owner]; b != nil || err != nil {
		return b, err
	}
	o, err := OwnerOf(in.tx, owner)
	if err != nil {
		return nil, err
	}
	k, err := in.ring.known(in.tx.Context(), o)
	if err != nil || k == nil {
		return nil, err
	}
	in.blinders[owner] = k.blinder()
	return in.blinders[owner], nil
}

// known returns the key of an owner, nil if there is none. The key may have been erased a short time ago.
func (r *Ring) known(ctx context.Context, o Owner) (*key, error) {
	owner := ownerHash(r.hash(o))
	if k, ok := lru.Get[*key](&r.owners, owner); ok && r.now().Sub(k.looked) < fresh {
		return k, nil
	}
	k, err := r.there(ctx, owner[:])
	if err == nil && k != nil {
		r.owners.Put(owner, k, keyBytes, cached)
	}
	return k, err
}

// opening opens many values of one purpose, most of them under one key, for one goroutine at a time.
type opening struct {
	ring    *Ring
	purpose string
	key     *key
	bound   []byte
	plain   []byte
}

// open opens a value as [Ring.Open] does. The result is valid until the next call.
func (o *opening) open(ctx context.Context, sealed []byte) ([]byte, error) {
	if len(sealed) < overhead || sealed[0] != form {
		return nil, ErrSealed
	}
	if o.key == nil || !bytes.Equal(o.key.id[:], sealed[1:head]) {
		k, err := o.ring.find(ctx, ID(sealed[1:head]))
		if err != nil {
			return nil, err
		}
		o.key, o.bound = k, boundTo(o.purpose, sealed)
	}
	plain, err := o.key.aead.Open(o.plain[:0], sealed[head:text], sealed[text:], o.bound)
	if err != nil {
		return nil, ErrSealed
	}
	o.plain = plain
	return plain, nil
}
