package souvenir

import (
	"cmp"
	"context"
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/souvenir-ai/souvenir/internal/auth/clientmeta"
	"github.com/souvenir-ai/souvenir/internal/auth/redirect"
	"github.com/souvenir-ai/souvenir/internal/auth/secretvalue"
	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/records/audit"
	"github.com/souvenir-ai/souvenir/internal/redact"
	"github.com/souvenir-ai/souvenir/internal/valid"
)

// Client is an OAuth client: a program that may ask users for access.
type Client struct {
	ID       string // client_id
	Kind     ClientKind
	Owner    string // user id of its creator; empty unless it is of kind ClientAdmin
	Metadata ClientRegistration
	Active   bool // false: permanently deactivated
	Made     bool // made by a token or an application, not by a person; ends with its maker

	CreatedAt time.Time
	UpdatedAt time.Time
	ExpiresAt time.Time // of kind ClientDocument: when to fetch its document again; else zero
}

// ClientKind says how a client became known.
type ClientKind string

// The values of [ClientKind].
const (
	ClientAdmin      ClientKind = "admin"      // a user made it, with AddClient
	ClientRegistered ClientKind = "registered" // it registered itself (RFC 7591)
	ClientDocument   ClientKind = "document"   // its client_id is the URL of a client id metadata document
)

// MarshalJSON returns client_id, name, redirect_uris, token_endpoint_auth_method, kind, owner, active, created_at and
// updated_at.
func (c Client) MarshalJSON() ([]byte, error) {
	return json.Marshal(clientmeta.Listed{ID: c.ID, Name: c.Metadata.ClientName, RedirectURIs: c.Metadata.RedirectURIs,
		AuthMethod: c.Metadata.TokenEndpointAuthMethod, Kind: string(c.Kind), Owner: c.Owner, Active: c.Active,
		CreatedAt: c.CreatedAt, UpdatedAt: c.UpdatedAt})
}

// ClientRegistration has the metadata of an OAuth client, by RFC 7591, section 2. It reads and writes the JSON of a
// registration request, response, or client id metadata document: members without a field are in Extra, and empty ones
// are left out.
type ClientRegistration struct {
	RedirectURIs []string // redirect_uris: 1 to 20 that CheckRedirectURI allows
	ClientName   string   // client_name: the name that people see; at most 200 characters

	// TokenEndpointAuthMethod is how the client authenticates itself: AuthSecretBasic, AuthSecretPost or AuthNone. Empty
	// means AuthSecretBasic; for a client id metadata document, AuthNone, the only possible value there.
	TokenEndpointAuthMethod string

	// GrantTypes and ResponseTypes are the types that the client will use; empty means all. Unsupported ones are dropped;
	// authorization_code, and code, must be among them. Without refresh_token a client gets no refresh tokens.
	GrantTypes    []string
	ResponseTypes []string

	// Scope is the scopes that the client may ask for, separated by spaces; unknown ones are dropped. It limits nothing:
	// the user decides.
	Scope string

	ClientURI, LogoURI, TosURI, PolicyURI string // http or https, for people
	Contacts                              []string
	SoftwareID, SoftwareVersion           string

	// Extra is every other member, as raw JSON.
	Extra map[string]any
}

// How a client authenticates itself (RFC 7591, section 2). A client with a secret may send it either way, regardless of
// which one it registered.
const (
	AuthNone        = "none" // it cannot keep a secret; PKCE protects its codes
	AuthSecretBasic = "client_secret_basic"
	AuthSecretPost  = "client_secret_post"
)

// UnmarshalJSON reads a JSON object. A member of a wrong type is ErrInvalid with the code invalid_client_metadata; null
// counts as absent.
func (r *ClientRegistration) UnmarshalJSON(encoded []byte) error {
	return asOAuth((*clientmeta.Metadata)(r).UnmarshalJSON(encoded), OAuthInvalidClientMetadata)
}

// MarshalJSON writes a JSON object without empty members.
func (r ClientRegistration) MarshalJSON() ([]byte, error) {
	return clientmeta.Metadata(r).MarshalJSON()
}

// checked returns the registration, validated and in its stored form.
func (r ClientRegistration) checked(kind ClientKind) (ClientRegistration, error) {
	if err := clientmeta.CheckRedirectURIs(r.RedirectURIs); err != nil {
		return r, asOAuth(err, OAuthInvalidRedirectURI)
	}
	r.Scope = joinScopes(splitScopes(r.Scope))
	methods := []string{AuthSecretBasic, AuthSecretPost, AuthNone}
	if kind == ClientDocument {
		methods = []string{AuthNone}
	}
	checked, err := clientmeta.Metadata(r).Checked(methods)
	return ClientRegistration(checked), asOAuth(err, OAuthInvalidClientMetadata)
}

// MatchRedirectURI reports whether a redirect URI that a client gives is one that it has registered: the same string,
// byte by byte. An http URI on a loopback address may differ in its port, which an application learns when it starts
// (RFC 8252, 7.3); host, path and query must be the same. A URI that [CheckRedirectURI] refuses matches nothing.
func MatchRedirectURI(registered, given string) bool { return redirect.Match(registered, given) }

// CheckRedirectURI says whether a client may register a redirect URI: https anywhere, http on a loopback address
// (127.0.0.1, [::1] or localhost), or an application's own scheme, such as cursor://host/path or com.example.app:/path;
// in printable ASCII, without fragment, user or wildcard. The error carries invalid_redirect_uri (RFC 7591).
func CheckRedirectURI(uri string) (err error) {
	defer setGoNames[struct{}](&err, "redirect_uri", "uri", "redirect_uris", "uri")
	return asOAuth(clientmeta.CheckRedirectURI(uri), OAuthInvalidRedirectURI)
}

// CheckDocumentURL checks that a client_id can be the URL of a client id metadata document: https, with a path, without
// user, query, fragment and dot segments, in its shortest spelling. The error is ErrInvalid with invalid_client.
func CheckDocumentURL(id string) (err error) {
	defer setGoNames[struct{}](&err, "client_id", "id")
	return asOAuth(clientmeta.CheckDocumentURL(id), OAuthInvalidClient)
}

// RegisteredClient is a client with its secret, which is returned only this once; the store keeps a hash.
type RegisteredClient struct {
	Client
	Secret string // empty with AuthNone
}

// Format prints the client without its secret.
func (c RegisteredClient) Format(f fmt.State, _ rune) { redact.Format(f, c, "Secret") }

// MarshalJSON returns the response of RFC 7591, section 3.2.1: all metadata, client_id, client_id_issued_at, and, with
// a secret, client_secret and client_secret_expires_at, which is 0: it does not expire. For a client that a user made,
// it adds name with the client's name.
func (c RegisteredClient) MarshalJSON() ([]byte, error) {
	m := clientmeta.Metadata(c.Metadata)
	answer := m.Registered(c.ID, c.Secret, c.CreatedAt)
	if c.Kind != ClientAdmin {
		return m.Answer(answer)
	}
	return m.Answer(clientmeta.Added{Registered: answer, Name: m.ClientName, Active: c.Active})
}

const (
	maxClients     = 100_000        // the most clients known by registration or document
	unusedLifetime = 24 * time.Hour // how long one of them is kept without any consent
)

// RegisterClient registers a client dynamically (RFC 7591). Metadata that cannot be stored is ErrInvalid or ErrTooLarge
// with the code invalid_client_metadata or invalid_redirect_uri. A client that no user consents to within a day is
// deleted; at 100,000 clients, clients without a grant are deleted, too.
func (h *Accounts) RegisterClient(ctx context.Context, r ClientRegistration) (_ RegisteredClient, err error) {
	defer setGoNames[ClientRegistration](&err, "metadata", "ClientRegistration")
	s, err := h.serving(ctx, "RegisterClient")
	if err != nil {
		return RegisteredClient{}, err
	}
	r, err = r.checked(ClientRegistered)
	if err != nil {
		return RegisteredClient{}, err
	}
	registered, purged := RegisteredClient{}, int64(0)
	err = s.writeStore(ctx, func(tx db.Tx) (err error) {
		if err := s.makeRoomForClient(tx, &purged); err != nil {
			return err
		}
		c := storedClient{Client: Client{ID: secretvalue.Identifier(), Kind: ClientRegistered, Metadata: r}}
		registered, err = s.storeWithSecret(tx, &c, "")
		return err // the audit log has it once someone consents: see noteRegistration
	})
	s.purgedAt(purged, err)
	return registered, err
}

// makeRoomForClient keeps strangers from filling the file. When full, it evicts clients without a grant: all clients
// know how to register again. Deactivated documents stay, since they would otherwise come back.
func (s *Store) makeRoomForClient(tx db.Tx, purged *int64) error {
	if err := s.purgeNowAndThen(tx, purged); err != nil {
		return err
	}
	for _, makeRoom := range []func(db.Tx, int64) error{purgeOAuth, evictClients, nil} {
		n, err := db.Column[int](tx, `SELECT count(*) FROM oauth_client WHERE kind IN ('registered', 'document')`)
		switch {
		case err != nil || n[0] < cmp.Or(s.oauth.clients, maxClients):
			return err
		case makeRoom == nil:
			return oauthError(KindTooLarge, OAuthUnavailable, "",
				"%d clients have registered themselves, the maximum; unused ones are deleted after a day", n[0])
		}
		if err := makeRoom(tx, s.now()); err != nil {
			return err
		}
	}
	return nil
}

// deleteUnconsented deletes the clients that made themselves known a day ago or earlier and have no grant.
const deleteUnconsented = `DELETE FROM oauth_client WHERE kind IN ('registered', 'document') AND updated_at < ?
	AND NOT EXISTS (SELECT 1 FROM oauth_grant g WHERE g.client_id = oauth_client.id)`

func evictClients(tx db.Tx, now int64) error {
	_, err := tx.Exec(deleteUnconsented+` AND (kind = 'registered' OR disabled_at IS NULL)`,
		now-unusedLifetime.Microseconds())
	return err
}

// purgeClients deletes the clients to which no user has ever consented.
func purgeClients(tx db.Tx, now int64) error {
	_, err := tx.Exec(deleteUnconsented+` AND used_at IS NULL AND disabled_at IS NULL`, now-unusedLifetime.Microseconds())
	return err
}

// NewClient describes a client to add. Only RedirectURIs is required.
type NewClient struct {
	ID           string   // client_id: 1 to 128 characters of printable ASCII without spaces, unique; empty: a random one
	Secret       string   // 1 to 256 such characters; empty: a random one
	Name         string   // the display name, at most 200 characters; empty: the ID
	RedirectURIs []string // 1 to 20 that CheckRedirectURI allows
	AuthMethod   string   // empty means AuthSecretBasic

	// The parents of the client, as the TokenID and GrantID of a [Principal]: when one ends, the client is deactivated.
	// Empty: made by a person.
	TokenID, GrantID string
}

// Format prints the client without its secret.
func (n NewClient) Format(f fmt.State, _ rune) { redact.Format(f, n, "Secret") }

// AddClient adds a client of the view's user. An ID that is taken is ErrConflict.
func (h *Accounts) AddClient(ctx context.Context, n NewClient) (_ RegisteredClient, err error) {
	defer setGoNames[NewClient](&err)
	s, err := h.servingOwn(ctx, "AddClient")
	if err != nil {
		return RegisteredClient{}, err
	}
	n.ID = cmp.Or(n.ID, secretvalue.Identifier())
	err = clientmeta.CheckChosen(n.ID, n.Secret, n.AuthMethod)
	r, wrong := ClientRegistration{RedirectURIs: n.RedirectURIs, ClientName: cmp.Or(n.Name, n.ID),
		TokenEndpointAuthMethod: n.AuthMethod}.checked(ClientAdmin)
	if err := cmp.Or(err, wrong); err != nil {
		return RegisteredClient{}, err
	}
	var added RegisteredClient
	err = s.write(ctx, func(tx db.Tx, v viewer) error {
		maker, err := n.maker(tx, v.User, s.now())
		if err != nil {
			return err
		}
		c := storedClient{Client: Client{ID: n.ID, Kind: ClientAdmin, Owner: s.access.User, Metadata: r, Made: maker != ""},
			owner: &v.User, maker: maker}
		added, err = s.storeWithSecret(tx, &c, n.Secret)
		return s.note(ctx, tx, err, c.event("client.add"))
	})
	return added, err
}

// maker returns the stored form of a client's parent.
func (n NewClient) maker(tx db.Tx, user, now int64) (maker string, err error) {
	switch u := (storedUser{row: user}); {
	case n.TokenID != "": // which ends with its grant, if it has one
		maker = "token " + n.TokenID
		_, err = activeToken(tx, u, n.TokenID, now)
	case n.GrantID != "":
		maker = "grant " + n.GrantID
		_, err = activeGrant(tx, u, n.GrantID)
	}
	return maker, err
}

// DocumentClient is a client whose id is the URL of its client id metadata document. The caller that fetches the
// document must check that its client_id is the URL that it was fetched from.
type DocumentClient struct {
	URL          string // client_id: https, with a path, without fragment, user, query or dot segments
	Registration ClientRegistration
	ExpiresAt    time.Time // when to fetch it again; zero: at the next use
}

// PutDocumentClient stores or updates a client from its document. A deactivated client is ErrUnauthenticated with
// invalid_client.
func (h *Accounts) PutDocumentClient(ctx context.Context, d DocumentClient) (_ Client, err error) {
	defer setGoNames[DocumentClient](&err, "client_id", ".URL", "metadata", ".Registration")
	s, err := h.serving(ctx, "PutDocumentClient")
	if err != nil {
		return Client{}, err
	}
	if err := clientmeta.CheckDocumentURL(d.URL); err != nil {
		return Client{}, asOAuth(err, OAuthInvalidClient)
	}
	if err := clientmeta.Metadata(d.Registration).CheckDocument(d.URL); err != nil {
		err = asOAuth(err, OAuthInvalidClientMetadata)
		setGoNames[DocumentClient](&err, "client_id", ".Registration.Extra.client_id")
		return Client{}, err
	}
	r, wrong := d.Registration.checked(ClientDocument)
	if err := cmp.Or(valid.Time("expires_at", d.ExpiresAt.UnixMicro()), wrong); err != nil {
		return Client{}, err
	}
	set, purged := Client{}, int64(0)
	err = s.writeStore(ctx, func(tx db.Tx) error {
		purged = 0
		c, err := loadClient(tx, d.URL)
		switch {
		case err != nil:
			return err
		case c.row != 0 && !c.Active:
			return invalidClient(d.URL)
		case c.row == 0:
			if err := s.makeRoomForClient(tx, &purged); err != nil {
				return err
			}
			c.ID, c.Kind = d.URL, ClientDocument
		}
		c.Metadata, c.ExpiresAt = r, d.ExpiresAt
		err = s.storeClient(tx, &c)
		set = c.Client
		return err
	})
	s.purgedAt(purged, err)
	return set, err
}

// GetClient returns a client, active or not. An unknown one is ErrNotFound with invalid_client.
func (h *Accounts) GetClient(ctx context.Context, clientID string) (_ Client, err error) {
	defer setGoNames[struct{}](&err, "client_id", "clientID")
	s, err := h.serving(ctx, "GetClient")
	if err != nil {
		return Client{}, err
	}
	var c storedClient
	err = s.readStore(ctx, func(tx db.Tx) (err error) {
		if c, err = loadClient(tx, clientID); err == nil && c.row == 0 {
			err = oauthError(KindNotFound, OAuthInvalidClient, "client_id", "Invalid client: {} %s is unknown", show(clientID))
		}
		return err
	})
	return c.Client, err
}

// Clients returns the clients that the view's user made, deactivated ones included, by name. The operator's store
// returns all clients of all kinds.
func (h *Accounts) Clients(ctx context.Context) ([]Client, error) {
	s, err := h.servingOwn(ctx, "Clients")
	if err != nil {
		return nil, err
	}
	all := []Client{}
	err = s.read(ctx, func(tx db.Tx, v viewer) error {
		found, err := s.ownClients(tx, v, ` ORDER BY c.name, c.id`)
		for _, c := range found {
			all = append(all, c.Client)
		}
		return err
	})
	return all, err
}

// ownClients reads the clients that the view may see and change, with the rest of a condition.
func (s *Store) ownClients(tx db.Tx, v viewer, rest string, args ...any) ([]storedClient, error) {
	if s.operator {
		return loadClients(tx, `TRUE`+rest, args...)
	}
	return loadClients(tx, `c.owner_id = ?`+rest, append([]any{v.User}, args...)...)
}

// ownClient returns one of the clients that the view may change.
func (s *Store) ownClient(tx db.Tx, v viewer, clientID string) (storedClient, error) {
	found, err := s.ownClients(tx, v, ` AND c.client_id = ?`, clientID)
	if err == nil && len(found) == 0 {
		err = newError(KindNotFound, "client_id", "{} %s is not an OAuth client of this user", show(clientID))
	}
	return append(found, storedClient{})[0], err
}

// ClientCredentials authenticate a client. They come from the Authorization header or the form.
type ClientCredentials struct {
	ID     string
	Secret string // ignored for a client with AuthNone
}

// Format prints the credentials without the secret.
func (c ClientCredentials) Format(f fmt.State, _ rune) { redact.Format(f, c, "Secret") }

// CheckClient returns the active client that credentials belong to. An unknown or deactivated client, and a wrong or
// missing secret, are ErrUnauthenticated with the code invalid_client.
func (h *Accounts) CheckClient(ctx context.Context, c ClientCredentials) (_ Client, err error) {
	defer setGoNames[ClientCredentials](&err)
	s, err := h.serving(ctx, "CheckClient")
	if err != nil {
		return Client{}, err
	}
	var checked storedClient
	err = s.readStore(ctx, func(tx db.Tx) (err error) {
		checked, err = checkClient(tx, c)
		return err
	})
	return checked.Client, err
}

func checkClient(tx db.Tx, c ClientCredentials) (storedClient, error) {
	client, err := loadClient(tx, c.ID)
	if err != nil {
		return storedClient{}, err
	}
	right := client.Metadata.TokenEndpointAuthMethod == AuthNone ||
		subtle.ConstantTimeCompare(client.secret, secretvalue.Hash(c.Secret)) == 1 // an unknown client has no secret
	if !client.Active || !right {
		return storedClient{}, invalidClient(c.ID)
	}
	return client, nil
}

// invalidClient is the one error for everything wrong with a client, so that probing reveals nothing.
func invalidClient(clientID string) error {
	return oauthError(KindUnauthenticated, OAuthInvalidClient, "client_id",
		"Invalid client: {} %s is unknown or deactivated, or {client_secret} is wrong", show(clientID))
}

// activeClient returns a client that users may be asked to authorize.
func activeClient(tx db.Tx, clientID string) (storedClient, error) {
	c, err := loadClient(tx, clientID)
	if err == nil && !c.Active {
		err = invalidClient(clientID)
	}
	return c, err
}

// RegenerateClientSecret gives a client a new secret; the old one is refused from then on. Tokens stay valid. The
// operator may do so for any client, others for their own. A client without a secret or a deactivated one is
// ErrInvalid.
func (h *Accounts) RegenerateClientSecret(ctx context.Context, clientID string) (_ RegisteredClient, err error) {
	defer setGoNames[struct{}](&err, "client_id", "clientID")
	s, err := h.servingOwn(ctx, "RegenerateClientSecret")
	if err != nil {
		return RegisteredClient{}, err
	}
	var changed RegisteredClient
	err = s.write(ctx, func(tx db.Tx, v viewer) error {
		c, err := s.ownClient(tx, v, clientID)
		switch {
		case err != nil:
			return err
		case !c.Active:
			return invalid("client_id", "client %s is permanently deactivated; add another one", show(clientID))
		case c.Metadata.TokenEndpointAuthMethod == AuthNone:
			return invalid("client_id", "client %s authenticates itself with none and has no secret", show(clientID))
		}
		changed, err = s.storeWithSecret(tx, &c, "")
		return s.note(ctx, tx, err, c.event("client.secret"))
	})
	return changed, err
}

// DeactivateClient permanently deactivates a client: its grants, codes and tokens end at once. It is still listed, with
// Active false, and its id stays taken. Doing so again changes nothing. The operator may do so with any client, others
// with their own.
func (h *Accounts) DeactivateClient(ctx context.Context, clientID string) (err error) {
	defer setGoNames[struct{}](&err, "client_id", "clientID")
	s, err := h.servingOwn(ctx, "DeactivateClient")
	if err != nil {
		return err
	}
	return s.write(ctx, func(tx db.Tx, v viewer) error {
		c, err := s.ownClient(tx, v, clientID)
		if err != nil || !c.Active {
			return err
		}
		now := s.now()
		if _, err := tx.Exec(`UPDATE oauth_client SET disabled_at = ?, updated_at = ? WHERE id = ? AND disabled_at IS NULL`,
			now, now, c.row); err != nil {
			return err
		}
		return s.note(ctx, tx, revokeGrants(tx, now, `client_id = ?`, c.row), c.event("client.deactivate"))
	})
}

// storedClient is a client with the fields that stay inside the store.
type storedClient struct {
	Client
	row    int64
	owner  *int64 // row of the user, nil for none
	secret []byte // SHA-256; nil for none
	maker  string // the token or the grant that made it; empty: none
}

// uses reports whether a client registered for a grant type.
func (c storedClient) uses(grantType string) bool {
	return slices.Contains(c.Metadata.GrantTypes, grantType)
}

// loadClient reads a client; an unknown one has the row 0.
func loadClient(tx db.Tx, clientID string) (storedClient, error) {
	found, err := loadClients(tx, `c.client_id = ?`, clientID)
	return append(found, storedClient{})[0], err
}

// loadClients reads the clients c that satisfy a condition, which may end with an order.
func loadClients(tx db.Tx, condition string, args ...any) ([]storedClient, error) {
	var found []storedClient
	err := tx.Each(func(row db.Rows) error {
		var c storedClient
		var m clientmeta.Columns
		if err := row.Scan(&c.row, &c.ID, &c.Kind, &c.owner, &c.Owner, &m.Name, &m.Method, &c.secret, &m.URIs, &m.Rest,
			kernel.TimeInto(&c.CreatedAt), kernel.TimeInto(&c.UpdatedAt), kernel.TimeInto(&c.ExpiresAt), &c.Active,
			&c.maker); err != nil {
			return err
		}
		metadata, err := m.Metadata()
		if err != nil {
			return damaged(err, "the metadata of the OAuth client %s", show(c.ID))
		}
		c.Metadata, c.Made = ClientRegistration(metadata), c.maker != ""
		found = append(found, c)
		return nil
	}, `SELECT c.id, c.client_id, c.kind, c.owner_id, coalesce(u.uid, ''), c.name, c.auth_method, c.secret_hash,
			c.redirect_uris, c.metadata, c.created_at, c.updated_at, nullif(c.expires_at, 0), c.disabled_at IS NULL, c.maker
		FROM oauth_client c LEFT JOIN users u ON u.id = c.owner_id WHERE `+condition, args...)
	return found, err
}

// storeWithSecret stores a client with a new secret, a random one if none was chosen. With AuthNone it has none.
func (s *Store) storeWithSecret(tx db.Tx, c *storedClient, chosen string) (RegisteredClient, error) {
	secret := ""
	if c.Metadata.TokenEndpointAuthMethod != AuthNone {
		secret = cmp.Or(chosen, secretvalue.New())
		c.secret = secretvalue.Hash(secret)
	}
	if err := s.storeClient(tx, c); err != nil {
		return RegisteredClient{}, err
	}
	return RegisteredClient{Client: c.Client, Secret: secret}, nil
}

// storeClient adds a client, or changes one that has a row.
func (s *Store) storeClient(tx db.Tx, c *storedClient) error {
	now := s.now()
	m, err := clientmeta.Metadata(c.Metadata).Columns()
	if err != nil {
		return err
	}
	var expires any
	if c.Kind == ClientDocument {
		expires = max(0, c.ExpiresAt.UnixMicro()) // the zero time is long before 1970
	}
	c.UpdatedAt = kernel.ToTime(now)
	if c.row != 0 {
		_, err = tx.Exec(`UPDATE oauth_client SET name = ?, secret_hash = ?, redirect_uris = ?, metadata = ?, updated_at = ?,
			expires_at = ? WHERE id = ?`, m.Name, c.secret, m.URIs, m.Rest, now, expires, c.row)
		return err
	}
	c.Active, c.CreatedAt = true, c.UpdatedAt
	c.row, err = db.Insert(tx, `INSERT INTO oauth_client (client_id, kind, owner_id, name, auth_method, secret_hash,
		redirect_uris, metadata, created_at, updated_at, expires_at, maker)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (client_id) DO NOTHING RETURNING id`,
		c.ID, c.Kind, c.owner, m.Name, m.Method, c.secret, m.URIs, m.Rest, now, now, expires, c.maker)
	if err == nil && c.row == 0 {
		return newError(KindConflict, "client_id",
			"{} %s is taken; choose another one, or omit it to get a random one", show(c.ID))
	}
	return err
}

// event is an event about a client.
func (c storedClient) event(action string) event {
	return event{action, "client", AuditID("client", c.ID), audit.Details{"owner": c.Owner, "kind": c.Kind}}
}

// noteRegistration adds an entry about a client that registered itself, once a user first authorizes it. Anyone may
// register clients, which cannot do anything before that, so strangers cannot fill the log.
func (s *Store) noteRegistration(ctx context.Context, tx db.Tx, c storedClient) error {
	if c.Kind != ClientRegistered {
		return nil
	}
	known, err := db.Column[bool](tx, `SELECT EXISTS (SELECT 1 FROM oauth_grant WHERE client_id = ?)`, c.row)
	if err != nil || known[0] {
		return err
	}
	return s.note(ctx, tx, nil, c.event("client.register"))
}

// deactivateOrphans deactivates the clients whose parent has ended.
func deactivateOrphans(tx db.Tx, now int64) error {
	_, err := tx.Exec(`UPDATE oauth_client SET disabled_at = ?1, updated_at = ?1 WHERE maker <> '' AND disabled_at IS NULL
		AND NOT EXISTS (SELECT 1 `+fromToken+` WHERE oauth_client.maker = 'token ' || t.uid AND NOT `+tokenEnded+
		` AND coalesce(t.expires_at > ?1, true))
		AND NOT EXISTS (SELECT 1 FROM oauth_grant g JOIN oauth_client c ON c.id = g.client_id
			WHERE oauth_client.maker = 'grant ' || g.uid AND g.revoked_at IS NULL AND c.disabled_at IS NULL)`, now)
	return err
}
