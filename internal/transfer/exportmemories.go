package transfer

import (
	"fmt"
	"strconv"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/fault"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/lifespan"
	"github.com/souvenir-ai/souvenir/internal/sealing/sealedrows"
	"github.com/souvenir-ai/souvenir/internal/vectorform"
)

// vectorsLine is the approximate number of bytes of vectors in one line.
const vectorsLine = 256 << 10

// exportMemory is a memory as stored, and its place.
type exportMemory struct {
	exportPlace
	row                                                    int64
	id, content                                            string
	eventType, state, importance, classification, ruleType string
	key                                                    string
	eventTime                                              *int64
	times                                                  lifespan.Times
	own                                                    string // JSON
	revision, created, updated                             int64
	tags                                                   []string
}

// exportPassage is a passage with its vector.
type exportPassage struct {
	start, length int64
	profile       string // key
	own           bool
	vector        []byte
}

// exportRevision is a past version of a memory.
type exportRevision struct {
	number, partition, created int64
	content, attributes        string
}

// memories writes the memories, each followed by its vectors and its past versions. Their dependent tables are read
// alongside in the same order, each once from beginning to end.
func (e *exporter) memories() error {
	var total int
	if err := e.tx.QueryRow(`SELECT coalesce(sum(memories), 0) FROM partition WHERE ` +
		e.inOwned(`id`)).Scan(&total); err != nil {
		return err
	}
	var tag string
	tags, err := e.side(func(row db.Rows, of *int64) error { return row.Scan(of, &tag) },
		`SELECT memory_id, tag FROM memory_tag ORDER BY memory_id, position`)
	if err != nil {
		return err
	}
	defer tags.rows.Close()
	vectors, err := e.vectors()
	if err != nil {
		return err
	}
	defer vectors.rows.Close()
	revisions, err := e.revisions()
	if err != nil {
		return err
	}
	defer revisions.rows.Close()
	done := 0
	err = db.Stream(e.tx, func(row db.Rows) error {
		m, err := e.memory(row)
		if err != nil {
			return err
		}
		if err := tags.each(m.row, func() error { m.tags = append(m.tags, tag); return nil }); err != nil {
			return err
		}
		e.memoryLine(m)
		if err := e.write(KindMemory); err != nil {
			return err
		}
		if err := vectors.write(e, m); err != nil {
			return err
		}
		if err := revisions.write(e, m); err != nil {
			return err
		}
		if done++; done%1000 == 0 {
			e.Progress("memories", done, total)
		}
		return nil
	}, selectExportMemory+` WHERE `+e.inOwned(`partition_id`)+e.alive(`memory`)+` ORDER BY id`)
	if err == nil {
		e.Progress("memories", done, total)
	}
	return err
}

const selectExportMemory = `SELECT id, partition_id, uid, content, coalesce(event_type, ''), coalesce(state, ''),
	coalesce(importance, ''),
	coalesce(classification, ''), coalesce(rule_type, ''), coalesce(key, ''), event_time, expires_at,
	valid_from, valid_until, coalesce(supersedes, ''), metadata, revision, created_at,
	updated_at FROM memory`

func (e *exporter) memory(row db.Rows) (exportMemory, error) {
	var m exportMemory
	var partition int64
	err := row.Scan(&m.row, &partition, &m.id, &m.content, &m.eventType, &m.state, &m.importance, &m.classification,
		&m.ruleType, &m.key, &m.eventTime, &m.times.Expires, &m.times.From, &m.times.Until, &m.times.Supersedes,
		&m.own, &m.revision, &m.created, &m.updated)
	if err != nil {
		return m, err
	}
	if m.content == "" && sealedrows.Seals(e.tx) {
		return m, fault.New(fault.KindConflict, "", "memory %s cannot be exported: its text was erased with its owner's "+
			"key; remove such memories with a repair", fault.Show(m.id))
	}
	m.exportPlace, err = e.place(partition)
	return m, err
}

// memoryLine writes a memory in the form of the API, with other fields that an import needs.
func (e *exporter) memoryLine(m exportMemory) {
	l := &e.line
	l.begin(KindMemory)
	l.text("id", m.id)
	l.text("owner", m.owner)
	l.text("collection_name", m.collection)
	e.project(m.owner, m.exportPlace)
	l.text("content", m.content)
	l.metadata([]knownKey{
		{"event_type", m.eventType}, {"state", m.state}, {"project_id", m.project}, {"importance", m.importance},
		{"classification", m.classification}, {"rule_type", m.ruleType},
	}, m.tags, m.own)
	l.optional("key", m.key)
	if m.eventTime != nil {
		l.time("event_time", *m.eventTime)
	}
	for _, at := range []struct {
		key  string
		time *int64
	}{{"expires_at", m.times.Expires}, {"valid_from", m.times.From}, {"valid_until", m.times.Until}} {
		if at.time != nil {
			l.time(at.key, *at.time)
		}
	}
	l.optional("supersedes", m.times.Supersedes)
	l.number("revision", m.revision)
	l.time("created_at", m.created)
	l.time("updated_at", m.updated)
}

// vectorSide reads the passages that have vectors.
type vectorSide struct {
	*side
	passage exportPassage
}

func (e *exporter) vectors() (*vectorSide, error) {
	v := &vectorSide{}
	own := kernel.OwnVectors
	if !e.WithoutVectors {
		own = ""
	}
	rows, err := e.tx.Query(`SELECT p.memory_id, p.start, p.length, f.key, f.model = ?1, p.vector FROM passage p `+
		db.ByPassageMemory+` `+db.InOrder+` profile f ON f.id = p.profile_id
		WHERE p.vector IS NOT NULL AND (?2 = '' OR f.model = ?2) ORDER BY p.memory_id, p.id`, kernel.OwnVectors, own)
	if err != nil {
		return nil, err
	}
	v.side = &side{rows: rows, scan: func(row db.Rows, of *int64) error {
		p := &v.passage
		return row.Scan(of, &p.start, &p.length, &p.profile, &p.own, &p.vector)
	}}
	return v, nil
}

// write writes the vectors of a memory, in lines of one profile and a moderate length each.
func (v *vectorSide) write(e *exporter, m exportMemory) error {
	profile, l := "", &e.line
	end := func() error {
		l.buf = append(l.buf, ']')
		return e.write(KindVectors)
	}
	err := v.each(m.row, func() error {
		p := v.passage
		vector, err := kernel.DecodeVector(p.vector)
		switch {
		case err != nil && p.own:
			return fmt.Errorf("memory %s, whose vectors only its caller can provide again: %w; a check finds it, and its "+
				"repair removes it", m.id, err)
		case err != nil:
			return nil //nolint:nilerr // damaged; the import makes it again
		}
		if profile != "" && (p.profile != profile || len(l.buf) >= vectorsLine) {
			if err := end(); err != nil {
				return err
			}
			profile = ""
		}
		if profile == "" {
			profile = p.profile
			l.begin(KindVectors)
			l.text("memory", m.id)
			l.text("profile", profile)
			l.key("passages")
			l.buf = append(l.buf, '[')
		} else {
			l.buf = append(l.buf, ',')
		}
		l.passage(p, vector)
		return nil
	})
	if err != nil || profile == "" {
		return err
	}
	return end()
}

func (l *lineWriter) passage(p exportPassage, vector []float32) {
	l.buf = append(l.buf, '{')
	l.member("start")
	l.buf = strconv.AppendInt(l.buf, p.start, 10)
	l.key("length")
	l.buf = strconv.AppendInt(l.buf, p.length, 10)
	l.bytes("vector", vectorform.Exact(vector))
	l.buf = append(l.buf, '}')
}

// revisionSide reads the past versions.
type revisionSide struct {
	*side
	revision exportRevision
}

func (e *exporter) revisions() (*revisionSide, error) {
	r := &revisionSide{}
	var err error
	r.side, err = e.side(func(row db.Rows, of *int64) error {
		v := &r.revision
		return row.Scan(of, &v.number, &v.partition, &v.content, &v.attributes, &v.created)
	}, `SELECT memory_id, revision, partition_id, content, attributes, created_at FROM memory_revision `+
		`ORDER BY memory_id, revision`)
	return r, err
}

// write writes the past versions of a memory, each with its place at that time, which decides who may see it. An owner
// may not read versions from before the memory moved into the owner's project.
func (r *revisionSide) write(e *exporter, m exportMemory) error {
	return r.each(m.row, func() error {
		v, l := r.revision, &e.line
		at, err := e.place(v.partition)
		if err != nil || e.User != nil && at.owner != m.owner {
			return err
		}
		l.begin(KindRevision)
		l.text("memory", m.id)
		l.number("revision", v.number)
		l.text("collection_owner", at.owner)
		l.text("collection_name", at.collection)
		e.project(at.owner, at)
		l.optional("project_id", at.project)
		l.text("content", v.content)
		l.json("metadata", v.attributes)
		l.time("created_at", v.created)
		return e.write(KindRevision)
	})
}

// links writes the memories that each memory links to, in order. They come after all memories, since links may be
// circular.
func (e *exporter) links() error {
	var id, owner string
	var updated int64
	var related []string
	end := func() error {
		if id == "" {
			return nil
		}
		l := &e.line
		l.begin(KindLink)
		l.text("memory", id)
		l.text("owner", owner)
		l.time("updated_at", updated)
		l.texts("related_memory_ids", related)
		related = related[:0]
		return e.write(KindLink)
	}
	err := db.Stream(e.tx, func(row db.Rows) error {
		var from, to string
		var partition, changed int64
		if err := row.Scan(&from, &partition, &changed, &to); err != nil {
			return err
		}
		if from != id {
			if err := end(); err != nil {
				return err
			}
			at, err := e.place(partition)
			if err != nil {
				return err
			}
			id, owner, updated = from, at.owner, changed
		}
		related = append(related, to)
		return nil
	}, `SELECT m.uid, m.partition_id, m.updated_at, r.uid FROM memory_link l `+db.InOrder+
		` memory m ON m.id = l.memory_id JOIN memory r ON r.id = l.related_id
		WHERE `+e.inOwned(`m.partition_id`)+` AND `+e.inOwned(`r.partition_id`)+
		e.alive(`m`)+e.alive(`r`)+` ORDER BY l.memory_id, l.position, l.related_id`)
	if err != nil {
		return err
	}
	return end()
}
