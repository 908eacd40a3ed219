package souvenir

import (
	"fmt"
	"slices"
	"strings"

	"github.com/souvenir-ai/souvenir/internal/check"
	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/foldname"
	"github.com/souvenir-ai/souvenir/internal/jsonobject"
)

// What a store refuses to take cannot stand in it either: it could not be shown as JSON, or come back from an export.

// checkRecords looks at the values of one kind of row, by the rules by which an import takes them.
func (in *inspection) checkRecords(r record) error {
	values, into := r.room()
	return in.tx.Each(func(row db.Rows) error {
		if err := row.Scan(into...); err != nil {
			return err
		}
		in.report.Checked[r.table]++
		for i, f := range r.fields {
			if err := f.stands(values[i]); err != nil {
				in.find(Finding{Table: r.table, ID: strings.ToValidUTF8(r.named(values), "\ufffd"), Problem: err.Error()})
			}
		}
		return nil
	}, r.selection+` ORDER BY `+r.ordered)
}

// stands says why a stored value cannot be what it is; nil if it can.
func (f recordField) stands(value any) error {
	var text string
	switch v := value.(type) {
	case int64:
		if f.form == timeForm {
			return checkTime(f.name, v)
		}
		return nil
	case string:
		text = v
		if err := check.UTF8(f.name, text); err != nil {
			return err
		}
	case []byte:
		text = string(v)
	default:
		return nil
	}
	if f.form == jsonForm {
		if _, err := compactJSON(text); err != nil {
			return invalid(f.name, "%s is not JSON: %v", f.name, err)
		}
	}
	if f.check == nil {
		return nil
	}
	return f.check(f.name, text)
}

// checkFoldedNames looks whether the names that people sign in with, and those of projects, can be found.
func (in *inspection) checkFoldedNames() error {
	return in.tx.Each(func(row db.Rows) error {
		var table, id, name, key string
		if err := row.Scan(&table, &id, &name, &key); err != nil {
			return err
		}
		if foldname.Key(name) != key {
			in.find(Finding{Table: table, ID: id, Problem: fmt.Sprintf("the name %s is looked up as %s, which is not the name folded", show(name), show(key))})
		}
		return nil
	}, `SELECT 'users', uid, coalesce(name, ''), coalesce(name_key, '') FROM users
		UNION ALL SELECT 'project', uid, name, name_key FROM project UNION ALL SELECT 'project_alias', name, name, name_key FROM project_alias`)
}

// checkAttributes looks at what is known of a memory besides its content.
func (m *checkedMemory) checkAttributes() error {
	object, err := jsonobject.Decode([]byte(m.metadata))
	if err != nil || object == nil {
		return invalid("metadata", "metadata is %s, which is no JSON object", show(m.metadata))
	}
	if object, err = jsonobject.Canonical("metadata", object); err != nil {
		return err
	}
	for _, key := range knownKeys {
		if _, ok := object[key]; ok {
			return invalid("metadata", "metadata has %s, which has a column of its own", key)
		}
	}
	a := m.attributes
	a.own = object
	if err := a.check(); err != nil {
		return err
	}
	if a.ruleType == RuleTodo {
		if _, err := ParseTodo(m.content); err != nil {
			return err
		}
	}
	return checkStoredTags(m.tags)
}

// checkShown looks at metadata as it is shown to callers.
func checkShown(object map[string]any) error {
	object, err := jsonobject.Canonical("metadata", object)
	if err != nil {
		return err
	}
	a, err := attributesOf(object)
	if err != nil {
		return err
	}
	return a.check()
}

// checkStoredTags looks at tags, each of which has a line break behind it.
func checkStoredTags(lines string) error {
	if lines == "" {
		return nil
	}
	tags := strings.Split(strings.TrimSuffix(lines, "\n"), "\n")
	kept, err := check.Tags(tags, MaxTags)
	if err == nil && !slices.Equal(kept, tags) {
		return invalid("tags", "tags is %s; they would be kept as %s", show(strings.Join(tags, ", ")), show(strings.Join(kept, ", ")))
	}
	return err
}
