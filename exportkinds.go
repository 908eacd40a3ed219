package souvenir

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/souvenir-ai/souvenir/internal/check"
	"github.com/souvenir-ai/souvenir/internal/foldname"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/passwords"
)

// The kinds of lines of an export, in their order.
const (
	kindUser         = "user"
	kindIdentity     = "identity"
	kindPreference   = "preference"
	kindBlock        = "block"
	kindCollection   = "collection"
	kindProject      = "project"
	kindFormerName   = "former_name"
	kindMember       = "member"
	kindMemory       = "memory"
	kindVectors      = "vectors"
	kindRevision     = "revision"
	kindLink         = "link"
	kindFile         = "file"
	kindChunk        = "chunk"
	kindClient       = "client"
	kindGrant        = "grant"
	kindToken        = "token"
	kindRefreshToken = "refresh_token"
	kindSigningKey   = "signing_key"
	kindEnd          = "end"
)

// form is how a value is written in a line, and at rest.
type form int

const (
	textForm  form = iota
	timeForm       // RFC 3339; microseconds at rest
	jsonForm       // any JSON value; text at rest
	bytesForm      // base64; BLOB at rest
	countForm      // a whole number
)

// The value of a field that is missing in the line, besides a value of its own (nil for NULL).
type absent int

const (
	required absent = iota
	present         // the time of the import
)

// recordField is one value of a record.
type recordField struct {
	name       string
	form       form
	absent     any
	credential bool // left out of an export without credentials
	fixed      bool // never changes
	passing    bool // changes with every use: never a conflict
	check      func(argument, value string) error
}

// record is a kind of line that stands for one row and follows one pattern. Composite kinds (memories, files) have
// their own code.
type record struct {
	kind       string
	table      string // table of its rows
	credential bool   // whole lines are credentials
	kept       bool   // an import never replaces one: it decides who may sign in
	owner      string // column with the row of its owner; empty: it has no owner
	key        int    // how many of the first fields are the key
	fields     []recordField

	// selection returns the fields in their order; keyed limits it to one row by the key, ordered sorts all rows.
	selection, keyed, ordered string

	// insert and update take the fields as ?1, ?2 and so on, followed by the rows that refs returns.
	insert, update string
	refs           func(t *importTx, values []any) ([]any, error)
}

func recordOf(kind string) *record {
	all := records()
	if i := slices.IndexFunc(all, func(r record) bool { return r.kind == kind }); i >= 0 {
		return &all[i]
	}
	return nil
}

// selected limits a check to some values.
func selected(values ...string) func(argument, value string) error {
	return func(argument, value string) error { return check.Enum(argument, value, values) }
}

func checkText(argument, value string) error {
	if len(value) > MaxMetadata {
		return newError(KindTooLarge, argument, "%s is %d bytes; at most %d are allowed", argument, len(value), MaxMetadata)
	}
	return nil
}

func checkObject(argument, value string) error {
	if !strings.HasPrefix(strings.TrimSpace(value), "{") {
		return invalid(argument, "%s is %s; a JSON object is expected", argument, show(value))
	}
	return checkText(argument, value)
}

func checkStrings(argument, value string) error {
	var list []string
	if err := json.Unmarshal([]byte(value), &list); err != nil || list == nil {
		return invalid(argument, "%s is %s; a list of strings is expected", argument, show(value))
	}
	return checkText(argument, value)
}

func checkHash(argument, value string) error {
	if len(value) != 32 {
		return invalid(argument, "%s is %d bytes long; a SHA-256 has 32", argument, len(value))
	}
	return nil
}

func checkPassword(argument, value string) error {
	if err := passwords.CheckHash(value); err != nil {
		return invalid(argument, "%s is no argon2id hash in PHC string format, as which alone passwords are written: %v",
			argument, err)
	}
	return nil
}

func checkKeptName(argument, value string) error {
	kept, err := check.UserName(value)
	if err == nil && kept != value {
		return invalid(argument, "%s is %s; it would be kept as %s", argument, show(value), show(kept))
	}
	return err
}

func checkSlashless(argument, value string) error {
	if strings.Contains(value, "/") {
		return invalid(argument, "%s is %s; the id of a project has no slash", argument, show(value))
	}
	return check.Name(argument, value)
}

// personRecords are about people and their data.
func personRecords() []record {
	return []record{
		{
			kind: kindUser, table: "users", owner: `id`, kept: true, key: 1,
			fields: []recordField{
				{name: "id", absent: required, check: check.Name},
				{name: "name", check: checkKeptName},
				{name: "email", check: func(_, value string) error { return check.Email(value) }},
				{name: "role", absent: string(RoleUser), check: selected(string(RoleUser), string(RoleAdmin))},
				{name: "disabled_at", form: timeForm},
				{name: "created_at", form: timeForm, absent: present, passing: true},
				{name: "updated_at", form: timeForm, passing: true},
				{name: "password", credential: true, check: checkPassword},
			},
			selection: `SELECT uid, name, email, role, disabled_at, created_at, updated_at, password FROM users`,
			keyed:     `uid = ?`, ordered: `id`,
			// ?9 is the name folded
			insert: `INSERT INTO users (uid, name, email, role, disabled_at, created_at, updated_at, password, name_key) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
			refs: func(_ *importTx, v []any) ([]any, error) {
				if name, ok := v[1].(string); ok {
					return []any{foldname.Key(name)}, nil
				}
				return []any{nil}, nil
			},
		},
		{
			kind: kindIdentity, table: "external_identity", credential: true, kept: true, key: 2,
			fields: []recordField{
				{name: "issuer", absent: required, check: func(a, v string) error { return orNil(check.Line(a, v, check.MaxIssuer)) }},
				{name: "subject", absent: required, check: func(a, v string) error { return orNil(check.Line(a, v, check.MaxSubject)) }},
				{name: "user", absent: required, check: check.Name},
				{name: "email", absent: "", check: checkText},
				{name: "created_at", form: timeForm, absent: present},
			},
			selection: `SELECT i.issuer, i.subject, u.uid, i.email, i.created_at FROM external_identity i JOIN users u ON u.id = i.user_id`,
			keyed:     `i.issuer = ? AND i.subject = ?`, ordered: `i.issuer, i.subject`,
			insert: `INSERT INTO external_identity (issuer, subject, email, created_at, user_id) VALUES (?1, ?2, ?4, ?5, ?6) ON CONFLICT DO NOTHING`,
			refs:   func(t *importTx, v []any) ([]any, error) { return t.rows(t.person("user", v[2])) },
		},
		{
			kind: kindPreference, table: "preference", owner: `f.user_id`, key: 1,
			fields: []recordField{
				{name: "user", absent: required, check: check.Name},
				{name: "value", form: jsonForm, absent: required, check: checkObject},
				{name: "updated_at", form: timeForm, absent: present},
			},
			selection: `SELECT u.uid, f.value, f.updated_at FROM preference f JOIN users u ON u.id = f.user_id`,
			keyed:     `u.uid = ?`, ordered: `f.user_id`,
			insert: `INSERT INTO preference (value, updated_at, user_id) VALUES (?2, ?3, ?4) ON CONFLICT DO NOTHING`,
			update: `UPDATE preference SET value = ?2, updated_at = ?3 WHERE user_id = ?4`,
			refs:   func(t *importTx, v []any) ([]any, error) { return t.rows(t.owner(v[0])) },
		},
		{
			kind: kindBlock, table: "blocked_sender", key: 2,
			fields: []recordField{
				{name: "user", absent: required, check: check.Name},
				{name: "sender", absent: required, check: check.Name},
				{name: "created_at", form: timeForm, absent: present},
			},
			selection: `SELECT u.uid, s.uid, b.created_at FROM blocked_sender b JOIN users u ON u.id = b.user_id JOIN users s ON s.id = b.sender_id`,
			keyed:     `u.uid = ? AND s.uid = ?`, ordered: `b.user_id, b.sender_id`,
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

// placeRecords are about where memories lie.
func placeRecords() []record {
	return []record{
		{
			kind: kindCollection, table: "collection", owner: `c.owner_id`, key: 2,
			fields: []recordField{
				{name: "owner", absent: LocalUser, check: check.Name},
				{name: "collection_name", absent: required, check: check.Name},
				{name: "description", absent: "", check: func(_, value string) error { return check.Description(value) }},
				{name: "own_vectors", form: countForm, fixed: true}, // their dimensions
				{name: "created_at", form: timeForm, absent: present},
				{name: "updated_at", form: timeForm, absent: present},
			},
			selection: `SELECT u.uid, c.name, c.description, f.dimensions, c.created_at, c.updated_at
				FROM collection c JOIN users u ON u.id = c.owner_id LEFT JOIN profile f ON f.id = c.own_profile`,
			keyed: `u.uid = ? AND c.name = ?`, ordered: `c.id`,
			insert: `INSERT INTO collection (name, description, created_at, updated_at, own_profile, owner_id) VALUES (?2, ?3, ?5, ?6, ?7, ?8) ON CONFLICT DO NOTHING`,
			update: `UPDATE collection SET description = ?3, created_at = ?5, updated_at = ?6 WHERE owner_id = ?8 AND name = ?2`,
			refs: func(t *importTx, v []any) ([]any, error) {
				var profile any
				if size, own := v[3].(int64); own {
					if size < 1 || size > check.MaxVector {
						return nil, invalid("own_vectors", "own_vectors is %d; the dimensions of a vector are 1 to %d", size,
							check.MaxVector)
					}
					row, err := kernel.ProfileRow(t.tx, kernel.OwnProfile(int(size)), t.s.now())
					if err != nil {
						return nil, err
					}
					profile = row
				}
				owner, err := t.rows(t.owner(v[0]))
				return append([]any{profile}, owner...), err
			},
		},
		{
			kind: kindProject, table: "project", owner: `j.owner_id`, key: 2,
			fields: []recordField{
				{name: "owner", absent: LocalUser, check: check.Name},
				{name: "project_id", absent: required, check: checkSlashless},
				{name: "project_name", absent: required, check: check.Name},
				{name: "created_at", form: timeForm, absent: present},
				{name: "updated_at", form: timeForm, absent: present},
			},
			selection: `SELECT u.uid, j.uid, j.name, j.created_at, j.updated_at FROM project j JOIN users u ON u.id = j.owner_id`,
			keyed:     `u.uid = ? AND j.uid = ?`, ordered: `j.id`,
			// ?7 is the name folded
			insert: `INSERT INTO project (uid, name, created_at, updated_at, owner_id, name_key) VALUES (?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT DO NOTHING`,
			update: `UPDATE project SET name = ?3, created_at = ?4, updated_at = ?5, name_key = ?7 WHERE owner_id = ?6 AND uid = ?2`,
			refs: func(t *importTx, v []any) ([]any, error) {
				owner, err := t.rows(t.owner(v[0]))
				if err != nil {
					return nil, err
				}
				name, _ := v[2].(string)
				return append(owner, foldname.Key(name)), nil
			},
		},
		{
			// ?5 is the name folded. A current name of one of the owner's projects is not a former one.
			kind: kindFormerName, table: "project_alias", owner: `a.owner_id`, key: 3,
			fields: []recordField{
				{name: "owner", absent: LocalUser, check: check.Name},
				{name: "project_id", absent: required, check: checkSlashless},
				{name: "name", absent: required, check: check.ProjectName},
				{name: "created_at", form: timeForm, absent: present},
			},
			selection: `SELECT u.uid, j.uid, a.name, a.created_at FROM project_alias a JOIN project j ON j.id = a.project_id JOIN users u ON u.id = a.owner_id`,
			keyed:     `u.uid = ? AND j.uid = ? AND a.name = ?`, ordered: `a.owner_id, a.created_at, a.name_key`,
			insert: `INSERT INTO project_alias (name, created_at, name_key, project_id, owner_id) SELECT ?3, ?4, ?5, ?6, owner_id FROM project
				WHERE id = ?6 AND NOT EXISTS (SELECT 1 FROM project o WHERE o.owner_id = project.owner_id AND o.name_key = ?5)
				ON CONFLICT DO NOTHING`,
			update: `UPDATE project_alias SET name = ?3, created_at = ?4 WHERE project_id = ?6 AND name_key = ?5`,
			refs: func(t *importTx, v []any) ([]any, error) {
				name, _ := v[2].(string)
				project, err := t.rows(t.knownProject(v[0], v[1]))
				return append([]any{foldname.Key(name)}, project...), err
			},
		},
		{
			kind: kindMember, table: "project_member", key: 3,
			fields: []recordField{
				{name: "project_owner", absent: LocalUser, check: check.Name},
				{name: "project_id", absent: required, check: check.Name},
				{name: "user", absent: required, check: check.Name},
				{name: "role", absent: required, check: selected("reader", "writer", "owner")},
				{name: "created_at", form: timeForm, absent: present},
			},
			selection: `SELECT o.uid, j.uid, u.uid, b.role, b.created_at FROM project_member b
				JOIN project j ON j.id = b.project_id JOIN users o ON o.id = j.owner_id JOIN users u ON u.id = b.user_id`,
			keyed: `o.uid = ? AND j.uid = ? AND u.uid = ?`, ordered: `b.project_id, b.user_id`,
			insert: `INSERT INTO project_member (role, created_at, project_id, user_id) VALUES (?4, ?5, ?6, ?7) ON CONFLICT DO NOTHING`,
			update: `UPDATE project_member SET role = ?4, created_at = ?5 WHERE project_id = ?6 AND user_id = ?7`,
			refs: func(t *importTx, v []any) ([]any, error) {
				project, err := t.rows(t.knownProject(v[0], v[1]))
				if err != nil {
					return nil, err
				}
				user, err := t.rows(t.person("user", v[2]))
				return append(project, user...), err
			},
		},
	}
}

// oauthRecords are the state of the authorization server. Codes are left out: they live for minutes.
func oauthRecords() []record {
	return []record{
		{
			kind: kindClient, table: "oauth_client", credential: true, kept: true, key: 1,
			fields: []recordField{
				{name: "client_id", absent: required, check: checkText},
				{name: "kind", absent: required, check: selected("admin", "registered", "document")},
				{name: "owner", check: check.Name},
				{name: "name", absent: "", check: checkText},
				{name: "auth_method", absent: required, check: selected("none", "client_secret_basic", "client_secret_post")},
				{name: "secret_hash", form: bytesForm, check: checkHash},
				{name: "redirect_uris", form: jsonForm, absent: required, check: checkStrings},
				{name: "metadata", form: jsonForm, absent: "{}", check: checkObject},
				{name: "created_at", form: timeForm, absent: present},
				{name: "updated_at", form: timeForm, absent: present},
				{name: "expires_at", form: timeForm},
				{name: "used_at", form: timeForm, passing: true},
				{name: "disabled_at", form: timeForm},
				{name: "maker", absent: "", check: checkText},
			},
			selection: `SELECT o.client_id, o.kind, u.uid, o.name, o.auth_method, o.secret_hash, o.redirect_uris, o.metadata, o.created_at, o.updated_at, o.expires_at, o.used_at, o.disabled_at, o.maker
				FROM oauth_client o LEFT JOIN users u ON u.id = o.owner_id`,
			keyed: `o.client_id = ?`, ordered: `o.id`,
			insert: `INSERT INTO oauth_client (client_id, kind, name, auth_method, secret_hash, redirect_uris, metadata, created_at, updated_at, expires_at, used_at, disabled_at, maker, owner_id)
				VALUES (?1, ?2, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15) ON CONFLICT DO NOTHING`,
			refs: func(t *importTx, v []any) ([]any, error) {
				if v[2] == nil {
					return []any{nil}, nil
				}
				return t.rows(t.person("owner", v[2]))
			},
		},
		{
			kind: kindGrant, table: "oauth_grant", credential: true, kept: true, key: 1,
			fields: []recordField{
				{name: "id", absent: required, check: check.Name},
				{name: "client_id", absent: required, check: checkText},
				{name: "user", absent: required, check: check.Name},
				{name: "scopes", form: jsonForm, absent: required, check: checkStrings},
				{name: "projects", form: jsonForm, check: checkStrings},
				{name: "resource", absent: "", check: checkText},
				{name: "created_at", form: timeForm, absent: present},
				{name: "last_used_at", form: timeForm, passing: true},
				{name: "revoked_at", form: timeForm},
				{name: "refused", form: jsonForm, check: checkStrings},
				{name: "session", absent: "", check: checkText},
			},
			selection: `SELECT g.uid, o.client_id, u.uid, g.scopes, g.projects, g.resource, g.created_at, g.last_used_at, g.revoked_at, g.refused, g.session
				FROM oauth_grant g JOIN oauth_client o ON o.id = g.client_id JOIN users u ON u.id = g.user_id`,
			keyed: `g.uid = ?`, ordered: `g.id`,
			insert: `INSERT INTO oauth_grant (uid, scopes, projects, resource, created_at, last_used_at, revoked_at, refused, session, client_id, user_id)
				VALUES (?1, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13) ON CONFLICT DO NOTHING`,
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
func tokenRecords() []record {
	return []record{
		{
			kind: kindToken, table: "token", credential: true, kept: true, key: 1,
			fields: []recordField{
				{name: "id", absent: required, check: check.Name},
				{name: "user", absent: required, check: check.Name},
				{name: "name", absent: "", check: checkText},
				{name: "hash", form: bytesForm, absent: required, check: checkHash},
				{name: "prefix", absent: "", check: checkText},
				{name: "scopes", form: jsonForm, absent: required, check: checkStrings},
				{name: "projects", form: jsonForm, check: checkStrings},
				{name: "created_at", form: timeForm, absent: present},
				{name: "expires_at", form: timeForm},
				{name: "last_used_at", form: timeForm, passing: true},
				{name: "revoked_at", form: timeForm},
				{name: "grant", check: check.Name},
				{name: "parent", check: check.Name},
				{name: "session", absent: "", check: checkText},
				{name: "browser", absent: "", check: checkText},
				{name: "with_session", form: countForm, absent: int64(0)},
			},
			selection: `SELECT k.uid, u.uid, k.name, k.hash, k.prefix, k.scopes, k.projects, k.created_at, k.expires_at, k.last_used_at, k.revoked_at, g.uid,
					p.uid, k.session, k.browser, k.with_session
				FROM token k JOIN users u ON u.id = k.user_id LEFT JOIN oauth_grant g ON g.id = k.grant_id LEFT JOIN token p ON p.id = k.parent_id`,
			keyed: `k.uid = ?`, ordered: `k.id`,
			insert: `INSERT INTO token (uid, name, hash, prefix, scopes, projects, created_at, expires_at, last_used_at, revoked_at, session, browser, with_session,
					user_id, grant_id, parent_id)
				VALUES (?1, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?14, ?15, CASE WHEN ?16 <> 0 THEN 1 ELSE 0 END, ?17, ?18, ?19) ON CONFLICT DO NOTHING`,
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
func secretRecords() []record {
	return []record{
		{
			kind: kindRefreshToken, table: "oauth_token", credential: true, kept: true, key: 1,
			fields: []recordField{
				{name: "hash", form: bytesForm, absent: required, check: checkHash},
				{name: "grant", absent: required, check: check.Name},
				{name: "created_at", form: timeForm, absent: present},
				{name: "expires_at", form: timeForm, absent: required},
				{name: "rotated_at", form: timeForm},
			},
			selection: `SELECT k.hash, g.uid, k.created_at, k.expires_at, k.rotated_at FROM oauth_token k JOIN oauth_grant g ON g.id = k.grant_id`,
			keyed:     `k.hash = ?`, ordered: `k.hash`,
			insert: `INSERT INTO oauth_token (hash, created_at, expires_at, rotated_at, grant_id) VALUES (?1, ?3, ?4, ?5, ?6) ON CONFLICT DO NOTHING`,
			refs: func(t *importTx, v []any) ([]any, error) {
				return t.rows(t.known("grant", `SELECT id FROM oauth_grant WHERE uid = ?`, v[1]))
			},
		},
		{
			kind: kindSigningKey, table: "signing_key", credential: true, kept: true, key: 1,
			fields: []recordField{
				{name: "kid", absent: required, check: checkText},
				{name: "algorithm", absent: required, check: checkText},
				{name: "private_key", form: bytesForm, absent: required, check: checkText},
				{name: "created_at", form: timeForm, absent: present},
				{name: "retired_at", form: timeForm},
			},
			selection: `SELECT kid, algorithm, private_key, created_at, retired_at FROM signing_key`,
			keyed:     `kid = ?`, ordered: `id`,
			// If the store already has a signing key, another one can only verify what it has signed.
			insert: `INSERT INTO signing_key (kid, algorithm, private_key, created_at, retired_at) SELECT ?1, ?2, ?3, ?4,
				CASE WHEN ?5 IS NULL AND EXISTS (SELECT 1 FROM signing_key WHERE algorithm = ?2 AND retired_at IS NULL) THEN ?6 ELSE ?5 END WHERE true ON CONFLICT DO NOTHING`,
			refs: func(t *importTx, _ []any) ([]any, error) { return []any{t.now}, nil },
		},
	}
}

// records are all kinds that follow one pattern, in export order.
func records() []record {
	return slices.Concat(personRecords(), placeRecords(), oauthRecords(), tokenRecords(), secretRecords())
}
