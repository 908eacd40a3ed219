// Package clientmeta reads, validates and writes the metadata of OAuth clients: of registration requests (RFC 7591) and
// client id metadata documents. Its errors are of the kinds KindInvalid and KindTooLarge.
package clientmeta

import (
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/souvenir-ai/souvenir/internal/auth/redirect"
	"github.com/souvenir-ai/souvenir/internal/fault"
	"github.com/souvenir-ai/souvenir/internal/foldname"
	"github.com/souvenir-ai/souvenir/internal/json/jsonobject"
	"github.com/souvenir-ai/souvenir/internal/valid"
)

// Limits of a client's registration.
const (
	MaxBytes        = 16 << 10 // bytes, as JSON
	maxRedirectURIs = 20
	maxClientName   = 200 // characters
)

// The grant and response types.
const (
	grantCode    = "authorization_code"
	GrantRefresh = "refresh_token"
	responseCode = "code"
)

// Metadata is the metadata of an OAuth client, in the fields of [souvenir.ClientRegistration], with the names of RFC
// 7591.
type Metadata struct {
	RedirectURIs            []string       `json:"redirect_uris"`
	ClientName              string         `json:"client_name,omitempty"`
	TokenEndpointAuthMethod string         `json:"token_endpoint_auth_method,omitempty"`
	GrantTypes              []string       `json:"grant_types,omitempty"`
	ResponseTypes           []string       `json:"response_types,omitempty"`
	Scope                   string         `json:"scope,omitempty"`
	ClientURI               string         `json:"client_uri,omitempty"`
	LogoURI                 string         `json:"logo_uri,omitempty"`
	TosURI                  string         `json:"tos_uri,omitempty"`
	PolicyURI               string         `json:"policy_uri,omitempty"`
	Contacts                []string       `json:"contacts,omitempty"`
	SoftwareID              string         `json:"software_id,omitempty"`
	SoftwareVersion         string         `json:"software_version,omitempty"`
	Extra                   map[string]any `json:"-"`
}

// issuedMembers are the members that only the server sets.
var issuedMembers = []string{
	"client_id", "client_id_issued_at", "client_secret", "client_secret_expires_at",
	"registration_access_token", "registration_client_uri", "software_statement",
}

// UnmarshalJSON reads a JSON object. A member of a wrong type is an error; null counts as absent.
func (m *Metadata) UnmarshalJSON(encoded []byte) error {
	*m = Metadata{}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(encoded, &object); err != nil || object == nil {
		return fault.Invalid("", "the metadata of a client is %s; expected a JSON object", fault.Show(string(encoded)))
	}
	fields := jsonobject.Fields(m)
	for _, name := range slices.Sorted(maps.Keys(object)) {
		raw := object[name]
		if string(raw) == "null" {
			continue
		}
		if field, known := fields[name]; known {
			if json.Unmarshal(raw, field) != nil {
				return fault.Invalid(name, "{} is %s, which has a wrong type", fault.Show(string(raw)))
			}
			continue
		}
		value, err := jsonobject.Decode([]byte(`{"":` + string(raw) + `}`))
		if err != nil {
			return fault.Invalid(name, "{} cannot be read: %v", err)
		}
		if m.Extra == nil {
			m.Extra = map[string]any{}
		}
		m.Extra[name] = value[""]
	}
	return nil
}

// MarshalJSON writes a JSON object without empty members.
func (m Metadata) MarshalJSON() ([]byte, error) { return json.Marshal(m.Object()) }

// Object returns the members that are not empty.
func (m Metadata) Object() map[string]any {
	object := map[string]any{}
	fields := jsonobject.Fields(&m)
	for name, value := range m.Extra {
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

// Columns are metadata as columns hold them: the name and the method, and as JSON the redirect URIs and the rest.
type Columns struct {
	Name, Method string
	URIs, Rest   string
}

// Columns returns the metadata as columns.
func (m Metadata) Columns() (Columns, error) {
	uris, err := json.Marshal(m.RedirectURIs)
	if err != nil {
		return Columns{}, err
	}
	name, method := m.ClientName, m.TokenEndpointAuthMethod
	m.RedirectURIs, m.ClientName, m.TokenEndpointAuthMethod = nil, "", ""
	rest, err := json.Marshal(m)
	return Columns{name, method, string(uris), string(rest)}, err
}

// Metadata reads the columns.
func (c Columns) Metadata() (m Metadata, err error) {
	if err = json.Unmarshal([]byte(c.Rest), &m); err == nil {
		err = json.Unmarshal([]byte(c.URIs), &m.RedirectURIs)
	}
	m.ClientName, m.TokenEndpointAuthMethod = c.Name, c.Method
	return m, err
}

// Checked returns the metadata, validated and in their stored form. The methods are the allowed ones to authenticate,
// the default first.
func (m Metadata) Checked(methods []string) (Metadata, error) {
	err := CheckRedirectURIs(m.RedirectURIs)
	if err != nil {
		return m, err
	}
	m.RedirectURIs = valid.Distinct(m.RedirectURIs)
	if err := checkClientName(m.ClientName); err != nil {
		return m, err
	}
	if err := m.checkAuthMethod(methods); err != nil {
		return m, err
	}
	if m.GrantTypes, err = supported("grant_types", m.GrantTypes, grantCode, GrantRefresh); err != nil {
		return m, err
	}
	if m.ResponseTypes, err = supported("response_types", m.ResponseTypes, responseCode); err != nil {
		return m, err
	}
	for name, value := range map[string]string{"client_uri": m.ClientURI, "logo_uri": m.LogoURI, "tos_uri": m.TosURI,
		"policy_uri": m.PolicyURI} {
		if err := checkPublicURI(name, value); err != nil {
			return m, err
		}
	}
	m.Contacts = slices.Clone(m.Contacts)
	m.Extra = maps.Clone(m.Extra)
	for _, name := range issuedMembers {
		delete(m.Extra, name)
	}
	return m.copied()
}

// copied returns a deep copy of the metadata, made through JSON, so that nothing is shared with the caller.
func (m Metadata) copied() (Metadata, error) {
	object := m.Object()
	if err := jsonobject.CheckTexts("metadata", object); err != nil {
		return m, err
	}
	encoded, err := json.Marshal(object)
	if err != nil {
		return m, fault.Invalid("", "the metadata of the client is not JSON: %v", err)
	}
	if len(encoded) > MaxBytes {
		return m, fault.New(fault.KindTooLarge, "",
			"the metadata of the client is %d bytes as JSON; at most %d are allowed", len(encoded), MaxBytes)
	}
	var copied Metadata
	if err := json.Unmarshal(encoded, &copied); err != nil {
		return m, err
	}
	if jsonobject.Depth(copied.Extra) > valid.MaxDepth {
		return m, fault.New(fault.KindTooLarge, "",
			"the metadata of the client is nested more than %d deep", valid.MaxDepth)
	}
	return copied, nil
}

// CheckRedirectURIs returns an error if a client may not register these redirect URIs.
func CheckRedirectURIs(uris []string) error {
	uris = valid.Distinct(uris)
	switch {
	case len(uris) == 0:
		return fault.Invalid("redirect_uris", "Invalid redirect_uri: {} is empty; expected at least one")
	case len(uris) > maxRedirectURIs:
		return fault.New(fault.KindTooLarge, "redirect_uris",
			"Invalid redirect_uri: {} has %d URIs; at most %d are allowed", len(uris), maxRedirectURIs)
	}
	for _, uri := range uris {
		if err := CheckRedirectURI(uri); err != nil {
			return err
		}
	}
	return nil
}

// checkClientName refuses names that do not look like what they are on a screen. An empty name means none.
func checkClientName(name string) error {
	if name == "" {
		return nil
	}
	if err := valid.Line("client_name", name, maxClientName); err != nil {
		return err
	}
	if !strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsSpace(r) && !foldname.Unseen(r) }) {
		return fault.Invalid("client_name",
			"{} is %s, which has no visible character; give a visible name, or none", fault.Show(name))
	}
	for _, r := range name {
		if unicode.In(r, unicode.Bidi_Control, unicode.Zl, unicode.Zp) || r == utf8.RuneError {
			return fault.Invalid("client_name",
				"{} is %s, which contains %U; characters that change the direction or the line are not allowed",
				fault.Show(name), r)
		}
	}
	return nil
}

func (m *Metadata) checkAuthMethod(allowed []string) error {
	if m.TokenEndpointAuthMethod == "" {
		m.TokenEndpointAuthMethod = allowed[0]
	}
	return valid.Enum("token_endpoint_auth_method", m.TokenEndpointAuthMethod, allowed)
}

// supported drops the values that this server does not support. The first supported value must remain.
func supported(name string, wanted []string, all ...string) ([]string, error) {
	if len(wanted) == 0 {
		return all, nil
	}
	if !slices.Contains(wanted, all[0]) {
		return nil, fault.Invalid(name, "{} is %s; it must include %s", fault.OneOf(wanted[:min(len(wanted), 10)]),
			fault.Show(all[0]))
	}
	return slices.DeleteFunc(all, func(value string) bool { return !slices.Contains(wanted, value) }), nil
}

// checkPublicURI checks a URI that people may see as a link.
func checkPublicURI(name, value string) error {
	if value == "" {
		return nil
	}
	u, err := url.Parse(value)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil ||
		len(value) > redirect.MaxURI {
		return fault.Invalid(name, "{} is %s; expected an absolute https or http URI of at most %d bytes",
			fault.Show(value), redirect.MaxURI)
	}
	return nil
}

// CheckRedirectURI returns an error if a client may not register a redirect URI.
func CheckRedirectURI(uri string) error {
	if why := redirect.WhyNot(uri); why != "" {
		return fault.Invalid("redirect_uris", "Invalid redirect_uri: %s %s", fault.Show(uri), why)
	}
	return nil
}

// CheckDocumentURL returns an error if a client_id cannot be the URL of a client id metadata document: https, with a
// path, without user, query, fragment and dot segments, in its shortest spelling.
func CheckDocumentURL(id string) error {
	u, err := url.Parse(id)
	if err == nil && len(id) <= redirect.MaxURI && u.Scheme == "https" && redirect.IsHostAndPort(u.Host) &&
		u.Path != "" && u.Path != "/" && u.User == nil && u.RawQuery == "" && !strings.ContainsAny(id, "#?\\") &&
		u.String() == id && u.JoinPath().Path == u.Path {
		return nil
	}
	return fault.Invalid("client_id", "Invalid client: {} is %s; expected an https URL with a path, without user, query, "+
		"fragment and dot segments", fault.Show(id))
}

// CheckDocument checks what the document of a client, whose id is its URL, must say.
func (m Metadata) CheckDocument(url string) error {
	if id, ok := m.Extra["client_id"]; ok && id != url {
		return fault.Invalid("client_id", "{} in the document is %s, but the document belongs to that of %s",
			jsonobject.Show(id), fault.Show(url))
	}
	if m.ClientName == "" {
		return fault.Invalid("client_name", "{} is missing in the document of %s; people need to see a name",
			fault.Show(url))
	}
	return nil
}

// CheckVisibleASCII checks a value for forms, headers and paths. Errors do not repeat a secret.
func CheckVisibleASCII(argument, value string, most int) error {
	if len(value) > most {
		return fault.New(fault.KindTooLarge, argument, "{} is %d characters long; at most %d are allowed",
			len(value),
			most)
	}
	for i := range len(value) {
		if value[i] <= ' ' || value[i] > '~' {
			return fault.Invalid(argument,
				"{} has the byte 0x%02x at offset %d; expected ASCII letters, digits and signs, without spaces",
				value[i], i)
		}
	}
	return nil
}

// CheckChosen checks the id and the secret that a person chooses for a client. An empty secret means a random one.
func CheckChosen(id, secret, method string) error {
	if err := CheckVisibleASCII("client_id", id, valid.MaxName); err != nil {
		return err
	}
	if scheme, _, found := strings.Cut(strings.ToLower(id), ":"); found && (scheme == "https" || scheme == "http") {
		return fault.Invalid("client_id", "{} is %s; a URL is the id of the client with its document there, so choose "+
			"another one", fault.Show(id))
	}
	switch {
	case secret == "":
		return nil
	case method == "none":
		return fault.Invalid("client_secret",
			"{} is given for a client that authenticates itself with none; omit one of the two")
	}
	return CheckVisibleASCII("client_secret", secret, 256)
}

// CanonicalResource converts a resource indicator (RFC 8707: an absolute URI without a fragment) to its stored form:
// scheme and host in lower case, without a slash at the end. Empty stays empty.
func CanonicalResource(resource string) (string, error) {
	if resource == "" {
		return "", nil
	}
	u, err := url.Parse(resource)
	switch {
	case len(resource) > redirect.MaxURI:
		return "", fault.New(fault.KindTooLarge, "resource", "{} is %d bytes; at most %d are allowed", len(resource),
			redirect.MaxURI)
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil ||
		strings.Contains(resource, "#"):
		return "", fault.Invalid("resource",
			"{} is %s; expected the absolute http or https URI of a service, without user and fragment",
			fault.Show(resource))
	}
	u.Host = strings.ToLower(u.Host)
	return strings.TrimSuffix(u.String(), "/"), nil
}
