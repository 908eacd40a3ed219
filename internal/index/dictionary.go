package index

import "strings"

// dictionary maps each term of any partition to a small number, so that a term's text is held once, even if many
// partitions contain it. Every postings list holds one use of its term; a term without uses is forgotten, and its
// number is reused.
type dictionary struct {
	ids   map[string]uint32
	texts []string // by id; empty when free
	uses  []uint32 // by id
	free  []uint32
	chars int // bytes of all texts
	peak  int // the most terms that ids has held, see thin
}

func (d *dictionary) find(text string) (id uint32, ok bool) {
	id, ok = d.ids[text]
	return id, ok
}

// intern returns the id of a term, new or known. The caller must acquire a use of it, or a new term would stay
// forever.
func (d *dictionary) intern(text string) uint32 {
	if id, ok := d.ids[text]; ok {
		return id
	}
	text = strings.Clone(text) // a term is often cut out of a long text, which it must not keep alive
	var id uint32
	if n := len(d.free); n > 0 {
		id, d.free = d.free[n-1], d.free[:n-1]
		d.texts[id] = text
	} else {
		id = uint32(len(d.texts))
		d.texts = append(d.texts, text)
		d.uses = append(d.uses, 0)
	}
	if d.ids == nil {
		d.ids = make(map[string]uint32)
	}
	d.ids[text] = id
	d.chars += len(text)
	d.peak = max(d.peak, len(d.ids))
	return id
}

func (d *dictionary) acquire(id uint32) { d.uses[id]++ }

func (d *dictionary) release(id uint32) {
	d.uses[id]--
	if d.uses[id] > 0 {
		return
	}
	if len(d.ids) == 1 {
		*d = dictionary{}
		return
	}
	text := d.texts[id]
	delete(d.ids, text)
	d.ids = thin(d.ids, &d.peak)
	d.chars -= len(text)
	d.texts[id] = ""
	d.free = append(d.free, id)
}

func (d *dictionary) bytes() int {
	return mapBytes(d.peak, 20) + 16*cap(d.texts) + 4*cap(d.uses) + 4*cap(d.free) + roundUp(d.chars+4*len(d.ids), 8)
}
