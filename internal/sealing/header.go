package sealing

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"golang.org/x/crypto/chacha20poly1305"
)

// A sealed file begins with a header of 4,096 bytes: the magic, and two slots with the wrapped key of the file. A new
// master key is written to one slot after the other, so that one of them is always whole. Of two whole slots, the one
// with the higher generation counts.
const (
	HeaderSize = 4096

	magic    = "Souvenir sealed\n"
	slotAt   = 512 // of the first
	slotSize = 512
	slots    = 2
	idSize   = 8
	fileSize = 16 // of a file's id

	// A slot: generation, id of the file, id of the master key, nonce, wrapped key, checksum.
	masterAt  = 8 + fileSize
	nonceAt   = masterAt + idSize
	wrappedAt = nonceAt + chacha20poly1305.NonceSizeX
	checkAt   = wrappedAt + KeySize + chacha20poly1305.Overhead
	slotUsed  = checkAt + sha256.Size
)

// IsSealed reports whether a file that begins with these bytes is sealed. A damaged magic does not matter if a copy of
// its key is whole.
func IsSealed(start []byte) bool {
	return bytes.HasPrefix(start, []byte(magic)) || newest(start, nil) != nil
}

// Ring is a master key, and the keys of files that it has opened. It keeps these, so that a file stays open when
// another process rewraps its key. It is not safe for concurrent use.
type Ring struct {
	master MasterKey
	files  map[[fileSize]byte]*File
}

// NewRing returns a ring with a master key. With the zero master key it opens nothing.
func NewRing(master MasterKey) *Ring { return &Ring{master: master, files: map[[fileSize]byte]*File{}} }

// Master returns the master key.
func (r *Ring) Master() MasterKey { return r.master }

// NewFile makes the key of a file without a header, which cannot be opened later.
func NewFile() (*File, error) {
	f := &File{generation: 1}
	_, _ = rand.Read(f.id[:]) // neither fails
	_, _ = rand.Read(f.key[:])
	return f, f.start()
}

// New makes the key of a new file, and the file's header.
func (r *Ring) New() (header []byte, f *File, err error) {
	if r.master.IsZero() {
		return nil, nil, ErrKeyMissing
	}
	if f, err = NewFile(); err != nil {
		return nil, nil, err
	}
	header = make([]byte, HeaderSize)
	copy(header, magic)
	slot, err := f.slot(r.master, f.generation)
	if err != nil {
		return nil, nil, err
	}
	for i := range slots {
		copy(header[slotAt+i*slotSize:], slot)
	}
	r.files[f.id] = f
	return header, f, nil
}

// Open returns the key of the file with a header.
func (r *Ring) Open(header []byte) (*File, error) {
	if !IsSealed(header) {
		return nil, ErrNotSealed
	}
	var given []byte
	if !r.master.IsZero() {
		id := r.master.id()
		given = id[:]
	}
	best := newest(header, given) // after an unfinished change, either key is valid
	if best == nil {
		best = newest(header, nil)
	}
	if best == nil {
		return nil, fmt.Errorf("%w: both copies of its key are damaged", errHeader)
	}
	id := [fileSize]byte(best[8:masterAt])
	if known := r.files[id]; known != nil {
		return known, nil
	}
	if r.master.IsZero() {
		return nil, fmt.Errorf("%w; it needs the key %x", ErrKeyMissing, best[masterAt:nonceAt])
	}
	f, err := unwrap(best, r.master)
	if err != nil {
		return nil, err
	}
	r.files[f.id] = f
	return f, nil
}

// errHeader is the class of damaged headers.
var errHeader = fmt.Errorf("the header of the encrypted file is damaged")

// IsDamaged reports whether an error of [Ring.Open] means that the header is damaged.
func IsDamaged(err error) bool {
	return err != nil && bytes.HasPrefix([]byte(err.Error()), []byte(errHeader.Error()))
}

// newest returns the whole slot with the highest generation, nil if there is none. If the id of a master key is given,
// only its slots count.
func newest(header, master []byte) (best []byte) {
	for i := range slots {
		at := slotAt + i*slotSize
		if len(header) < at+slotUsed {
			break
		}
		slot := header[at : at+slotUsed]
		if sum := sha256.Sum256(slot[:checkAt]); !bytes.Equal(sum[:], slot[checkAt:]) {
			continue
		}
		if master != nil && !bytes.Equal(slot[masterAt:nonceAt], master) {
			continue
		}
		if best == nil || binary.BigEndian.Uint64(slot) > binary.BigEndian.Uint64(best) {
			best = slot
		}
	}
	return best
}

// slot wraps the key of the file.
func (f *File) slot(master MasterKey, generation uint64) ([]byte, error) {
	aead, err := chacha20poly1305.NewX(master.key[:])
	if err != nil {
		return nil, err
	}
	slot := make([]byte, slotUsed)
	binary.BigEndian.PutUint64(slot, generation)
	copy(slot[8:], f.id[:])
	id := master.id()
	copy(slot[masterAt:], id[:])
	_, _ = rand.Read(slot[nonceAt:wrappedAt])
	aead.Seal(slot[wrappedAt:wrappedAt], slot[nonceAt:wrappedAt], f.key[:], append([]byte(magic), slot[:nonceAt]...))
	sum := sha256.Sum256(slot[:checkAt])
	copy(slot[checkAt:], sum[:])
	return slot, nil
}

func unwrap(slot []byte, master MasterKey) (*File, error) {
	if id := master.id(); !bytes.Equal(id[:], slot[masterAt:nonceAt]) {
		return nil, fmt.Errorf("%w: it needs the key %x, but %x was given", ErrKeyWrong, slot[masterAt:nonceAt], id)
	}
	aead, err := chacha20poly1305.NewX(master.key[:])
	if err != nil {
		return nil, err
	}
	f := &File{generation: binary.BigEndian.Uint64(slot), id: [fileSize]byte(slot[8:masterAt])}
	_, err = aead.Open(f.key[:0], slot[nonceAt:wrappedAt], slot[wrappedAt:checkAt],
		append([]byte(magic), slot[:nonceAt]...))
	if err != nil {
		return nil, fmt.Errorf("%w: its key cannot be decrypted", errHeader)
	}
	return f, f.start()
}

// Slot is a part of the header and its place.
type Slot struct {
	At   int64
	Data []byte
}

// Rewrap returns the slots that wrap a file's key with another master key, given its header. They must be written in
// order, each on disk before the next.
func (r *Ring) Rewrap(header []byte, to MasterKey) ([]Slot, error) {
	best := newest(header, nil)
	if !IsSealed(header) || best == nil {
		return nil, fmt.Errorf("%w: both copies of its key are damaged", errHeader)
	}
	f, err := r.Open(header)
	if err != nil {
		return nil, err
	}
	slot, err := f.slot(to, binary.BigEndian.Uint64(best)+1)
	if err != nil {
		return nil, err
	}
	first := 0
	if bytes.Equal(header[slotAt:slotAt+slotUsed], best) { // it is replaced last
		first = 1
	}
	var all []Slot
	for _, i := range []int{first, 1 - first} {
		all = append(all, Slot{At: int64(slotAt + i*slotSize), Data: slot})
	}
	return all, nil
}

// Taken makes the ring use another master key from now on.
func (r *Ring) Taken(master MasterKey) { r.master = master }

// Take is Taken for a master key with which another process may have rewrapped the file with this header. If the key
// does not open it, Take returns an error and changes nothing.
func (r *Ring) Take(header []byte, master MasterKey) error {
	best := newest(header, nil)
	if !IsSealed(header) || best == nil {
		return fmt.Errorf("%w: both copies of its key are damaged", errHeader)
	}
	if _, err := unwrap(best, master); err != nil {
		return err
	}
	r.master = master
	return nil
}

// Status is the part of a header that is readable without a key.
type Status struct {
	Sealed     bool
	MasterKey  string // the id of the master key
	Generation uint64 // how many master keys the file has had
}

// StatusOf reads a header.
func StatusOf(header []byte) (s Status, err error) {
	if !IsSealed(header) {
		return s, nil
	}
	s.Sealed = true
	best := newest(header, nil)
	if best == nil {
		return s, fmt.Errorf("%w: both copies of its key are damaged", errHeader)
	}
	s.MasterKey, s.Generation = fmt.Sprintf("%x", best[masterAt:nonceAt]), binary.BigEndian.Uint64(best)
	return s, nil
}
