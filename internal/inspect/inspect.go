// Package inspect checks a whole store, and rebuilds derived data from sound data.
package inspect

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/fault"
	"github.com/souvenir-ai/souvenir/internal/files/objects"
	"github.com/souvenir-ai/souvenir/internal/json/jsonobject"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/records/audit"
	"github.com/souvenir-ai/souvenir/internal/sealing/keyring"
	"github.com/souvenir-ai/souvenir/internal/transfer"
	"github.com/souvenir-ai/souvenir/internal/valid"
)

// MaxFindings is the maximum number of findings in a report.
const MaxFindings = 1000

// Store holds the parts of a store that an inspection uses.
type Store struct {
	DB       db.DB
	Profile  int64  // of the embedder's vectors
	Model    string // of the embedder
	MaxInput int    // the maximum input of the embedder, in bytes
	Log      *slog.Logger
	Wake     func()            // starts making missing vectors
	Records  []transfer.Record // of the tables whose values are checked one by one
	Objects  *objects.Objects  // that have content of files
	Keys     *keyring.Ring     // of users; nil: none
	Actor    audit.Entry       // the person or program that checks, for the audit log
}

// Report is the result of a check; souvenir.Report documents its fields.
type Report struct {
	OK                   bool
	Findings             []Finding
	Total, Repaired      int
	Checked              map[string]int
	Verified, Unverified int
	Damaged              []DamagedRow
	HashedSince          time.Time
}

// Finding is a problem in the file.
type Finding struct {
	Table, ID, Problem   string
	Repairable, Repaired bool
}

// DamagedRow is a row of the file that has changed since it was stored, or is missing.
type DamagedRow struct {
	Table string
	Row   int64
	ID    string
	Lost  bool
}

// progress receives the stages of a check.
type progress = func(stage string, done, total int)

// Check examines the whole store, and optionally repairs it. With accept, it accepts data that no repair can rebuild in
// its current state.
func (s Store) Check(ctx context.Context, repair, accept bool, progress progress) (Report, error) {
	before, err := s.inspectAll(ctx, accept, progress)
	if err != nil {
		return Report{}, err
	}
	report := before.report
	if !accept {
		before.repairs.accept, before.repairs.audit = nil, nil
	}
	if repair && report.Total > 0 {
		if err := s.repair(ctx, &before.repairs, progress); err != nil {
			return report, err
		}
		after, err := s.inspectAll(ctx, false, progress)
		if err != nil {
			return report, err
		}
		report = compareReports(before, after)
	}
	report.OK = report.Total == report.Repaired && report.Unverified == 0 && len(report.Damaged) == 0
	return report, nil
}

// Look checks the store in a transaction, without repairs.
func (s Store) Look(tx db.Tx) (Report, error) {
	in := newInspection(s, func(string, int, int) {})
	err := in.look(tx)
	return in.report, err
}

// Hashes only compares the rows of a file with their hashes.
func Hashes(tx db.Tx) (Report, error) {
	in := newInspection(Store{}, func(string, int, int) {})
	in.tx = tx
	err := in.checkHashes()
	return in.report, err
}

// compareReports returns the findings that a repair fixed: those before it that are gone after it.
func compareReports(before, after *inspection) Report {
	report := before.report
	report.Checked, report.Verified, report.Unverified, report.Damaged = after.report.Checked, after.report.Verified,
		after.report.Unverified, after.report.Damaged
	for i, f := range report.Findings {
		report.Findings[i].Repaired = !after.found[f.key()]
	}
	for key := range before.found {
		if !after.found[key] {
			report.Repaired++
		}
	}
	for _, f := range after.report.Findings { // new since the first pass
		if before.found[f.key()] {
			continue
		}
		if report.Total++; len(report.Findings) < MaxFindings {
			report.Findings = append(report.Findings, f)
		}
	}
	return report
}

// key identifies a finding.
func (f Finding) key() string { return f.Table + "\x00" + f.ID + "\x00" + f.Problem }

// inspection is one pass over the whole store, in one snapshot.
type inspection struct {
	s        Store
	tx       db.Tx
	progress progress
	report   Report
	found    map[string]bool // keys of all findings, including those beyond the report's limit
	repairs  repairs
	accept   bool // accept data that no repair can rebuild

	lostMemories map[int64]bool // known only to the hashes

	ctx      context.Context // for the object storage
	suspects []suspect       // damaged objects
	unread   int             // chunks in an object storage that is not open

	profiles map[int64]kernel.Profile
	current  int64            // the profile of all vectors; 0 while the store changes to another one
	terms    map[int64]uint64 // passage -> sum of its terms expected in full text; 0 for none

	words db.Words // full text in its stored form
	form  func(passage int64, terms string) (string, error)
}

// inspectAll checks the whole store and records each problem and its repair.
func (s Store) inspectAll(ctx context.Context, accept bool, progress progress) (*inspection, error) {
	in := newInspection(s, progress)
	in.accept, in.ctx = accept, ctx
	if err := db.Scratch(ctx, s.DB, in.look); err != nil {
		return in, err
	}
	return in, in.checkSuspects()
}

func newInspection(s Store, progress progress) *inspection {
	return &inspection{
		s: s, progress: progress, report: newReport(),
		found: map[string]bool{}, terms: map[int64]uint64{}, lostMemories: map[int64]bool{}, ctx: context.Background(),
	}
}

func newReport() Report {
	return Report{Findings: []Finding{}, Checked: map[string]int{}, Damaged: []DamagedRow{}}
}

// look checks everything in one transaction.
func (in *inspection) look(tx db.Tx) error {
	in.tx = tx
	in.words, in.form = keyring.StoredWords(tx.Words())
	type step struct {
		table string
		look  func() error
	}
	steps := []step{
		{"file", in.checkFile},
		{"row_hash", in.checkHashes},
		{"references", in.checkReferences},
		{"profile", in.readProfiles},
		{"users", in.checkFoldedNames},
		{"collection", in.checkRetention},
		{"users", in.checkNamespaces},
	}
	for _, r := range in.s.Records {
		steps = append(steps, step{r.Table, func() error { return in.checkRecords(r) }})
	}
	for _, step := range append(steps, []step{
		{"partition", in.checkPartitions},
		{"memory", in.checkMemories},
		{"memory_own", in.checkOwnIndex},
		{"segment", in.checkSegments},
		{"passage_text", in.checkFullText},
		{"memory_revision", in.checkRevisions},
		{"file", in.checkFiles},
		{"file", in.checkTexts},
		{"file_object", in.checkObjects},
		{"trash", in.checkTrash},
		{"audit", in.checkAudit},
	}...) {
		err := step.look()
		if in.s.aboutContent(err) {
			// The rows behind the damage cannot be read; the rest can.
			text := step.table == "passage_text"
			in.find(Finding{Table: step.table, Problem: "cannot be read completely: " + err.Error(), Repairable: text})
			in.repairs.fullText = in.repairs.fullText || text
			err = nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// aboutContent reports whether an error means that stored data is damaged. Other errors are failures of the check
// itself: an unavailable store is not damaged.
func (s Store) aboutContent(err error) bool {
	var known *fault.Error
	switch {
	case err == nil, errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return false
	case errors.As(err, &known) && known.Kind == fault.KindCorrupt:
		return true
	case errors.As(err, &known) && known.Kind == fault.KindBusy: // of the object storage
		return false
	}
	return errors.Is(err, db.ErrCorrupt) || s.DB.Upkeep().Damaged(err)
}

// find records a problem.
func (in *inspection) find(f Finding) {
	if in.found[f.key()] {
		return
	}
	in.found[f.key()] = true
	in.report.Total++
	if len(in.report.Findings) < MaxFindings {
		in.report.Findings = append(in.report.Findings, f)
	}
}

// checkFile has the engine check its own structures: the file, indexes and full text.
func (in *inspection) checkFile() error {
	in.progress("file", 0, 1)
	problems, err := in.s.DB.Upkeep().Damage(in.tx, MaxFindings)
	if err != nil {
		return err
	}
	for _, p := range problems {
		in.find(Finding{Table: "file", Problem: p.Text, Repairable: p.Words || p.Indexes})
		in.repairs.fullText = in.repairs.fullText || p.Words
		in.repairs.indexes = in.repairs.indexes || p.Indexes
	}
	in.progress("file", 1, 1)
	return nil
}

// orphans are rows of a table with a dangling reference.
type orphans struct{ table, column, parent, key string }

func (o orphans) condition() string {
	return fmt.Sprintf(`"%s" IS NOT NULL AND "%s" NOT IN (SELECT "%s" FROM "%s")`, o.column, o.column, o.key, o.parent)
}

// kept are the tables whose rows no repair deletes: data that people stored, and tables whose rows would take such data
// with them.
var kept = []string{"trash", "trash_item", "memory", "file", "partition", "collection", "project", "users"}

// checkReferences finds dangling references.
func (in *inspection) checkReferences() error {
	in.progress("references", 0, 1)
	all, err := in.s.DB.Upkeep().Broken(in.tx)
	if err != nil {
		return err
	}
	for _, b := range all {
		f := Finding{Table: b.Table,
			Problem: fmt.Sprintf("%d rows refer by %s to a %s that does not exist", b.Rows, b.Column, b.Parent)}
		switch {
		case b.Table == "passage" && b.Column == "profile_id": // found with its memory
			continue
		case b.OnDelete == "SET NULL" && !(b.Parent == "memory" && len(in.lostMemories) > 0):
			f.Repairable = true
			in.repairs.unlink = append(in.repairs.unlink, orphans{b.Table, b.Column, b.Parent, b.Key})
		case b.Table == "memory_revision" &&
			b.Parent == "partition": // its access is unknown, but it still belongs to a user
		case b.Parent == "memory" &&
			len(in.lostMemories) > 0: // rows of a lost memory are all that remains of it
		case b.OnDelete == "CASCADE" && !slices.Contains(kept, b.Table):
			f.Repairable = true
			in.repairs.orphans = append(in.repairs.orphans, orphans{b.Table, b.Column, b.Parent, b.Key})
		}
		in.find(f)
	}
	in.progress("references", 1, 1)
	return nil
}

// readProfiles reads the valid vector profiles.
func (in *inspection) readProfiles() error {
	in.profiles = map[int64]kernel.Profile{}
	err := db.Stream(in.tx, func(row db.Rows) error {
		var id int64
		var p kernel.Profile
		err := row.Scan(&id, &p.Key, &p.Model, &p.Dimensions)
		in.profiles[id] = p
		if p.Model == kernel.OwnVectors && p.Key != kernel.OwnProfile(p.Dimensions).Key || !utf8.ValidString(p.Key) ||
			!utf8.ValidString(p.Model) {
			in.find(Finding{Table: "profile",
				Problem: fmt.Sprintf("profile %d has the key %s, which is not that of vectors of %d dimensions of the model %s", id,
					fault.Show(p.Key), p.Dimensions, fault.Show(p.Model))})
		}
		return err
	}, `SELECT id, key, model, dimensions FROM profile`)
	if err != nil {
		return err
	}
	target, err := kernel.Setting(in.tx, kernel.SettingTarget)
	if err != nil {
		return err
	}
	ready, err := kernel.Setting(in.tx, kernel.SettingReady)
	if ready == target {
		in.current = ready
	}
	return err
}

// checkPartitions compares the stored counts with actual ones.
func (in *inspection) checkPartitions() error {
	return db.Stream(in.tx, func(row db.Rows) error {
		var id, next, following int64
		var collection string
		var memories, passages, counted, countedPassages int
		var held, revisions, heldNow, revisionsNow int64
		var misplaced bool
		if err := row.Scan(&id, &collection, &next, &memories, &passages, &counted, &countedPassages, &following, &held,
			&revisions, &heldNow, &revisionsNow, &misplaced); err != nil {
			return err
		}
		if misplaced {
			in.find(Finding{Table: "partition", ID: collection,
				Problem: fmt.Sprintf("partition %d is in a project, and its collection belongs to another user than the project",
					id), Repairable: true})
			in.repairs.places = append(in.repairs.places, id)
		}
		in.report.Checked["partition"]++
		wrong := func(format string, args ...any) {
			in.find(Finding{Table: "partition", ID: collection, Problem: fmt.Sprintf("partition %d ", id) +
				fmt.Sprintf(format, args...), Repairable: true})
			in.repairs.counts = append(in.repairs.counts, id)
		}
		if memories != counted {
			wrong("counts %d memories but has %d", memories, counted)
		}
		if passages != countedPassages {
			wrong("counts %d passages but has %d", passages, countedPassages)
		}
		if held != heldNow || revisions != revisionsNow {
			wrong("counts %d bytes and %d past versions but has %d and %d", held, revisions, heldNow, revisionsNow)
		}
		if next < following || next > 1<<kernel.PassageBits {
			wrong("would number its next passage %d, but has passages up to %d", next, following-1)
		}
		return nil
	}, `SELECT p.id, coalesce(c.name, ''), p.next_passage, p.memories, p.passages, (SELECT count(*) FROM memory m
		WHERE m.partition_id = p.id),
			(SELECT count(*) FROM passage a WHERE a.id BETWEEN p.id << 32 AND (p.id + 1 << 32) - 1),
			coalesce((SELECT max(a.id) & 4294967295 FROM passage a WHERE a.id BETWEEN p.id << 32 AND (p.id + 1 << 32) - 1),
			-1) + 1,
			p.bytes, p.revisions, `+strings.ReplaceAll(partitionBytes, "?1", "p.id")+
		`, (SELECT count(*) FROM memory_revision WHERE partition_id = p.id),
			coalesce(c.owner_id <> j.owner_id, false)
		FROM partition p LEFT JOIN collection c ON c.id = p.collection_id LEFT JOIN project j ON j.id = p.project_id
		ORDER BY p.id`)
}

// checkRevisions checks that past versions of memories can be read.
func (in *inspection) checkRevisions() error {
	return db.Stream(in.tx, func(row db.Rows) error {
		var memory, content, attributes string
		var number, current int
		var version, created int64
		if err := row.Scan(&version, &memory, &number, &current, &content, &attributes, &created); err != nil {
			return err
		}
		in.report.Checked["memory_revision"]++
		if content == "" && in.lost(&in.repairs.lost.revisions, version, "memory_revision", memory,
			fmt.Sprintf("revision %d", number)) {
			return nil
		}
		wrong := func(problem string) {
			in.find(Finding{Table: "memory_revision", ID: memory, Problem: fmt.Sprintf("revision %d %s", number, problem)})
		}
		for _, err := range []error{valid.Content(content), valid.Time("created_at", created)} {
			if err != nil {
				wrong("cannot be: " + err.Error())
			}
		}
		if object, err := jsonobject.Decode([]byte(attributes)); err != nil || object == nil {
			wrong("has metadata that is not a JSON object")
		} else if err := checkShown(object); err != nil {
			wrong("has invalid metadata: " + err.Error())
		}
		if number < 1 || number >= current {
			wrong(fmt.Sprintf("is not older than the current one, %d", current))
		}
		return nil
	}, `SELECT r.id, m.uid, r.revision, m.revision, r.content, r.attributes, r.created_at FROM memory_revision r `+
		`JOIN memory m ON m.id = r.memory_id ORDER BY r.memory_id, r.revision`)
}

// checkTrash checks that the trash can be restored.
func (in *inspection) checkTrash() error {
	wrong := func(table, id, format string, args ...any) {
		in.find(Finding{Table: table, ID: id, Problem: fmt.Sprintf(format, args...)})
	}
	err := db.Stream(in.tx, func(row db.Rows) error {
		var id, kind, title, through string
		var memories, counted, revisions, countedRevisions, files int
		var deleted, until int64
		if err := row.Scan(&id, &kind, &title, &through, &deleted, &until, &memories, &counted, &revisions, &countedRevisions,
			&files); err != nil {
			return err
		}
		in.report.Checked["trash"]++
		for _, err := range []error{valid.UTF8("title", title), valid.UTF8("deleted_through", through),
			valid.Time("deleted_at", deleted)} {
			if err != nil {
				wrong("trash", id, "cannot be: %v", err)
			}
		}
		if memories != counted && until > 0 { // an entry being erased no longer counts
			wrong("trash", id, "counts %d memories but has %d", memories, counted)
		}
		if revisions != countedRevisions && until > 0 {
			wrong("trash", id, "counts %d past versions but has %d", revisions, countedRevisions)
		}
		if kind == "file" && files != 1 {
			wrong("trash", id, "has %d files instead of one", files)
		}
		return nil
	}, `SELECT uid, kind, title, deleted_through, deleted_at, restorable_until, memories,
			(SELECT count(*) FROM trash_item i WHERE i.entry_id = t.id AND i.kind = 'memory'), revisions,
			(SELECT count(*) FROM trash_item i WHERE i.entry_id = t.id AND i.kind = 'revision'),
			(SELECT count(*) FROM file f WHERE f.uid = 'trash/' || t.id AND f.state = 'trashed')
		FROM trash t ORDER BY id`)
	if err != nil {
		return err
	}
	err = db.Stream(in.tx, func(row db.Rows) error {
		var kind string
		var i kernel.TrashItem
		var entry int64
		if err := row.Scan(&entry, &kind, &i.ID, &i.Data); err != nil {
			return err
		}
		in.report.Checked["trash_item"]++
		if i.Data == `{}` && in.lost(&in.repairs.lost.entries, entry, "trash_item", i.ID, "it") {
			return nil
		}
		var err error
		if kind == "memory" {
			err = i.Into(&kernel.TrashedMemory{})
		} else {
			err = i.Into(&kernel.TrashedRevision{})
		}
		if err != nil {
			wrong("trash_item", i.ID, "cannot be restored: %v", err)
		}
		return nil
	}, `SELECT entry_id, kind, uid, data FROM trash_item WHERE kind IN ('memory', 'revision') ORDER BY id`)
	if err != nil {
		return err
	}
	strays, err := db.Column[string](in.tx,
		`SELECT uid FROM file WHERE state = 'trashed' AND uid NOT IN (SELECT 'trash/' || id FROM trash WHERE kind = 'file')`)
	for _, id := range strays {
		wrong("file", id, "is in the trash without an entry")
	}
	return err
}
