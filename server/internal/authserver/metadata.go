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

// ServerMetadata describes the authorization server (RFC 8414). It is also served at OpenID Connect's path: that is
// why it has the two members that OpenID Connect requires, although the server never issues ID tokens.
type ServerMetadata struct {
	Issuer                string   `json:"issuer"` // the public URL, exactly
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

// ResourceMetadata describes a resource for which access tokens are issued (RFC 9728).
type ResourceMetadata struct {
	Resource      string   `json:"resource"` // exactly the URL that people enter in their clients
	Name          string   `json:"resource_name"`
	Servers       []string `json:"authorization_servers"`
	Scopes        []string `json:"scopes_supported"`
	BearerMethods []string `json:"bearer_methods_supported"`
}

// MetadataRoutes is the table of the discovery documents for clients.
func (s *Server) MetadataRoutes() []route.Route {
	return []route.Route{
		route.Get("/.well-known/oauth-authorization-server", route.Public, s.serverMetadata),
		route.Get("/.well-known/openid-configuration", route.Public, s.serverMetadata),
		route.Get("/.well-known/oauth-protected-resource", route.Public, s.resourceMetadataOfAll),
		route.Get("/.well-known/oauth-protected-resource/mcp", route.Public, s.resourceMetadataOfMCP),
	}
}

// AtHostRoot returns the path of a metadata document when the public URL has a path: RFC 8414 and RFC 9728 put that
// path after the well-known part, at the root of the host. Otherwise the path is unchanged.
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

// cacheMetadata lets clients cache a document for a short time, so that they soon notice a changed public URL.
func cacheMetadata(w http.ResponseWriter) { w.Header().Set("Cache-Control", "public, max-age=300") }

// resource returns the resource of this server that a client names (RFC 8707): the service or its MCP endpoint,
// with or without a trailing slash. An empty resource stays empty. Any other is ErrInvalid with invalid_target.
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

// withoutTrifles normalizes a URL: case of scheme and host, the default port, a trailing slash (RFC 3986, section
// 6.2).
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

// Audience is the accepted audiences of access tokens: the service, and its MCP endpoint.
func (s *Server) Audience() []string {
	return []string{s.site.PublicURL, s.site.PublicURL + "/mcp"}
}

// offeredScopes are the scopes in the metadata: all but admin, which hardly any client needs. The consent page
// offers account only if a client requests it, and then with the box unticked.
func offeredScopes() []string {
	return append(ScopeNames(souvenir.DefaultScopes()), string(souvenir.ScopeAccount))
}

// ScopeNames returns scopes as OAuth strings.
func ScopeNames(scopes []souvenir.Scope) []string {
	var words []string
	for _, scope := range scopes {
		words = append(words, string(scope))
	}
	return words
}

// ResourceMetadata returns the address of the metadata of the resource that a path belongs to: the well-known part
// is between host and path of its identifier (RFC 9728, section 3.1). The MCP endpoint is one resource, everything
// else another.
func (s *Server) ResourceMetadata(path string) string {
	u, err := url.Parse(s.site.PublicURL)
	if err != nil {
		return "" // checked before
	}
	resource := strings.TrimSuffix(u.Path, "/")
	if path == "/mcp" {
		resource += path
	}
	u.Path, u.RawPath = "/.well-known/oauth-protected-resource"+resource, ""
	return u.String()
}
