package transfer

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/fault"
	"github.com/souvenir-ai/souvenir/internal/foldname"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/sealing/sealedrows"
)

// importTx is one transaction of an import.
type importTx struct {
	*Target
	namespace string // of the users in the lines

	tx      db.Tx
	w       *kernel.RowWriter
	replace bool
	now     int64

	counts    map[string]Count
	conflicts []Conflict
	missing   int
	warnings  []string
	waiting   bool

	users       map[string]int64
	collections map[collectionName]int64
	projects    map[projectName]int64
	places      map[[2]int64]*kernel.Place // by collection and project

	declared map[projectName][]string // the ids of the file's projects by owner and folded name, in all transactions
}

type collectionName struct {
	owner int64
	name  string
}

type projectName struct {
	owner    int64
	id, name string
}

// outcome is the result for one item.
type outcome int

const (
	added outcome = iota
	unchanged
	replaced
	conflicting
)

func (t *importTx) count(kind string, o outcome) {
	n := t.counts[kind]
	switch o {
	case added:
		n.Added++
	case unchanged:
		n.Unchanged++
	case replaced:
		n.Replaced++
	case conflicting:
		n.Conflicts++
	}
	t.counts[kind] = n
}

func (t *importTx) conflict(line int, kind, id, reason string) {
	t.count(kind, conflicting)
	if len(t.conflicts) < MaxConflicts {
		t.conflicts = append(t.conflicts, Conflict{Line: line, Kind: kind, ID: id, Reason: reason})
	}
}

// warn adds a warning, unless it is empty.
func (t *importTx) warn(warning string) {
	if warning != "" {
		t.warnings = append(t.warnings, warning)
	}
}

// rows returns a row as arguments, or the error.
func (t *importTx) rows(row int64, err error) ([]any, error) { return []any{row}, err }

// known returns the row of an item that must exist.
func (t *importTx) known(argument, query string, args ...any) (int64, error) {
	return t.knownAs(argument, args, query, args...)
}

// knownHere is known for a query whose last argument is the namespace.
func (t *importTx) knownHere(argument, query string, args ...any) (int64, error) {
	return t.knownAs(argument, args, query, append(slices.Clone(args), t.namespace)...)
}

// knownAs is known, with the values to name in its error.
func (t *importTx) knownAs(argument string, names []any, query string, args ...any) (int64, error) {
	found, err := db.Column[int64](t.tx, query, args...)
	if err == nil && len(found) == 0 {
		named := make([]string, len(names))
		for i, a := range names {
			named[i] = fmt.Sprint(a)
		}
		return 0, fault.Invalid(argument, "%s is %s, which is neither in the store nor in an earlier line", argument,
			fault.Show(strings.Join(named, "/")))
	}
	if err != nil {
		return 0, err
	}
	return found[0], nil
}

// person returns the row of a user who must exist.
func (t *importTx) person(argument string, uid any) (int64, error) {
	return t.knownHere(argument, `SELECT id FROM users WHERE uid = ? AND namespace = ?`, uid)
}

// owner returns the row of a user, and creates a new user as a first write does.
func (t *importTx) owner(uid any) (int64, error) {
	id := fmt.Sprint(uid)
	if row, ok := t.users[id]; ok {
		return row, nil
	}
	found, err := db.Column[int64](t.tx, `SELECT id FROM users WHERE namespace = ? AND uid = ?`, t.namespace, id)
	if err != nil {
		return 0, err
	}
	if len(found) == 0 {
		row, err := db.Insert(t.tx, `INSERT INTO users (namespace, uid, created_at) VALUES (?, ?, ?) RETURNING id`,
			t.namespace, id, t.now)
		if err == nil {
			err = kernel.KeepUserKey(t.tx, t.namespace, id)
		}
		if err != nil {
			return 0, err
		}
		found = []int64{row}
	}
	t.users[id] = found[0]
	return found[0], nil
}

// collection returns the row of a collection, and creates a new one if it is missing.
func (t *importTx) collection(owner int64, name string) (int64, error) {
	key := collectionName{owner, name}
	if row, ok := t.collections[key]; ok {
		return row, nil
	}
	row, _, found, err := kernel.OwnCollection(t.tx, owner, name)
	if err != nil {
		return 0, err
	}
	if !found {
		sealed, err := sealedrows.SealText(t.tx, owner, sealedrows.CollectionName, name)
		if err != nil {
			return 0, err
		}
		row, err = db.Insert(t.tx, `INSERT INTO collection (owner_id, name, description, created_at, updated_at) `+
			`VALUES (?, ?, '', ?, ?) RETURNING id`, owner, sealed, t.now, t.now)
		if err != nil {
			return 0, err
		}
		t.count(KindCollection, added)
	}
	t.collections[key] = row
	return row, nil
}

// project returns the row of a project of an owner, by its id or else by its name, and creates a missing one; 0 when
// none is named. A name means the project that has it in the file, also if this one has another name in the store.
func (t *importTx) project(owner int64, id, name string) (int64, error) {
	if id == "" && name == "" {
		return 0, nil
	}
	key := projectName{owner, id, name}
	if row, ok := t.projects[key]; ok {
		return row, nil
	}
	if id != "" && name != "" {
		t.declare(owner, id, name)
	}
	if id == "" {
		switch declared := t.declared[projectName{owner: owner, name: foldname.Key(name)}]; len(declared) {
		case 0:
		case 1:
			id = declared[0]
		default:
			return 0, fault.Invalid("project_name", "project_name %s matches %d projects; give project_id",
				fault.Show(name), len(declared))
		}
	}
	argument, condition, value, stored, err := "project_id", `uid = ?`, id, any(id), error(nil)
	if id == "" {
		argument, value = "project_name", foldname.Key(name)
		if condition, stored, err = sealedrows.Is(t.tx, sealedrows.ProjectNameKey, owner, `name_key`, value); err != nil {
			return 0, err
		}
	}
	found, err := db.Column[int64](t.tx, `SELECT id FROM project WHERE owner_id = ? AND `+condition, owner, stored)
	if err == nil && id == "" && len(found) > 1 { // from before names were compared folded
		if condition, stored, err = sealedrows.Is(t.tx, sealedrows.ProjectName, owner, `name`, name); err != nil {
			return 0, err
		}
		var exact []int64
		if exact, err = db.Column[int64](t.tx, `SELECT id FROM project WHERE owner_id = ? AND `+condition, owner,
			stored); len(exact) == 1 {
			found = exact
		}
	}
	if err != nil {
		return 0, err
	}
	switch {
	case len(found) > 1:
		return 0, fault.Invalid(argument, "%s %s matches %d projects; give project_id", argument, fault.Show(value),
			len(found))
	case len(found) == 0:
		id = cmp.Or(id, t.NewID())
		free, warning, err := t.freeName(owner, id, cmp.Or(name, id))
		if err != nil {
			return 0, err
		}
		t.warn(warning)
		row, err := kernel.InsertProject(t.tx, owner, id, free, t.Now())
		if err != nil {
			return 0, err
		}
		found = []int64{row}
		t.count(KindProject, added)
	}
	t.projects[key] = found[0]
	return found[0], nil
}

// knownProject returns the row of a project that must exist.
func (t *importTx) knownProject(owner, id any) (int64, error) {
	return t.knownHere("project_id", `SELECT j.id FROM project j JOIN users u ON u.id = j.owner_id WHERE u.uid = ? `+
		`AND j.uid = ? AND u.namespace = ?`, owner, id)
}

// recordItem is a line for one row.
type recordItem struct {
	lineNumber
	*Record
	values []any // in stored form; missing fields are absent
}

func parseRecord(r *Record, line []byte, n int) (importItem, error) {
	var given map[string]json.RawMessage
	if err := decodeLine(line, &given); err != nil {
		return nil, err
	}
	item := &recordItem{lineNumber: lineNumber(n), Record: r, values: make([]any, len(r.Fields))}
	for i, f := range r.Fields {
		raw, ok := given[f.Name]
		if !ok || string(raw) == "null" {
			if f.absent == required {
				return nil, fault.Invalid(f.Name, "%s is missing; a line of type %q needs it", f.Name, r.kind)
			}
			item.values[i] = missingField
			continue
		}
		var err error
		if item.values[i], err = f.parse(raw); err != nil {
			return nil, err
		}
	}
	return item, nil
}

// missingField stands for a field missing from a line.
var missingField = any(absentField{})

type absentField struct{}

// parse reads a value and checks it.
func (f RecordField) parse(raw json.RawMessage) (any, error) {
	var text string
	switch f.Form {
	case jsonForm:
		var err error
		if text, err = compactJSON(string(raw)); err != nil {
			return nil, fault.Invalid(f.Name, "%s is not JSON: %v", f.Name, err)
		}
	case CountForm:
		var n int64
		if err := json.Unmarshal(raw, &n); err != nil {
			return nil, fault.Invalid(f.Name, "%s is %s; expected a whole number", f.Name, fault.Show(string(raw)))
		}
		return n, nil
	default:
		if err := json.Unmarshal(raw, &text); err != nil {
			return nil, fault.Invalid(f.Name, "%s is %s; expected a string", f.Name, fault.Show(string(raw)))
		}
	}
	if f.Form == TimeForm {
		return parseTime(f.Name, text)
	}
	if f.Form == BytesForm {
		data, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return nil, fault.Invalid(f.Name, "%s is not base64: %v", f.Name, err)
		}
		text = string(data)
	}
	if f.Check != nil {
		if err := f.Check(f.Name, text); err != nil {
			return nil, err
		}
	}
	if f.Form == BytesForm {
		return []byte(text), nil
	}
	return text, nil
}

// apply writes the row.
func (item *recordItem) apply(t *importTx) error {
	values := slices.Clone(item.values)
	for i, f := range item.Fields {
		if values[i] != missingField {
			continue
		}
		if values[i] = f.absent; f.absent == present {
			values[i] = t.now
		}
	}
	if slices.Contains([]string{KindCollection, KindProject, kindFormerName}, item.kind) {
		owner, err := idOfOwner(t.tx, t.namespace, fmt.Sprint(values[0]))
		if err != nil {
			return err
		}
		values[0] = owner
	}
	if t.namespace != "" && item.serves(values) {
		t.conflict(item.line(), item.kind, item.Named(item.values), "only the default namespace has it, for the server")
		return nil
	}
	existing, into := item.Room()
	found := false
	keyed, key, err := item.keyOf(t, values)
	if err != nil {
		return err
	}
	if item.namespace != "" {
		keyed, key = keyed+` AND `+item.namespace+` = ?`, append(key, t.namespace)
	}
	err = t.tx.Each(func(row db.Rows) error {
		found = true
		return row.Scan(into...)
	}, item.Selection+` WHERE `+keyed, key...)
	if err != nil {
		return err
	}
	if item.kind == KindUser {
		return item.applyUser(t, values, existing, found)
	}
	var renamed string
	if item.kind == KindProject {
		if renamed, err = item.rename(t, values, existing, found); err != nil {
			return err
		}
	}
	if !found {
		t.warn(renamed)
		return item.insertRow(t, values)
	}
	same, fixed := item.compare(values, existing)
	switch {
	case same:
		t.count(item.kind, unchanged)
	case item.kept || fixed || !t.replace:
		t.conflict(item.line(), item.kind, item.Named(item.values), "the store has another version of it, which was kept")
	default:
		refs, err := item.refs(t, values)
		if err != nil {
			return err
		}
		if err := item.seal(t.tx, values, refs); err != nil {
			return err
		}
		if _, err := t.tx.Exec(item.update, append(values, refs...)...); err != nil {
			return err
		}
		t.count(item.kind, replaced)
		t.warn(renamed)
	}
	return nil
}

// serves reports whether a row belongs to the default namespace only. An MCP token made by an application does, since
// it ends with the application's grant.
func (r *Record) serves(values []any) bool {
	for i, f := range r.Fields {
		if f.serving && values[i] != nil {
			return true
		}
	}
	return r.serving
}

// compare reports whether a row matches the line, and fills values with the fields that the line omits. fixed reports
// that a field that never changes differs.
func (item *recordItem) compare(values, existing []any) (same, fixed bool) {
	same = true
	for i, f := range item.Fields {
		switch {
		case item.values[i] == missingField:
			if f.fixed && existing[i] != nil {
				same, fixed = false, true
			}
			values[i] = existing[i]
		case f.passing:
		case f.Form == jsonForm && sameButForSpace(values[i], existing[i]):
		case !equalValues(values[i], existing[i]):
			same, fixed = false, fixed || f.fixed
		}
	}
	return same, fixed
}

// sameButForSpace reports whether a value of a line equals the stored one, ignoring white space.
func sameButForSpace(line, stored any) bool {
	text, ok := stored.(string)
	if !ok {
		return false
	}
	compact, err := compactJSON(text)
	return err == nil && line == compact
}

func equalValues(a, b any) bool {
	x, xBytes := a.([]byte)
	y, yBytes := b.([]byte)
	if xBytes || yBytes {
		return xBytes && yBytes && bytes.Equal(x, y)
	}
	return a == b
}

func (item *recordItem) insertRow(t *importTx, values []any) error {
	refs, err := item.refs(t, values)
	if err != nil {
		return err
	}
	if err := item.seal(t.tx, values, refs); err != nil {
		return err
	}
	result, err := t.tx.Exec(item.insert, append(values, refs...)...)
	if err != nil {
		return err
	}
	if result.RowsAffected == 0 {
		t.conflict(item.line(), item.kind, item.Named(item.values), "it conflicts with other data in the store")
		return nil
	}
	t.count(item.kind, added)
	return nil
}

// Named returns the name of a row with these values in a report.
func (r *Record) Named(values []any) string {
	named := make([]string, r.Key)
	for i := range named {
		named[i] = kernel.LocalUser
		switch v := values[i].(type) {
		case string:
			named[i] = v
		case []byte:
			named[i] = fmt.Sprintf("%x", v)
		}
	}
	return strings.Join(named, "/")
}

// The positions of a user's fields.
const (
	userName = iota + 1
	userEmail
	userRole
	userDisabled
	userCreated
	userUpdated
	userPassword
)

// applyUser adds a user. A user who owns data in the store but has no account gets the account of the line. A name that
// another user has is left out; the user's data is still imported, under the id.
func (item *recordItem) applyUser(t *importTx, values, existing []any, found bool) error {
	signsIn := func(v []any) bool {
		return v[userName] != nil || v[userEmail] != nil || v[userRole] != roleUser || v[userPassword] != nil
	}
	switch {
	case found && !signsIn(values): // only an id, or the remains of a deleted account
		t.count(item.kind, unchanged)
		return nil
	case found && (signsIn(existing) || existing[userDisabled] != nil):
		if same, _ := item.compare(values, existing); same {
			t.count(item.kind, unchanged)
		} else {
			t.conflict(item.line(), item.kind, item.Named(item.values),
				"the store has another account of this id, or had one, which was kept")
		}
		return nil
	}
	if name, ok := values[userName].(string); ok {
		taken, err := t.taken(values[0].(string), name)
		if err != nil {
			return err
		}
		if taken {
			t.conflict(item.line(), item.kind, item.Named(item.values), "another user has the name "+fault.Show(name)+
				" or uses it; this one gets no account here, only an id")
			_, err := t.owner(values[0])
			return err
		}
	}
	if !found {
		if err := item.insertRow(t, values); err != nil {
			return err
		}
		return kernel.KeepUserKey(t.tx, t.namespace, values[0].(string))
	}
	refs, err := item.refs(t, values)
	if err != nil {
		return err
	}
	_, err = t.tx.Exec(`UPDATE users SET name = ?2, email = ?3, role = ?4, disabled_at = ?5, created_at = ?6, `+
		// The key ring compares it with the time of a deletion: see keyring.Back.
		`updated_at = CASE WHEN updated_at > ?7 OR ?7 IS NULL THEN updated_at ELSE ?7 END, `+
		`password = ?8, name_key = ?9 WHERE uid = ?1 AND namespace = ?10`,
		append(values, refs...)...)
	if err == nil {
		t.count(item.kind, added)
	}
	return err
}

// taken reports whether a name, or its id, identifies another user, by the rules of kernel.CheckUserNameFree and
// kernel.CheckUserIDFree.
func (t *importTx) taken(id, name string) (bool, error) {
	key := foldname.Key(name)
	others, err := db.Column[int64](t.tx, `SELECT 1 FROM users WHERE namespace = ?1 AND uid <> ?2
		AND (name_key IN (?3, ?4) OR uid_key = ?3) LIMIT 1`, t.namespace, id, key, foldname.Key(id))
	return len(others) > 0, err
}
