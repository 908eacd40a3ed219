package souvenir

import (
	"bufio"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"strconv"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/kernel"
)

// ExportOptions change what [Upkeep.Export] writes. Nil means the zero value: everything but credentials.
type ExportOptions struct {
	// Credentials adds the credentials of people and programs: hashes of passwords, MCP tokens and refresh tokens,
	// identities at other providers, OAuth clients and grants, and the private keys that sign access tokens. The holder of
	// such a file can sign tokens for every user of the store: protect it like the store itself. One-time codes are never
	// exported.
	Credentials bool

	// WithoutFiles leaves the files out.
	WithoutFiles bool

	// WithoutVectors leaves out the vectors that an embedder can rebuild from the texts. Callers' own vectors are always
	// included.
	WithoutVectors bool

	// Progress receives the stages "memories" (counted in memories) and "files" (in bytes). Nil disables it.
	Progress Progress
}

// ExportSummary summarizes an export.
type ExportSummary struct {
	Counts map[string]int `json:"counts"` // lines of each kind, such as "memory"
	Bytes  int64          `json:"bytes"`
	SHA256 string         `json:"sha256"` // hex; as in the last line: of all lines before it
}

// Export writes the whole store, all users' data, as JSON Lines; a view writes the data that its user owns:
// preferences, collections, projects, memories and files, but neither credentials nor other members. The export is one
// consistent snapshot of the store at its beginning, however long it takes. [Upkeep.Import] reads it;
// docs/export-format.md describes it. It needs little memory for a store of any size and blocks no other call; but data
// written to the store meanwhile stays in the write-ahead log until it is done. (An in-memory store has no log: there,
// writers wait.)
//
// After an error, w holds the beginning of an export, which Import recognizes as truncated. w must not call the store.
// A view limited to projects may not export.
func (h *Upkeep) Export(ctx context.Context, w io.Writer, options *ExportOptions) (ExportSummary, error) {
	s, err := h.own("Export")
	if err != nil {
		return ExportSummary{}, err
	}
	if w == nil {
		return ExportSummary{}, invalid("w", "w is nil; give a writer")
	}
	if options != nil && options.Credentials && !s.operator {
		return ExportSummary{}, newError(KindForbidden, "Credentials",
			"Credentials is set for the export of a user's things; only the export of a whole store has them")
	}
	var o ExportOptions
	if options != nil {
		o = *options
	}
	if o.Progress == nil {
		o.Progress = func(string, int, int) {}
	}
	e := exporter{ExportOptions: o, hash: sha256.New(), counts: map[string]int{}, places: map[int64]exportPlace{}}
	e.w = bufio.NewWriterSize(io.MultiWriter(w, e.hash, &e.size), 256<<10)
	err = s.read(ctx, func(tx db.Tx, sc scope) error {
		e.tx = tx
		if !s.operator {
			e.user = &sc.User
		}
		return e.all(s.clock().UTC().Format(exportTime))
	})
	if err != nil {
		return ExportSummary{}, err
	}
	return ExportSummary{Counts: e.counts, Bytes: int64(e.size), SHA256: e.sum}, nil
}

// exporter writes an export within one transaction.
type exporter struct {
	ExportOptions
	tx     db.Tx
	user   *int64        // row of the user whose data is written; nil: all users'
	w      *bufio.Writer // into the caller's, the hash and the size
	hash   hash.Hash
	size   byteCount
	sum    string
	line   lineWriter
	counts map[string]int
	places map[int64]exportPlace
}

type byteCount int64

func (n *byteCount) Write(p []byte) (int, error) {
	*n += byteCount(len(p))
	return len(p), nil
}

// all writes the lines in an order that lets an import read them once: each line comes after the lines it refers to.
func (e *exporter) all(now string) error {
	if err := e.encode(exportHeader{Souvenir: exportMark, Version: exportVersion, CreatedAt: now,
		Sealed: true}); err != nil {
		return err
	}
	for _, r := range records() {
		if r.credential && !e.Credentials || e.user != nil && r.owner == "" {
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
	if err := e.w.Flush(); err != nil {
		return err
	}
	e.sum = hex.EncodeToString(e.hash.Sum(nil))
	err := e.encode(struct {
		Type string `json:"type"`
		exportEnd
	}{kindEnd, exportEnd{e.counts, e.sum}})
	return cmp.Or(err, e.w.Flush())
}

func (e *exporter) encode(value any) error {
	line, err := json.Marshal(value)
	if err != nil {
		return err
	}
	_, err = e.w.Write(append(line, '\n'))
	return err
}

// owned is the condition that the exported user owns a row; owner is its column or an expression for it.
func (e *exporter) owned(owner string) string {
	if e.user == nil {
		return `true`
	}
	return owner + ` = ` + strconv.FormatInt(*e.user, 10)
}

// inOwned is the condition that the exported user owns a partition.
func (e *exporter) inOwned(partition string) string {
	if e.user == nil {
		return `true`
	}
	return partition + ` IN (SELECT p.id FROM partition p JOIN collection c ON c.id = p.collection_id WHERE ` +
		e.owned(`c.owner_id`) + `)`
}

// write ends and writes the current line.
func (e *exporter) write(kind string) error {
	line, err := e.line.end()
	if err != nil {
		return err
	}
	e.counts[kind]++
	_, err = e.w.Write(line)
	return err
}

// records writes the lines of one kind that are rows.
func (e *exporter) records(r record) error {
	values, into := r.room()
	return e.tx.Each(func(row db.Rows) error {
		if err := row.Scan(into...); err != nil {
			return err
		}
		e.line.begin(r.kind)
		for i, f := range r.fields {
			if f.credential && !e.Credentials {
				continue
			}
			e.line.value(f, values[i])
		}
		return e.write(r.kind)
	}, r.selection+` WHERE `+e.owned(cmp.Or(r.owner, `NULL`))+` ORDER BY `+r.ordered)
}

// room returns the variables that a row of a record is read into.
func (r record) room() (values, into []any) {
	values, into = make([]any, len(r.fields)), make([]any, len(r.fields))
	for i := range values {
		into[i] = &values[i]
	}
	return values, into
}

// value writes a field; NULL is left out.
func (l *lineWriter) value(f recordField, value any) {
	switch v := value.(type) {
	case string:
		if f.form == jsonForm {
			l.json(f.name, v)
		} else {
			l.text(f.name, v)
		}
	case []byte:
		l.bytes(f.name, v)
	case int64:
		if f.form == timeForm {
			l.time(f.name, v)
		} else {
			l.number(f.name, v)
		}
	}
}

// exportPlace is where a memory lies, by name.
type exportPlace struct{ owner, collection, projectOwner, project string }

// place returns the names of a partition.
func (e *exporter) place(partition int64) (exportPlace, error) {
	if p, ok := e.places[partition]; ok {
		return p, nil
	}
	if len(e.places) >= 4096 {
		clear(e.places) // memories of one place usually lie together
	}
	var p exportPlace
	err := e.tx.QueryRow(`SELECT u.uid, c.name, coalesce(o.uid, ''), coalesce(j.uid, '') FROM partition p
		JOIN collection c ON c.id = p.collection_id JOIN users u ON u.id = c.owner_id
		LEFT JOIN project j ON j.id = p.project_id LEFT JOIN users o ON o.id = j.owner_id WHERE p.id = ?`, partition).
		Scan(&p.owner, &p.collection, &p.projectOwner, &p.project)
	if errors.Is(err, db.ErrNoRows) {
		return p, damaged(err, "a memory, or a former state of one, lies in partition %d, which does not exist", partition)
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
	err = e.tx.Each(func(row db.Rows) error {
		var f exportFile
		if err := row.Scan(&f.row, &f.id, &f.owner, &f.memory, &f.memoryOwner, &f.projectOwner, &f.project, &f.filename,
			&f.mimeType,
			&f.size, &f.sha256, &f.description, &f.category, &f.created, &f.updated); err != nil {
			return err
		}
		if err := tags.each(f.row, func() error { f.tags = append(f.tags, tag); return nil }); err != nil {
			return err
		}
		e.file(f)
		if err := e.write(kindFile); err != nil {
			return err
		}
		return e.chunks(f, func(n int) {
			done += int64(n)
			e.Progress("files", int(done), int(total))
		})
	}, `SELECT f.id, f.uid, u.uid, coalesce(m.uid, ''), coalesce(mu.uid, ''), coalesce(o.uid, ''), coalesce(j.uid, ''), f.filename, f.mime_type,
			f.size, f.sha256, f.description, f.category, f.created_at, f.updated_at
		FROM file f JOIN users u ON u.id = f.owner_id
		LEFT JOIN memory m ON m.id = f.memory_id LEFT JOIN partition p ON p.id = m.partition_id
		LEFT JOIN collection c ON c.id = p.collection_id LEFT JOIN users mu ON mu.id = c.owner_id
		LEFT JOIN project j ON j.id = f.project_id LEFT JOIN users o ON o.id = j.owner_id
		WHERE f.state = 'stored' AND `+e.owned(`f.owner_id`)+` ORDER BY f.id`)
	if err == nil {
		e.Progress("files", int(done), int(total))
	}
	return err
}

type exportFile struct {
	row                                       int64
	id, owner, memory, memoryOwner            string
	projectOwner, project                     string
	filename, mimeType, description, category string
	size, created, updated                    int64
	sha256                                    []byte
	tags                                      []string
}

func (e *exporter) file(f exportFile) {
	l := &e.line
	l.begin(kindFile)
	l.text("id", f.id)
	l.text("owner", f.owner)
	if e.user == nil || f.memoryOwner == f.owner { // others' memories are not in the export of one user's data
		l.optional("memory_id", f.memory)
	}
	if e.user == nil && f.memoryOwner != f.owner {
		l.optional("memory_owner", f.memoryOwner)
	}
	e.project(f.owner, exportPlace{projectOwner: f.projectOwner, project: f.project})
	l.optional("project_id", f.project)
	l.text("filename", f.filename)
	l.text("mime_type", f.mimeType)
	l.number("size", f.size)
	l.text("sha256", hex.EncodeToString(f.sha256))
	l.text("description", f.description)
	l.text("category", f.category)
	l.texts("tags", f.tags)
	l.time("created_at", f.created)
	l.time("updated_at", f.updated)
}

var errChunks = errors.New("its pieces are not what was stored")

// chunks writes the content of a file. It is compared with its hash on the way: a successful export holds the content
// that was stored.
func (e *exporter) chunks(f exportFile, wrote func(n int)) error {
	whole, n, size := sha256.New(), int64(0), int64(0)
	err := e.tx.Each(func(row db.Rows) error {
		var data []byte
		if err := row.Scan(&data); err != nil {
			return err
		}
		whole.Write(data)
		e.line.begin(kindChunk)
		e.line.text("file", f.id)
		e.line.number("n", n)
		e.line.bytes("data", data)
		n, size = n+1, size+int64(len(data))
		wrote(len(data))
		return e.write(kindChunk)
	}, `SELECT data FROM file_chunk WHERE id >= ? AND id < ? ORDER BY id`, f.row<<kernel.ChunkBits, (f.row+1)<<kernel.ChunkBits)
	if err == nil && (size != f.size || string(whole.Sum(nil)) != string(f.sha256)) {
		return damaged(errChunks, "file %s (%s)", f.id, fmt.Sprintf("%d bytes of %d", size, f.size))
	}
	return err
}
