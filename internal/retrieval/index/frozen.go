package index

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"
)

// frozen holds the postings of the passages in a range of slots, in a form that does not change and takes about a fifth
// of the bytes of a recent one. Segments contain it, too, and are searched as they were read: a list is decoded when a
// query has its term. Bytes that are not postings, even malicious ones, yield postings of its range or none.
//
// The terms are sorted and in groups. Each is stored relative to the one before it in its group, with the number of
// passages that contain it and the number of bytes of its postings. A posting is the number of slots between it and the
// one before it, times two, plus 1 if the frequency is 1; else the frequency follows.
type frozen struct {
	base, slots uint32 // the first slot of the range, and how many there are
	groups      []byte // for each group of terms, the key of the first one, and where it begins in terms and in lists
	terms       []byte
	lists       []byte
}

const (
	termsPerGroup = 16
	groupBytes    = 3 * 4
	frozenBytes   = 80 // of the struct
)

func (f *frozen) bytes() int { return frozenBytes + cap(f.groups) + cap(f.terms) + cap(f.lists) }

// group returns where a group begins in terms and in lists; the one after the last one begins at their ends.
func (f *frozen) group(i int) (terms, lists int) {
	if groupBytes*i >= len(f.groups) {
		return len(f.terms), len(f.lists)
	}
	terms = int(binary.LittleEndian.Uint32(f.groups[groupBytes*i+4:]))
	lists = int(binary.LittleEndian.Uint32(f.groups[groupBytes*i+8:]))
	return min(terms, len(f.terms)), min(lists, len(f.lists))
}

// cursor returns a cursor before the first term of a group.
func (f *frozen) cursor(group int) termCursor {
	terms, lists := f.group(group)
	return termCursor{frozen: f, reader: segmentReader{data: f.terms[terms:]}, left: f.lists[lists:]}
}

// keyOf returns the first bytes of a term as a number, which is enough to tell most terms apart.
func keyOf(term string) uint32 {
	var first [4]byte
	copy(first[:], term)
	return binary.BigEndian.Uint32(first[:])
}

// beginsAbove reports whether the first term of a group is above a term with a key.
func (f *frozen) beginsAbove(group int, term string, key uint32) bool {
	if first := binary.LittleEndian.Uint32(f.groups[groupBytes*group:]); first != key {
		return first > key
	}
	from, _ := f.group(group)
	first := segmentReader{data: f.terms[from:]}
	first.number(0)
	return string(first.take(first.number(len(first.data)))) > term
}

// find returns the postings of a term.
func (f *frozen) find(term string) (list frozenList, found bool) {
	low, high, key := 0, len(f.groups)/groupBytes, keyOf(term) // low: the first group that begins above the term
	for low < high {
		if middle := (low + high) / 2; f.beginsAbove(middle, term, key) {
			high = middle
		} else {
			low = middle + 1
		}
	}
	if low == 0 {
		return frozenList{}, false
	}
	terms, at := f.group(low - 1)
	r := segmentReader{data: f.terms[terms:]}
	known := 0 // length of the prefix that the last term, which is below, shares with the wanted one
	for range termsPerGroup {
		shared := r.number(mostShared)
		rest := r.take(r.number(len(r.data)))
		passages, size := r.number(int(f.slots)), r.number(len(f.lists)-at)
		if r.failed {
			break
		}
		if shared <= known { // else it continues like the last one, which is below
			wanted := term[shared:]
			switch order := cmp.Compare(string(rest), wanted); {
			case order == 0:
				return frozenList{frozen: f, data: f.lists[at : at+size], passages: passages}, true
			case order > 0:
				return frozenList{}, false
			}
			for known = shared; known-shared < len(rest) && rest[known-shared] == term[known]; {
				known++
			}
		}
		at += size
	}
	return frozenList{}, false
}

// frozenList is the postings of a term.
type frozenList struct {
	*frozen
	data     []byte
	passages int // that contain the term
	next     uint32
}

// read decodes the next postings, as many as there is room for, and returns how many there were.
func (l *frozenList) read(to []posting) int {
	n, data, next := 0, l.data, l.next
	for n < len(to) && len(data) > 0 {
		coded, size := uint64(data[0]), 1
		if coded >= 0x80 {
			coded, size = binary.Uvarint(data)
		}
		slot, frequency := uint64(next)+coded>>1, uint64(1)
		if size > 0 && coded&1 == 0 {
			var more int
			if frequency, more = binary.Uvarint(data[size:]); more <= 0 {
				size = 0
			} else {
				size += more
			}
		}
		if size <= 0 || slot >= uint64(l.slots) {
			data = nil
			break
		}
		to[n] = posting{l.base + uint32(slot), uint32(frequency)}
		data, next = data[size:], uint32(slot)+1
		n++
	}
	l.data, l.next = data, next
	return n
}

// termCursor visits the terms of frozen postings in their order.
type termCursor struct {
	*frozen
	reader segmentReader
	left   []byte // of lists
	term   []byte // the one visited, until the next
	list   frozenList
}

// next visits the next term. It reports false after the last one.
func (c *termCursor) next() bool {
	r := &c.reader
	if len(r.data) == 0 {
		return false
	}
	c.term = r.text(c.term[:0])
	passages := r.number(int(c.slots))
	size := r.number(len(c.left))
	if r.failed {
		return false
	}
	c.list = frozenList{frozen: c.frozen, data: c.left[:size], passages: passages}
	c.left = c.left[size:]
	return true
}

// freezer writes frozen postings.
type freezer struct {
	frozen
	text   segmentWriter // terms
	list   segmentWriter // lists
	number int           // of terms
}

// add adds the next term, with its postings, if it has any.
func (f *freezer) add(term string, list []posting) {
	if len(list) == 0 {
		return
	}
	if f.number%termsPerGroup == 0 {
		f.groups = binary.LittleEndian.AppendUint32(f.groups, keyOf(term))
		f.groups = binary.LittleEndian.AppendUint32(f.groups, uint32(len(f.text.data)))
		f.groups = binary.LittleEndian.AppendUint32(f.groups, uint32(len(f.list.data)))
		f.text.before = ""
	}
	f.number++
	begin, next := len(f.list.data), f.base
	for _, e := range list {
		once := 0
		if e.frequency == 1 { // as most terms are in a passage
			once = 1
		}
		f.list.number(int(e.slot-next)<<1 | once)
		if once == 0 {
			f.list.number(int(e.frequency))
		}
		next = e.slot + 1
	}
	f.text.text(term)
	f.text.number(len(list))
	f.text.number(len(f.list.data) - begin)
}

// freeze returns the postings of passages in the slots from base up to end: of some that are frozen, and of recent
// ones. Moved says where the passages are now, or that they are gone; nil = all are where they were.
func freeze(base, end uint32, some []frozen, r *recent, moved []uint32) frozen {
	f := freezer{frozen: frozen{base: base, slots: end - base}}
	cursors := make([]termCursor, 0, len(some))
	for i := range some {
		if c := some[i].cursor(0); c.next() {
			cursors = append(cursors, c)
		}
	}
	var terms []string
	for term := range r.lists {
		terms = append(terms, term)
	}
	slices.Sort(terms)
	var list []posting
	for len(cursors) > 0 || len(terms) > 0 {
		term := first(cursors, terms)
		list = list[:0]
		for i := 0; i < len(cursors); i++ {
			if string(cursors[i].term) != term {
				continue
			}
			list = appendList(list, cursors[i].list)
			if !cursors[i].next() {
				cursors = slices.Delete(cursors, i, i+1)
				i--
			}
		}
		if len(terms) > 0 && terms[0] == term {
			list, terms = append(list, r.list(term)...), terms[1:]
		}
		f.add(term, relocated(list, moved))
	}
	f.terms, f.lists = slices.Clip(f.text.data), slices.Clip(f.list.data)
	f.groups = slices.Clip(f.groups)
	return f.frozen
}

// first returns the first of the terms that cursors visit and of some others, which are sorted.
func first(cursors []termCursor, others []string) string {
	var least []byte
	for i := range cursors {
		if i == 0 || bytes.Compare(cursors[i].term, least) < 0 {
			least = cursors[i].term
		}
	}
	if len(others) > 0 && (len(cursors) == 0 || others[0] < string(least)) {
		return others[0]
	}
	return string(least)
}

// appendList decodes a list.
func appendList(to []posting, list frozenList) []posting {
	for {
		to = slices.Grow(to, 64)
		n := list.read(to[len(to):cap(to)])
		if n == 0 {
			return to
		}
		to = to[:len(to)+n]
	}
}

// relocated returns postings where their passages are now.
func relocated(list []posting, moved []uint32) []posting {
	if moved == nil {
		return list
	}
	kept := list[:0]
	for _, e := range list {
		if to := moved[e.slot]; to != gone {
			kept = append(kept, posting{to, e.frequency})
		}
	}
	return kept
}
