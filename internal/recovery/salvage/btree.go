package salvage

import (
	"encoding/binary"
	"math"
)

// Kinds of b-tree pages (section 1.6 of the format).
const (
	indexInterior = 0x02
	tableInterior = 0x05
	indexLeaf     = 0x0a
	tableLeaf     = 0x0d
)

// Row is one record: of a table with or without row ids, or of an index.
type Row struct {
	Page   uint32
	ID     int64 // the row id; 0 in an index
	Values []any // nil, int64, float64, string or []byte
	Cut    bool  // its end could not be read: values are missing, and the last may be shorter
}

// tree is a decoded page of a b-tree.
type tree struct {
	data  []byte
	kind  byte
	cells []int  // offsets of the cells
	right uint32 // the last child of an interior page
	sound bool   // the header and the list of cells are consistent
}

// tree decodes a page; not ok if it is not a b-tree page.
func (s *File) tree(n uint32) (t tree, ok bool) {
	data, ok := s.page(n)
	if !ok {
		return t, false
	}
	head := 0
	if n == 1 {
		head = headerSize
	}
	t = tree{data: data, kind: data[head], sound: true}
	list := head + 8
	switch t.kind {
	case tableLeaf, indexLeaf:
	case tableInterior, indexInterior:
		t.right = binary.BigEndian.Uint32(data[head+8:])
		list += 4
	default:
		return t, false
	}
	count := int(binary.BigEndian.Uint16(data[head+3:]))
	if list+2*count > len(data) {
		count, t.sound = (len(data)-list)/2, false
	}
	for i := range count {
		at := int(binary.BigEndian.Uint16(data[list+2*i:]))
		if at < list+2*count || at >= len(data) {
			t.sound = false
			continue
		}
		t.cells = append(t.cells, at)
	}
	return t, true
}

// Found collects the pages and problems found while reading a tree.
type Found struct {
	Pages    map[uint32]bool // of the tree, and the overflow pages of its rows
	Problems int             // pages and rows that could not be read
}

// Walk calls fn for the rows of the tree whose first page is root, as far as its pages can be followed.
func (s *File) Walk(root uint32, found *Found, fn func(Row) error) error {
	return s.walk(root, 0, found, fn)
}

func (s *File) walk(n uint32, depth int, found *Found, fn func(Row) error) error {
	if n == 0 || n > s.pages || found.Pages[n] || depth > 40 {
		found.Problems++
		return nil
	}
	t, ok := s.tree(n)
	if !ok {
		found.Problems++
		return nil
	}
	found.Pages[n] = true
	if !t.sound {
		found.Problems++
	}
	if t.kind == tableInterior || t.kind == indexInterior {
		for _, at := range t.cells {
			if at+4 > len(t.data) {
				found.Problems++
				continue
			}
			if err := s.walk(binary.BigEndian.Uint32(t.data[at:]), depth+1, found, fn); err != nil {
				return err
			}
		}
		if err := s.walk(t.right, depth+1, found, fn); err != nil {
			return err
		}
		if t.kind == tableInterior {
			return nil
		}
	}
	return s.rows(n, t, found, fn)
}

// Leaf reads the rows of a page that no tree references; inTable reports its kind. It is not ok if the page has no
// rows, or is apparently not a leaf.
func (s *File) Leaf(n uint32, found *Found) (rows []Row, inTable, ok bool) {
	t, ok := s.tree(n)
	if !ok || t.kind == tableInterior || len(t.cells) == 0 {
		return nil, false, false
	}
	err := s.rows(n, t, found, func(r Row) error { rows = append(rows, r); return nil })
	return rows, t.kind == tableLeaf, err == nil && len(rows) > 0
}

// rows reads the rows of one page.
func (s *File) rows(n uint32, t tree, found *Found, fn func(Row) error) error {
	for _, at := range t.cells {
		row, ok := s.row(t, at, found)
		if !ok {
			found.Problems++
			continue
		}
		row.Page = n
		if err := fn(row); err != nil {
			return err
		}
	}
	return nil
}

// row reads the row whose cell begins at a place of a page.
func (s *File) row(t tree, at int, found *Found) (r Row, ok bool) {
	rest := t.data[at:]
	if t.kind == indexInterior {
		if len(rest) < 4 {
			return r, false
		}
		rest = rest[4:]
	}
	size, n := varint(rest)
	if n == 0 || size < 1 || size > 1<<31 {
		return r, false
	}
	rest = rest[n:]
	most := (s.usable-12)*64/255 - 23
	if t.kind == tableLeaf {
		if r.ID, n = varint(rest); n == 0 {
			return r, false
		}
		rest = rest[n:]
		most = s.usable - 35
	}
	payload, whole, ok := s.payload(rest, int(size), most, found)
	if !ok {
		return r, false
	}
	r.Values, r.Cut, ok = record(payload, whole)
	return r, ok
}

// payload assembles a row's content: from its cell, and from its overflow pages.
func (s *File) payload(rest []byte, size, most int, found *Found) (payload []byte, whole, ok bool) {
	if size <= most {
		if size > len(rest) {
			return nil, false, false
		}
		return rest[:size], true, true
	}
	least := (s.usable-12)*32/255 - 23
	local := least + (size-least)%(s.usable-4)
	if local > most {
		local = least
	}
	if local+4 > len(rest) || int64(size) > int64(s.pages)*int64(s.usable) {
		return nil, false, false
	}
	payload = append(make([]byte, 0, min(size, 1<<20)), rest[:local]...)
	seen := map[uint32]bool{}
	for next := binary.BigEndian.Uint32(rest[local:]); len(payload) < size; {
		page, ok := s.page(next)
		if !ok || seen[next] || next > s.pages {
			return payload, false, true
		}
		link := binary.BigEndian.Uint32(page)
		taken := min(size-len(payload), len(page)-4)
		if last := taken == size-len(payload); last != (link == 0) || link > s.pages {
			return payload, false, true // the page has been reused
		}
		seen[next], found.Pages[next] = true, true
		payload = append(payload, page[4:4+taken]...)
		next = link
	}
	return payload, true, true
}

// record decodes a record (section 2.1 of the format).
func record(payload []byte, whole bool) (values []any, cut, ok bool) {
	head, n := varint(payload)
	if n == 0 || head < int64(n) || head > int64(len(payload)) {
		return nil, false, false
	}
	kinds, body := payload[n:head], payload[head:]
	for len(kinds) > 0 {
		kind, n := varint(kinds)
		if n == 0 || kind < 0 || kind == 10 || kind == 11 {
			return nil, false, false
		}
		kinds = kinds[n:]
		length := kindLength(kind)
		if length > len(body) {
			if whole {
				return nil, false, false
			}
			if kind >= 13 && len(body) > 0 {
				values = append(values, valueOf(kind, body))
			}
			return values, true, len(values) > 0
		}
		values = append(values, valueOf(kind, body[:length]))
		body = body[length:]
	}
	return values, !whole, len(values) > 0 && (!whole || len(body) == 0)
}

func kindLength(kind int64) int {
	switch {
	case kind >= 12:
		return int(min((kind-12)/2, math.MaxInt32))
	case kind == 5:
		return 6
	case kind == 6 || kind == 7:
		return 8
	case kind >= 8:
		return 0
	}
	return int(kind)
}

func valueOf(kind int64, b []byte) any {
	switch {
	case kind == 0:
		return nil
	case kind == 7:
		return math.Float64frombits(binary.BigEndian.Uint64(b))
	case kind == 8 || kind == 9:
		return kind - 8
	case kind >= 12 && kind%2 == 0:
		return append([]byte{}, b...)
	case kind >= 13:
		return string(b)
	}
	v := int64(int8(b[0]))
	for _, x := range b[1:] {
		v = v<<8 | int64(x)
	}
	return v
}

// varint decodes a number in SQLite's format; n is 0 if there is none.
func varint(b []byte) (v int64, n int) {
	var u uint64
	for n = range min(9, len(b)) {
		if n == 8 {
			return int64(u<<8 | uint64(b[n])), 9
		}
		u = u<<7 | uint64(b[n]&0x7f)
		if b[n] < 0x80 {
			return int64(u), n + 1
		}
	}
	return 0, 0
}
