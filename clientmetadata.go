package souvenir

import (
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/souvenir-ai/souvenir/internal/check"
	"github.com/souvenir-ai/souvenir/internal/foldname"
	"github.com/souvenir-ai/souvenir/internal/jsonobject"
	"github.com/souvenir-ai/souvenir/internal/redirect"
)

// ClientRegistration is what an OAuth client says about itself: the metadata of RFC 7591, section 2. It reads and
// writes the JSON of a registration request, response, or client id metadata document: members without a field are in
// Extra, and empty ones are left out.
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

// Limits of what a client may register.
const (
	maxClientMetadata = 16 << 10 // bytes, as JSON
	maxRedirectURIs   = 20
	maxClientName     = 200 // characters
)

// The grant and response types.
const (
	grantCode    = "authorization_code"
	grantRefresh = "refresh_token"
	responseCode = "code"
)

// issuedMembers are the members that only the server sets.
var issuedMembers = []string{
	"client_id", "client_id_issued_at", "client_secret", "client_secret_expires_at",
	"registration_access_token", "registration_client_uri", "software_statement",
}

// members pairs the names of RFC 7591 with the fields.
func (r *ClientRegistration) members() map[string]any {
	return map[string]any{
		"redirect_uris":              &r.RedirectURIs,
		"client_name":                &r.ClientName,
		"token_endpoint_auth_method": &r.TokenEndpointAuthMethod,
		"grant_types":                &r.GrantTypes,
		"response_types":             &r.ResponseTypes,
		"scope":                      &r.Scope,
		"client_uri":                 &r.ClientURI,
		"logo_uri":                   &r.LogoURI,
		"tos_uri":                    &r.TosURI,
		"policy_uri":                 &r.PolicyURI,
		"contacts":                   &r.Contacts,
		"software_id":                &r.SoftwareID,
		"software_version":           &r.SoftwareVersion,
	}
}

// UnmarshalJSON reads a JSON object. A member of a wrong type is ErrInvalid with the code invalid_client_metadata; null
// counts as absent.
func (r *ClientRegistration) UnmarshalJSON(encoded []byte) error {
	*r = ClientRegistration{}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(encoded, &object); err != nil || object == nil {
		return invalidMetadata("", "the metadata of a client is %s; a JSON object is needed", show(string(encoded)))
	}
	fields := r.members()
	for _, name := range slices.Sorted(maps.Keys(object)) {
		raw := object[name]
		if string(raw) == "null" {
			continue
		}
		if field, known := fields[name]; known {
			if json.Unmarshal(raw, field) != nil {
				return invalidMetadata(name, "%s is %s, which is of a wrong type", name, show(string(raw)))
			}
			continue
		}
		value, err := jsonobject.Decode([]byte(`{"":` + string(raw) + `}`))
		if err != nil {
			return invalidMetadata(name, "%s cannot be read: %v", name, err)
		}
		if r.Extra == nil {
			r.Extra = map[string]any{}
		}
		r.Extra[name] = value[""]
	}
	return nil
}

// MarshalJSON writes a JSON object without empty members.
func (r ClientRegistration) MarshalJSON() ([]byte, error) { return json.Marshal(r.object()) }

// object returns the members that are not empty.
func (r ClientRegistration) object() map[string]any {
	object := map[string]any{}
	fields := r.members()
	for name, value := range r.Extra {
		if _, known := fields[name]; !known && value != nil {
			object[name] = value
		}
	}
	for name, field := range fields {
		switch value := field.(type) {
		case *string:
			if *value != "" {
				object[name] = *value
			}
		case *[]string:
			if len(*value) > 0 {
				object[name] = *value
			}
		}
	}
	return object
}

func invalidMetadata(argument, format string, args ...any) *Error {
	return oauthError(KindInvalid, OAuthInvalidClientMetadata, argument, format, args...)
}

// checked returns the registration, validated and in its stored form.
func (r ClientRegistration) checked(kind ClientKind) (ClientRegistration, error) {
	var err error
	if r.RedirectURIs, err = checkRedirectURIs(r.RedirectURIs); err != nil {
		return r, err
	}
	if err := checkClientName(r.ClientName); err != nil {
		return r, err
	}
	if err := r.checkAuthMethod(kind); err != nil {
		return r, err
	}
	if r.GrantTypes, err = supported("grant_types", r.GrantTypes, grantCode, grantRefresh); err != nil {
		return r, err
	}
	if r.ResponseTypes, err = supported("response_types", r.ResponseTypes, responseCode); err != nil {
		return r, err
	}
	var scopes []Scope
	for _, word := range strings.Fields(r.Scope) {
		if slices.Contains(Scopes(), Scope(word)) {
			scopes = append(scopes, Scope(word))
		}
	}
	scopes, err = checkScopes("scope", scopes)
	if err != nil {
		return r, err
	}
	r.Scope = joinScopes(scopes)
	for name, value := range map[string]string{"client_uri": r.ClientURI, "logo_uri": r.LogoURI, "tos_uri": r.TosURI,
		"policy_uri": r.PolicyURI} {
		if err := checkPublicURI(name, value); err != nil {
			return r, err
		}
	}
	r.Contacts = slices.Clone(r.Contacts)
	r.Extra = maps.Clone(r.Extra)
	for _, name := range issuedMembers {
		delete(r.Extra, name)
	}
	return r.copied()
}

// copied returns a deep copy of a registration, made by way of JSON, so that nothing is shared with the caller.
func (r ClientRegistration) copied() (ClientRegistration, error) {
	object := r.object()
	if err := jsonobject.CheckTexts("metadata", object, 0); err != nil {
		return r, asOAuth(err, OAuthInvalidClientMetadata)
	}
	encoded, err := json.Marshal(object)
	if err != nil {
		return r, invalidMetadata("", "the metadata of the client is not JSON: %v", err)
	}
	if len(encoded) > maxClientMetadata {
		return r, oauthError(KindTooLarge, OAuthInvalidClientMetadata, "",
			"the metadata of the client is %d bytes as JSON; at most %d are allowed", len(encoded), maxClientMetadata)
	}
	var copied ClientRegistration
	if err := json.Unmarshal(encoded, &copied); err != nil {
		return r, err
	}
	if jsonobject.Depth(copied.Extra) > check.MaxDepth {
		return r, oauthError(KindTooLarge, OAuthInvalidClientMetadata, "",
			"the metadata of the client is nested more than %d deep", check.MaxDepth)
	}
	return copied, nil
}

func checkRedirectURIs(uris []string) ([]string, error) {
	uris = check.Distinct(uris)
	switch {
	case len(uris) == 0:
		return nil, oauthError(KindInvalid, OAuthInvalidRedirectURI, "redirect_uris",
			"Invalid redirect_uri: redirect_uris is empty; at least one is needed")
	case len(uris) > maxRedirectURIs:
		return nil, oauthError(KindTooLarge, OAuthInvalidRedirectURI, "redirect_uris",
			"Invalid redirect_uri: redirect_uris has %d URIs; at most %d are allowed", len(uris), maxRedirectURIs)
	}
	for _, uri := range uris {
		if err := CheckRedirectURI(uri); err != nil {
			return nil, err
		}
	}
	return uris, nil
}

// checkClientName refuses names that would look different on a screen than they are. An empty name means none.
func checkClientName(name string) error {
	if name == "" {
		return nil
	}
	if err := check.Line("client_name", name, maxClientName); err != nil {
		return asOAuth(err, OAuthInvalidClientMetadata)
	}
	if !strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsSpace(r) && !foldname.Unseen(r) }) {
		return invalidMetadata("client_name",
			"client_name is %s, in which nothing can be seen; people must be shown a name, or none is given", show(name))
	}
	for _, r := range name {
		if unicode.In(r, unicode.Bidi_Control, unicode.Zl, unicode.Zp) || r == utf8.RuneError {
			return invalidMetadata("client_name",
				"client_name is %s, which contains %U; characters that change the direction or the line are not allowed",
				show(name), r)
		}
	}
	return nil
}

func (r *ClientRegistration) checkAuthMethod(kind ClientKind) error {
	allowed := []string{AuthSecretBasic, AuthSecretPost, AuthNone}
	if kind == ClientDocument {
		allowed = []string{AuthNone}
	}
	if r.TokenEndpointAuthMethod == "" {
		r.TokenEndpointAuthMethod = allowed[0]
	}
	return asOAuth(check.Enum("token_endpoint_auth_method", r.TokenEndpointAuthMethod, allowed),
		OAuthInvalidClientMetadata)
}

// supported drops the values that this server does not support. The first of all must remain.
func supported(name string, wanted []string, all ...string) ([]string, error) {
	if len(wanted) == 0 {
		return all, nil
	}
	if !slices.Contains(wanted, all[0]) {
		return nil, invalidMetadata(name, "%s is %s; %s must be in it", name, oneOf(wanted[:min(len(wanted), 10)]),
			show(all[0]))
	}
	return slices.DeleteFunc(all, func(value string) bool { return !slices.Contains(wanted, value) }), nil
}

// checkPublicURI checks a URI that people may see as a link.
func checkPublicURI(name, value string) error {
	if value == "" {
		return nil
	}
	u, err := url.Parse(value)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil || len(value) > maxURI {
		return invalidMetadata(name, "%s is %s; an absolute https or http URI of at most %d bytes is needed", name,
			show(value), maxURI)
	}
	return nil
}

// MatchRedirectURI reports whether a redirect URI that a client gives is one that it has registered: the same string,
// byte by byte. An http URI on a loopback address may differ in its port, which an application learns when it starts
// (RFC 8252, 7.3); host, path and query must be the same. A URI that [CheckRedirectURI] refuses matches nothing.
func MatchRedirectURI(registered, given string) bool { return redirect.Match(registered, given) }

// CheckRedirectURI says whether a client may register a redirect URI: https anywhere, http on a loopback address
// (127.0.0.1, [::1] or localhost), or an application's own scheme, such as cursor://host/path or com.example.app:/path;
// in printable ASCII, without fragment, user or wildcard. The error carries invalid_redirect_uri (RFC 7591).
func CheckRedirectURI(uri string) error {
	if why := redirect.WhyNot(uri); why != "" {
		return oauthError(KindInvalid, OAuthInvalidRedirectURI, "redirect_uris", "Invalid redirect_uri: %s %s", show(uri),
			why)
	}
	return nil
}
