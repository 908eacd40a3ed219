package kernel

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/sealing/sealedrows"
	"github.com/souvenir-ai/souvenir/internal/valid"
)

// Modules returns the modules that memories name in their metadata, by row, as [db.Module] does where metadata are not
// sealed. It covers the memories m of a list of partitions for which a condition holds.
func Modules(tx db.Tx, partitions, condition string) (map[int64]string, error) {
	modules := map[int64]string{}
	err := tx.Each(func(row db.Rows) error {
		var id int64
		var metadata []byte
		var keys map[string]json.RawMessage
		var name string
		if err := row.Scan(&id, &metadata); err != nil {
			return err
		}
		// Damaged metadata name none; reading the memory reports it.
		if json.Unmarshal(metadata, &keys) == nil && bytes.HasPrefix(keys["module_name"], []byte(`"`)) &&
			json.Unmarshal(keys["module_name"], &name) == nil {
			modules[id] = name
		}
		return nil
	}, `SELECT m.id, m.metadata FROM memory m WHERE m.metadata <> '{}' AND m.partition_id IN `+db.Integers+condition,
		partitions)
	return modules, err
}

// countModules calls add for the memories m as in [Modules]: for each that names a module in its metadata, and for each
// that names another one by a tag.
func countModules(tx db.Tx, partitions, condition string, add func(name string, n int)) error {
	modules, err := Modules(tx, partitions, condition)
	if err != nil {
		return err
	}
	for _, name := range modules {
		add(name, 1)
	}
	type tagged struct {
		row int64
		tag string
	}
	counted := map[tagged]bool{}
	trimmed := func(name string) string { return db.Lower(strings.Trim(name, " ")) }
	return tx.Each(func(row db.Rows) error {
		var m int64
		var tag string
		if err := row.Scan(&m, &tag); err != nil {
			return err
		}
		const prefix = "module:"
		if len(tag) < len(prefix) || db.Lower(tag[:len(prefix)]) != prefix {
			return nil
		}
		name := tag[len(prefix):]
		once := tagged{m, db.Lower(name)}
		if in, is := modules[m]; (!is || trimmed(in) != trimmed(name)) && !counted[once] {
			counted[once] = true
			add(name, 1)
		}
		return nil
	}, `SELECT m.id, t.tag FROM memory_tag t JOIN memory m ON m.id = t.memory_id WHERE m.partition_id IN `+db.Integers+
		condition, partitions)
}

// Why a memory belongs to a module.
const (
	InMetadata = "module_name" // its metadata names the module
	InTag      = "tag"         // one of its tags names it
)

// spellings returns the forms of a name to look for where only ASCII letters are folded.
func spellings(name string) []string {
	first, size := utf8.DecodeRuneInString(name)
	lower := strings.ToLower(name)
	return valid.Distinct([]string{name, lower, strings.ToUpper(name), string(unicode.ToUpper(first)) +
		strings.ToLower(name[size:])})
}

// TagSpellings returns the tags that name a module.
func TagSpellings(name string) []string {
	names := spellings(name)
	tags := slices.Clone(names)
	for _, name := range names {
		tags = append(tags, "module:"+name)
	}
	return tags
}

// ModuleQuery selects the memories that name a module. The arguments are its spellings, the tags that name it, and the
// partitions.
func ModuleQuery(tagged, current string) string {
	return moduleQueryOf(`SELECT id, '`+InMetadata+`' AS match FROM memory WHERE `+db.Module+
		` IS NOT NULL AND lower(`+db.Module+`) IN `+db.Texts, tagged, current)
}

// sealedModuleQuery is like ModuleQuery, with the rows of the memories in place of the spellings.
func sealedModuleQuery(tagged, current string) string {
	return moduleQueryOf(`SELECT id, '`+InMetadata+`' AS match FROM memory WHERE id IN `+db.Integers, tagged,
		current)
}

func moduleQueryOf(named, tagged, current string) string {
	return `SELECT m.id, m.updated_at, min(e.match), coalesce(m.event_type, ''), coalesce(m.state, '') FROM (
		` + named + `
		UNION ALL SELECT t.memory_id, '` + InTag + `' FROM memory_tag t WHERE ` + tagged + `) e
	JOIN memory m ON m.id = e.id WHERE m.partition_id IN ` + db.Integers + current + `
	GROUP BY m.id ORDER BY m.updated_at DESC, m.id DESC`
}

// MemoryOfModule is a memory that names a module.
type MemoryOfModule struct {
	Row, At                 int64 // when it was last changed
	Match, EventType, State string
}

// OfModule returns the memories of a list of partitions that name a module, for which a condition on m holds, in the
// form that follows another one; the last changed first.
func OfModule(tx db.Tx, v Viewer, module, partitions, current string) (all []MemoryOfModule, err error) {
	owners, err := v.Owners(tx)
	if err != nil {
		return nil, err
	}
	tagged, tags, err := sealedrows.HasTag(tx, owners, `t.tag`, TagSpellings(module)...)
	if err != nil {
		return nil, err
	}
	names := spellings(module)
	query, named := ModuleQuery(tagged, current), db.LowerList(names...)
	if sealedrows.Seals(tx) {
		modules, err := Modules(tx, partitions, current)
		if err != nil {
			return nil, err
		}
		var rows []int64
		for row, name := range modules {
			if slices.ContainsFunc(names, func(n string) bool { return db.Lower(n) == db.Lower(name) }) {
				rows = append(rows, row)
			}
		}
		query, named = sealedModuleQuery(tagged, current), db.List(rows)
	}
	err = tx.Each(func(row db.Rows) error {
		var m MemoryOfModule
		err := row.Scan(&m.Row, &m.At, &m.Match, &m.EventType, &m.State)
		all = append(all, m)
		return err
	}, query, slices.Concat([]any{named}, tags, []any{partitions})...)
	return all, err
}

const maxModuleName = 128 // characters

// modulesInMetadata counts the memories whose metadata name a module. It follows its index, to avoid a sort.
func modulesInMetadata(v Viewer) string {
	return `SELECT max(` + db.Module + `), count(*) FROM memory ` + db.ByModule + `
		WHERE ` + db.Module + ` IS NOT NULL AND partition_id IN ` + db.Integers1 +
		v.Alive(`memory`) + ` GROUP BY lower(` + db.Module + `)`
}

// modulesInTags counts the memories that name a module only by a tag. A tag without the prefix "module:" may name one,
// too, but looks like any other tag. The range of the index is a little wider than the tags it is for.
func modulesInTags(v Viewer) string {
	return `SELECT max(substr(t.tag, 8)), count(DISTINCT t.memory_id) FROM memory_tag t ` + db.InOrder +
		` memory m ON m.id = t.memory_id
		WHERE lower(t.tag) >= 'module:' AND lower(t.tag) < 'module<' AND substr(t.tag, 7, 1) = ':' AND m.partition_id IN ` +
		db.Integers1 + `
			AND coalesce(lower(trim(` + db.Module + `)) <> lower(trim(substr(t.tag, 8))), true)` + v.Alive(`m`) + `
		GROUP BY lower(t.tag)`
}

// ModulesNamed counts the memories of a list of partitions by the modules that they name. Names that differ only in
// case are the same module.
func ModulesNamed(tx db.Tx, v Viewer, partitions string) (map[string]int, error) {
	names, counts := map[string]string{}, map[string]int{} // by the names in lower case
	add := func(name string, n int) {
		if name = strings.Trim(name, " "); name == "" || utf8.RuneCountInString(name) > maxModuleName {
			return
		}
		key := db.Lower(name)
		names[key], counts[key] = max(names[key], name), counts[key]+n
	}
	count := func(query string) error {
		return tx.Each(func(row db.Rows) error {
			var name string
			var n int
			err := row.Scan(&name, &n)
			add(name, n)
			return err
		}, query, partitions)
	}
	var err error
	if sealedrows.Seals(tx) {
		err = countModules(tx, partitions, v.Alive(`m`), add)
	} else if err = count(modulesInMetadata(v)); err == nil {
		err = count(modulesInTags(v))
	}
	named := make(map[string]int, len(counts))
	for key, n := range counts {
		named[names[key]] = n
	}
	return named, err
}
