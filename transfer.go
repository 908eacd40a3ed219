package souvenir

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/files/objects"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/records/audit"
	"github.com/souvenir-ai/souvenir/internal/records/receipt"
	"github.com/souvenir-ai/souvenir/internal/transfer"
	"github.com/souvenir-ai/souvenir/internal/valid"
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

	// Namespaces are the namespaces whose users' data is written; "" is the default one. Nil means all. One without
	// users is ErrNotFound. Only the operator's store can name any.
	Namespaces []string

	// Receipt is filled when the export is complete; nil: there is none. It needs a store that can be written to.
	Receipt *Receipt

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
func (h *Upkeep) Export(ctx context.Context, w io.Writer, options *ExportOptions) (_ ExportSummary, err error) {
	defer setGoNames[ExportOptions](&err, "w", "w")
	s, err := h.own(ctx, "Export")
	if err != nil {
		return ExportSummary{}, err
	}
	if w == nil {
		return ExportSummary{}, invalid("w", "{} is nil; give a writer")
	}
	var o ExportOptions
	if options != nil {
		o = *options
	}
	if err := o.check(s); err != nil {
		return ExportSummary{}, err
	}
	lost := "" // key of a damaged object
	of := transfer.Settings{Namespaces: o.Namespaces, Credentials: o.Credentials, WithoutFiles: o.WithoutFiles,
		WithoutVectors: o.WithoutVectors,
		Progress:       o.Progress, Now: s.clock(),
		Keys: s.ring,
		Content: func(key string, sum []byte) (data []byte, err error) {
			if data, err = s.objects.Content(ctx, key, sum); errors.Is(err, objects.ErrDamaged) {
				lost = key
			}
			return data, err
		}}
	if o.Receipt != nil {
		of.Parts = receipt.Parts{}
	}
	var sum transfer.Summary
	err = s.read(ctx, func(tx db.Tx, v viewer) (err error) {
		if !s.operator {
			of.User = &v.User
		}
		sum, err = transfer.Export(tx, w, of)
		return err
	})
	if lost != "" {
		if held, failed := s.objects.Held(ctx, lost); failed == nil && !held {
			err = causedBy(err, newError(KindConflict, "",
				"a file was permanently deleted during the export, and its content is gone; export again"))
		}
	}
	summary := ExportSummary{Counts: sum.Counts, Bytes: sum.Bytes, SHA256: sum.SHA256}
	e := event{"export", "store", "", audit.Details{"all": s.operator,
		"credentials": o.Credentials, "bytes": sum.Bytes, "sha256": sum.SHA256, "counts": sum.Counts}}
	if err == nil && o.Receipt != nil {
		return summary, s.signExport(ctx, o, sum, of.Parts, e)
	}
	return summary, s.noteAlone(ctx, err, e)
}

// check refuses options that a view may not use.
func (o *ExportOptions) check(s *Store) error {
	switch {
	case o.Credentials && !s.operator:
		return newError(KindForbidden, "Credentials",
			"{} is set for the export of one user's data; only the export of a whole store has them")
	case o.Namespaces != nil && !s.operator:
		return newError(KindForbidden, "Namespaces",
			"{} is set for the export of one user's data; only the operator's store can export namespaces")
	case o.Namespaces != nil && len(o.Namespaces) == 0:
		return invalid("Namespaces", `{} is empty; give some, or nil for all ("" is the default namespace)`)
	case o.Receipt != nil:
		return s.checkWritable()
	}
	return nil
}

// signExport makes the receipt of an export, with its entry in the audit log.
func (s *Store) signExport(ctx context.Context, o ExportOptions, sum transfer.Summary, parts receipt.Parts,
	e event) error {
	c := receipt.Claims{Kind: receipt.Export, Bytes: sum.Bytes, SHA256: sum.Whole, Parts: parts.Sums(),
		Counts: map[string]int64{}, Namespaces: o.Namespaces}
	if o.WithoutFiles {
		c.Without = append(c.Without, "files")
	}
	if o.WithoutVectors {
		c.Without = append(c.Without, "vectors")
	}
	for kind, n := range sum.Counts {
		c.Counts[kind] = int64(n)
	}
	if !s.operator {
		c.User = s.access.User
	}
	var signed Receipt
	err := s.writeStore(ctx, func(tx db.Tx) (err error) {
		signed, err = s.sign(ctx, tx, c, e)
		return err
	})
	if err == nil { // a receipt must not prove what was rolled back
		*o.Receipt = signed
	}
	return err
}

// ConflictPolicy decides about items that the store already has in another state.
type ConflictPolicy string

// The values of [ConflictPolicy]. The empty value means ConflictKeep.
const (
	ConflictKeep    ConflictPolicy = "keep"    // keep the store's item
	ConflictReplace ConflictPolicy = "replace" // overwrite it with the export's
)

// ImportOptions change how [Upkeep.Import] works. Nil means the zero value.
type ImportOptions struct {
	// OnConflict decides about items with the same id (or name) and owner but another state: memories, revisions, files,
	// collections, projects, members and preferences. Accounts and credentials are always kept, and so are other users'
	// items.
	OnConflict ConflictPolicy

	// Namespace is the namespace for all data of the export. Empty means the namespaces of the export itself. If it is
	// set, an export of several namespaces is ErrInvalid.
	Namespace string

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

	// Rewritten counts memories of a handmade file that hooks changed.
	Rewritten int `json:"rewritten,omitempty"`

	Warnings []string `json:"warnings,omitempty"` // notes for the caller; the import is done
	Line     int      `json:"line"`               // everything up to this line is in the store
}

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
// The memories of a handmade file, one without a last line that has its hash, are new content: [Hooks.BeforeStore] gets
// each, and may change its Content, Tags and Metadata, or refuse the import. An export is restored as it is.
//
// Options.MaxFile and Options.FileQuota apply to uploads and do not limit imports.
//
// Only the operator's store may import: it creates users, and with credentials in the export these can sign in. Import
// only your own files.
func (h *Upkeep) Import(ctx context.Context, r io.Reader, options *ImportOptions) (_ ImportReport, err error) {
	defer setGoNames[ImportOptions](&err, "r", "r")
	s, err := h.operator(ctx, "Import")
	if err != nil {
		return importReport(transfer.Report{}), err
	}
	if r == nil {
		return importReport(transfer.Report{}), invalid("r", "{} is nil; give a reader of an export")
	}
	var o ImportOptions
	if options != nil {
		o = *options
	}
	o.OnConflict = cmp.Or(o.OnConflict, ConflictKeep)
	if err := valid.Enum("OnConflict", o.OnConflict, []ConflictPolicy{ConflictKeep, ConflictReplace}); err != nil {
		return importReport(transfer.Report{}), err
	}
	if o.Namespace != "" {
		if err := valid.Name("Namespace", o.Namespace); err != nil {
			return importReport(transfer.Report{}), err
		}
	}
	if s.db.ReadOnly() {
		return importReport(transfer.Report{}),
			newError(KindReadOnly, "", "the store is open read-only; nothing can be imported")
	}
	into := transfer.Target{
		DB: s.db, Keys: s.ring, Namespace: o.Namespace, Now: s.now, NewID: s.newID, Log: s.log, Profile: s.profile,
		Model: s.embedder.Model(), Dimensions: s.embedder.Dimensions(), MaxInput: maxInput(s.embedder),
		Embed: func(ctx context.Context, texts []string) ([][]float32, []string, error) {
			return s.embedTexts(ctx, texts, func(string, int, int) {})
		},
		Waiting: func() { s.worker.Wake(); s.texts.Wake() },
	}
	if s.filesInObjects() {
		into.Objects = s.objects
	}
	if len(s.options.Hooks) > 0 {
		into.Rewrite = s.rewriteImported
	}
	sum, err := transfer.Import(ctx, into, r, o.OnConflict == ConflictReplace, o.Progress)
	changed := 0
	for _, c := range sum.Counts {
		changed += c.Added + c.Replaced
	}
	if changed == 0 {
		return importReport(sum), wrap(err)
	}
	noted := s.noteAlone(ctx, nil, event{"import", "store", "", audit.Details{"lines": sum.Line, "items": changed,
		"complete": err == nil, "replace": o.OnConflict == ConflictReplace}})
	return importReport(sum), cmp.Or(wrap(err), noted)
}

// ExportCheckOptions change how [CheckExport] works.
type ExportCheckOptions struct {
	// Hooks are those of the store that is to import it, see [Options.Hooks].
	Hooks []Hooks

	// Progress receives the stage "check", counted in lines; the total is 0 while unknown. Nil disables it.
	Progress Progress
}

// CheckExport checks an export, or a handmade file in the same form, as [Upkeep.Import] does before it writes anything,
// and returns the error that Import would return. It needs no store, so that none is created for an invalid file. Nil
// options are the zero value.
func CheckExport(ctx context.Context, r io.Reader, options *ExportCheckOptions) (err error) {
	defer setGoNames[struct{}](&err, "r", "r")
	if r == nil {
		return invalid("r", "{} is nil; give a reader of an export")
	}
	o := cmp.Or(options, &ExportCheckOptions{})
	op := &operation{hooks: o.Hooks, log: slog.New(slog.DiscardHandler)}
	return wrap(transfer.CheckExport(ctx, r, o.Progress, op.rewriteImported))
}

// importReport returns the report in the form of the API.
func importReport(sum transfer.Report) ImportReport {
	report := ImportReport{Counts: map[string]ImportCount{}, MissingLinks: sum.MissingLinks, Ignored: sum.Ignored,
		Rewritten: sum.Rewritten, Warnings: sum.Warnings, Line: sum.Line}
	for kind, n := range sum.Counts {
		report.Counts[kind] = ImportCount(n)
	}
	for _, c := range sum.Conflicts {
		report.Conflicts = append(report.Conflicts, ImportConflict(c))
	}
	return report
}

// rewriteImported lets the hooks change the content, tags and own metadata of a memory of a handmade file.
func (s *Store) rewriteImported(ctx context.Context, d *kernel.Draft) error {
	if ctx.Value(withoutHooks{s.shared}) != nil {
		return nil
	}
	o := &operation{hooks: s.options.Hooks, log: s.log, view: s, Operation: Operation{Access: s.Access()}}
	return o.rewriteImported(context.WithValue(ctx, withoutHooks{s.shared}, true), d)
}

func (o *operation) rewriteImported(ctx context.Context, d *kernel.Draft) error {
	o.Kind, o.Method, o.Count = OperationStore, "Import", 1
	m := NewMemory{Content: d.Content, Key: d.Key}.rewritable(*d)
	if err := o.beforeStore(ctx, &m); err != nil {
		return err
	}
	after, err := newDraft(m)
	d.Content, d.Tags, d.Own = after.Content, after.Tags, after.Own
	return err
}
