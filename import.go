package souvenir

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"maps"
	"slices"

	"github.com/souvenir-ai/souvenir/internal/check"
	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/kernel"
)

// OnConflict says what an import does with an item that the store already has in another state.
type OnConflict string

// The values of [OnConflict]. The empty value means ConflictKeep.
const (
	ConflictKeep    OnConflict = "keep"    // keep the store's item
	ConflictReplace OnConflict = "replace" // overwrite it with the export's
)

// ImportOptions change how [Upkeep.Import] works. Nil means the zero value.
type ImportOptions struct {
	// OnConflict decides about items with the same id (or name) and owner but another state: memories, revisions, files,
	// collections, projects, members and preferences. Accounts and credentials are always kept, and so are other users'
	// items.
	OnConflict OnConflict

	// Progress receives the stages "check" and "import", counted in lines; the total is 0 while unknown. Nil disables it.
	Progress Progress
}

// ImportCount counts the results for the items of one kind.
type ImportCount struct {
	Added     int `json:"added"`
	Unchanged int `json:"unchanged"` // already there, in the same state
	Replaced  int `json:"replaced"`  // already there in another state; with ConflictReplace
	Conflicts int `json:"conflicts"` // not imported
}

// ImportConflict is an item that was not imported because of a conflict with the store.
type ImportConflict struct {
	Line   int    `json:"line"`
	Kind   string `json:"kind"` // such as "memory"
	ID     string `json:"id"`   // or its name
	Reason string `json:"reason"`
}

// ImportReport is the result of an import.
type ImportReport struct {
	// by kind, such as "memory"; vectors and chunks count with their memory or file
	Counts    map[string]ImportCount `json:"counts"`
	Conflicts []ImportConflict       `json:"conflicts,omitempty"`

	// MissingLinks counts links between memories, and from files to memories, with one end not in the store.
	MissingLinks int `json:"missing_links,omitempty"`

	// Ignored counts lines of types that this version does not know, and lines of a memory or file whose own line does not
	// come before them.
	Ignored int `json:"ignored,omitempty"`

	Warnings []string `json:"warnings,omitempty"` // what the caller should know although the import is done
	Line     int      `json:"line"`               // everything up to this line is in the store
}

// maxConflicts is how many conflicts a report lists.
const maxConflicts = 100

// Import reads the output of [Upkeep.Export], or a handmade file in the same form, into this store, empty or not. Ids,
// times, revisions and owners stay the same, and search finds imported memories at once. Items that the store already
// has are left alone, so that an import can be repeated: the second one changes nothing. Vectors of this store's model
// are kept; otherwise texts are embedded as by AddMemories.
//
// The header is checked before anything is written: a file that is not an export is ErrForeign, an export of a newer
// version ErrNewer. If r is an io.Seeker, the whole file is checked first: an export must be complete and unchanged,
// and every handmade line valid. Otherwise errors are found on the way, and earlier lines stay imported. The same holds
// when the import ends early for any other reason: each line is imported atomically, the report's Line says how far the
// import came, and repeating it continues there. Errors name the line and the field.
//
// Options.MaxFile and Options.FileQuota apply to uploads and do not limit imports.
//
// Only the operator's store may import: it creates users, and with credentials in the export these can sign in. Import
// only your own files.
func (h *Upkeep) Import(ctx context.Context, r io.Reader, options *ImportOptions) (ImportReport, error) {
	s, err := h.operator("Import")
	im := importer{s: s, report: ImportReport{Counts: map[string]ImportCount{}}}
	if err != nil {
		return im.report, err
	}
	if r == nil {
		return im.report, invalid("r", "r is nil; give a reader of an export")
	}
	if options != nil {
		im.ImportOptions = *options
	}
	im.OnConflict = cmp.Or(im.OnConflict, ConflictKeep)
	if err := check.Enum("OnConflict", im.OnConflict, []OnConflict{ConflictKeep, ConflictReplace}); err != nil {
		return im.report, err
	}
	if s.db.ReadOnly() {
		return im.report, newError(KindReadOnly, "", "the store is opened for reading only; nothing can be imported")
	}
	if im.Progress == nil {
		im.Progress = func(string, int, int) {}
	}
	if seeker, ok := r.(io.ReadSeeker); ok {
		if start, err := seeker.Seek(0, io.SeekCurrent); err == nil { // a pipe is a file but cannot seek
			if err := im.check(ctx, seeker); err != nil {
				return im.report, wrap(err)
			}
			if _, err := seeker.Seek(start, io.SeekStart); err != nil {
				return im.report, wrap(fmt.Errorf("the export cannot be read again from its beginning: %w", err))
			}
		}
	}
	defer func() { // even when r panics
		if im.file != nil {
			im.file.drop(ctx)
		}
		if im.waiting {
			s.worker.wake()
		}
	}()
	err = im.run(ctx, r)
	return im.report, wrap(err)
}

// CheckExport checks an export, or a handmade file in the same form, as [Upkeep.Import] does before it writes anything,
// and returns the error that Import would return. It needs no store, so that none is created for an invalid file.
// Progress receives the stage "check"; nil disables it.
func CheckExport(ctx context.Context, r io.Reader, progress Progress) error {
	if r == nil {
		return invalid("r", "r is nil; give a reader of an export")
	}
	if progress == nil {
		progress = func(string, int, int) {}
	}
	im := importer{ImportOptions: ImportOptions{Progress: progress}}
	return wrap(im.check(ctx, r))
}

// importer is an import under way.
type importer struct {
	ImportOptions
	s      *Store
	report ImportReport
	total  int // lines, once they have been counted

	batch   []importItem // items for the next transaction
	size    int          // bytes of their lines
	last    int          // line of the last of them
	current *memoryItem  // whose vectors and revisions are being read
	late    []*linkItem  // links in handmade lines, which may point to memories further below
	file    *incomingFile
	// id and owner of memories -> their new owner, for lines whose memoryItem.moved is true
	moved map[[2]string]string
	now   int64

	noEmbedder bool // the embedder has failed: the rest is left to the worker
	waiting    bool // texts wait for the worker
}

// importItem is the content of a line: valid, and prepared as far as possible without the store.
type importItem interface {
	line() int
	apply(t *importTx) error
}

// lineNumber is the line that an item comes from.
type lineNumber int

func (n lineNumber) line() int { return int(n) }

// The most that an import writes at a time: each transaction is short enough for other writers to wait.
const (
	importBatch = 500
	importBytes = 8 << 20
)

// seal compares an export with its last line.
type seal struct {
	hash   hash.Hash
	counts map[string]int
	header exportHeader
	closed bool
}

// open reads the first line.
func (c *seal) open(lines *lineReader) error {
	c.hash, c.counts = sha256.New(), map[string]int{}
	line, err := lines.next()
	switch {
	case errors.Is(err, io.EOF):
		return newError(KindForeign, "", "there is nothing to import: the export is empty")
	case errors.Is(err, ErrTooLarge):
		return newError(KindForeign, "", "this is no export of Souvenir: %v", err)
	case err != nil:
		return err
	case bytes.HasPrefix(line, []byte("\x1f\x8b")):
		return newError(KindForeign, "", "this is compressed with gzip; decompress it first")
	case bytes.HasPrefix(line, []byte("SQLite format 3")):
		return newError(KindForeign, "", "this is a SQLite file and no export; open it as a store, or restore it")
	}
	if decodeLine(line, &c.header) != nil || c.header.Souvenir != exportMark {
		return newError(KindForeign, "",
			`this is no export of Souvenir: its first line is %s; it must be like {"souvenir":"export","version":1}`,
			show(string(line)))
	}
	switch {
	case c.header.Version > exportVersion:
		return newError(KindNewer, "version", "the export has version %d; this version of Souvenir reads %d",
			c.header.Version, exportVersion)
	case c.header.Version < 1:
		return newError(KindForeign, "version", "the export has version %d, which there never was", c.header.Version)
	}
	c.add("", line)
	return nil
}

// maxKinds is how many types of lines an export may have, of this version and of later ones.
const maxKinds = 1000

func (c *seal) add(kind string, line []byte) {
	c.hash.Write(line)
	c.hash.Write([]byte{'\n'})
	if kind != "" {
		c.counts[kind]++
	}
}

// close compares the export with its last line.
func (c *seal) close(line []byte) error {
	var end exportEnd
	if err := decodeLine(line, &end); err != nil {
		return err
	}
	c.closed = true
	if sum := hex.EncodeToString(c.hash.Sum(nil)); end.SHA256 != sum && (c.header.Sealed || end.SHA256 != "") {
		return invalid("sha256", "the export has been changed since it was written: sha256 is %s, but that of its lines is %s", show(end.SHA256), show(sum))
	}
	if end.Counts != nil && !maps.Equal(end.Counts, c.counts) {
		return invalid("counts", "the export is not complete: counts is %v, but it has %v", end.Counts, c.counts)
	}
	return nil
}

// scan reads all lines after the header and calls each for every line but the last one.
func (c *seal) scan(ctx context.Context, lines *lineReader, each func(kind string, line []byte) error) error {
	if err := c.open(lines); err != nil {
		return err
	}
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		line, err := lines.next()
		switch {
		case errors.Is(err, io.EOF) && c.header.Sealed && !c.closed:
			return invalid("", "the export is cut off after line %d: its end is missing", lines.n)
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case c.closed:
			return invalid("", "line %d: something follows the end of the export", lines.n)
		}
		kind, err := lineKind(line)
		switch {
		case err != nil:
		case kind == kindEnd:
			err = c.close(line)
		default:
			c.add(kind, line)
			if len(c.counts) > maxKinds {
				return atLine(invalid("type", "type is %s; an export has %d types of lines at most", show(kind), maxKinds), lines.n)
			}
			if err := each(kind, line); err != nil {
				return err
			}
		}
		if err != nil {
			return atLine(err, lines.n)
		}
	}
}

// atLine adds the line number to an error.
func atLine(err error, n int) error {
	var known *Error
	if errors.As(err, &known) && fromInput(known) {
		located := *known
		located.Message = fmt.Sprintf("line %d: %s", n, known.Message)
		return &located
	}
	return err
}

// fromInput reports whether an error is about the input, and not about the store.
func fromInput(err *Error) bool {
	switch err.Kind {
	case KindInvalid, KindTooLarge, KindNotFound, KindConflict, KindForbidden:
		return true
	}
	return false
}

// check reads the whole export before anything is written. For a sealed export, the hash proves that it is unchanged;
// otherwise each line is parsed as for an import.
func (im *importer) check(ctx context.Context, r io.Reader) error {
	var c seal
	lines := newLineReader(r)
	err := c.scan(ctx, lines, func(kind string, line []byte) error {
		if lines.n%1000 == 0 {
			im.Progress("check", lines.n, 0)
		}
		if c.header.Sealed {
			return nil
		}
		_, err := im.parse(kind, line, lines.n)
		return atLine(err, lines.n)
	})
	im.total = lines.n
	if err == nil {
		im.Progress("check", lines.n, lines.n)
	}
	return err
}

// run imports.
func (im *importer) run(ctx context.Context, r io.Reader) error {
	var c seal
	im.now = im.s.now()
	lines := newLineReader(r)
	err := c.scan(ctx, lines, func(kind string, line []byte) error {
		if lines.n%1000 == 0 {
			im.Progress("import", lines.n, im.total)
		}
		return im.take(ctx, kind, line, lines.n)
	})
	if err == nil && im.file != nil {
		err = atLine(im.file.incomplete(), lines.n)
	}
	if err != nil && c.header.Sealed {
		im.dropIncomplete()
	}
	var known *Error
	if failed := im.flush(ctx); err == nil || errors.As(failed, &known) && fromInput(known) {
		err = failed // an earlier line's
	}
	if err != nil {
		return err
	}
	if err := im.lateLinks(ctx); err != nil {
		return err
	}
	im.report.Line = lines.n
	im.Progress("import", lines.n, lines.n)
	return nil
}

// dropIncomplete drops the memory whose lines were being read when the export turned out to be truncated: it would be
// stored without its vectors, and the next import would find it unchanged.
func (im *importer) dropIncomplete() {
	i := slices.IndexFunc(im.batch,
		func(item importItem) bool { return im.current != nil && item == importItem(im.current) })
	if i >= 0 {
		im.batch, im.last = im.batch[:i], im.current.line()-1
	}
}

// parse returns the item of a line; nil for a type that this version does not know.
func (im *importer) parse(kind string, line []byte, n int) (importItem, error) {
	switch kind {
	case kindMemory:
		return parseMemory(line, n)
	case kindVectors:
		return parseVectors(line, n)
	case kindRevision:
		return parseRevision(line, n)
	case kindLink:
		return parseLink(line, n)
	case kindFile:
		return parseFile(line, n)
	case kindChunk:
		return parseChunk(line, n)
	}
	if r := recordOf(kind); r != nil {
		return parseRecord(r, line, n)
	}
	return nil, nil
}

// take adds one line to the batch, and writes the batch when it is full.
func (im *importer) take(ctx context.Context, kind string, line []byte, n int) error {
	item, err := im.parse(kind, line, n)
	if err != nil {
		return atLine(err, n)
	}
	if item == nil {
		im.report.Ignored++
		return nil
	}
	if im.file != nil && kind != kindChunk {
		return atLine(im.file.incomplete(), n)
	}
	switch item := item.(type) {
	case *vectorsItem:
		if im.current == nil || im.current.id != item.memory || !im.current.vectors(item) {
			im.report.Ignored++
		}
		im.size += len(line)
		return nil
	case *incomingFile:
		if err := im.flush(ctx); err != nil {
			return err
		}
		item.memoryOwner = im.ownerNow(item.memory, item.memoryOwner)
		return atLine(im.begin(ctx, item), n)
	case *chunkItem:
		return atLine(im.chunk(ctx, item), n)
	}
	full := len(im.batch) >= importBatch || im.size >= importBytes
	_, memory := item.(*memoryItem)
	if full || memory && (len(im.batch) > 0 && im.current == nil) {
		if err := im.flush(ctx); err != nil {
			return err
		}
	}
	switch item := item.(type) {
	case *memoryItem:
		im.current = item
		if item.moved() {
			if im.moved == nil {
				im.moved = map[[2]string]string{}
			}
			im.moved[[2]string{item.id, item.owner}] = item.projectOwner
		}
		if len(item.draft.Related) > 0 {
			item.links = &linkItem{lineNumber: item.lineNumber, memory: item.id, owner: item.owner, related: item.draft.Related}
			im.late = append(im.late, item.links)
		}
	case *revisionItem:
		if im.current == nil || im.current.id != item.memory {
			im.report.Ignored++
			return nil
		}
		item.of = im.current
	case *linkItem:
		item.owner, im.current = im.ownerNow(item.memory, item.owner), nil
	default:
		im.current = nil
	}
	im.batch, im.size, im.last = append(im.batch, item), im.size+len(line), n
	if len(im.late) > 10*importBatch {
		return im.lateLinks(ctx)
	}
	return nil
}

// ownerNow returns the current owner of a memory that had another owner when the export was written.
func (im *importer) ownerNow(memory, owner string) string {
	return cmp.Or(im.moved[[2]string{memory, owner}], owner)
}

// lateLinks creates the links that were found in the memories' own lines.
func (im *importer) lateLinks(ctx context.Context) error {
	if err := im.flush(ctx); err != nil {
		return err
	}
	for _, l := range im.late {
		im.batch = append(im.batch, l)
	}
	im.late = nil
	return im.flush(ctx)
}

// flush writes the batch. If one of its items is at fault, those before it are written.
func (im *importer) flush(ctx context.Context) error {
	items, last := im.batch, im.last
	im.batch, im.size = nil, 0
	if err := im.prepare(ctx, items); err != nil {
		return err
	}
	var fault error
	for len(items) > 0 {
		failed := 0
		err := im.write(ctx, func(tx *importTx) error {
			for i, item := range items {
				if err := item.apply(tx); err != nil {
					failed = i
					return atLine(err, item.line())
				}
			}
			return nil
		})
		if err == nil {
			im.report.Line = max(im.report.Line, last)
			break
		}
		var known *Error
		if fault != nil || !errors.As(err, &known) || !fromInput(known) {
			return err
		}
		fault, items = err, items[:failed]
		if failed > 0 {
			last = items[failed-1].line()
		}
	}
	return fault
}

// write runs fn in a transaction and adds what it did to the report. It acts for no user: it does not create the local
// user.
func (im *importer) write(ctx context.Context, fn func(*importTx) error) error {
	var t *importTx
	err := im.s.db.Write(ctx, func(tx db.Tx) error {
		w, err := (&Store{shared: im.s.shared}).newWriter(tx, scope{})
		if err != nil {
			return err
		}
		t = &importTx{
			s: im.s, tx: tx, w: w, replace: im.OnConflict == ConflictReplace, now: im.now, counts: map[string]ImportCount{},
			users: map[string]int64{}, collections: map[collectionName]int64{}, projects: map[projectName]int64{},
			places: map[[2]int64]*kernel.Place{},
		}
		if err := fn(t); err != nil {
			return err
		}
		return w.flush()
	})
	if err == nil {
		im.merge(t)
	}
	return wrap(err)
}

// merge adds the results of a transaction to the report, once they are durable.
func (im *importer) merge(t *importTx) {
	for kind, n := range t.counts {
		sum := im.report.Counts[kind]
		sum.Added += n.Added
		sum.Unchanged += n.Unchanged
		sum.Replaced += n.Replaced
		sum.Conflicts += n.Conflicts
		im.report.Counts[kind] = sum
	}
	room := maxConflicts - len(im.report.Conflicts)
	im.report.Conflicts = append(im.report.Conflicts, t.conflicts[:min(room, len(t.conflicts))]...)
	im.report.MissingLinks += t.missing
	im.waiting = im.waiting || t.waiting
}
