package authserver

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/failure"
	"github.com/souvenir-ai/souvenir/server/internal/request"
	"github.com/souvenir-ai/souvenir/server/internal/route"
)

// ServerMetadata describes the authorization server (RFC 8414). A client that looks for it where OpenID Connect has it
// gets the same: that is why there are the two members that OpenID Connect asks for, although no ID token is ever given
// out.
type ServerMetadata struct {
	Issuer                string   `json:"issuer"` // the public URL, byte by byte
	AuthorizationEndpoint string   `json:"authorization_endpoint"`
	TokenEndpoint         string   `json:"token_endpoint"`
	RevocationEndpoint    string   `json:"revocation_endpoint"`
	RegistrationEndpoint  string   `json:"registration_endpoint"`
	JWKS                  string   `json:"jwks_uri"`
	Scopes                []string `json:"scopes_supported"`
	ResponseTypes         []string `json:"response_types_supported"`
	ResponseModes         []string `json:"response_modes_supported"`
	GrantTypes            []string `json:"grant_types_supported"`
	TokenAuthMethods      []string `json:"token_endpoint_auth_methods_supported"`
	RevocationAuthMethods []string `json:"revocation_endpoint_auth_methods_supported"`
	ChallengeMethods      []string `json:"code_challenge_methods_supported"`               // RFC 7636
	TellsIssuer           bool     `json:"authorization_response_iss_parameter_supported"` // RFC 9207
	ClientDocuments       bool     `json:"client_id_metadata_document_supported"`
	Resources             []string `json:"protected_resources"` // RFC 9728, section 4
	SubjectTypes          []string `json:"subject_types_supported"`
	IDTokenAlgorithms     []string `json:"id_token_signing_alg_values_supported"`
}

// ResourceMetadata describes what access tokens are for (RFC 9728).
type ResourceMetadata struct {
	Resource      string   `json:"resource"` // byte by byte the URL that people type into their clients
	Name          string   `json:"resource_name"`
	Servers       []string `json:"authorization_servers"`
	Scopes        []string `json:"scopes_supported"`
	BearerMethods []string `json:"bearer_methods_supported"`
}

// MetadataRoutes is the table of the documents with which clients find out all the rest.
func (s *Server) MetadataRoutes() []route.Route {
	return []route.Route{
		route.Get("/.well-known/oauth-authorization-server", route.Public, s.serverMetadata),
		route.Get("/.well-known/openid-configuration", route.Public, s.serverMetadata),
		route.Get("/.well-known/oauth-protected-resource", route.Public, s.resourceMetadataOfAll),
		route.Get("/.well-known/oauth-protected-resource/mcp", route.Public, s.resourceMetadataOfMCP),
	}
}

// AtHostRoot is where a document of metadata lies when the public URL has a path: RFC 8414 and RFC 9728 put the path
// behind the well-known part, at the root of the host. Without a path it is where it is.
func (s *Server) AtHostRoot(pattern string) string {
	const resource = "/.well-known/oauth-protected-resource"
	if suffix, ok := strings.CutPrefix(pattern, resource); ok {
		return resource + s.site.Base() + suffix
	}
	return pattern + s.site.Base()
}

func (s *Server) serverMetadata(w http.ResponseWriter, _ *http.Request, _ request.Caller) (any, error) {
	at := s.site.PublicURL
	methods := []string{souvenir.AuthNone, souvenir.AuthSecretBasic, souvenir.AuthSecretPost}
	cacheMetadata(w)
	return ServerMetadata{
		Issuer:                at,
		AuthorizationEndpoint: at + "/oauth/authorize",
		TokenEndpoint:         at + "/oauth/token",
		RevocationEndpoint:    at + "/oauth/revoke",
		RegistrationEndpoint:  at + "/oauth/register",
		JWKS:                  at + "/oauth/jwks",
		Scopes:                offeredScopes(),
		ResponseTypes:         []string{"code"},
		ResponseModes:         []string{"query"},
		GrantTypes:            []string{GrantCode, GrantRefresh},
		TokenAuthMethods:      methods,
		RevocationAuthMethods: methods,
		ChallengeMethods:      []string{"S256"},
		TellsIssuer:           true,
		ClientDocuments:       true,
		Resources:             s.Audience(),
		SubjectTypes:          []string{"public"},
		IDTokenAlgorithms:     []string{"EdDSA"},
	}, nil
}

func (s *Server) resourceMetadataOfAll(w http.ResponseWriter, _ *http.Request, _ request.Caller) (any, error) {
	cacheMetadata(w)
	return s.describeResource(s.site.PublicURL), nil
}

func (s *Server) resourceMetadataOfMCP(w http.ResponseWriter, _ *http.Request, _ request.Caller) (any, error) {
	cacheMetadata(w)
	return s.describeResource(s.site.PublicURL + "/mcp"), nil
}

func (s *Server) describeResource(resource string) ResourceMetadata {
	return ResourceMetadata{Resource: resource, Name: "Souvenir", Servers: []string{s.site.PublicURL},
		Scopes: offeredScopes(), BearerMethods: []string{"header"}}
}

// cacheMetadata lets clients keep a document for a while; a public URL that changes is soon known.
func cacheMetadata(w http.ResponseWriter) { w.Header().Set("Cache-Control", "public, max-age=300") }

// resource returns the resource of this server that a client means (RFC 8707): the service or its MCP endpoint, with or
// without a slash at the end. No resource stays none. Any other is ErrInvalid with invalid_target.
func (s *Server) resource(asked string) (canonical string, err error) {
	if asked == "" {
		return "", nil
	}
	own := s.Audience()
	meant := withoutTrifles(asked)
	if i := slices.IndexFunc(own, func(resource string) bool { return withoutTrifles(resource) == meant }); i >= 0 {
		return own[i], nil
	}
	message := "resource is " + failure.Quote(asked) + ", which is not served here; " + own[0] + " and " + own[1] + " are"
	return "", oauthError(souvenir.OAuthInvalidTarget, "resource", message)
}

// withoutTrifles writes a URL in the way that all its spellings have in common: case of scheme and host, the port that
// goes without saying, a slash at the end (RFC 3986, section 6.2).
func withoutTrifles(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.User != nil || u.Opaque != "" || strings.ContainsAny(address, "#?") {
		return address
	}
	host, port := strings.ToLower(u.Host), ""
	if i := strings.LastIndexByte(host, ':'); i >= 0 && u.Port() != "" {
		host, port = host[:i], host[i:]
	}
	if port == ":443" && u.Scheme == "https" || port == ":80" && u.Scheme == "http" {
		port = ""
	}
	return u.Scheme + "://" + host + port + strings.TrimSuffix(u.EscapedPath(), "/")
}

// Audience is what access tokens that are used here must be for: the service, or its MCP endpoint.
func (s *Server) Audience() []string {
	return []string{s.site.PublicURL, s.site.PublicURL + "/mcp"}
}

// offeredScopes are the scopes that the metadata names: all but admin, which hardly any client needs. People are asked
// for account only if a client asks, and then with an empty box.
func offeredScopes() []string {
	return append(ScopeNames(souvenir.DefaultScopes()), string(souvenir.ScopeAccount))
}

// ScopeNames are scopes as OAuth writes them.
func ScopeNames(scopes []souvenir.Scope) []string {
	var words []string
	for _, scope := range scopes {
		words = append(words, string(scope))
	}
	return words
}

// ResourceMetadata is where the metadata of the resource lies that a path belongs to: between host and path of its
// identifier (RFC 9728, section 3.1). The MCP endpoint is one, all the rest another.
func (s *Server) ResourceMetadata(path string) string {
	u, err := url.Parse(s.site.PublicURL)
	if err != nil {
		return "" // it was checked
	}
	resource := strings.TrimSuffix(u.Path, "/")
	if path == "/mcp" {
		resource += path
	}
	u.Path, u.RawPath = "/.well-known/oauth-protected-resource"+resource, ""
	return u.String()
}
