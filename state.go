package souvenir

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir/internal/audit"
	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/kernel"
)

// What a store says about itself: how it works, whether it does, how much it holds, and what it does now.

// Configuration describes how a store works: the options passed to Open, with their defaults, and what they apply to.
type Configuration struct {
	Path       string `json:"path"`       // absolute path of the file; ":memory:" for none; "" for a store not in a file
	ReadOnly   bool   `json:"read_only"`  // the file is never written to
	Engine     string `json:"engine"`     // version of the storage engine
	Model      string `json:"model"`      // of the embedder
	Dimensions int    `json:"dimensions"` // of its vectors

	IndexMemory  int64         `json:"index_memory"` // bytes; negative: no index in memory
	MaxFile      int64         `json:"max_file"`     // bytes of a file
	FileQuota    int64         `json:"file_quota"`   // bytes of all files of an owner; 0: no quota
	NewFiles     FilePlace     `json:"new_files"`    // where the content of new files goes
	Quota        Quota         `json:"quota"`        // of memories
	KeepActivity time.Duration `json:"keep_activity"`
	MaxActivity  int           `json:"max_activity"` // recorded calls
	KeepTrash    time.Duration `json:"keep_trash"`   // negative: no trash, deletions are permanent
	BackupEvery  time.Duration `json:"backup_every"` // 0: the program makes no scheduled backups
	KeepBackups  int           `json:"keep_backups"`
}

// Configuration returns the store's configuration. It is for the Store that Open returned; a view gets ErrForbidden.
func (h *Upkeep) Configuration(ctx context.Context) (Configuration, error) {
	s, err := h.operator(ctx, "Configuration")
	if err != nil {
		return Configuration{}, err
	}
	o := &s.options
	if err := s.read(ctx, func(tx db.Tx, _ viewer) (err error) { // an error on a closed store
		o, err = s.limits(tx)
		return err
	}); err != nil {
		return Configuration{}, err
	}
	c := Configuration{
		Path: s.db.Upkeep().Path(), ReadOnly: s.db.ReadOnly(), Model: s.embedder.Model(), Dimensions: s.embedder.Dimensions(),
		IndexMemory: o.IndexMemory, MaxFile: o.MaxFile, FileQuota: o.FileQuota, NewFiles: o.NewFiles, Quota: o.Quota,
		KeepActivity: o.KeepActivity, MaxActivity: o.MaxActivity,
		KeepTrash: o.KeepTrash, BackupEvery: o.BackupEvery, KeepBackups: o.KeepBackups,
	}
	if c.Path != "" && c.Path != ":memory:" {
		absolute, err := filepath.Abs(c.Path)
		if err != nil {
			return Configuration{}, wrap(err)
		}
		c.Path = absolute
	}
	c.Engine = strings.TrimPrefix(s.db.Upkeep().Name(), "SQLite ")
	return c, nil
}

// SettingName names a setting of a store that can be changed while it is open.
type SettingName string

// The settings that [Options.Changeable] may list.
const (
	SettingMemories  SettingName = "memories"       // Quota.Memories
	SettingRevisions SettingName = "revisions"      // Quota.Revisions
	SettingItems     SettingName = "items"          // Quota.Items
	SettingBytes     SettingName = "bytes"          // Quota.Bytes
	SettingFileBytes SettingName = "file_bytes"     // Options.FileQuota, in bytes
	SettingTrash     SettingName = "trash_days"     // Options.KeepTrash, in days
	SettingActivity  SettingName = "activity_days"  // Options.KeepActivity, in days
	SettingCalls     SettingName = "activity_calls" // Options.MaxActivity
	SettingIndex     SettingName = "index_bytes"    // Options.IndexMemory
	SettingBackups   SettingName = "backup_hours"   // Options.BackupEvery, in hours
	SettingKept      SettingName = "backups_kept"   // Options.KeepBackups
)

// settingNames are the known ones, in the order in which ListSettings returns them.
var settingNames = []SettingName{SettingMemories, SettingRevisions, SettingItems, SettingBytes, SettingFileBytes,
	SettingTrash, SettingActivity, SettingCalls, SettingIndex, SettingBackups, SettingKept}

// Setting is a setting that can be changed while the store is open.
type Setting struct {
	Name    SettingName `json:"name"`
	Value   int64       `json:"value"`   // a number, bytes or days; of quotas, 0 is no limit
	Default int64       `json:"default"` // what the option says
	Changed bool        `json:"changed"` // by ChangeSetting
	Least   int64       `json:"least"`   // of the values that are allowed
	Most    int64       `json:"most"`
}

const dayLong = 24 * time.Hour

// Backups are seldom enough that those of seven times do not replace all others within an afternoon, and kept long
// enough that a damage that is noticed days later is not in all of them.
const (
	leastBackups, mostBackups = 1, 31 * 24 // hours between two
	leastKept, mostKept       = 7, 1000
)

// leastIndex is the least memory of an index: with less, searches would load it again and again.
const leastIndex = 1 << 20

// number returns where a setting is in the options, in its unit.
func (o *Options) number(name SettingName) (get func() int64, set func(int64), least, most int64) {
	whole := func(n *int) (func() int64, func(int64), int64, int64) {
		return func() int64 { return int64(*n) }, func(v int64) { *n = int(v) }, 0, 1_000_000_000
	}
	days := func(d *time.Duration) (func() int64, func(int64), int64, int64) {
		return func() int64 { return int64(*d / dayLong) }, func(v int64) { *d = time.Duration(v) * dayLong }, 1,
			int64(maxKeepActivity / dayLong)
	}
	bytes := func(n *int64) (func() int64, func(int64), int64, int64) {
		return func() int64 { return *n }, func(v int64) { *n = v }, 0, 1 << 50
	}
	switch name {
	case SettingMemories:
		return whole(&o.Quota.Memories)
	case SettingRevisions:
		return whole(&o.Quota.Revisions)
	case SettingItems:
		return whole(&o.Quota.Items)
	case SettingBytes:
		return bytes(&o.Quota.Bytes)
	case SettingFileBytes:
		return bytes(&o.FileQuota)
	case SettingTrash:
		return days(&o.KeepTrash)
	case SettingActivity:
		return days(&o.KeepActivity)
	case SettingIndex:
		get, set, _, most = bytes(&o.IndexMemory)
		return get, set, leastIndex, most
	case SettingBackups:
		return func() int64 { return int64(o.BackupEvery / time.Hour) },
			func(v int64) { o.BackupEvery = time.Duration(v) * time.Hour }, leastBackups, mostBackups
	case SettingKept:
		get, set, _, _ = whole(&o.KeepBackups)
		return get, set, leastKept, mostKept
	}
	get, set, _, most = whole(&o.MaxActivity)
	return get, set, 1, most
}

// checkChangeable refuses unknown settings, and those of what is turned off: it cannot be turned on later.
func (o *Options) checkChangeable() error {
	for _, name := range o.Changeable {
		if !slices.Contains(settingNames, name) {
			return invalid("Changeable", "{} lists %s; allowed are %s", show(string(name)), oneOf(settingNames))
		}
		if name == SettingTrash && o.KeepTrash < 0 {
			return invalid("Changeable", "{} lists %s, but KeepTrash turns the trash off", show(string(name)))
		}
		if name == SettingIndex && o.IndexMemory < 0 {
			return invalid("Changeable", "{} lists %s, but IndexMemory turns the index off", show(string(name)))
		}
	}
	return nil
}

// limits returns the options with what has been changed.
func (s *shared) limits(tx db.Tx) (*Options, error) {
	if len(s.options.Changeable) == 0 {
		return &s.options, nil
	}
	o, err := s.limited.Get(tx, s.now(), func(changed map[string]int64) *Options {
		o := s.options
		for _, name := range o.Changeable {
			if value, is := changed[string(name)]; is {
				_, set, least, most := o.number(name)
				set(min(max(value, least), most))
			}
		}
		return &o
	})
	if err == nil {
		s.index.SetLimit(o.IndexMemory)
	}
	return o, err
}

// ListSettings returns the settings that [Options.Changeable] lists. It is for the Store that Open returned; a view
// gets ErrForbidden.
func (h *Upkeep) ListSettings(ctx context.Context) (all []Setting, err error) {
	s, err := h.operator(ctx, "ListSettings")
	if err != nil {
		return nil, err
	}
	err = s.read(ctx, func(tx db.Tx, _ viewer) error {
		changed, err := kernel.ChangedSettings(tx)
		for _, name := range settingNames {
			if !slices.Contains(s.options.Changeable, name) {
				continue
			}
			get, _, least, most := s.options.number(name)
			one := Setting{Name: name, Value: get(), Default: get(), Least: least, Most: most}
			if value, is := changed[string(name)]; is {
				one.Value, one.Changed = value, true
			}
			all = append(all, one)
		}
		return err
	})
	return all, err
}

// ChangeSetting changes a setting that [Options.Changeable] lists, for all processes: others follow within ten seconds.
// Nil makes the option count again. Lower quotas delete nothing: who has more stores nothing new. Calls that are too
// old or too many are deleted when the next ones are recorded; what is in the trash keeps its time. The search index
// gives memory back with the next search. It is for the Store that Open returned; a view gets ErrForbidden.
func (h *Upkeep) ChangeSetting(ctx context.Context, name SettingName, value *int64) error {
	s, err := h.operator(ctx, "ChangeSetting")
	if err != nil {
		return err
	}
	if !slices.Contains(s.options.Changeable, name) {
		return invalid("name", "{} is %s; what can be changed here: %s", show(string(name)),
			cmp.Or(oneOf(s.options.Changeable), "nothing"))
	}
	if _, _, least, most := s.options.number(name); value != nil && (*value < least || *value > most) {
		return invalid(string(name), "{} is %d; %d to %d are allowed", *value, least, most)
	}
	err = s.write(ctx, func(tx db.Tx, _ viewer) error {
		err := kernel.ChangeSetting(tx, string(name), value)
		return s.note(ctx, tx, err, event{"setting.change", "setting", string(name), audit.Details{"value": value}})
	})
	s.limited.Forget()
	return err
}

// Health returns nil if the store works, or an error that describes the problem. ErrFull means that the disk is full:
// reading works, deleting works while [Options].Reserve lasts, and nothing new is stored. ErrReadOnly means that the
// disk has become read-only: reading works. Each call checks again, so the result becomes nil once the problem is gone.
//
// It is for the Store that Open returned; a view gets ErrForbidden.
func (h *Upkeep) Health(ctx context.Context) error {
	s, err := h.operator(ctx, "Health")
	if err != nil {
		return err
	}
	if err := s.db.Read(ctx, func(tx db.Tx) error { _, err := tx.Exec(`SELECT 1`); return err }); err != nil {
		return wrap(err)
	}
	err = s.db.Upkeep().Room(ctx)
	switch {
	case errors.Is(err, db.ErrFull):
		return &Error{Kind: KindFull,
			Message: fmt.Sprintf("the disk is full: nothing new is stored until there is space; reading and deleting work (%v)",
				err), Err: err}
	case errors.Is(err, db.ErrReadOnly):
		return &Error{Kind: KindReadOnly,
			Message: fmt.Sprintf("the disk is read-only: nothing is stored or deleted; reading works (%v)", err), Err: err}
	}
	return wrap(err)
}

// Problem is something that is wrong with a store that can be read.
type Problem struct {
	Kind    ProblemKind `json:"kind"`
	Message string      `json:"message"` // for the operator: it may hold paths, addresses and texts of other services
}

// ProblemKind is a kind of [Problem]. It tells nothing about the machine, so that everyone may know it.
type ProblemKind string

// The values of [ProblemKind].
const (
	ProblemDiskFull     ProblemKind = "disk_full"      // nothing new is stored; reading and deleting work
	ProblemDiskReadOnly ProblemKind = "disk_read_only" // nothing is stored or deleted; reading works
	ProblemEmbedder     ProblemKind = "embedder_down"  // new memories are found by words only, until it works again
	ProblemIndexBehind  ProblemKind = "index_behind"   // searches are slower until the index is loaded again
)

// ProblemKinds returns all kinds.
func ProblemKinds() []ProblemKind {
	return []ProblemKind{ProblemDiskFull, ProblemDiskReadOnly, ProblemEmbedder, ProblemIndexBehind}
}

// Problems returns what is wrong with a store that can be read; never nil without an error. An error means that the
// database cannot be read. It takes no longer with a larger store, so that it can be called every few seconds.
//
// It is for the Store that Open returned; a view gets ErrForbidden.
func (h *Upkeep) Problems(ctx context.Context) ([]Problem, error) {
	all := []Problem{}
	switch err := h.Health(ctx); {
	case errors.Is(err, ErrFull):
		all = append(all, Problem{ProblemDiskFull, err.Error()})
	case errors.Is(err, ErrReadOnly):
		all = append(all, Problem{ProblemDiskReadOnly, err.Error()})
	case err != nil:
		return nil, err
	}
	if failure := h.s.worker.LastError(); failure != "" {
		all = append(all, Problem{ProblemEmbedder, "texts cannot be embedded: " + failure})
	}
	index, err := h.s.index.Counts(ctx)
	if err != nil {
		return nil, wrap(err)
	}
	if index.Behind() {
		all = append(all, Problem{ProblemIndexBehind, fmt.Sprintf(
			"the search index is being loaded: %d collections or projects, and %d memories of those that are loaded",
			index.Wanted, index.Stale)})
	}
	return all, nil
}

// Runtime are numbers about a store's work in this process. They are counted since it was opened.
type Runtime struct {
	IndexBytes      int64 `json:"index_bytes"`      // memory of the search index, about
	IndexLimit      int64 `json:"index_limit"`      // Options.IndexMemory; negative: no index in memory
	IndexPartitions int   `json:"index_partitions"` // parts that it holds: a collection, or its memories in a project
	IndexStale      int   `json:"index_stale"`      // memories to be read again
	IndexWanted     int   `json:"index_wanted"`     // parts to be loaded

	SearchesInMemory     uint64 `json:"searches_in_memory"`     // by the index
	SearchesWithSegments uint64 `json:"searches_with_segments"` // likewise, after loading stored parts of it
	SearchesInDatabase   uint64 `json:"searches_in_database"`   // without the index
	IndexEvictions       uint64 `json:"index_evictions"`        // parts dropped to make room

	Writing int `json:"writing"` // writes that run or wait now
}

// Runtime returns numbers about the store's work in this process, from memory.
//
// It is for the Store that Open returned; a view gets ErrForbidden.
func (h *Upkeep) Runtime(ctx context.Context) (Runtime, error) {
	s, err := h.operator(ctx, "Runtime")
	if err == nil {
		err = s.readStore(ctx, func(db.Tx) error { return nil }) // it is open
	}
	if err != nil {
		return Runtime{}, err
	}
	n, err := s.index.Counts(ctx)
	return Runtime{IndexBytes: n.Bytes, IndexLimit: n.Limit, IndexPartitions: n.Partitions, IndexStale: n.Stale,
		IndexWanted: n.Wanted, SearchesInMemory: n.InMemory, SearchesWithSegments: n.WithSegments,
		SearchesInDatabase: n.InDatabase, IndexEvictions: n.Evictions, Writing: s.db.Upkeep().Writing()}, wrap(err)
}

// Stats are numbers about a whole store.
type Stats struct {
	// as many as [Accounts.Users] returns in all namespaces: users with an account or with anything in the store
	Users       int `json:"users"`
	Collections int `json:"collections"`
	Projects    int `json:"projects"`
	Memories    int `json:"memories"`
	Passages    int `json:"passages"`  // the searched units: a long memory has several
	Revisions   int `json:"revisions"` // past versions of memories
	Files       int `json:"files"`

	FileBytes     int64 `json:"file_bytes"`     // of all uploaded files
	Objects       int   `json:"objects"`        // chunks of files in object storage, those of the trash included
	ObjectBytes   int64 `json:"object_bytes"`   // of these
	GoneObjects   int   `json:"gone_objects"`   // no longer needed, or never finished, and not deleted yet
	DatabaseBytes int64 `json:"database_bytes"` // the store's file
	FreeBytes     int64 `json:"free_bytes"`     // of these, free for new content; Compact returns them to the system
	LogBytes      int64 `json:"log_bytes"`      // the write-ahead log beside the file

	LostActivity int `json:"lost_activity"` // calls that this handle could not record; see RecordActivity

	// Embedding is the state of the vectors of all users.
	Embedding EmbeddingStatus `json:"embedding"`
}

// Stats returns numbers about the whole store. It is for the Store that Open returned; a view gets ErrForbidden.
func (h *Upkeep) Stats(ctx context.Context) (Stats, error) {
	s, err := h.operator(ctx, "Stats")
	if err != nil {
		return Stats{}, err
	}
	st := Stats{LostActivity: s.activity.Lost()}
	err = s.read(ctx, func(tx db.Tx, _ viewer) error {
		err := tx.QueryRow(`SELECT (SELECT count(*) FROM users u WHERE `+listed+
			`), (SELECT count(*) FROM collection WHERE name <> ''), (SELECT count(*) FROM project),
				(SELECT coalesce(sum(memories), 0) FROM partition WHERE id NOT IN (`+kernel.TextPartitions+`)),
				(SELECT coalesce(sum(passages), 0) FROM partition),
				(SELECT count(*) FROM memory_revision), count(*), coalesce(sum(size), 0) FROM file WHERE state = 'stored'`).
			Scan(&st.Users, &st.Collections, &st.Projects, &st.Memories, &st.Passages, &st.Revisions, &st.Files, &st.FileBytes)
		if err != nil {
			return err
		}
		if err := tx.QueryRow(`SELECT count(*) FILTER (WHERE state = 'stored'),
			coalesce(sum(size) FILTER (WHERE state = 'stored'), 0), count(*) FILTER (WHERE state = 'leaving')
			FROM file_object`).Scan(&st.Objects, &st.ObjectBytes, &st.GoneObjects); err != nil {
			return err
		}
		size, err := s.db.Upkeep().Size(tx)
		if err != nil {
			return err
		}
		st.DatabaseBytes, st.FreeBytes, st.LogBytes = size.Database, size.Free, size.Log
		all, err := db.Column[int64](tx, `SELECT id FROM partition`)
		if err != nil {
			return err
		}
		return s.embeddingStatus(tx, db.List(all), &st.Embedding)
	})
	return st, err
}
