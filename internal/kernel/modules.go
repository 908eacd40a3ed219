package kernel

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/souvenir-ai/souvenir/internal/db"
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

// CountModules calls add for the memories m as in [Modules]: for each that names a module in its metadata, and for each
// that names another one by a tag.
func CountModules(tx db.Tx, partitions, condition string, add func(name string, n int)) error {
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
