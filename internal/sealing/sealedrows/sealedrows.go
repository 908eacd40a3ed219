// Package sealedrows opens sealed values when rows are scanned, and seals written values, in a store with user keys. It
// is a layer between all statements and the engine.
package sealedrows

import (
	"bytes"
	"context"
	"database/sql/driver"
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/souvenir-ai/souvenir/internal/db"
)

// DB is an engine in whose transactions sealed values are opened.
type DB struct {
	db.DB
	Sealing Sealing
}

// Read runs fn in a Read of the engine.
func (d *DB) Read(ctx context.Context, fn func(db.Tx) error) error {
	return d.DB.Read(ctx, d.opened(fn))
}

// Write runs fn in a Write of the engine.
func (d *DB) Write(ctx context.Context, fn func(db.Tx) error) error {
	return d.DB.Write(ctx, d.opened(fn))
}

// Upkeep returns the engine's maintenance.
func (d *DB) Upkeep() db.Upkeep {
	u := d.DB.Upkeep()
	if scratch := u.Scratch; scratch != nil {
		u.Scratch = func(ctx context.Context, fn func(db.Tx) error) error { return scratch(ctx, d.opened(fn)) }
	}
	return u
}

// opened returns fn for a transaction of the engine.
func (d *DB) opened(fn func(db.Tx) error) func(db.Tx) error {
	return func(tx db.Tx) error {
		return fn(&opening{Tx: tx, sealing: d.Sealing, sealers: map[int64]Sealer{}, known: map[int64]Sealer{}})
	}
}

// SealedColumn is a column whose values a store with user keys seals. The letter is in each sealed value, which
// opens as a value of that column only.
type SealedColumn byte

// The columns.
const (
	MemoryContent      SealedColumn = 'c'
	MemoryMetadata     SealedColumn = 'm'
	RevisionContent    SealedColumn = 'r'
	RevisionAttributes SealedColumn = 'a'
	TrashTitle         SealedColumn = 't'
	TrashData          SealedColumn = 'd'
	TrashItemData      SealedColumn = 'i'
	PassageVector      SealedColumn = 'v'
	SegmentData        SealedColumn = 's'

	FileName              SealedColumn = 'f'
	FileType              SealedColumn = 'y'
	FileDescription       SealedColumn = 'e'
	FileCategory          SealedColumn = 'q'
	FilePlaces            SealedColumn = 'p'
	FileInfo              SealedColumn = 'b'
	CollectionDescription SealedColumn = 'o'
	PreferenceValue       SealedColumn = 'u'

	CollectionName SealedColumn = 'n' // and in the trash
	ProjectName    SealedColumn = 'j' // and former names, and in the trash
	ProjectNameKey SealedColumn = 'k' // and of former names
	MemoryKey      SealedColumn = 'x'
	Tag            SealedColumn = 'g' // of a memory or a file
	TurnSpeaker    SealedColumn = 'z'
)

// columns has, for each column, the purpose of sealing, the value read if its key was erased with its user, and whether
// equal values of an owner are sealed to equal bytes for lookups.
var columns = map[SealedColumn]struct {
	purpose, erased string
	same            bool
	folded          bool // looked up without regard to case, by a keyed hash before the value
}{
	MemoryContent:      {purpose: "memory.content"},
	MemoryMetadata:     {purpose: "memory.metadata", erased: "{}"},
	RevisionContent:    {purpose: "memory_revision.content"},
	RevisionAttributes: {purpose: "memory_revision.attributes", erased: "{}"},
	TrashTitle:         {purpose: "trash.title"},
	TrashData:          {purpose: "trash.data", erased: "{}"},
	TrashItemData:      {purpose: "trash_item.data", erased: "{}"},
	PassageVector:      {purpose: "passage.vector"},
	SegmentData:        {purpose: "segment.data"},

	FileName:              {purpose: "file.filename", erased: erasedName},
	FileType:              {purpose: "file.mime_type", erased: "application/octet-stream"},
	FileDescription:       {purpose: "file.description"},
	FileCategory:          {purpose: "file.category"},
	FilePlaces:            {purpose: "file.text_places"},
	FileInfo:              {purpose: "file.text_info"},
	CollectionDescription: {purpose: "collection.description"},
	PreferenceValue:       {purpose: "preference.value", erased: "{}"},

	CollectionName: {purpose: "collection.name", erased: erasedName, same: true},
	ProjectName:    {purpose: "project.name", erased: erasedName, same: true},
	ProjectNameKey: {purpose: "project.name_key", erased: erasedName, same: true},
	MemoryKey:      {purpose: "memory.key", same: true},
	Tag:            {purpose: "tag", same: true, folded: true},
	TurnSpeaker:    {purpose: "turn.speaker", same: true},
}

// erasedName is read in place of a name that cannot be empty.
const erasedName = "erased"

// ErrErased means that the key of a value was erased with its user. Rows have an empty value instead, so that lists
// still work; check finds them.
var ErrErased = errors.New("the key was erased with its user")

// mark returns the prefix of the column's values.
func (c SealedColumn) mark() string { return mark + string([]byte{byte(c)}) }

// Purpose returns the purpose of the column's sealed values, "" if there is no such column.
func (c SealedColumn) Purpose() string { return columns[c].purpose }

// ErrUnknownColumn means that a value is sealed as one of a column that this program does not know.
var ErrUnknownColumn = errors.New("a sealed value of an unknown column")

// Sealing has the user keys. A [DB] with it opens sealed values in one place, when rows are scanned, so that other code
// need not know about them. [SealText] and [SealBytes] seal values to write.
type Sealing interface {
	// Of returns the sealer of an owner, given as a row of users. It is kept as long as the transaction.
	Of(tx db.Tx, owner int64) (Sealer, error)
	// Known is Of for comparisons with stored values: nil if the owner has no key, and so no values.
	Known(tx db.Tx, owner int64) (Sealer, error)
	// Open opens a value that a Sealer has sealed for a purpose.
	Open(ctx context.Context, purpose string, sealed []byte) ([]byte, error)
}

// Sealer seals the values of one owner.
type Sealer interface {
	// Seal seals a value, which opens only for the same purpose. The result is [SealOverhead] bytes longer.
	Seal(purpose string, plain []byte) []byte
	// SealSame is Seal with the same result for equal values of the owner and purpose.
	SealSame(purpose string, plain []byte) []byte
	// Blind returns a keyed hash of a value, of 16 bytes: equal for equal values of the owner and purpose.
	Blind(purpose string, value []byte) []byte
}

// mark begins a value, a text or bytes, that is not stored as it is. Either the letter of its column and the sealed
// bytes follow, in a text as base64, or plainly and a value that itself begins with the mark. So every value can be
// read back, and a copy of a sealed value, stored as a text, is not opened. Names, tags and other lines cannot begin
// with the mark, since they have no control characters.
const (
	mark    = "\x01sealed\x02"
	plainly = "="
)

// Sealed is an argument of a statement: a sealed value.
type Sealed struct{ stored any }

// AsStored returns the argument for a value that is already in stored form.
func AsStored(value string) Sealed { return Sealed{value} }

// Value implements [driver.Valuer].
func (s Sealed) Value() (driver.Value, error) { return s.stored, nil }

// SealText returns the argument for a value of a column of texts that belongs to an owner, given as a row of users:
// sealed, or the value itself in a store without user keys. An empty description, name or other short text is stored as
// it is.
func SealText(tx db.Tx, owner int64, c SealedColumn, plain string) (any, error) {
	if !Seals(tx) || plain == "" && c.emptyStays() {
		return plain, nil // before plain is copied
	}
	s, err := sealerFor(tx, owner, c)
	if err != nil {
		return nil, err
	}
	return Sealed{c.text(s, plain)}, nil
}

// text returns the form of a sealed value in a column of texts.
func (c SealedColumn) text(s Sealer, plain string) string {
	sealed := c.seal(s, []byte(plain))
	size := base64.RawStdEncoding.EncodedLen(len(sealed)) + foldedSize
	text := append(make([]byte, 0, len(mark)+1+size), c.mark()...)
	if columns[c].folded {
		text = base64.RawStdEncoding.AppendEncode(text, s.Blind(c.Purpose()+" folded", []byte(db.Lower(plain))))
	}
	return string(base64.RawStdEncoding.AppendEncode(text, sealed))
}

// SealBytes is [SealText] for a column of bytes. Nil, which is NULL, stays nil.
func SealBytes(tx db.Tx, owner int64, c SealedColumn, plain []byte) (any, error) {
	switch {
	case plain == nil:
		return nil, nil
	case !Seals(tx):
		return plain, nil
	}
	s, err := sealerFor(tx, owner, c)
	if err != nil {
		return nil, err
	}
	sealed := c.seal(s, plain)
	return Sealed{append(append(make([]byte, 0, len(mark)+1+len(sealed)), c.mark()...), sealed...)}, nil
}

// IsSealed reports whether a stored text is the sealed value of a known column, in base64.
func IsSealed(stored string) bool {
	rest, is := strings.CutPrefix(stored, mark)
	if !is || rest == "" || SealedColumn(rest[0]).Purpose() == "" {
		return false
	}
	sealed := rest[1:]
	if columns[SealedColumn(rest[0])].folded {
		sealed = sealed[min(foldedSize, len(sealed)):]
	}
	if SealedColumn(rest[0]) == MemoryMetadata {
		sealed, _, _ = strings.Cut(sealed, "\n")
	}
	_, err := base64.RawStdEncoding.DecodeString(sealed)
	return err == nil
}

// SealedLength returns the length in bytes of a text sealed by [SealText].
func SealedLength(bytes int) int {
	return len(mark) + 1 + base64.RawStdEncoding.EncodedLen(bytes+SealOverhead)
}

// SealOverhead is the number of bytes that a [Sealer] adds to a value.
const SealOverhead = 57

// sealerFor returns the sealer for values of a column in a store with user keys.
func sealerFor(tx db.Tx, owner int64, c SealedColumn) (Sealer, error) {
	if c.Purpose() == "" {
		return nil, fmt.Errorf("%w: %q", ErrUnknownColumn, rune(c))
	}
	return SealerOf(tx, owner)
}

// seal seals a value of the column.
func (c SealedColumn) seal(s Sealer, plain []byte) []byte {
	if columns[c].same {
		return s.SealSame(c.Purpose(), plain)
	}
	return s.Seal(c.Purpose(), plain)
}

// Seals reports whether the store of a transaction has user keys, so that values are sealed.
func Seals(tx db.Tx) bool {
	_, is := tx.(*opening)
	return is
}

// SealerOf returns the sealer of an owner, given as a row of users; nil in a store without user keys.
func SealerOf(tx db.Tx, owner int64) (Sealer, error) {
	o, is := tx.(*opening)
	if !is {
		return nil, nil //nolint:nilnil // none
	}
	if known := o.sealers[owner]; known != nil {
		return known, nil
	}
	s, err := o.sealing.Of(o.Tx, owner)
	if err == nil {
		o.sealers[owner] = s
	}
	return s, err
}

// Piece returns [db.Slice], with its arguments, where texts are not sealed. Otherwise it returns the whole text,
// without arguments; [Cut] then takes the part.
func Piece(tx db.Tx, text, start, length string, args ...any) (expression string, bound []any) {
	if Seals(tx) {
		return text, nil
	}
	return db.Slice(text, start, length), args
}

// Cut returns length bytes from byte start on, counted from 0, of a result of [Piece]; nil if it has fewer.
func Cut(tx db.Tx, piece []byte, start, length int) []byte {
	switch {
	case !Seals(tx):
		return piece
	case start < 0 || length < 0 || start+length > len(piece):
		return nil
	}
	return piece[start : start+length]
}

// Characters returns the number of characters to read with substr for the beginning of a text: all of them if it may be
// sealed.
func Characters(tx db.Tx, most int) int {
	if Seals(tx) {
		return math.MaxInt32
	}
	return most
}

// opening is a Tx that opens sealed values.
type opening struct {
	db.Tx
	sealing Sealing
	sealers map[int64]Sealer
	known   map[int64]Sealer // nil: has no key
	words   db.Words         // nil: not asked for yet
	vectors db.Vectors       // likewise
}

// Wrapped returns the transaction of the engine, which scans values as they are stored.
func (o *opening) Wrapped() db.Tx { return o.Tx }

// asStored returns arguments as the engine stores them: values that begin with the mark are stored plainly.
func asStored(args []any) []any {
	var own []any
	for i, a := range args {
		stored, other := plain(a)
		if !other {
			continue
		}
		if own == nil {
			own = append(own, args...)
		}
		own[i] = stored
	}
	if own == nil {
		return args
	}
	return own
}

// plain returns the stored form of an argument, if it is different.
func plain(a any) (stored any, other bool) {
	switch v := a.(type) {
	case nil, int64, int, bool, float64, Sealed:
		return nil, false
	case string:
		return mark + plainly + v, strings.HasPrefix(v, mark)
	}
	value, _, err := db.ToValue(a)
	if err != nil {
		return nil, false // the engine reports it
	}
	switch v := value.(type) {
	case string:
		return mark + plainly + v, strings.HasPrefix(v, mark)
	case []byte:
		if !bytes.HasPrefix(v, []byte(mark)) {
			return nil, false
		}
		return append([]byte(mark+plainly), v...), true
	}
	return nil, false
}

// Queue runs a statement whose result does not matter.
func (o *opening) Queue(query string, args ...any) error {
	return db.Queue(o.Tx, query, asStored(args)...)
}

func (o *opening) Exec(query string, args ...any) (db.Result, error) {
	return o.Tx.Exec(query, asStored(args)...)
}

func (o *opening) Query(query string, args ...any) (db.Rows, error) {
	rows, err := o.Tx.Query(query, asStored(args)...)
	if err != nil {
		return nil, err
	}
	return &openingRows{Rows: rows, opening: o}, nil
}

func (o *opening) QueryRow(query string, args ...any) db.Row {
	return openingRow{o.Tx.QueryRow(query, asStored(args)...), o}
}

func (o *opening) Each(fn func(db.Rows) error, query string, args ...any) error {
	var rows openingRows
	return o.Tx.Each(func(row db.Rows) error {
		rows.Rows, rows.opening = row, o
		return fn(&rows)
	}, query, asStored(args)...)
}

// openingRows opens the values of rows.
type openingRows struct {
	db.Rows
	opening *opening
	opened  []opened
	to      []any
}

// Scan copies the columns of the current row, opened.
func (r *openingRows) Scan(dest ...any) error {
	if len(r.to) != len(dest) {
		r.opened, r.to = make([]opened, len(dest)), make([]any, len(dest))
		for i := range dest {
			r.to[i] = &r.opened[i]
		}
	}
	for i, d := range dest {
		r.opened[i] = opened{to: d, by: r.opening}
	}
	return r.Rows.Scan(r.to...)
}

type openingRow struct {
	db.Row
	opening *opening
}

// Scan copies the columns of the row, opened.
func (r openingRow) Scan(dest ...any) error {
	to := make([]any, len(dest))
	for i, d := range dest {
		to[i] = &opened{to: d, by: r.opening}
	}
	return r.Row.Scan(to...)
}

// opened is a scan destination for a value that may be sealed.
type opened struct {
	to any
	by *opening
}

// Scan copies a value, opened.
func (o *opened) Scan(src any) error {
	switch v := src.(type) {
	case string:
		if strings.HasPrefix(v, mark) {
			plain, err := o.by.openText(v)
			if err != nil {
				return err
			}
			src = plain
		}
	case []byte:
		if bytes.HasPrefix(v, []byte(mark)) {
			plain, err := o.by.open(v[len(mark):], false)
			if err != nil {
				return err
			}
			src = plain
		}
	}
	return db.ScanValue(src, o.to)
}

// open opens the bytes after the mark.
func (o *opening) open(value []byte, text bool) ([]byte, error) {
	if len(value) == 0 {
		return nil, fmt.Errorf("%w: it has none", ErrUnknownColumn)
	}
	c, sealed := SealedColumn(value[0]), value[1:]
	if string(value[:1]) == plainly {
		return sealed, nil
	}
	purpose := c.Purpose()
	if purpose == "" {
		return nil, fmt.Errorf("%w: %q", ErrUnknownColumn, rune(c))
	}
	if columns[c].folded {
		sealed = sealed[min(foldedSize, len(sealed)):]
	}
	if text {
		decoded, err := base64.RawStdEncoding.AppendDecode(nil, sealed)
		if err != nil {
			return nil, fmt.Errorf("%w: a sealed value of %s: %w", db.ErrCorrupt, purpose, err)
		}
		sealed = decoded
	}
	plain, err := o.sealing.Open(o.Context(), purpose, sealed)
	if errors.Is(err, ErrErased) {
		return []byte(columns[c].erased), nil
	}
	if err != nil {
		return nil, fmt.Errorf("a value of %s: %w", purpose, err)
	}
	return plain, nil
}

// head is the number of bytes of a sealed value that [EachSealed] needs.
const head = 48

// EachSealed calls fn with the first bytes of each sealed value of the columns, without opening it. The transaction is
// one of the engine ([db.Stored]).
func EachSealed(tx db.Tx, bytes int, fn func(column string, sealed []byte) error) error {
	places := []string{"memory_tag.tag", "file_tag.tag", "project_alias.name", "project_alias.name_key"}
	for c, column := range columns {
		if c != Tag {
			places = append(places, column.purpose)
		}
	}
	for _, place := range places {
		table, column, _ := strings.Cut(place, ".")
		condition := column + " IS NOT NULL"
		if table == "file" {
			condition += " AND state <> 'leaving'" // deleted files are removed in the background
		}
		err := tx.Each(func(row db.Rows) error {
			var v beginning
			if err := row.Scan(&v); err != nil || len(v) < bytes {
				return err
			}
			return fn(place, v[:bytes])
		}, fmt.Sprintf(`SELECT substr(%s, 1, %d) FROM %s WHERE %s`, column,
			len(mark)+1+foldedSize+base64.RawStdEncoding.EncodedLen(head), table, condition))
		if err != nil {
			return fmt.Errorf("the sealed values of %s: %w", place, err)
		}
	}
	return nil
}

// beginning is the beginning of a sealed value; empty: the value is not sealed.
type beginning []byte

// Scan takes the beginning of a value that may be sealed.
func (b *beginning) Scan(src any) error {
	*b = (*b)[:0]
	switch v := src.(type) {
	case string:
		rest, is := strings.CutPrefix(v, mark)
		if !is || rest == "" || rest[:1] == plainly {
			return nil
		}
		text := rest[1:]
		if columns[SealedColumn(rest[0])].folded {
			text = text[min(foldedSize, len(text)):]
		}
		part, err := base64.RawStdEncoding.AppendDecode(*b, []byte(text[:min(len(text), head*4/3)/4*4]))
		if err == nil { // otherwise it is damaged, which check reports
			*b = part
		}
	case []byte:
		if rest, is := bytes.CutPrefix(v, []byte(mark)); is && len(rest) > 0 && string(rest[:1]) != plainly {
			*b = append(*b, rest[1:]...)
		}
	}
	return nil // a damaged value names no key
}
