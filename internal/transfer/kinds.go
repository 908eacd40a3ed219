package transfer

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/souvenir-ai/souvenir/internal/auth/passwords"
	"github.com/souvenir-ai/souvenir/internal/fault"
	"github.com/souvenir-ai/souvenir/internal/foldname"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/sealing/sealedrows"
	"github.com/souvenir-ai/souvenir/internal/valid"
)

// The kinds of lines of an export, in their order.
const (
	kindNamespace    = "namespace"
	KindUser         = "user"
	KindIdentity     = "identity"
	KindPreference   = "preference"
	kindBlock        = "block"
	KindCollection   = "collection"
	KindProject      = "project"
	kindFormerName   = "former_name"
	KindMember       = "member"
	KindMemory       = "memory"
	KindVectors      = "vectors"
	KindRevision     = "revision"
	KindLink         = "link"
	KindFile         = "file"
	kindChunk        = "chunk"
	KindClient       = "client"
	KindGrant        = "grant"
	KindToken        = "token"
	KindRefreshToken = "refresh_token"
	KindSigningKey   = "signing_key"
	kindEnd          = "end"
)

// The roles of users.
const (
	roleUser  = "user"
	roleAdmin = "admin"
)

// form is the form of a value in a line, and at rest.
type form int

// The forms.
const (
	textForm  form = iota
	TimeForm       // RFC 3339; microseconds at rest
	jsonForm       // any JSON value; text at rest
	BytesForm      // base64; BLOB at rest
	CountForm      // a whole number
)

// The value of a field that is missing in the line, unless the field has its own default (nil for NULL).
type absent int

const (
	required absent = iota
	present         // the time of the import
)

// RecordField is one value of a record.
type RecordField struct {
	Name       string
	Form       form
	absent     any
	credential bool // left out of an export without credentials
	fixed      bool // never changes
	passing    bool // changes with every use: never a conflict
	serving    bool // refers to rows that only the default namespace has
	Check      func(argument, value string) error
}

// Record is a kind of line that represents one row and follows one pattern. Composite kinds (memories, files) have
// their own code.
type Record struct {
	kind       string
	Table      string // table of its rows
	credential bool   // the whole line is a credential
	kept       bool   // an import never replaces it, since it decides who may sign in
	serving    bool   // only the default namespace has such rows, which belong to the server
	owner      string // column with the row of the owner; empty: no owner
	namespace  string // column of the selection with the namespace; empty: none
	Key        int    // the number of first fields that are the key
	Fields     []RecordField

	// Selection returns the fields in their order; keyed limits it to one row by the key, ordered sorts all rows.
	Selection, keyed, Ordered string

	// insert and update take the fields as ?1, ?2 and so on, followed by the rows that refs returns.
	insert, update string
	refs           func(t *importTx, values []any) ([]any, error)

	sealed []sealedField // fields that a store with user keys seals
	of     int           // index of the owner's row among those that refs returns
}

func recordOf(kind string) *Record {
	all := Records()
	if i := slices.IndexFunc(all, func(r Record) bool { return r.kind == kind }); i >= 0 {
		return &all[i]
	}
	return nil
}

// selected limits a check to some values.
func selected(values ...string) func(argument, value string) error {
	return func(argument, value string) error { return valid.Enum(argument, value, values) }
}

// CheckText refuses a text that is too long.
func CheckText(argument, value string) error {
	if len(value) > valid.MaxMetadata {
		return fault.New(fault.KindTooLarge, argument, "%s is %d bytes; at most %d are allowed", argument, len(value),
			valid.MaxMetadata)
	}
	return nil
}

func checkObject(argument, value string) error {
	if !strings.HasPrefix(strings.TrimSpace(value), "{") {
		return fault.Invalid(argument, "%s is %s; expected a JSON object", argument, fault.Show(value))
	}
	return CheckText(argument, value)
}

func checkStrings(argument, value string) error {
	var list []string
	if err := json.Unmarshal([]byte(value), &list); err != nil || list == nil {
		return fault.Invalid(argument, "%s is %s; expected a list of strings", argument, fault.Show(value))
	}
	return CheckText(argument, value)
}

// CheckHash refuses anything that is not a SHA-256.
func CheckHash(argument, value string) error {
	if len(value) != 32 {
		return fault.Invalid(argument, "%s is %d bytes long; a SHA-256 has 32", argument, len(value))
	}
	return nil
}

func checkPassword(argument, value string) error {
	if err := passwords.CheckHash(value); err != nil {
		return fault.Invalid(argument, "%s is not an argon2id hash in PHC string format, the only format for passwords: %v",
			argument, err)
	}
	return nil
}

func checkKeptName(argument, value string) error {
	kept, err := valid.UserName(value)
	if err == nil && kept != value {
		return fault.Invalid(argument, "%s is %s; it would be kept as %s", argument, fault.Show(value), fault.Show(kept))
	}
	return err
}

func checkSlashless(argument, value string) error {
	if strings.Contains(value, "/") {
		return fault.Invalid(argument, "%s is %s; the id of a project has no slash", argument, fault.Show(value))
	}
	return valid.Name(argument, value)
}

// personRecords are about people and their data.
func personRecords() []Record {
	return []Record{
		{
			kind: KindUser, Table: "users", owner: `id`, namespace: `namespace`, kept: true, Key: 1,
			Fields: []RecordField{
				{Name: "id", absent: required, Check: valid.Name},
				{Name: "name", Check: checkKeptName},
				{Name: "email", Check: func(_, value string) error { return valid.Email(value) }},
				{Name: "role", absent: roleUser, Check: selected(roleUser, roleAdmin)},
				{Name: "disabled_at", Form: TimeForm},
				{Name: "created_at", Form: TimeForm, absent: present, passing: true},
				{Name: "updated_at", Form: TimeForm, passing: true},
				{Name: "password", credential: true, Check: checkPassword},
			},
			Selection: `SELECT uid, name, email, role, disabled_at, created_at, updated_at, password FROM users`,
			keyed:     `uid = ?`, Ordered: `id`,
			// ?9 is the name folded, ?10 the namespace
			insert: `INSERT INTO users (uid, name, email, role, disabled_at, created_at, updated_at, password, name_key,
				namespace) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
			refs: func(t *importTx, v []any) ([]any, error) {
				if name, ok := v[1].(string); ok {
					return []any{foldname.Key(name), t.namespace}, nil
				}
				return []any{nil, t.namespace}, nil
			},
		},
		{
			kind: KindIdentity, Table: "external_identity", namespace: `u.namespace`, serving: true, credential: true,
			kept: true, Key: 2,
			Fields: []RecordField{
				{Name: "issuer", absent: required,
					Check: func(a, v string) error { return fault.OrNil(valid.Line(a, v, valid.MaxIssuer)) }},
				{Name: "subject", absent: required,
					Check: func(a, v string) error { return fault.OrNil(valid.Line(a, v, valid.MaxSubject)) }},
				{Name: "user", absent: required, Check: valid.Name},
				{Name: "email", absent: "", Check: CheckText},
				{Name: "created_at", Form: TimeForm, absent: present},
			},
			Selection: `SELECT i.issuer, i.subject, u.uid, i.email, i.created_at FROM external_identity i ` +
				`JOIN users u ON u.id = i.user_id`,
			keyed: `i.issuer = ? AND i.subject = ?`, Ordered: `i.issuer, i.subject`,
			insert: `INSERT INTO external_identity (issuer, subject, email, created_at, user_id) VALUES (?1, ?2, ?4, ?5, ?6) ` +
				`ON CONFLICT DO NOTHING`,
			refs: func(t *importTx, v []any) ([]any, error) { return t.rows(t.person("user", v[2])) },
		},
	}
}

// personalRecords are about users' data besides their accounts.
func personalRecords() []Record {
	return []Record{
		{
			kind: KindPreference, Table: "preference", owner: `f.user_id`, namespace: `u.namespace`, Key: 1,
			Fields: []RecordField{
				{Name: "user", absent: required, Check: valid.Name},
				{Name: "value", Form: jsonForm, absent: required, Check: checkObject},
				{Name: "updated_at", Form: TimeForm, absent: present},
			},
			Selection: `SELECT u.uid, f.value, f.updated_at FROM preference f JOIN users u ON u.id = f.user_id`,
			keyed:     `u.uid = ?`, Ordered: `f.user_id`,
			insert: `INSERT INTO preference (value, updated_at, user_id) VALUES (?2, ?3, ?4) ON CONFLICT DO NOTHING`,
			update: `UPDATE preference SET value = ?2, updated_at = ?3 WHERE user_id = ?4`,
			refs:   func(t *importTx, v []any) ([]any, error) { return t.rows(t.owner(v[0])) },
			sealed: []sealedField{{1, sealedrows.PreferenceValue, ``}},
		},
		{
			kind: kindBlock, Table: "blocked_sender", namespace: `u.namespace`, Key: 2,
			Fields: []RecordField{
				{Name: "user", absent: required, Check: valid.Name},
				{Name: "sender", absent: required, Check: valid.Name},
				{Name: "created_at", Form: TimeForm, absent: present},
			},
			Selection: `SELECT u.uid, s.uid, b.created_at FROM blocked_sender b JOIN users u ON u.id = b.user_id ` +
				`JOIN users s ON s.id = b.sender_id`,
			keyed: `u.uid = ? AND s.uid = ?`, Ordered: `b.user_id, b.sender_id`,
			insert: `INSERT INTO blocked_sender (created_at, user_id, sender_id) VALUES (?3, ?4, ?5) ON CONFLICT DO NOTHING`,
			update: `UPDATE blocked_sender SET created_at = ?3 WHERE user_id = ?4 AND sender_id = ?5`,
			refs: func(t *importTx, v []any) ([]any, error) {
				user, err := t.rows(t.person("user", v[0]))
				if err != nil {
					return nil, err
				}
				sender, err := t.rows(t.person("sender", v[1]))
				return append(user, sender...), err
			},
		},
	}
}

// placeRecords are about the places of memories.
func placeRecords() []Record {
	return []Record{collectionRecord(), projectRecord(), formerNameRecord(), memberRecord()}
}

// collectionRecord is a collection.
func collectionRecord() Record {
	return Record{
		kind: KindCollection, Table: "collection", owner: `c.owner_id`, namespace: `u.namespace`, Key: 2,
		Fields: []RecordField{
			{Name: "owner", absent: kernel.LocalUser, Check: valid.Name},
			{Name: "collection_name", absent: required, Check: valid.Name},
			{Name: "description", absent: "", Check: func(_, value string) error { return valid.Description(value) }},
			{Name: "own_vectors", Form: CountForm, fixed: true}, // their dimensions
			{Name: "created_at", Form: TimeForm, absent: present},
			{Name: "updated_at", Form: TimeForm, absent: present},
			{Name: "retention_seconds", Form: CountForm},
			{Name: "retention_action", Check: selected("trash", "delete")},
		},
		Selection: `SELECT u.uid, c.name, c.description, f.dimensions, c.created_at, c.updated_at, ` + retention("c") + `
			FROM collection c JOIN users u ON u.id = c.owner_id AND c.name <> '' LEFT JOIN profile f ON f.id = c.own_profile`,
		keyed: `u.uid = ? AND c.name = ?`, Ordered: `c.id`,
		insert: `INSERT INTO collection (name, description, created_at, updated_at, retention, retention_deletes,
			own_profile, owner_id) SELECT ?2, ?3, ?5, ?6, ?9, ?10, ?11, ?12 WHERE ?13 = 0 ON CONFLICT DO NOTHING`,
		update: `UPDATE collection SET description = ?3, created_at = ?5, updated_at = ?6, retention = ?9,
			retention_deletes = ?10, name = ?2 WHERE id = ?13`,
		refs: func(t *importTx, v []any) ([]any, error) {
			var profile any
			if size, own := v[3].(int64); own {
				if size < 1 || size > valid.MaxVector {
					return nil, fault.Invalid("own_vectors", "own_vectors is %d; the dimensions of a vector are 1 to %d", size,
						valid.MaxVector)
				}
				row, err := kernel.ProfileRow(t.tx, kernel.OwnProfile(int(size)), t.now)
				if err != nil {
					return nil, err
				}
				profile = row
			}
			rule, err := retentionRefs(v[6], v[7])
			if err != nil {
				return nil, err
			}
			owner, err := t.owner(v[0])
			if err != nil {
				return nil, err
			}
			name, _ := v[1].(string)
			row, _, _, err := kernel.OwnCollection(t.tx, owner, name) // 0: it has to be added
			return slices.Concat(rule, []any{profile, owner, row}), err
		},
		sealed: []sealedField{{1, sealedrows.CollectionName, `c.name`}, {2, sealedrows.CollectionDescription, ``}}, of: 3,
	}
}

// projectRecord is a project.
func projectRecord() Record {
	return Record{
		kind: KindProject, Table: "project", owner: `j.owner_id`, namespace: `u.namespace`, Key: 2,
		Fields: []RecordField{
			{Name: "owner", absent: kernel.LocalUser, Check: valid.Name},
			{Name: "project_id", absent: required, Check: checkSlashless},
			{Name: "project_name", absent: required, Check: valid.Name},
			{Name: "created_at", Form: TimeForm, absent: present},
			{Name: "updated_at", Form: TimeForm, absent: present},
			{Name: "retention_seconds", Form: CountForm},
			{Name: "retention_action", Check: selected("trash", "delete")},
		},
		Selection: `SELECT u.uid, j.uid, j.name, j.created_at, j.updated_at, ` + retention("j") + ` FROM project j ` +
			`JOIN users u ON u.id = j.owner_id`,
		keyed: `u.uid = ? AND j.uid = ?`, Ordered: `j.id`,
		// ?11 is the name folded, as it is stored
		insert: `INSERT INTO project (uid, name, created_at, updated_at, retention, retention_deletes, owner_id, name_key) ` +
			`VALUES (?2, ?3, ?4, ?5, ?8, ?9, ?10, ?11) ON CONFLICT DO NOTHING`,
		update: `UPDATE project SET name = ?3, created_at = ?4, updated_at = ?5, retention = ?8, retention_deletes = ?9,
			name_key = ?11 WHERE owner_id = ?10 AND uid = ?2`,
		refs: func(t *importTx, v []any) ([]any, error) {
			rule, err := retentionRefs(v[5], v[6])
			if err != nil {
				return nil, err
			}
			owner, err := t.rows(t.owner(v[0]))
			if err != nil {
				return nil, err
			}
			name, _ := v[2].(string)
			row, _ := owner[0].(int64)
			key, err := sealedrows.SealText(t.tx, row, sealedrows.ProjectNameKey, foldname.Key(name))
			return slices.Concat(rule, owner, []any{key}), err
		},
		sealed: []sealedField{{2, sealedrows.ProjectName, ``}}, of: 2,
	}
}

// oauthRecords are the state of the authorization server. Codes are left out, since they expire within minutes.
func oauthRecords() []Record {
	return []Record{
		{
			kind: KindClient, Table: "oauth_client", serving: true, credential: true, kept: true, Key: 1,
			Fields: []RecordField{
				{Name: "client_id", absent: required, Check: CheckText},
				{Name: "kind", absent: required, Check: selected("admin", "registered", "document")},
				{Name: "owner", Check: valid.Name},
				{Name: "name", absent: "", Check: CheckText},
				{Name: "auth_method", absent: required, Check: selected("none", "client_secret_basic", "client_secret_post")},
				{Name: "secret_hash", Form: BytesForm, Check: CheckHash},
				{Name: "redirect_uris", Form: jsonForm, absent: required, Check: checkStrings},
				{Name: "metadata", Form: jsonForm, absent: "{}", Check: checkObject},
				{Name: "created_at", Form: TimeForm, absent: present},
				{Name: "updated_at", Form: TimeForm, absent: present},
				{Name: "expires_at", Form: TimeForm},
				{Name: "used_at", Form: TimeForm, passing: true},
				{Name: "disabled_at", Form: TimeForm},
				{Name: "maker", absent: "", Check: CheckText},
			},
			Selection: `SELECT o.client_id, o.kind, u.uid, o.name, o.auth_method, o.secret_hash, o.redirect_uris, o.metadata,
				o.created_at, o.updated_at, o.expires_at, o.used_at, o.disabled_at, o.maker
				FROM oauth_client o LEFT JOIN users u ON u.id = o.owner_id`,
			keyed: `o.client_id = ?`, Ordered: `o.id`,
			insert: `INSERT INTO oauth_client (client_id, kind, name, auth_method, secret_hash, redirect_uris, metadata,
				created_at, updated_at, expires_at, used_at, disabled_at, maker, owner_id)
				VALUES (?1, ?2, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15) ON CONFLICT DO NOTHING`,
			refs: func(t *importTx, v []any) ([]any, error) {
				if v[2] == nil {
					return []any{nil}, nil
				}
				return t.rows(t.person("owner", v[2]))
			},
		},
		{
			kind: KindGrant, Table: "oauth_grant", namespace: `u.namespace`, serving: true, credential: true, kept: true, Key: 1,
			Fields: []RecordField{
				{Name: "id", absent: required, Check: valid.Name},
				{Name: "client_id", absent: required, Check: CheckText},
				{Name: "user", absent: required, Check: valid.Name},
				{Name: "scopes", Form: jsonForm, absent: required, Check: checkStrings},
				{Name: "projects", Form: jsonForm, Check: checkStrings},
				{Name: "resource", absent: "", Check: CheckText},
				{Name: "created_at", Form: TimeForm, absent: present},
				{Name: "last_used_at", Form: TimeForm, passing: true},
				{Name: "revoked_at", Form: TimeForm},
				{Name: "refused", Form: jsonForm, Check: checkStrings},
				{Name: "session", absent: "", Check: CheckText},
				{Name: "paused_at", Form: TimeForm},
			},
			Selection: `SELECT g.uid, o.client_id, u.uid, g.scopes, g.projects, g.resource, g.created_at, g.last_used_at,
				g.revoked_at, g.refused, g.session, g.paused_at
				FROM oauth_grant g JOIN oauth_client o ON o.id = g.client_id JOIN users u ON u.id = g.user_id`,
			keyed: `g.uid = ?`, Ordered: `g.id`,
			insert: `INSERT INTO oauth_grant (uid, scopes, projects, resource, created_at, last_used_at, revoked_at, refused,
				session, paused_at, client_id, user_id)
				VALUES (?1, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14) ON CONFLICT DO NOTHING`,
			refs: func(t *importTx, v []any) ([]any, error) {
				client, err := t.rows(t.known("client_id", `SELECT id FROM oauth_client WHERE client_id = ?`, v[1]))
				if err != nil {
					return nil, err
				}
				user, err := t.rows(t.person("user", v[2]))
				return append(client, user...), err
			},
		},
	}
}

// tokenRecords are the credentials of programs that act for a user.
func tokenRecords() []Record {
	return []Record{
		{
			kind: KindToken, Table: "token", namespace: `u.namespace`, credential: true, kept: true, Key: 1,
			Fields: []RecordField{
				{Name: "id", absent: required, Check: valid.Name},
				{Name: "user", absent: required, Check: valid.Name},
				{Name: "name", absent: "", Check: CheckText},
				{Name: "hash", Form: BytesForm, absent: required, Check: CheckHash},
				{Name: "prefix", absent: "", Check: CheckText},
				{Name: "scopes", Form: jsonForm, absent: required, Check: checkStrings},
				{Name: "projects", Form: jsonForm, Check: checkStrings},
				{Name: "created_at", Form: TimeForm, absent: present},
				{Name: "expires_at", Form: TimeForm},
				{Name: "last_used_at", Form: TimeForm, passing: true},
				{Name: "revoked_at", Form: TimeForm},
				{Name: "grant", serving: true, Check: valid.Name},
				{Name: "parent", Check: valid.Name},
				{Name: "session", absent: "", Check: CheckText},
				{Name: "browser", absent: "", Check: CheckText},
				{Name: "with_session", Form: CountForm, absent: int64(0)},
				{Name: "paused_at", Form: TimeForm},
			},
			Selection: `SELECT k.uid, u.uid, k.name, k.hash, k.prefix, k.scopes, k.projects, k.created_at, k.expires_at,
				k.last_used_at, k.revoked_at, g.uid,
					p.uid, k.session, k.browser, k.with_session, k.paused_at
				FROM token k JOIN users u ON u.id = k.user_id LEFT JOIN oauth_grant g ON g.id = k.grant_id
				LEFT JOIN token p ON p.id = k.parent_id`,
			keyed: `k.uid = ?`, Ordered: `k.id`,
			insert: `INSERT INTO token (uid, name, hash, prefix, scopes, projects, created_at, expires_at, last_used_at,
				revoked_at, session, browser, with_session, paused_at,
					user_id, grant_id, parent_id)
				VALUES (?1, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?14, ?15, CASE WHEN ?16 <> 0 THEN 1 ELSE 0 END, ?17, ?18, ?19,
					?20)
				ON CONFLICT DO NOTHING`,
			refs: func(t *importTx, v []any) ([]any, error) {
				rows, err := t.rows(t.person("user", v[1]))
				for i, parent := range []struct{ name, query string }{
					{"grant", `SELECT id FROM oauth_grant WHERE uid = ?`}, {"parent", `SELECT id FROM token WHERE uid = ?`},
				} {
					found := []any{nil}
					if err == nil && v[11+i] != nil {
						found, err = t.rows(t.known(parent.name, parent.query, v[11+i]))
					}
					rows = append(rows, found...)
				}
				return rows, err
			},
		},
	}
}

// secretRecords are the authorization server's signing keys and refresh tokens.
func secretRecords() []Record {
	return []Record{
		{
			kind: KindRefreshToken, Table: "oauth_token", serving: true, credential: true, kept: true, Key: 1,
			Fields: []RecordField{
				{Name: "hash", Form: BytesForm, absent: required, Check: CheckHash},
				{Name: "grant", absent: required, Check: valid.Name},
				{Name: "created_at", Form: TimeForm, absent: present},
				{Name: "expires_at", Form: TimeForm, absent: required},
				{Name: "rotated_at", Form: TimeForm},
			},
			Selection: `SELECT k.hash, g.uid, k.created_at, k.expires_at, k.rotated_at FROM oauth_token k ` +
				`JOIN oauth_grant g ON g.id = k.grant_id`,
			keyed: `k.hash = ?`, Ordered: `k.hash`,
			insert: `INSERT INTO oauth_token (hash, created_at, expires_at, rotated_at, grant_id) VALUES (?1, ?3, ?4, ?5, ?6) ` +
				`ON CONFLICT DO NOTHING`,
			refs: func(t *importTx, v []any) ([]any, error) {
				return t.rows(t.known("grant", `SELECT id FROM oauth_grant WHERE uid = ?`, v[1]))
			},
		},
		{
			kind: KindSigningKey, Table: "signing_key", serving: true, credential: true, kept: true, Key: 1,
			Fields: []RecordField{
				{Name: "kid", absent: required, Check: CheckText},
				{Name: "algorithm", absent: required, Check: CheckText},
				{Name: "private_key", Form: BytesForm, absent: required, Check: CheckText},
				{Name: "created_at", Form: TimeForm, absent: present},
				{Name: "retired_at", Form: TimeForm},
			},
			Selection: `SELECT kid, algorithm, private_key, created_at, retired_at FROM signing_key`,
			keyed:     `kid = ?`, Ordered: `id`,
			// If the store already has a signing key, another one can only verify its own signatures.
			insert: `INSERT INTO signing_key (kid, algorithm, private_key, created_at, retired_at) SELECT ?1, ?2, ?3, ?4,
				CASE WHEN ?5 IS NULL AND EXISTS (SELECT 1 FROM signing_key WHERE algorithm = ?2
				AND retired_at IS NULL) THEN ?6 ELSE ?5 END WHERE true ON CONFLICT DO NOTHING`,
			refs: func(t *importTx, _ []any) ([]any, error) { return []any{t.now}, nil },
		},
	}
}

// Records are all kinds that follow one pattern, in export order.
func Records() []Record {
	return slices.Concat(personRecords(), personalRecords(), placeRecords(), oauthRecords(),
		tokenRecords(), secretRecords())
}

// Validate returns an error if a stored value is invalid.
func (f RecordField) Validate(value any) error {
	var text string
	switch v := value.(type) {
	case int64:
		if f.Form == TimeForm {
			return valid.Time(f.Name, v)
		}
		return nil
	case string:
		text = v
		if err := valid.UTF8(f.Name, text); err != nil {
			return err
		}
	case []byte:
		text = string(v)
	default:
		return nil
	}
	if f.Form == jsonForm {
		if _, err := compactJSON(text); err != nil {
			return fault.Invalid(f.Name, "%s is not JSON: %v", f.Name, err)
		}
	}
	if f.Check == nil {
		return nil
	}
	return f.Check(f.Name, text)
}
