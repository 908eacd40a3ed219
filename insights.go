package souvenir

import (
	"cmp"
	"context"
	"slices"
	"sort"
	"time"

	"github.com/souvenir-ai/souvenir/internal/calendar"
	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/records/activitylog"
	"github.com/souvenir-ai/souvenir/internal/sealing/sealedrows"
	"github.com/souvenir-ai/souvenir/internal/writing"
)

// Numbers: about what a view sees (Overview, Tags), what its user stores (Usage) and calls (CallDays), the whole store
// (Stats), and its work in this process (Runtime).

// Insights provides the data of a dashboard: overview, graph and map, the tags and modules in use, recorded activity,
// and who may do what with a memory or a file. Get it with [Store.Insights]; it covers the data visible through its
// view.
type Insights struct {
	s *Store
}

// Insights returns the methods for dashboards.
func (s *Store) Insights() *Insights {
	return &Insights{s}
}

// own returns the store for a method about all of the user's data, and refuses it on a view limited to projects.
func (h *Insights) own() (*Store, error) {
	return h.s, h.s.checkAccount()
}

// OverviewQuery says how far back an overview looks.
type OverviewQuery struct {
	// Days is the number of days, including today, to count stored memories for: 1 to 366; zero means 30.
	Days int

	// Location is the time zone of the days. Nil means UTC.
	Location *time.Location

	// MemoriesOnly skips files and clients: Files is 0 and Clients empty. It takes half the time.
	MemoriesOnly bool

	// ClientNames leaves Calls and LastCall of Clients zero while counting the calls would take long: with more than
	// 10,000 recorded calls of the user, until [Insights.CallDays] has counted them in this process. On
	// PostgreSQL, counts are not kept in the first five minutes.
	ClientNames bool
}

// Overview counts the data visible through a view, by kind.
type Overview struct {
	Memories int `json:"memories"`
	Files    int `json:"files"`

	// The memories by project (without one: an empty ID), by collection and by event type (without one: an empty Name),
	// the 100 largest of each.
	Projects    []ProjectCount    `json:"projects"`
	Collections []CollectionCount `json:"collections"`
	EventTypes  []EventTypeCount  `json:"event_types"`

	// Clients are the programs whose calls were recorded for the user, the 100 with the most calls. It is empty for a view
	// limited to projects.
	Clients []ClientCount `json:"clients"`

	// Days counts the memories stored on each day, the oldest first; the last one is today.
	Days []DayCount `json:"days"`

	Embedding EmbeddingStatus `json:"embedding"`
	Index     IndexState      `json:"index"`
}

// ProjectCount is how many memories are in a project.
type ProjectCount struct {
	ID       string `json:"project_id"`
	Name     string `json:"project_name"`
	Owner    string `json:"owner"` // user id
	Memories int    `json:"memories"`
}

// CollectionCount is how many memories are in a collection.
type CollectionCount struct {
	Name     string `json:"collection_name"`
	Owner    string `json:"owner"` // user id
	Memories int    `json:"memories"`
}

// EventTypeCount is how many memories have an event type.
type EventTypeCount struct {
	Name     string `json:"event_type"`
	Memories int    `json:"memories"`
}

// ClientCount is how often a program has called.
type ClientCount struct {
	Name     string    `json:"client"` // the program's own name; empty if it gives none
	Calls    int       `json:"calls"`
	LastCall time.Time `json:"last_call"` // when the last call began
}

// DayCount is how many memories were stored on a day.
type DayCount struct {
	Day      string `json:"day"` // 2026-03-01
	Memories int    `json:"memories"`
}

// IndexState says where searches of all visible data run.
type IndexState string

// The values of [IndexState].
const (
	IndexInMemory IndexState = "memory"  // in the index beside the file
	IndexLoading  IndexState = "loading" // on disk, while the index is being loaded, or before the first search loads it
	IndexOnDisk   IndexState = "disk"    // on disk: there is no index, or the visible memories exceed Options.IndexMemory
)

const (
	defaultOverviewDays = 30
	maxOverviewDays     = 366
	maxCounts           = 100
)

// Overview counts the data visible through this view, by kind.
func (h *Insights) Overview(ctx context.Context, q OverviewQuery) (_ Overview, err error) {
	defer setGoNames[OverviewQuery](&err)
	s := h.s
	q.Days = cmp.Or(q.Days, defaultOverviewDays)
	if err := checkRange("days", q.Days, 1, maxOverviewDays); err != nil {
		return Overview{}, err
	}
	if q.Location == nil {
		q.Location = time.UTC
	}
	if s.access.Projects == nil && !q.MemoriesOnly {
		s.flushActivity(ctx)
	}
	var o Overview
	err = s.read(ctx, func(tx db.Tx, v viewer) error {
		o = Overview{Clients: []ClientCount{}}
		sel, err := s.selection(tx, v, Query{whenever: true})
		if err != nil {
			return err
		}
		searched := make([]int64, len(sel.Partitions))
		for i, p := range sel.Partitions {
			searched[i] = p.ID
		}
		err = db.Beyond(tx, func() error {
			if _, err := s.limits(tx); err != nil { // IndexMemory may have been changed
				return err
			}
			state, err := s.index.State(tx, searched)
			o.Index = IndexState(state)
			return err
		})
		if err != nil {
			return err
		}
		if o.Memories, err = sel.Count(tx); err != nil {
			return err
		}
		partitions := sel.PartitionList()
		visible, args := v.VisibleFile()
		for _, step := range []func() error{
			func() error {
				if q.MemoriesOnly {
					return nil
				}
				if err := s.countClients(tx, q, &o); err != nil {
					return err
				}
				return tx.QueryRow(`SELECT count(*) `+kernel.FromFile+` WHERE `+visible, args...).Scan(&o.Files)
			},
			func() error { return o.countProjects(tx, v, partitions) },
			func() error { return o.countCollections(tx, v, partitions) },
			func() error { return o.countEventTypes(s.tallies.EventTypes(tx, partitions, v.Alive(`memory`))) },
			func() error {
				return o.countDays(tx, v, partitions, calendar.DaysUntil(s.clock().In(q.Location), q.Days))
			},
			func() error { return s.embeddingStatus(tx, partitions, &o.Embedding) },
		} {
			if err := step(); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return Overview{}, err
	}
	return o, nil
}

func (o *Overview) countProjects(tx db.Tx, v viewer, partitions string) error {
	o.Projects = []ProjectCount{}
	return tx.Each(func(row db.Rows) error {
		var c ProjectCount
		err := row.Scan(&c.ID, &c.Name, &c.Owner, &c.Memories)
		o.Projects = append(o.Projects, c)
		return err
	}, `SELECT coalesce(j.uid, ''), coalesce(j.name, ''), coalesce(u.uid, ''), sum(`+v.Held()+`)
		FROM partition p LEFT JOIN project j ON j.id = p.project_id LEFT JOIN users u ON u.id = j.owner_id
		WHERE p.id IN `+db.Integers+` GROUP BY p.project_id, j.uid, j.name, u.uid ORDER BY 4 DESC, 1, 3 LIMIT ?`, partitions,
		maxCounts)
}

func (o *Overview) countCollections(tx db.Tx, v viewer, partitions string) error {
	o.Collections = []CollectionCount{}
	err := tx.Each(func(row db.Rows) error {
		var c CollectionCount
		err := row.Scan(&c.Name, &c.Owner, &c.Memories)
		o.Collections = append(o.Collections, c)
		return err
	}, `SELECT c.name, u.uid, sum(`+v.Held()+`) FROM partition p JOIN collection c ON c.id = p.collection_id
		JOIN users u ON u.id = c.owner_id
		WHERE p.id IN `+db.Integers+` GROUP BY c.id, c.name, u.uid ORDER BY 3 DESC, 1, 2 LIMIT ?`, partitions, maxCounts)
	if sealedrows.Seals(tx) {
		slices.SortStableFunc(o.Collections, func(a, b CollectionCount) int {
			return cmp.Or(b.Memories-a.Memories, cmp.Compare(a.Name, b.Name), cmp.Compare(a.Owner, b.Owner))
		})
	}
	return err
}

// countEventTypes turns the counts by event type into a list.
func (o *Overview) countEventTypes(counts map[string]int, err error) error {
	if err != nil {
		return err
	}
	rest := o.Memories
	for _, n := range counts {
		rest -= n
	}
	if rest > 0 {
		counts[""] += rest
	}
	o.EventTypes = []EventTypeCount{}
	for name, n := range counts {
		o.EventTypes = append(o.EventTypes, EventTypeCount{name, n})
	}
	slices.SortFunc(o.EventTypes, func(a, b EventTypeCount) int {
		return cmp.Or(b.Memories-a.Memories, cmp.Compare(a.Name, b.Name))
	})
	o.EventTypes = o.EventTypes[:min(len(o.EventTypes), maxCounts)]
	return nil
}

// countClients counts the recorded calls, unless the view is limited to projects.
func (s *Store) countClients(tx db.Tx, q OverviewQuery, o *Overview) error {
	o.Clients = []ClientCount{}
	if s.access.Projects != nil {
		return nil
	}
	var spans []activitylog.Span
	var err error
	if q.ClientNames {
		spans, err = s.counts.Names(tx, s.activityCaller())
	} else {
		spans, err = s.counts.Of(tx, s.activityCaller(), nil)
	}
	for i, n := range spans {
		if i == 0 || n.Client != spans[i-1].Client {
			o.Clients = append(o.Clients, ClientCount{Name: n.Client})
		}
		one := &o.Clients[len(o.Clients)-1]
		one.Calls += n.All
		if last := kernel.ToTime(n.Last); n.All > 0 && last.After(one.LastCall) {
			one.LastCall = last
		}
	}
	slices.SortStableFunc(o.Clients, func(a, b ClientCount) int { return cmp.Compare(b.Calls, a.Calls) })
	o.Clients = o.Clients[:min(len(o.Clients), maxCounts)]
	return err
}

// countDays counts ranges of an index. It first skips partitions without memories from that period.
func (o *Overview) countDays(tx db.Tx, v viewer, partitions string, days []calendar.Day) error {
	o.Days = make([]DayCount, len(days))
	begins, ends := make([]int64, len(days)), make([]int64, len(days))
	for i, d := range days {
		o.Days[i].Day, begins[i], ends[i] = d.Name, d.Begin, d.End
	}
	return tx.Each(func(row db.Rows) error {
		var at, n int
		err := row.Scan(&at, &n)
		o.Days[at].Memories = n
		return err
	}, `WITH places (id) AS MATERIALIZED (SELECT l.value FROM `+db.Numbered1+
		` l WHERE (SELECT max(created_at) FROM memory WHERE partition_id = l.value) >= ?2),
			span (at, first, past) AS MATERIALIZED (SELECT b.key, b.value, e.value FROM `+db.Numbered3+` b JOIN `+db.Numbered4+
		` e ON e.key = b.key)
		SELECT at, (SELECT coalesce(sum((SELECT count(*) FROM memory WHERE partition_id = places.id AND created_at >= first
		AND created_at < past`+v.Alive(`memory`)+`)), 0) FROM places) FROM span`,
		partitions, days[0].Begin, db.List(begins), db.List(ends))
}

// activityCaller returns the caller whose recorded calls the view sees.
func (s *Store) activityCaller() activitylog.Caller {
	return activitylog.Caller{Namespace: s.access.Namespace, User: s.access.User}
}

// CallDaysQuery names the days whose recorded calls are counted.
type CallDaysQuery struct {
	// Days is the number of days, including today: 1 to 366; zero means 30.
	Days int

	// Location is the time zone of the days. Nil means UTC.
	Location *time.Location
}

// CallDay counts the recorded calls of programs on a day. Calls of people in browsers are left out.
type CallDay struct {
	Day      string `json:"day"` // 2026-03-01
	Calls    int    `json:"calls"`
	Failed   int    `json:"failed"`   // of the calls
	Searches int    `json:"searches"` // searches with a known number of results
	Found    int    `json:"found"`    // of these, searches that found something
	Clients  int    `json:"clients"`  // different programs, by the names that they give themselves
}

// CallDays counts the user's recorded calls by day, the oldest first; the last day is today. A view limited to projects
// may not call it.
func (h *Insights) CallDays(ctx context.Context, q CallDaysQuery) (_ []CallDay, err error) {
	defer setGoNames[CallDaysQuery](&err)
	s, err := h.own()
	if err != nil {
		return nil, err
	}
	q.Days = cmp.Or(q.Days, defaultOverviewDays)
	if err := checkRange("days", q.Days, 1, maxOverviewDays); err != nil {
		return nil, err
	}
	s.flushActivity(ctx)
	days := calendar.DaysUntil(s.clock().In(cmp.Or(q.Location, time.UTC)), maxOverviewDays)
	bounds := []int64{days[0].Begin}
	for _, d := range days {
		bounds = append(bounds, d.End)
	}
	days = days[maxOverviewDays-q.Days:]
	var counts []CallDay
	err = s.read(ctx, func(tx db.Tx, _ viewer) error {
		counts = make([]CallDay, len(days))
		for i, d := range days {
			counts[i].Day = d.Name
		}
		spans, err := s.counts.Of(tx, s.activityCaller(), bounds)
		countCalls(spans, days, counts)
		return err
	})
	if err != nil {
		return nil, err
	}
	return counts, nil
}

// countCalls adds spans, ordered by client and then by time, to days.
func countCalls(spans []activitylog.Span, days []calendar.Day, counts []CallDay) {
	client, before := "", -1 // the last one counted
	for _, n := range spans {
		at := sort.Search(len(days), func(i int) bool { return days[i].End > n.Begin })
		if n.Begin < days[0].Begin || at == len(days) || n.Calls == 0 { // a fast clock's calls come after the last day
			continue
		}
		d := &counts[at]
		d.Calls, d.Failed = d.Calls+n.Calls, d.Failed+n.Failed
		d.Searches, d.Found = d.Searches+n.Searches, d.Found+n.Found
		if n.Client != client || at != before {
			d.Clients++
		}
		client, before = n.Client, at
	}
}

// Tag is a tag that visible memories have.
type Tag struct {
	Name  string `json:"tag"`
	Count int    `json:"count"` // memories that have it
}

// Tags returns the tags of the visible memories in some collections (none named: in all), the most frequent first.
func (h *Insights) Tags(ctx context.Context, collections ...string) (_ []Tag, err error) {
	defer setGoNames[struct{}](&err, "collection_name", "collections")
	s := h.s
	all := []Tag{}
	err = s.read(ctx, func(tx db.Tx, v viewer) error {
		selection, err := s.selection(tx, v, Query{Collections: collections, whenever: true})
		if err != nil {
			return err
		}
		counts := map[string]int{} // several owners may have the same tag, sealed
		err = tx.Each(func(row db.Rows) error {
			var t Tag
			err := row.Scan(&t.Name, &t.Count)
			counts[t.Name] += t.Count
			return err
		}, `SELECT t.tag, count(*) FROM memory_tag t JOIN memory m ON m.id = t.memory_id
			WHERE m.partition_id IN `+db.Integers+v.Alive(`m`)+` GROUP BY t.tag`, selection.PartitionList())
		all = all[:0]
		for name, count := range counts {
			all = append(all, Tag{Name: name, Count: count})
		}
		slices.SortFunc(all, func(a, b Tag) int { return cmp.Or(b.Count-a.Count, cmp.Compare(a.Name, b.Name)) })
		return err
	})
	return all, err
}

// Usage counts an owner's stored items and bytes, with the owner's quota.
type Usage struct {
	Memories  int   `json:"memories"`
	Revisions int   `json:"revisions"`  // past versions of memories
	Bytes     int64 `json:"bytes"`      // of contents and metadata: current, past and in the trash
	FileBytes int64 `json:"file_bytes"` // of files, including uploads in progress and the trash

	Quota     Quota `json:"-"` // zero fields: no limit
	FileQuota int64 `json:"-"` // bytes; zero: no limit
}

// Usage returns the usage of the view's user, counted in the user's collections, and the quota. A view limited to
// projects gets ErrForbidden.
func (h *Insights) Usage(ctx context.Context) (Usage, error) {
	s, err := h.own()
	if err != nil {
		return Usage{}, err
	}
	var u Usage
	err = s.read(ctx, func(tx db.Tx, v viewer) (err error) {
		o, err := s.limits(tx)
		if err != nil {
			return err
		}
		u.Quota, u.FileQuota = o.Quota, o.FileQuota
		if u.Memories, u.Revisions, u.Bytes, err = writing.Used(tx, v.User); err == nil {
			u.FileBytes, err = writing.UsedByFiles(tx, v.User)
		}
		return err
	})
	return u, err
}
