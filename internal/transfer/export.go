// Package transfer reads and writes exports: a whole store as JSON Lines. docs/export-format.md describes the format.
// It does not depend on the types of the API.
package transfer

import (
	"bufio"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/fault"
	"github.com/souvenir-ai/souvenir/internal/files/objects"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/records/receipt"
	"github.com/souvenir-ai/souvenir/internal/sealing/keyring"
)

// Settings select the contents of an export.
type Settings struct {
	User           *int64   // row of the user whose data is written; nil: all users
	Namespaces     []string // the namespaces to write; nil: all
	Credentials    bool     // with the credentials of people and programs
	WithoutFiles   bool
	WithoutVectors bool          // without vectors that an embedder can compute again
	Parts          receipt.Parts // hashes the lines of each kind; nil: no hashes
	Progress       func(stage string, done, total int)
	Now            time.Time

	// Content reads the content of a chunk from object storage, by its key and its hash.
	Content func(key string, sum []byte) ([]byte, error)

	Keys *keyring.Ring // of users; nil: none
}

// orNone returns progress, or a function that does nothing if it is nil.
func orNone(progress func(stage string, done, total int)) func(stage string, done, total int) {
	if progress == nil {
		return func(string, int, int) {}
	}
	return progress
}

// Summary summarizes an export: its lines by kind, its size, and the hash of all lines except the last.
type Summary struct {
	Counts map[string]int
	Bytes  int64
	SHA256 string // hex
	Whole  string // hex; the hash of all lines
}

// Export writes an export of the state that a transaction sees. After an error, w contains an incomplete export.
func Export(tx db.Tx, w io.Writer, of Settings) (Summary, error) {
	of.Progress = orNone(of.Progress)
	e := exporter{Settings: of, tx: tx, hash: sha256.New(), counts: map[string]int{}, places: map[int64]exportPlace{}}
	e.w = bufio.NewWriterSize(io.MultiWriter(w, e.hash, &e.size), 256<<10)
	if err := e.all(of.Now.UTC().Format(ExportTime)); err != nil {
		return Summary{}, err
	}
	return Summary{Counts: e.counts, Bytes: int64(e.size), SHA256: e.sum,
		Whole: hex.EncodeToString(e.hash.Sum(nil))}, nil
}

// exporter writes an export within one transaction.
type exporter struct {
	Settings
	tx     db.Tx
	w      *bufio.Writer // into the caller's, the hash and the size
	hash   hash.Hash
	size   byteCount
	sum    string
	line   lineWriter
	counts map[string]int
	places map[int64]exportPlace

	apart bool      // the store has several namespaces, or another one than the default
	space namespace // whose users' lines are being written
}

type byteCount int64

func (n *byteCount) Write(p []byte) (int, error) {
	*n += byteCount(len(p))
	return len(p), nil
}

// all writes the lines in an order that lets an import read them once: each line comes after the lines it refers to.
func (e *exporter) all(now string) error {
	spaces, err := e.spaces()
	if err != nil {
		return err
	}
	header := exportHeader{Souvenir: exportMark, Version: plainVersion, CreatedAt: now, Sealed: true}
	if slices.ContainsFunc(spaces, func(n namespace) bool { return n.name != "" }) {
		header.Version = exportVersion
	}
	if err := e.encode(header); err != nil {
		return err
	}
	for _, space := range spaces {
		if err := e.namespace(space); err != nil {
			return err
		}
	}
	if err := e.w.Flush(); err != nil {
		return err
	}
	e.sum = hex.EncodeToString(e.hash.Sum(nil))
	err = e.encode(struct {
		Type string `json:"type"`
		exportEnd
	}{kindEnd, exportEnd{e.counts, e.sum}})
	return cmp.Or(err, e.w.Flush())
}

// namespace writes the lines of one namespace.
func (e *exporter) namespace(space namespace) error {
	e.space = space
	if space.name != "" {
		e.line.begin(kindNamespace)
		e.line.text("name", space.name)
		if err := e.write(kindNamespace); err != nil {
			return err
		}
	}
	for _, r := range Records() {
		if r.credential && !e.Credentials || e.User != nil && r.owner == "" || space.name != "" && r.serving {
			continue
		}
		if err := e.records(r); err != nil {
			return err
		}
	}
	for _, part := range []func() error{e.memories, e.links, e.files} {
		if err := part(); err != nil {
			return err
		}
	}
	return nil
}

func (e *exporter) encode(value any) error {
	line, err := json.Marshal(value)
	if err != nil {
		return err
	}
	_, err = e.w.Write(append(line, '\n'))
	return err
}

// owned returns the condition that a row belongs to the exported user, or to any user of the current namespace. owner
// is its column or an expression for it.
func (e *exporter) owned(owner string) string {
	switch {
	case e.User != nil:
		return owner + ` = ` + strconv.FormatInt(*e.User, 10)
	case e.apart:
		return owner + ` IN (SELECT id FROM users WHERE namespace = ` + e.space.sql() + `)`
	}
	return `true`
}

// of returns the condition that a row of a record is to be written.
func (e *exporter) of(r Record) string {
	switch {
	case e.User != nil:
		return e.owned(cmp.Or(r.owner, `NULL`))
	case e.apart && r.namespace != "":
		return r.namespace + ` = ` + e.space.sql()
	}
	return `true`
}

// inOwned returns the condition that a partition belongs to the exported user, or to any user of the current namespace.
// The texts of files are not exported, since files are read again after an import.
func (e *exporter) inOwned(partition string) string {
	if e.User == nil && !e.apart {
		return partition + ` NOT IN (` + kernel.TextPartitions + `)`
	}
	return partition + ` IN (SELECT p.id FROM partition p JOIN collection c ON c.id = p.collection_id WHERE ` +
		e.owned(`c.owner_id`) + ` AND c.name <> '')`
}

// alive returns the condition that a memory has not expired, in the form that follows another one.
func (e *exporter) alive(memory string) string {
	return kernel.Viewer{Bounds: kernel.Bounds{Expired: e.Now.UnixMicro()}}.Alive(memory)
}

// write ends and writes the current line.
func (e *exporter) write(kind string) error {
	line, err := e.line.end()
	if err != nil {
		return err
	}
	e.counts[kind]++
	if e.Parts != nil {
		e.Parts.Add(kind, line)
	}
	_, err = e.w.Write(line)
	return err
}

// records writes the lines of one kind that are rows.
func (e *exporter) records(r Record) error {
	values, into := r.Room()
	return db.Stream(e.tx, func(row db.Rows) error {
		if err := row.Scan(into...); err != nil {
			return err
		}
		e.line.begin(r.kind)
		for i, f := range r.Fields {
			if f.credential && !e.Credentials {
				continue
			}
			e.line.value(f, values[i])
		}
		return e.write(r.kind)
	}, r.Selection+` WHERE `+e.of(r)+` ORDER BY `+r.Ordered)
}

// Room returns the variables that a row of a record is read into.
func (r Record) Room() (values, into []any) {
	values, into = make([]any, len(r.Fields)), make([]any, len(r.Fields))
	for i := range values {
		into[i] = &values[i]
	}
	return values, into
}

// value writes a field; NULL is left out.
func (l *lineWriter) value(f RecordField, value any) {
	switch v := value.(type) {
	case string:
		if f.Form == jsonForm {
			l.json(f.Name, v)
		} else {
			l.text(f.Name, v)
		}
	case []byte:
		l.bytes(f.Name, v)
	case int64:
		if f.Form == TimeForm {
			l.time(f.Name, v)
		} else {
			l.number(f.Name, v)
		}
	}
}

// exportPlace is the place of a memory, by name.
type exportPlace struct{ owner, collection, projectOwner, project string }

// place returns the names of a partition.
func (e *exporter) place(partition int64) (exportPlace, error) {
	if p, ok := e.places[partition]; ok {
		return p, nil
	}
	if len(e.places) >= 4096 {
		clear(e.places) // memories of one place are usually adjacent
	}
	var p exportPlace
	err := e.tx.QueryRow(`SELECT u.uid, c.name, coalesce(o.uid, ''), coalesce(j.uid, '') FROM partition p
		JOIN collection c ON c.id = p.collection_id JOIN users u ON u.id = c.owner_id
		LEFT JOIN project j ON j.id = p.project_id LEFT JOIN users o ON o.id = j.owner_id WHERE p.id = ?`, partition).
		Scan(&p.owner, &p.collection, &p.projectOwner, &p.project)
	if errors.Is(err, db.ErrNoRows) {
		return p, fault.Damaged(err, "a memory, or a past version of one, is in partition %d, which does not exist",
			partition)
	}
	e.places[partition] = p
	return p, err
}

// project writes the owner of a project if the owner of the memory or file is another user.
func (e *exporter) project(owner string, p exportPlace) {
	if p.project != "" && p.projectOwner != owner {
		e.line.text("project_owner", p.projectOwner)
	}
}

// side reads the rows that belong to memories or files alongside them, in the same order.
type side struct {
	rows db.Rows
	of   int64 // id that the current row belongs to; 0: none has been read
	scan func(db.Rows, *int64) error
}

func (e *exporter) side(scan func(db.Rows, *int64) error, query string) (*side, error) {
	rows, err := e.tx.Query(query)
	if err != nil {
		return nil, err
	}
	return &side{rows: rows, scan: scan}, nil
}

// each calls fn for the rows that belong to id, after their values have been scanned.
func (s *side) each(id int64, fn func() error) error {
	for {
		if s.of == 0 {
			if !s.rows.Next() {
				s.of = 1<<63 - 1
				return s.rows.Err()
			}
			if err := s.scan(s.rows, &s.of); err != nil {
				return err
			}
		}
		if s.of > id {
			return nil
		}
		if s.of == id {
			if err := fn(); err != nil {
				return err
			}
		}
		s.of = 0
	}
}

// files writes the files, each followed by its chunks.
func (e *exporter) files() error {
	if e.WithoutFiles {
		return nil
	}
	var total, done int64
	if err := e.tx.QueryRow(`SELECT coalesce(sum(size), 0) FROM file WHERE state = 'stored' AND ` +
		e.owned(`owner_id`)).Scan(&total); err != nil {
		return err
	}
	var tag string
	tags, err := e.side(func(row db.Rows, of *int64) error { return row.Scan(of, &tag) },
		`SELECT file_id, tag FROM file_tag ORDER BY file_id, position`)
	if err != nil {
		return err
	}
	defer tags.rows.Close()
	err = db.Stream(e.tx, func(row db.Rows) error {
		var f ExportFile
		if err := row.Scan(&f.Row, &f.ID, &f.owner, &f.memory, &f.memoryOwner, &f.projectOwner, &f.project, &f.Filename,
			&f.MIMEType,
			&f.Size, &f.SHA256, &f.Description, &f.Category, &f.Created, &f.Updated); err != nil {
			return err
		}
		if err := tags.each(f.Row, func() error { f.tags = append(f.tags, tag); return nil }); err != nil {
			return err
		}
		var err error
		if f.key, f.SHA256, err = e.Keys.OpenFile(e.tx.Context(), f.SHA256); err != nil {
			return f.closed(err)
		}
		e.file(f)
		if err := e.write(KindFile); err != nil {
			return err
		}
		return e.chunks(f, func(n int) {
			done += int64(n)
			e.Progress("files", int(done), int(total))
		})
	}, `SELECT f.id, f.uid, u.uid, coalesce(m.uid, ''), coalesce(mu.uid, ''), coalesce(o.uid, ''), coalesce(j.uid, ''),
		f.filename, f.mime_type,
			f.size, f.sha256, f.description, f.category, f.created_at, f.updated_at
		FROM file f JOIN users u ON u.id = f.owner_id
		LEFT JOIN memory m ON m.id = f.memory_id`+e.alive(`m`)+` LEFT JOIN partition p ON p.id = m.partition_id
		LEFT JOIN collection c ON c.id = p.collection_id LEFT JOIN users mu ON mu.id = c.owner_id
		LEFT JOIN project j ON j.id = f.project_id LEFT JOIN users o ON o.id = j.owner_id
		WHERE f.state = 'stored' AND `+e.owned(`f.owner_id`)+` ORDER BY f.id`)
	if err == nil {
		e.Progress("files", int(done), int(total))
	}
	return err
}

// ExportFile is a file in an export, and its row.
type ExportFile struct {
	Row                                       int64
	ID, owner, memory, memoryOwner            string
	projectOwner, project                     string
	Filename, MIMEType, Description, Category string
	Size, Created, Updated                    int64
	SHA256                                    []byte // of the content
	tags                                      []string
	key                                       *keyring.File // of the content; nil: not sealed
}

// closed returns the error for a file whose key is missing or does not open it.
func (f ExportFile) closed(err error) error {
	switch {
	case errors.Is(err, keyring.ErrErased):
		return fault.New(fault.KindConflict, "", "file %s cannot be exported: its content was erased with its owner's key; "+
			"remove such files with a repair, or export without files", fault.Show(f.ID))
	case errors.Is(err, keyring.ErrSealed):
		return fault.Damaged(err, "file %s", f.ID)
	}
	return err
}

func (e *exporter) file(f ExportFile) {
	l := &e.line
	l.begin(KindFile)
	l.text("id", f.ID)
	l.text("owner", f.owner)
	if e.User == nil || f.memoryOwner == f.owner { // others' memories are not in the export of one user's data
		l.optional("memory_id", f.memory)
	}
	if e.User == nil && f.memoryOwner != f.owner {
		l.optional("memory_owner", f.memoryOwner)
	}
	e.project(f.owner, exportPlace{projectOwner: f.projectOwner, project: f.project})
	l.optional("project_id", f.project)
	l.text("filename", f.Filename)
	l.text("mime_type", f.MIMEType)
	l.number("size", f.Size)
	l.text("sha256", hex.EncodeToString(f.SHA256))
	l.text("description", f.Description)
	l.text("category", f.Category)
	l.texts("tags", f.tags)
	l.time("created_at", f.Created)
	l.time("updated_at", f.Updated)
}

var errChunks = errors.New("its pieces differ from what was stored")

// chunks writes the content of a file. It is compared with its hash on the way, so a successful export has the content
// that was stored.
func (e *exporter) chunks(f ExportFile, wrote func(n int)) error {
	whole, n, size := sha256.New(), int64(0), int64(0)
	err := db.Stream(e.tx, func(row db.Rows) error {
		var data, sum []byte
		var object string
		if err := row.Scan(&data, &sum, &object); err != nil {
			return err
		}
		if object != "" {
			var err error
			if data, err = e.content(f, object, sum); err != nil {
				return err
			}
		}
		data, err := f.key.Open(n, data)
		if err != nil {
			return f.closed(err)
		}
		whole.Write(data)
		e.line.begin(kindChunk)
		e.line.text("file", f.ID)
		e.line.number("n", n)
		e.line.bytes("data", data)
		n, size = n+1, size+int64(len(data))
		wrote(len(data))
		return e.write(kindChunk)
	}, `SELECT data, sha256, coalesce(object, '') FROM file_chunk WHERE id >= ? AND id < ? ORDER BY id`,
		f.Row<<kernel.ChunkBits, (f.Row+1)<<kernel.ChunkBits)
	if err == nil && (size != f.Size || string(whole.Sum(nil)) != string(f.SHA256)) {
		return fault.Damaged(errChunks, "file %s (%s)", f.ID, fmt.Sprintf("%d bytes of %d", size, f.Size))
	}
	return err
}

// content reads the content of a chunk from object storage.
func (e *exporter) content(f ExportFile, key string, sum []byte) ([]byte, error) {
	data, err := e.Content(key, sum)
	switch {
	case errors.Is(err, objects.ErrDamaged):
		return nil, fault.Damaged(err, "file %s", f.ID)
	case errors.Is(err, objects.ErrNone):
		return nil, fault.New(fault.KindInternal, "", "file %s cannot be exported: its content is in object storage, and "+
			"the store was opened without one; set Options.Objects, or export without files", fault.Show(f.ID))
	}
	return data, err
}
