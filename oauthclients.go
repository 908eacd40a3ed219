package souvenir

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir/internal/auth/clientmeta"
	"github.com/souvenir-ai/souvenir/internal/auth/secretvalue"
	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/json/jsonobject"
	"github.com/souvenir-ai/souvenir/internal/kernel"
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
	err := (*clientmeta.Metadata)(r).UnmarshalJSON(encoded)
	return asOAuth(err, OAuthInvalidClientMetadata)
}

// MarshalJSON writes a JSON object without empty members.
func (r ClientRegistration) MarshalJSON() ([]byte, error) {
	return clientmeta.Metadata(r).MarshalJSON()
}

func invalidMetadata(argument, format string, args ...any) *Error {
	return oauthError(KindInvalid, OAuthInvalidClientMetadata, argument, format, args...)
}

// checked returns the registration, validated and in its stored form.
func (r ClientRegistration) checked(kind ClientKind) (ClientRegistration, error) {
	wanted := strings.Fields(r.Scope)
	r.Scope = joinScopes(slices.DeleteFunc(Scopes(), func(s Scope) bool { return !slices.Contains(wanted, string(s)) }))
	methods := []string{AuthSecretBasic, AuthSecretPost, AuthNone}
	if kind == ClientDocument {
		methods = []string{AuthNone}
	}
	checked, err := clientmeta.Metadata(r).Checked(methods)
	code := OAuthInvalidClientMetadata
	var known *Error
	if errors.As(err, &known) && known.Argument == "redirect_uris" {
		code = OAuthInvalidRedirectURI
	}
	return ClientRegistration(checked), asOAuth(err, code)
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
	m := c.Metadata
	registered := clientmeta.Registered{ID: c.ID, IssuedAt: c.CreatedAt.Unix(), Secret: c.Secret,
		RedirectURIs: m.RedirectURIs, AuthMethod: m.TokenEndpointAuthMethod, GrantTypes: m.GrantTypes,
		ResponseTypes: m.ResponseTypes}
	if c.Secret != "" {
		registered.ExpiresAt = new(int64)
	}
	if c.Kind != ClientAdmin {
		return clientmeta.Metadata(m).Answer(registered)
	}
	return clientmeta.Metadata(m).Answer(clientmeta.Added{Registered: registered, Name: m.ClientName, Active: c.Active})
}

// maxClients is the most clients known by registration or document.
const maxClients = 100_000

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
	c := storedClient{Client: Client{ID: secretvalue.Identifier(), Kind: ClientRegistered, Metadata: r}}
	secret := secretvalue.New()
	if r.TokenEndpointAuthMethod == AuthNone {
		secret = ""
	}
	err = s.writeStore(ctx, func(tx db.Tx) error {
		if err := s.purgeNowAndThen(tx); err != nil {
			return err
		}
		if err := s.checkRoomForClient(tx); err != nil {
			return err
		}
		return s.insertClient(tx, &c, secret) // the audit log has it once someone consents: see noteRegistration
	})
	if err != nil {
		return RegisteredClient{}, err
	}
	return RegisteredClient{Client: c.Client, Secret: secret}, nil
}

// checkRoomForClient keeps strangers from filling the file. When full, it evicts clients without a grant: all clients
// know how to register again. Deactivated documents stay, since they would otherwise come back.
func (s *Store) checkRoomForClient(tx db.Tx) error {
	count := func() (n int, err error) {
		err = tx.QueryRow(`SELECT count(*) FROM oauth_client WHERE kind IN ('registered', 'document')`).Scan(&n)
		return n, err
	}
	forget := func() error {
		_, err := tx.Exec(`DELETE FROM oauth_client WHERE (kind = 'registered' OR kind = 'document' AND disabled_at IS NULL)
			AND updated_at < ?
			AND NOT EXISTS (SELECT 1 FROM oauth_grant g WHERE g.client_id = oauth_client.id)`,
			s.now()-unusedLifetime.Microseconds())
		return err
	}
	most := cmp.Or(s.oauth.clients, maxClients)
	n, err := count()
	for _, makeRoom := range []func() error{func() error { return purgeOAuth(tx, s.now()) }, forget} {
		if err == nil && n >= most {
			if err = makeRoom(); err == nil {
				n, err = count()
			}
		}
	}
	if err == nil && n >= most {
		return oauthError(KindTooLarge, OAuthUnavailable, "",
			"%d clients have registered themselves, the maximum; unused ones are deleted after a day", n)
	}
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
	if err := n.check(); err != nil {
		return RegisteredClient{}, err
	}
	r, err := ClientRegistration{RedirectURIs: n.RedirectURIs, ClientName: cmp.Or(n.Name, n.ID),
		TokenEndpointAuthMethod: n.AuthMethod}.checked(ClientAdmin)
	if err != nil {
		return RegisteredClient{}, err
	}
	secret := cmp.Or(n.Secret, secretvalue.New())
	if r.TokenEndpointAuthMethod == AuthNone {
		secret = ""
	}
	var c storedClient
	err = s.write(ctx, func(tx db.Tx, v viewer) error {
		maker, err := n.maker(tx, v.User, s.now())
		if err != nil {
			return err
		}
		c = storedClient{Client: Client{ID: n.ID, Kind: ClientAdmin, Owner: s.access.User, Metadata: r, Made: maker != ""},
			owner: &v.User, maker: maker}
		return s.note(ctx, tx, s.insertClient(tx, &c, secret), c.event("client.add"))
	})
	if err != nil {
		return RegisteredClient{}, err
	}
	return RegisteredClient{Client: c.Client, Secret: secret}, nil
}

// maker returns the stored form of a client's parent.
func (n NewClient) maker(tx db.Tx, user, now int64) (string, error) {
	u := storedUser{row: user}
	if n.TokenID != "" { // which ends with its grant, if it has one
		_, err := activeToken(tx, u, n.TokenID, now)
		return "token " + n.TokenID, err
	}
	if n.GrantID != "" {
		_, err := activeGrant(tx, u, n.GrantID)
		return "grant " + n.GrantID, err
	}
	return "", nil
}

func (n NewClient) check() error {
	if err := clientmeta.CheckVisibleASCII("client_id", n.ID, valid.MaxName); err != nil {
		return err
	}
	if scheme, _, found := strings.Cut(strings.ToLower(n.ID), ":"); found && (scheme == "https" || scheme == "http") {
		return invalid("client_id", "{} is %s; a URL is the id of the client with its document there, so choose "+
			"another one", show(n.ID))
	}
	switch {
	case n.Secret == "":
		return nil
	case n.AuthMethod == AuthNone:
		return invalid("client_secret",
			"{} is given for a client that authenticates itself with none; omit one of the two")
	}
	return clientmeta.CheckVisibleASCII("client_secret", n.Secret, 256)
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
	if err := checkDocumentURL(d.URL); err != nil {
		return Client{}, err
	}
	if id, ok := d.Registration.Extra["client_id"]; ok && id != d.URL {
		return Client{}, withGoNames[DocumentClient](invalidMetadata("client_id", "{} in the document is %s, but the "+
			"document belongs to that of %s", jsonobject.Show(id), show(d.URL)), "client_id", ".Registration.Extra.client_id")
	}
	if d.Registration.ClientName == "" {
		return Client{}, invalidMetadata("client_name",
			"{} is missing in the document of %s; people need to see a name", show(d.URL))
	}
	if !d.ExpiresAt.IsZero() {
		if err := valid.Time("expires_at", d.ExpiresAt.UnixMicro()); err != nil {
			return Client{}, err
		}
	}
	r, err := d.Registration.checked(ClientDocument)
	if err != nil {
		return Client{}, err
	}
	var set Client
	err = s.writeStore(ctx, func(tx db.Tx) error {
		c, found, err := loadClient(tx, d.URL)
		switch {
		case err != nil:
			return err
		case found && !c.Active:
			return invalidClient(d.URL)
		case found:
			c.Metadata, c.ExpiresAt = r, d.ExpiresAt
			err = s.updateClient(tx, &c)
		default:
			if err = s.purgeNowAndThen(tx); err == nil {
				err = s.checkRoomForClient(tx)
			}
			if err == nil {
				c = storedClient{Client: Client{ID: d.URL, Kind: ClientDocument, Metadata: r, ExpiresAt: d.ExpiresAt}}
				err = s.insertClient(tx, &c, "")
			}
		}
		set = c.Client
		return err
	})
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
	err = s.readStore(ctx, func(tx db.Tx) error {
		var found bool
		var err error
		if c, found, err = loadClient(tx, clientID); err == nil && !found {
			return oauthError(KindNotFound, OAuthInvalidClient, "client_id", "Invalid client: {} %s is unknown",
				show(clientID))
		}
		return err
	})
	if err != nil {
		return Client{}, err
	}
	return c.Client, nil
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
		condition, args := s.ownClients(v)
		found, err := loadClients(tx, condition+` ORDER BY c.name, c.id`, args...)
		for _, c := range found {
			all = append(all, c.Client)
		}
		return err
	})
	return all, err
}

// ownClients returns the condition for the clients that a view may see and change.
func (s *Store) ownClients(v viewer) (condition string, args []any) {
	if s.operator {
		return `TRUE`, nil
	}
	return `c.owner_id = ?`, []any{v.User}
}

// ownClient returns one of the clients that the view may change.
func (s *Store) ownClient(tx db.Tx, v viewer, clientID string) (storedClient, error) {
	condition, args := s.ownClients(v)
	found, err := loadClients(tx, condition+` AND c.client_id = ?`, append(args, clientID)...)
	if err != nil {
		return storedClient{}, err
	}
	if len(found) == 0 {
		return storedClient{}, newError(KindNotFound, "client_id", "{} %s is not an OAuth client of this user",
			show(clientID))
	}
	return found[0], nil
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
	secret := secretvalue.New()
	var c storedClient
	err = s.write(ctx, func(tx db.Tx, v viewer) error {
		var err error
		if c, err = s.ownClient(tx, v, clientID); err != nil {
			return err
		}
		switch {
		case !c.Active:
			return invalid("client_id", "client %s is permanently deactivated; add another one", show(clientID))
		case c.Metadata.TokenEndpointAuthMethod == AuthNone:
			return invalid("client_id", "client %s authenticates itself with none and has no secret", show(clientID))
		}
		c.secret = secretvalue.Hash(secret)
		return s.note(ctx, tx, s.updateClient(tx, &c), c.event("client.secret"))
	})
	if err != nil {
		return RegisteredClient{}, err
	}
	return RegisteredClient{Client: c.Client, Secret: secret}, nil
}

// DeactivateClient permanently deactivates a client: its grants, codes and tokens end at once. Doing so again changes
// nothing. The operator may do so with any client, others with their own.
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
		if _, err = tx.Exec(`UPDATE oauth_grant SET revoked_at = ? WHERE client_id = ? AND revoked_at IS NULL`, now,
			c.row); err != nil {
			return err
		}
		return s.note(ctx, tx, deactivateOrphans(tx, now), c.event("client.deactivate"))
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

func loadClient(tx db.Tx, clientID string) (c storedClient, found bool, err error) {
	clients, err := loadClients(tx, `c.client_id = ?`, clientID)
	if err != nil || len(clients) == 0 {
		return storedClient{}, false, err
	}
	return clients[0], true, nil
}

// loadClients reads the clients c that satisfy a condition, which may end with an order.
func loadClients(tx db.Tx, condition string, args ...any) ([]storedClient, error) {
	var found []storedClient
	err := tx.Each(func(row db.Rows) error {
		var c storedClient
		var name, method string
		var uris, metadata []byte
		if err := row.Scan(&c.row, &c.ID, &c.Kind, &c.owner, &c.Owner, &name, &method, &c.secret, &uris, &metadata,
			kernel.TimeInto(&c.CreatedAt), kernel.TimeInto(&c.UpdatedAt), kernel.TimeInto(&c.ExpiresAt), &c.Active,
			&c.maker); err != nil {
			return err
		}
		if err := json.Unmarshal(metadata, &c.Metadata); err != nil {
			return damaged(err, "the metadata of the OAuth client %s", show(c.ID))
		}
		if err := json.Unmarshal(uris, &c.Metadata.RedirectURIs); err != nil {
			return damaged(err, "the redirect URIs of the OAuth client %s", show(c.ID))
		}
		c.Metadata.ClientName, c.Metadata.TokenEndpointAuthMethod, c.Made = name, method, c.maker != ""
		found = append(found, c)
		return nil
	}, `SELECT c.id, c.client_id, c.kind, c.owner_id, coalesce(u.uid, ''), c.name, c.auth_method, c.secret_hash,
			c.redirect_uris, c.metadata, c.created_at, c.updated_at, nullif(c.expires_at, 0), c.disabled_at IS NULL, c.maker
		FROM oauth_client c LEFT JOIN users u ON u.id = c.owner_id WHERE `+condition, args...)
	return found, err
}

func (s *Store) insertClient(tx db.Tx, c *storedClient, secret string) error {
	now := s.now()
	c.Active, c.CreatedAt, c.UpdatedAt, c.secret = true, kernel.ToTime(now), kernel.ToTime(now), nil
	if secret != "" {
		c.secret = secretvalue.Hash(secret)
	}
	uris, metadata, err := clientmeta.Metadata(c.Metadata).Stored()
	if err != nil {
		return err
	}
	c.row, err = db.Insert(tx, `INSERT INTO oauth_client (client_id, kind, owner_id, name, auth_method, secret_hash,
		redirect_uris, metadata, created_at, updated_at, expires_at, maker)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (client_id) DO NOTHING RETURNING id`,
		c.ID, c.Kind, c.owner, c.Metadata.ClientName, c.Metadata.TokenEndpointAuthMethod, c.secret, uris, metadata, now, now,
		c.expires(), c.maker)
	if err == nil && c.row == 0 {
		return newError(KindConflict, "client_id",
			"{} %s is taken; choose another one, or omit it to get a random one", show(c.ID))
	}
	return err
}

func (s *Store) updateClient(tx db.Tx, c *storedClient) error {
	now := s.now()
	c.UpdatedAt = kernel.ToTime(now)
	uris, metadata, err := clientmeta.Metadata(c.Metadata).Stored()
	if err != nil {
		return err
	}
	_, err = tx.Exec(`UPDATE oauth_client SET name = ?, secret_hash = ?, redirect_uris = ?, metadata = ?, updated_at = `+
		`?, expires_at = ? WHERE id = ?`,
		c.Metadata.ClientName, c.secret, uris, metadata, now, c.expires(), c.row)
	return err
}

// expires returns the stored form of when to fetch a document again.
func (c storedClient) expires() any {
	if c.Kind != ClientDocument {
		return nil
	}
	return max(0, c.ExpiresAt.UnixMicro()) // the zero time is long before 1970
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
