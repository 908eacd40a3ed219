package transfer

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
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/fault"
	"github.com/souvenir-ai/souvenir/internal/files/objects"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/sealing/keyring"
)

// MaxConflicts is the maximum number of conflicts in a report.
const MaxConflicts = 100

// maxWarnings is the maximum number of warnings in a report.
const maxWarnings = 100

// Target is the store that an import writes into.
type Target struct {
	DB    db.DB
	Now   func() int64 // in stored form
	NewID func() string
	Log   *slog.Logger

	// Objects stores the content of files; nil: the database does.
	Objects *objects.Objects
	Keys    *keyring.Ring // the keys to seal it with; nil: it is not sealed

	// Namespace is the namespace for everything, if set. Then the export must have one namespace.
	Namespace string

	// The embedder of the store: the row of its profile, its model and its sizes.
	Profile              int64
	Model                string
	Dimensions, MaxInput int
	// Embed embeds texts. A failing embedder is not an error: it returns no vectors, and warnings.
	Embed func(ctx context.Context, texts []string) (vectors [][]float32, warnings []string, err error)

	Waiting func() // is called when texts wait to be embedded

	// Rewrite lets hooks change the content, tags and own metadata of a memory in a handmade file, or refuse it. Nil means
	// no hooks.
	Rewrite func(ctx context.Context, d *kernel.Draft) error
}

// Count counts the results for the items of one kind.
type Count struct{ Added, Unchanged, Replaced, Conflicts int }

// Conflict is an item that was not imported because of a conflict with the store.
type Conflict struct {
	Line             int
	Kind, ID, Reason string
}

// Report is the result of an import.
type Report struct {
	Counts       map[string]Count // by kind
	Conflicts    []Conflict       // the first MaxConflicts
	MissingLinks int              // links with one end not in the store
	Ignored      int              // lines of unknown types, or out of place
	Rewritten    int              // memories that Target.Rewrite changed
	Warnings     []string
	Line         int // everything up to this line is in the store
}

// Import imports the export in r. If r is an io.Seeker, the whole file is checked before anything is written. Existing
// items in another state are kept, unless replace is set.
func Import(ctx context.Context, into Target, r io.Reader, replace bool,
	progress func(stage string, done, total int)) (Report, error) {
	im := importer{Target: into, namespace: into.Namespace, replace: replace, progress: orNone(progress),
		report: Report{Counts: map[string]Count{}}, declared: map[projectName][]string{}}
	if seeker, ok := r.(io.ReadSeeker); ok {
		if start, err := seeker.Seek(0, io.SeekCurrent); err == nil { // a pipe is a file but cannot seek
			if err := im.check(ctx, seeker); err != nil {
				return im.report, err
			}
			if _, err := seeker.Seek(start, io.SeekStart); err != nil {
				return im.report, fmt.Errorf("the export cannot be read again from its beginning: %w", err)
			}
		}
	}
	defer func() { // even when r panics
		if im.file != nil {
			im.file.drop(ctx)
		}
		if im.waiting {
			im.Waiting()
		}
	}()
	err := im.run(ctx, r)
	return im.report, err
}

// CheckExport checks an export as Import does before writing. It needs no store.
func CheckExport(ctx context.Context, r io.Reader, progress func(stage string, done, total int),
	rewrite func(context.Context, *kernel.Draft) error) error {
	im := importer{Target: Target{Rewrite: rewrite}, progress: orNone(progress)}
	return im.check(ctx, r)
}

// importer is a running import.
type importer struct {
	Target
	replace  bool
	progress func(stage string, done, total int)
	report   Report
	total    int // lines, once they have been counted

	namespace string // of the users in the lines
	begun     bool   // a line has been read

	batch   []importItem // items for the next transaction
	size    int          // bytes of their lines
	last    int          // line of the last of them
	current *memoryItem  // the memory whose vectors and revisions are being read
	late    []*linkItem  // links in handmade lines, which may refer to memories in later lines
	file    *incomingFile
	// id and owner of memories -> their new owner, for lines whose memoryItem.moved is true
	moved map[[2]string]string
	now   int64

	declared map[projectName][]string // as in importTx

	noEmbedder bool // the embedder has failed; the worker embeds the rest
	waiting    bool // texts wait for the worker
}

// importItem is the validated content of a line, prepared as far as possible without the store.
type importItem interface {
	line() int
	apply(t *importTx) error
}

// lineNumber is the line that an item comes from.
type lineNumber int

func (n lineNumber) line() int { return int(n) }

// The maximum that an import writes at a time, so that other writers do not wait long.
const (
	ImportBatch = 500
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
		return fault.New(fault.KindForeign, "", "there is nothing to import: the export is empty")
	case errors.Is(err, &fault.Error{Kind: fault.KindTooLarge}):
		return fault.New(fault.KindForeign, "", "this is not an export of Souvenir: %v", err)
	case err != nil:
		return err
	case bytes.HasPrefix(line, []byte("\x1f\x8b")):
		return fault.New(fault.KindForeign, "", "this is compressed with gzip; decompress it first")
	case bytes.HasPrefix(line, []byte("SQLite format 3")):
		return fault.New(fault.KindForeign, "", "this is a SQLite file, not an export; open it as a store, or restore it")
	}
	if decodeLine(line, &c.header) != nil || c.header.Souvenir != exportMark {
		return fault.New(fault.KindForeign, "",
			`this is not an export of Souvenir: its first line is %s; it must be like {"souvenir":"export","version":1}`,
			fault.Show(string(line)))
	}
	switch {
	case c.header.Version > exportVersion:
		return fault.New(fault.KindNewer, "version", "the export has version %d, but this version of Souvenir reads %d",
			c.header.Version, exportVersion)
	case c.header.Version < 1:
		return fault.New(fault.KindForeign, "version", "the export has version %d, which does not exist", c.header.Version)
	}
	c.add("", line)
	return nil
}

// MaxKinds is the maximum number of types of lines in an export, of this version and of later ones.
const MaxKinds = 1000

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
		return fault.Invalid("sha256",
			"the export has been changed since it was written: sha256 is %s, but that of its lines is %s",
			fault.Show(end.SHA256), fault.Show(sum))
	}
	if end.Counts != nil && !maps.Equal(end.Counts, c.counts) {
		return fault.Invalid("counts", "the export is incomplete: counts is %v, but it has %v", end.Counts, c.counts)
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
			return fault.Invalid("", "the export is cut off after line %d: its end is missing", lines.n)
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case c.closed:
			return fault.Invalid("", "line %d: there is more text after the end of the export", lines.n)
		}
		kind, err := LineKind(line)
		if err == nil && !c.header.Sealed {
			err = checkEscapes(line)
		}
		switch {
		case err != nil:
		case kind == kindEnd:
			err = c.close(line)
		default:
			c.add(kind, line)
			if kind == kindNamespace && c.header.Version == plainVersion {
				return atLine(fault.Invalid("version", `{} is %d; an export with namespaces needs version %d`, plainVersion,
					exportVersion), lines.n)
			}
			if len(c.counts) > MaxKinds {
				return atLine(fault.Invalid("type", "type is %s; an export has %d types of lines at most", fault.Show(kind),
					MaxKinds), lines.n)
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
	var known *fault.Error
	if errors.As(err, &known) && fromInput(known) {
		return &fault.Error{Kind: known.Kind, Argument: known.Argument, Err: known.Err,
			Message: fmt.Sprintf("line %d: %s", n, known.Message)}
	}
	return err
}

// fromInput reports whether an error is about the input, and not about the store.
func fromInput(err *fault.Error) bool {
	switch err.Kind {
	case fault.KindInvalid, fault.KindTooLarge, fault.KindNotFound, fault.KindConflict, fault.KindForbidden:
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
			im.progress("check", lines.n, 0)
		}
		if err := im.checkNamespace(kind); err != nil || c.header.Sealed {
			return err
		}
		item, err := im.parse(kind, line, lines.n)
		if err == nil {
			_, err = im.rewrite(ctx, item)
		}
		return atLine(err, lines.n)
	})
	im.total = lines.n
	if err == nil {
		im.progress("check", lines.n, lines.n)
	}
	return err
}

// run runs the import.
func (im *importer) run(ctx context.Context, r io.Reader) error {
	var c seal
	im.now, im.begun = im.Now(), false
	lines := newLineReader(r)
	err := c.scan(ctx, lines, func(kind string, line []byte) error {
		if lines.n%1000 == 0 {
			im.progress("import", lines.n, im.total)
		}
		return im.take(ctx, kind, line, lines.n, !c.header.Sealed)
	})
	if err == nil && im.file != nil {
		err = atLine(im.file.incomplete(), lines.n)
	}
	if err != nil && c.header.Sealed {
		im.dropIncomplete()
	}
	var known *fault.Error
	if failed := im.flush(ctx); err == nil || errors.As(failed, &known) && fromInput(known) {
		err = failed // the error of an earlier line
	}
	if err != nil {
		return err
	}
	if err := im.lateLinks(ctx); err != nil {
		return err
	}
	im.report.Line = lines.n
	im.progress("import", lines.n, lines.n)
	return nil
}

// dropIncomplete drops the last memory of a truncated export. It would be stored without its vectors, and the next
// import would find it unchanged.
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
	case kindNamespace:
		return parseNamespace(line, n)
	case KindMemory:
		return parseMemory(line, n, im.namespace)
	case KindVectors:
		return parseVectors(line, n)
	case KindRevision:
		return parseRevision(line, n)
	case KindLink:
		return parseLink(line, n)
	case KindFile:
		return parseFile(line, n)
	case kindChunk:
		return parseChunk(line, n)
	}
	if r := recordOf(kind); r != nil {
		return parseRecord(r, line, n)
	}
	return nil, nil
}

// rewrite checks a memory of a handmade file, and lets hooks change it. Its id stays: it is derived from the line.
func (im *importer) rewrite(ctx context.Context, item importItem) (changed bool, err error) {
	m, is := item.(*memoryItem)
	if !is {
		return false, nil
	}
	if err := m.draft.CheckRule(); err != nil || im.Rewrite == nil {
		return false, err
	}
	content, tags, metadata := m.draft.Content, m.draft.Tags, m.metadata
	if err = im.Rewrite(ctx, &m.draft); err == nil {
		m.metadata, err = ownMetadata(m.draft)
	}
	return content != m.draft.Content || !slices.Equal(tags, m.draft.Tags) || metadata != m.metadata, err
}

// take adds one line to the batch, and writes the batch when it is full.
func (im *importer) take(ctx context.Context, kind string, line []byte, n int, handmade bool) error {
	item, err := im.parse(kind, line, n)
	if err == nil && handmade {
		var changed bool
		if changed, err = im.rewrite(ctx, item); changed {
			im.report.Rewritten++
		}
	}
	if err != nil {
		return atLine(err, n)
	}
	if err := im.checkNamespace(kind); err != nil {
		return err
	}
	if item == nil {
		im.report.Ignored++
		return nil
	}
	if im.file != nil && kind != kindChunk {
		return atLine(im.file.incomplete(), n)
	}
	switch item := item.(type) {
	case *namespaceItem:
		return im.enter(ctx, item)
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
	full := len(im.batch) >= ImportBatch || im.size >= importBytes
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
	if len(im.late) > 10*ImportBatch {
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

// flush writes the batch, in several transactions if other writers wait. If an item fails, the items before it are
// written.
func (im *importer) flush(ctx context.Context) error {
	items, last := im.batch, im.last
	im.batch, im.size = nil, 0
	if err := im.prepare(ctx, items); err != nil {
		return err
	}
	var bad error
	for len(items) > 0 {
		failed, applied := 0, 0
		err := im.write(ctx, func(tx *importTx) error {
			began := time.Now()
			for i, item := range items {
				if err := item.apply(tx); err != nil {
					failed = i
					return atLine(err, item.line())
				}
				applied = i + 1
				if db.ShouldYield(tx.tx, began) && !isRevision(items, applied) {
					break
				}
			}
			return nil
		})
		if err == nil && applied < len(items) {
			im.report.Line = max(im.report.Line, items[applied-1].line())
			items = items[applied:]
			continue
		}
		if err == nil {
			im.report.Line = max(im.report.Line, last)
			break
		}
		var known *fault.Error
		if bad != nil || !errors.As(err, &known) || !fromInput(known) {
			return err
		}
		bad, items = err, items[:failed]
		if failed > 0 {
			last = items[failed-1].line()
		}
	}
	return bad
}

// isRevision reports whether an item is a past version, which is written together with the memory before it.
func isRevision(items []importItem, i int) bool {
	if i == len(items) {
		return false
	}
	_, is := items[i].(*revisionItem)
	return is
}

// write runs fn in a transaction and adds its results to the report. It does not act for a user, so it does not create
// the local user.
func (im *importer) write(ctx context.Context, fn func(*importTx) error) error {
	var t *importTx
	err := im.DB.Write(db.Yielding(ctx), func(tx db.Tx) error {
		w, err := kernel.NewRowWriter(tx, kernel.Viewer{}, im.Profile, im.Model)
		if err != nil {
			return err
		}
		t = &importTx{
			Target: &im.Target, namespace: im.namespace, tx: tx, w: w, replace: im.replace, now: im.now,
			counts: map[string]Count{},
			users:  map[string]int64{}, collections: map[collectionName]int64{}, projects: map[projectName]int64{},
			places: map[[2]int64]*kernel.Place{}, declared: im.declared,
		}
		if err := fn(t); err != nil {
			return err
		}
		return w.Flush()
	})
	if err == nil {
		im.merge(t)
	}
	return err
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
	room := MaxConflicts - len(im.report.Conflicts)
	im.report.Conflicts = append(im.report.Conflicts, t.conflicts[:min(room, len(t.conflicts))]...)
	im.report.MissingLinks += t.missing
	room = maxWarnings - len(im.report.Warnings)
	im.report.Warnings = append(im.report.Warnings, t.warnings[:max(0, min(room, len(t.warnings)))]...)
	im.waiting = im.waiting || t.waiting
}
