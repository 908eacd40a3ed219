package inspect

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/fault"
	"github.com/souvenir-ai/souvenir/internal/foldname"
	"github.com/souvenir-ai/souvenir/internal/json/jsonobject"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/lifespan"
	"github.com/souvenir-ai/souvenir/internal/sealing/keyring"
	"github.com/souvenir-ai/souvenir/internal/sealing/sealedrows"
	"github.com/souvenir-ai/souvenir/internal/text"
	"github.com/souvenir-ai/souvenir/internal/tododoc"
	"github.com/souvenir-ai/souvenir/internal/transfer"
	"github.com/souvenir-ai/souvenir/internal/valid"
)

// checkedMemory is a memory with its dependent rows, as stored in the file.
type checkedMemory struct {
	row, partition int64
	ownProfile     int64 // of the collection's own vectors, 0 for none
	id, content    string
	metadata, tags string
	attributes     kernel.Attributes
	key            string // "-" if it has none
	eventTime      int64
	times          lifespan.Times
	revision       int64
	created        int64
	updated        int64
	passages       []checkedPassage
}

type checkedPassage struct {
	id            int64
	start, length int
	blank         bool
	profile       int64
	vector        []byte
	shut          error // why the vector cannot be opened
}

// checkMemories checks all memories and their passages.
func (in *inspection) checkMemories() error {
	var total, done int
	if err := in.tx.QueryRow(`SELECT count(*) FROM memory`).Scan(&total); err != nil {
		return err
	}
	err := kernel.EachBatch(in.tx, math.MinInt64, func(rows []int64) error {
		memories, err := in.readMemories(rows)
		if err != nil {
			return err
		}
		for i := range memories {
			if err := in.checkMemory(&memories[i]); err != nil {
				return err
			}
		}
		if err := in.checkTurns(rows, memories); err != nil {
			return err
		}
		done += len(memories)
		in.progress("memories", done, total)
		return nil
	})
	if err != nil {
		return err
	}
	var texts int
	err = in.tx.QueryRow(`SELECT coalesce(sum(memories), 0) FROM partition WHERE id IN (` + kernel.TextPartitions + `)`).
		Scan(&texts)
	in.report.Checked["memory"] = done - texts
	return err
}

// checkTurns checks which of some memories are recorded as turns of a conversation.
func (in *inspection) checkTurns(rows []int64, memories []checkedMemory) error {
	wrong, err := kernel.WrongTurns(in.tx, rows)
	for _, row := range wrong {
		f := Finding{Table: "turn", Repairable: true,
			Problem: "the place of the memory in its conversation differs from the one in the memory"}
		if i := slices.IndexFunc(memories, func(m checkedMemory) bool { return m.row == row }); i >= 0 {
			f.ID = memories[i].id
		}
		in.find(f)
	}
	in.repairs.turns = append(in.repairs.turns, wrong...)
	return err
}

func (in *inspection) readMemories(rows []int64) ([]checkedMemory, error) {
	list := db.List(rows)
	var memories []checkedMemory
	place := map[int64]int{}
	err := db.Stream(in.tx, func(row db.Rows) error {
		var m checkedMemory
		a := &m.attributes
		err := row.Scan(&m.row, &m.partition, &m.ownProfile, &m.id, &m.content, &m.metadata, &a.EventType, &a.State,
			&a.Importance, &a.Classification,
			&a.RuleType, &m.key, &m.eventTime, &m.times.Expires, &m.times.From, &m.times.Until, &m.times.Supersedes,
			&m.revision, &m.created, &m.updated, &m.tags)
		place[m.row] = len(memories)
		memories = append(memories, m)
		return err
	}, `SELECT m.id, m.partition_id, coalesce(c.own_profile, 0), m.uid, m.content, m.metadata,
			coalesce(m.event_type, ''), coalesce(m.state, ''), coalesce(m.importance, ''),
			coalesce(m.classification, ''), coalesce(m.rule_type, ''), coalesce(m.key, '-'),
			coalesce(m.event_time, 0), m.expires_at, m.valid_from, m.valid_until, coalesce(m.supersedes, ''), m.revision,
			m.created_at, m.updated_at, coalesce((SELECT string_agg(tag || `+db.Newline+`,
			'' ORDER BY position) FROM memory_tag WHERE memory_id = m.id), '')
		FROM memory m LEFT JOIN partition p ON p.id = m.partition_id LEFT JOIN collection c ON c.id = p.collection_id
		WHERE m.id IN `+db.Integers+` ORDER BY m.id`, list)
	if err != nil {
		return nil, err
	}
	err = db.Stream(db.Stored(in.tx), func(row db.Rows) error {
		var p checkedPassage
		var memory int64
		err := row.Scan(&p.id, &memory, &p.start, &p.length, &p.blank, &p.profile, &p.vector)
		if err == nil {
			err = in.openVector(&p)
		}
		if i, ok := place[memory]; ok {
			memories[i].passages = append(memories[i].passages, p)
		}
		return err
	}, `SELECT id, memory_id, start, length, blank <> 0, coalesce(profile_id, 0), vector FROM passage WHERE memory_id IN `+
		db.Integers+` ORDER BY id`, list)
	return memories, err
}

// openVector opens the vector of a passage if it is sealed. A vector that cannot be opened is not an error.
func (in *inspection) openVector(p *checkedPassage) error {
	if !sealedrows.Seals(in.tx) {
		return nil
	}
	sealed, is := sealedrows.SealedBytes(sealedrows.PassageVector, p.vector)
	if !is {
		return nil
	}
	plain, err := in.s.Keys.Open(in.tx.Context(), sealedrows.PassageVector.Purpose(), sealed)
	if keyring.IsShut(err) {
		p.shut, err = err, nil
	} else {
		p.vector = plain
	}
	return err
}

// checkMemory checks one memory. Its stored data cannot be rebuilt, but everything derived for searches can.
func (in *inspection) checkMemory(m *checkedMemory) error {
	in.report.Checked["passage"] += len(m.passages)
	for _, p := range m.passages {
		if p.shut != nil {
			in.repairs.vectors = append(in.repairs.vectors, p.id)
		}
	}
	wrong := func(format string, args ...any) {
		in.find(Finding{Table: "memory", ID: m.id, Problem: fmt.Sprintf(format, args...)})
	}
	if m.content == "" && in.lost(&in.repairs.lost.memories, m.row, "memory", m.id, "it") {
		return nil
	}
	for _, err := range []error{
		valid.Name("id", m.id), valid.Content(m.content), m.checkAttributes(), valid.Time("created_at", m.created),
		valid.Time("updated_at", m.updated), valid.Key(m.key), valid.Time("event_time", m.eventTime),
		m.times.Check(), kernel.CheckRuleTimes(m.attributes.RuleType, m.times),
	} {
		if err != nil {
			wrong("%v", err)
		}
	}
	if m.revision < 1 || m.revision > kernel.MaxRevision {
		wrong("has the revision %d", m.revision)
	}
	if problem := in.wrongPassages(m); problem != "" {
		in.find(Finding{Table: "passage", ID: m.id, Problem: problem, Repairable: true})
		in.repairs.memories = append(in.repairs.memories, m.row)
		return nil
	}
	tags := m.tags
	for _, p := range m.passages {
		if problem := in.wrongVector(p); problem != "" {
			in.find(Finding{Table: "passage", ID: m.id, Problem: problem, Repairable: true})
			if m.ownProfile != 0 {
				in.repairs.memories = append(in.repairs.memories, m.row)
				return nil
			}
			in.repairs.vectors = append(in.repairs.vectors, p.id)
		}
		content, err := in.form(p.id, text.Indexed(m.content[p.start:p.start+p.length]))
		if err != nil {
			return err
		}
		tagged, err := in.form(p.id, text.Indexed(tags))
		if err != nil {
			return err
		}
		in.terms[p.id] = sumOfTerms("content", content) + sumOfTerms("tags", tagged)
		tags = "" // only the first passage has them
	}
	return nil
}

// wrongPassages returns the reason to rebuild a memory's passages; empty if they are right.
func (in *inspection) wrongPassages(m *checkedMemory) string {
	if len(m.passages) == 0 {
		return "the memory has no passages, so searches cannot find it"
	}
	end, space := 0, func(from, to int) bool { return strings.TrimFunc(m.content[from:to], unicode.IsSpace) == "" }
	for _, p := range m.passages {
		switch {
		case p.id>>kernel.PassageBits != m.partition:
			return fmt.Sprintf("passage %d is in partition %d, its memory in %d", p.id, p.id>>kernel.PassageBits, m.partition)
		case p.start < end || p.length < 0 || p.length > len(m.content)-p.start:
			return fmt.Sprintf("passage %d is bytes %d to %d of a content of %d, after one that ends at %d", p.id, p.start,
				p.start+p.length, len(m.content), end)
		case !space(end, p.start):
			return fmt.Sprintf("bytes %d to %d of the content are in no passage", end, p.start)
		case p.blank != space(p.start, p.start+p.length) && (m.ownProfile == 0 || p.vector == nil):
			return fmt.Sprintf("passage %d is wrongly marked as white space only, or not marked", p.id)
		case utf8.ValidString(m.content) && !utf8.ValidString(m.content[p.start:p.start+p.length]):
			return fmt.Sprintf("passage %d begins or ends within a character", p.id)
		}
		if problem := in.wrongProfile(m, p); problem != "" {
			return problem
		}
		end = p.start + p.length
	}
	if !space(end, len(m.content)) {
		return fmt.Sprintf("bytes %d to %d of the content are in no passage", end, len(m.content))
	}
	return ""
}

// wrongProfile returns the reason why a passage's vector would never be updated, "" for none.
func (in *inspection) wrongProfile(m *checkedMemory, p checkedPassage) string {
	profile, known := in.profiles[p.profile]
	switch {
	case p.profile != 0 && !known:
		return fmt.Sprintf("passage %d has a vector of the unknown profile %d", p.id, p.profile)
	case p.profile == 0 && p.vector != nil:
		return fmt.Sprintf("passage %d has a vector of no profile", p.id)
	case p.profile == 0 && !p.blank && m.ownProfile == 0:
		return fmt.Sprintf("passage %d is not marked to be embedded", p.id)
	case p.profile != 0 && p.vector == nil && (p.blank || m.ownProfile != 0):
		return fmt.Sprintf("passage %d waits for a vector that will never be computed", p.id)
	case m.ownProfile != 0 && p.profile != 0 && p.profile != m.ownProfile:
		return fmt.Sprintf("passage %d has the profile %d, but its collection has %d", p.id, p.profile,
			m.ownProfile)
	case m.ownProfile == 0 && profile.Model == kernel.OwnVectors:
		return fmt.Sprintf("passage %d has the caller's own vector, but its collection has no own vectors", p.id)
	case m.ownProfile == 0 && p.profile != 0 && in.current != 0 && p.profile != in.current:
		return fmt.Sprintf("passage %d has a vector of the model %s, but the store uses %s", p.id, fault.Show(profile.Model),
			fault.Show(in.profiles[in.current].Model))
	}
	return ""
}

// wrongVector returns the problem with a passage's vector.
func (in *inspection) wrongVector(p checkedPassage) string {
	if p.vector == nil {
		return ""
	}
	if p.shut != nil {
		return fmt.Sprintf("the vector of passage %d cannot be opened: %v", p.id, p.shut)
	}
	dimensions := in.profiles[p.profile].Dimensions
	vector, err := kernel.DecodeVector(p.vector)
	switch {
	case err != nil:
		return fmt.Sprintf("passage %d: %v", p.id, err)
	case len(vector) != dimensions:
		return fmt.Sprintf("the vector of passage %d has %d dimensions; those of its model have %d", p.id, len(vector),
			dimensions)
	}
	unit, err := kernel.UnitVector(vector, dimensions)
	if err != nil {
		return fmt.Sprintf("the vector of passage %d: %v", p.id, err)
	}
	for i := range unit {
		if math.Abs(float64(unit[i]-vector[i])) > 1e-4 {
			return fmt.Sprintf("the vector of passage %d is not of length 1", p.id)
		}
	}
	return ""
}

// sumOfTerms fingerprints the terms of a full-text column and their positions. It is a sum over the terms, so their
// order does not matter.
func sumOfTerms(column, terms string) (sum uint64) {
	for i := 0; terms != ""; i++ {
		var term string
		term, terms, _ = strings.Cut(terms, " ")
		sum += sumOfTerm(column, i, term)
	}
	return sum
}

// sumOfTerm is FNV-1a of a term, its position and its column, then mixed.
func sumOfTerm(column string, offset int, term string) uint64 {
	const prime = 1099511628211
	h := uint64(14695981039346656037)
	h = (h ^ uint64(column[0])) * prime
	for ; offset > 0; offset >>= 8 {
		h = (h ^ uint64(offset&0xff)) * prime
	}
	for i := range len(term) {
		h = (h ^ uint64(term[i])) * prime
	}
	h = (h ^ h>>32) * 0x9e3779b97f4a7c15
	return h ^ h>>29
}

// checkFullText compares the content of full text with the terms of the passages.
func (in *inspection) checkFullText() error {
	rows := map[int64]uint64{} // passage -> sum of its words in full text
	begun, strays := false, false
	terms := map[string]termFound{}
	err := in.words.Each(func(passage int64, column string, offset int, term string) error {
		if column == "" {
			rows[passage] = 0
			return nil
		}
		if !begun {
			begun = true
			in.progress("full text", 0, len(rows))
		}
		if t := terms[term]; t.passages == 0 || t.last != passage {
			terms[term] = termFound{t.passages + 1, passage}
		}
		if _, ok := rows[passage]; !ok {
			strays = true
			return nil
		}
		rows[passage] += sumOfTerm(column, offset, term)
		return nil
	})
	in.report.Checked["passage_text"] = len(rows)
	if err != nil {
		return err
	}
	if strays {
		in.find(Finding{Table: "passage_text", Problem: "full text has terms of rows that do not exist",
			Repairable: true})
		in.repairs.fullText = true
	}
	in.compareFullText(rows)
	if err := in.lookUpTerms(terms); err != nil {
		return err
	}
	in.progress("full text", len(rows), len(rows))
	return nil
}

// termFound holds the number of passages with a term, and the last of them; they arrive in order.
type termFound struct {
	passages int
	last     int64
}

// lookUpTerms checks that a search for each term finds its passages. A search reads an index of the terms, which a
// listing of all terms does not read.
func (in *inspection) lookUpTerms(terms map[string]termFound) error {
	lost := 0
	for term, t := range terms {
		n, err := in.words.Count(db.Range{First: math.MinInt64, Last: math.MaxInt64}, []string{term})
		if err != nil && !errors.Is(err, db.ErrCorrupt) {
			return err
		}
		if err != nil || n != t.passages {
			lost++
		}
	}
	if lost > 0 {
		in.find(Finding{Table: "passage_text", Problem: fmt.Sprintf("searches do not find %d of the %d terms of full text",
			lost, len(terms)), Repairable: true})
		in.repairs.fullText = true
	}
	return nil
}

func (in *inspection) compareFullText(rows map[int64]uint64) {
	remade := make(map[int64]bool, len(in.repairs.memories)) // their full text is rewritten with the passages
	for _, id := range in.passagesOf(in.repairs.memories) {
		remade[id] = true
	}
	// Another version of this package may have made different terms under another profile.
	sameTerms := in.current != 0 && in.current == in.s.Profile
	var wrong []int64
	for id, want := range in.terms {
		if got, ok := rows[id]; !ok || got != want && sameTerms {
			wrong = append(wrong, id)
		}
	}
	slices.Sort(wrong)
	for _, id := range wrong {
		in.find(Finding{Table: "passage_text",
			Problem: fmt.Sprintf("full text does not have the current words of passage %d", id), Repairable: true})
	}
	in.repairs.texts = append(in.repairs.texts, wrong...)
	var strays []int64
	for id := range rows {
		if _, ok := in.terms[id]; !ok && !remade[id] {
			strays = append(strays, id)
		}
	}
	slices.Sort(strays)
	for _, id := range strays {
		in.find(Finding{Table: "passage_text",
			Problem:    fmt.Sprintf("full text has the passage %d, which belongs to no memory", id),
			Repairable: true})
	}
	in.repairs.texts = append(in.repairs.texts, strays...)
}

// passagesOf returns the passages of some memories.
func (in *inspection) passagesOf(memories []int64) []int64 {
	ids, err := db.Column[int64](in.tx, `SELECT id FROM passage WHERE memory_id IN `+db.Integers, db.List(memories))
	if err != nil {
		return nil // damaged ones are reported, and rewriting repairs them
	}
	return ids
}

// A value that the store would refuse must not be in the file either: JSON cannot represent it, or an import cannot
// read it.

// checkRecords checks the values of one kind of row by the rules of imports.
func (in *inspection) checkRecords(r transfer.Record) error {
	values, into := r.Room()
	return db.Stream(in.tx, func(row db.Rows) error {
		if err := row.Scan(into...); err != nil {
			return err
		}
		in.report.Checked[r.Table]++
		for i, f := range r.Fields {
			if err := f.Validate(values[i]); err != nil {
				in.find(Finding{Table: r.Table, ID: strings.ToValidUTF8(r.Named(values), "\ufffd"), Problem: err.Error()})
			}
		}
		return nil
	}, r.Selection+` ORDER BY `+r.Ordered)
}

// checkFoldedNames checks that sign-in names, ids of users and project names can be looked up.
func (in *inspection) checkFoldedNames() error {
	return db.Stream(in.tx, func(row db.Rows) error {
		var table, id, name, key string
		if err := row.Scan(&table, &id, &name, &key); err != nil {
			return err
		}
		if foldname.Key(name) != key {
			isID := table == "users" && name == id
			in.repairs.userKeys = in.repairs.userKeys || isID
			in.find(Finding{Table: table, ID: id, Repairable: isID,
				Problem: fmt.Sprintf("the name or id %s is looked up as %s, which is not the same folded",
					fault.Show(name), fault.Show(key))})
		}
		return nil
	}, `SELECT 'users', uid, coalesce(name, ''), coalesce(name_key, '') FROM users
		UNION ALL SELECT 'users', uid, uid, coalesce(uid_key, '') FROM users
		UNION ALL SELECT 'project', uid, name, name_key FROM project
		UNION ALL SELECT 'project_alias', name, name, name_key FROM project_alias`)
}

// checkOwnIndex compares the index of own metadata with the memories.
func (in *inspection) checkOwnIndex() error {
	missing, excess, err := kernel.OwnIndexDiffers(in.tx)
	if err == nil && missing+excess > 0 {
		in.find(Finding{Table: "memory_own", Repairable: true,
			Problem: fmt.Sprintf("the metadata index lacks %d rows, and has %d that belong to no memory", missing,
				excess)})
		in.repairs.own = true
	}
	return err
}

// checkAttributes checks a memory's attributes: everything besides its content.
func (m *checkedMemory) checkAttributes() error {
	object, err := jsonobject.Decode([]byte(m.metadata))
	if err != nil || object == nil {
		return fault.Invalid("metadata", "{} is %s, which is not a JSON object", fault.Show(m.metadata))
	}
	if object, err = jsonobject.Canonical("metadata", object); err != nil {
		return err
	}
	a := m.attributes
	a.Own = object
	if err := a.Check(); err != nil {
		return err
	}
	if a.RuleType == kernel.RuleTodo {
		if _, err := tododoc.Parse(m.content); err != nil {
			return err
		}
	}
	return checkStoredTags(m.tags)
}

// checkShown checks metadata in the form that callers see.
func checkShown(object map[string]any) error {
	object, err := jsonobject.Canonical("metadata", object)
	if err != nil {
		return err
	}
	a, err := kernel.AttributesOf(object)
	if err != nil {
		return err
	}
	return a.Check()
}

// checkStoredTags checks tags, each followed by a line break.
func checkStoredTags(lines string) error {
	if lines == "" {
		return nil
	}
	tags := strings.Split(strings.TrimSuffix(lines, "\n"), "\n")
	kept, err := valid.Tags(tags, valid.MaxTags)
	if err == nil && !slices.Equal(kept, tags) {
		return fault.Invalid("tags", "{} is %s; they would be kept as %s", fault.Show(strings.Join(tags, ", ")),
			fault.Show(strings.Join(kept, ", ")))
	}
	return err
}
