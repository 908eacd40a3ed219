package signin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/failure"
	"github.com/souvenir-ai/souvenir/server/internal/netaddr"
	"golang.org/x/oauth2"
)

// Provider is an external OpenID Connect provider at which people sign in: the Provider of package server, which
// documents its fields.
type Provider struct {
	Issuer        string
	ClientID      string
	ClientSecret  string
	Name          string
	Scopes        []string
	CreateDomains []string
	RequireACR    []string
	RequireAMR    []string
	Client        *http.Client
}

// Format prints the provider without its secret.
func (p Provider) Format(f fmt.State, _ rune) {
	_, _ = fmt.Fprintf(f, "{Issuer:%s ClientID:%s}", p.Issuer, p.ClientID)
}

// CheckProvider checks that a provider can be used.
func CheckProvider(p *Provider) error {
	bad := func(argument, value, want string) error {
		return failure.Invalid(argument, argument+" is "+failure.Quote(value)+"; expected "+want)
	}
	if u, err := url.Parse(p.Issuer); err != nil || checkProviderURL(u) != nil || strings.ContainsAny(p.Issuer, "?#") {
		return bad("issuer", p.Issuer,
			"a URL such as https://id.example.com, as the provider states it: https (or http on this machine), "+
				"without user, query and fragment")
	}
	if p.ClientID == "" {
		return bad("client_id", "", "the client id that the provider has given to this server")
	}
	if len([]rune(p.Name)) > maxProviderName {
		return bad("name", p.Name, "at most "+strconv.Itoa(maxProviderName)+" characters")
	}
	for _, domain := range p.CreateDomains {
		if domain == "" || strings.ContainsAny(domain, "@*/: \t") || strings.HasPrefix(domain, ".") {
			return bad("create_domains", domain, "a domain such as example.com, without @ and *")
		}
	}
	for argument, values := range map[string][]string{"require_acr": p.RequireACR, "require_amr": p.RequireAMR} {
		for _, value := range values {
			if value == "" || strings.ContainsAny(value, " \t\r\n") {
				return bad(argument, value, "a value without spaces")
			}
		}
	}
	return nil
}

const (
	maxProviderName     = 40
	providerTimeout     = 10 * time.Second // for each request to the provider
	maxProviderAnswer   = 1 << 20          // bytes
	providerLife        = 24 * time.Hour   // after which its metadata is read again
	providerPause       = 5 * time.Second  // between a failure and the next attempt
	providerLoginPath   = "/login/provider"
	providerAnswersPath = "/login/provider/callback"
)

// provider is the external provider as the server uses it.
type provider struct {
	Provider
	log   *slog.Logger
	http  *http.Client
	began *loginStates

	creating chan struct{} // held while creating an account

	reading chan struct{} // held while reading the metadata; guards the following fields
	found   *discovered
	until   time.Time // when found, or failed, expires
	failed  error
}

// discovered is a provider's metadata (OpenID Connect Discovery 1.0, section 3).
type discovered struct {
	oauth    oauth2.Config // without the redirect URI
	oidc     *oidc.Provider
	verifier *oidc.IDTokenVerifier
	tellsIss bool // in each response (RFC 9207)
}

func newProvider(p Provider, store *souvenir.Store, log *slog.Logger) (*provider, error) {
	if err := CheckProvider(&p); err != nil {
		return nil, err
	}
	issuer, err := url.Parse(p.Issuer)
	if err != nil {
		return nil, err
	}
	if p.Name == "" {
		p.Name = issuer.Hostname()
	}
	if p.Scopes == nil {
		p.Scopes = []string{"profile", "email"}
	}
	if !slices.Contains(p.Scopes, oidc.ScopeOpenID) {
		p.Scopes = append([]string{oidc.ScopeOpenID}, p.Scopes...)
	}
	return &provider{Provider: p, log: log, http: providerClient(p.Client, issuer), began: newLoginStates(store, log),
		reading: make(chan struct{}, 1), creating: make(chan struct{}, 1)}, nil
}

// discover returns the provider's metadata. It is read when first needed, and again after a day, or soon after a
// failure; while reading fails, the former metadata stays in use.
func (p *provider) discover(ctx context.Context) (*discovered, error) {
	select {
	case p.reading <- struct{}{}:
		defer func() { <-p.reading }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	now := time.Now()
	if now.After(p.until) {
		// Others wait for it, so it does not end with this request. It is bounded in time anyway.
		found, err := p.read(context.WithoutCancel(ctx))
		p.failed, p.until = err, now.Add(providerLife)
		if err != nil {
			p.until = time.Now().Add(providerPause)
			p.log.WarnContext(ctx, "the identity provider's metadata could not be read", "issuer", p.Issuer, "error", err)
		} else {
			p.found = found
		}
	}
	if p.found != nil {
		return p.found, nil
	}
	return nil, p.failed
}

// read reads the provider's metadata, and checks that its addresses are safe.
func (p *provider) read(ctx context.Context) (*discovered, error) {
	ctx = oidc.ClientContext(ctx, p.http)
	about, err := oidc.NewProvider(ctx, p.Issuer)
	if err != nil {
		return nil, err
	}
	var metadata struct {
		Authorization string   `json:"authorization_endpoint"`
		Token         string   `json:"token_endpoint"`
		Keys          string   `json:"jwks_uri"`
		TokenMethods  []string `json:"token_endpoint_auth_methods_supported"`
		TellsIss      bool     `json:"authorization_response_iss_parameter_supported"`
	}
	if err := about.Claims(&metadata); err != nil {
		return nil, err
	}
	for name, address := range map[string]string{"authorization_endpoint": metadata.Authorization,
		"token_endpoint": metadata.Token, "jwks_uri": metadata.Keys} {
		if u, err := url.Parse(address); err != nil || checkProviderURL(u) != nil {
			return nil, fmt.Errorf("the provider's %s is %s; expected an https URL, or http on this machine", name,
				failure.Quote(address))
		}
	}
	d := &discovered{
		oauth: oauth2.Config{ClientID: p.ClientID, ClientSecret: p.ClientSecret, Endpoint: about.Endpoint(),
			Scopes: p.Scopes},
		oidc:     about,
		verifier: about.VerifierContext(ctx, &oidc.Config{ClientID: p.ClientID}),
		tellsIss: metadata.TellsIss,
	}
	// Trying both styles would send the code twice, and it is valid once.
	d.oauth.Endpoint.AuthStyle = oauth2.AuthStyleInHeader // OpenID Connect Discovery 1.0: the default
	if methods := metadata.TokenMethods; p.ClientSecret == "" || methods != nil &&
		!slices.Contains(methods, "client_secret_basic") {
		d.oauth.Endpoint.AuthStyle = oauth2.AuthStyleInParams
	}
	return d, nil
}

// checkProviderURL refuses an invalid or unencrypted address of a provider.
func checkProviderURL(u *url.URL) error {
	switch {
	case u.Host == "" || u.User != nil || u.Fragment != "":
		return errors.New("the URL is not one of a provider: it has no host, or has a user or a fragment")
	case u.Scheme == "https", u.Scheme == "http" && netaddr.IsLoopback(u.Host):
		return nil
	}
	return errors.New("the URL is neither https nor http on this machine")
}

// providerClient returns the client for requests to a provider: the operator configured the issuer, but the
// provider names all other addresses, so they are limited.
func providerClient(given *http.Client, issuer *url.URL) *http.Client {
	own := http.Client{}
	if given != nil {
		own = *given
	}
	if given == nil {
		own.Transport = providerTransport(issuer.Hostname())
	}
	if own.Transport == nil {
		own.Transport = http.DefaultTransport
	}
	own.Transport = boundedTransport{own.Transport}
	if own.Timeout <= 0 || own.Timeout > providerTimeout {
		own.Timeout = providerTimeout
	}
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	own.Jar = nil
	return &own
}

// providerTransport reaches the issuer's host, on any network, and public addresses.
func providerTransport(issuer string) *http.Transport {
	t := netaddr.PublicTransport()
	public, any := t.DialContext, (&net.Dialer{Timeout: providerTimeout}).DialContext
	t.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		if host := netaddr.Hostname(address); strings.EqualFold(host, issuer) || netaddr.IsLoopback(host) &&
			netaddr.IsLoopback(issuer) {
			return any(ctx, network, address)
		}
		return public(ctx, network, address)
	}
	t.TLSHandshakeTimeout, t.ResponseHeaderTimeout = providerTimeout, providerTimeout
	return t
}

// boundedTransport checks the addresses of requests to a provider, and limits the size of responses.
type boundedTransport struct{ http.RoundTripper }

func (t boundedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := checkProviderURL(r.URL); err != nil {
		return nil, err
	}
	response, err := t.RoundTripper.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	response.Body = struct {
		io.Reader
		io.Closer
	}{&bounded{response.Body, maxProviderAnswer}, response.Body}
	return response, nil
}

// bounded fails past a number of bytes, where an io.LimitReader would end without an error.
type bounded struct {
	from io.Reader
	left int
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, fmt.Errorf("the answer is longer than %d bytes", maxProviderAnswer)
	}
	n, err := b.from.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

// HasProvider reports whether people may sign in at an external provider.
func (s *Service) HasProvider() bool { return s.provider != nil }
