package server

import (
	"fmt"
	"net/http"

	"github.com/souvenir-ai/souvenir/server/internal/signin"
)

// Provider is an external OpenID Connect provider at which people sign in. Register this server there as a
// confidential client of the authorization code flow, with the redirect URI PublicURL + "/login/provider/callback".
type Provider struct {
	// Issuer is the provider's identifier, exactly as the provider writes it: https, or http on this machine, such
	// as https://accounts.google.com. The provider's metadata is read from there at the first sign-in: a provider
	// that is down affects nothing else.
	Issuer string

	// ClientID and ClientSecret are this server's credentials at the provider. Without a secret there is only PKCE,
	// which some providers accept.
	ClientID     string
	ClientSecret string

	// Name is the provider's name on the button: Sign in with Name. Empty means the issuer's host. At most 40
	// characters.
	Name string

	// Scopes are the requested scopes; openid is always among them. Nil means profile and email.
	Scopes []string

	// CreateDomains are the domains, such as example.com, whose people get an account at their first sign-in: the
	// provider must say email_verified, and the part of the address after the @ must equal one of them except for
	// case; subdomains do not match. The provider must be trusted for all addresses that it calls verified, so use
	// your own. Nil means that no accounts are created: people link the provider from their profile.
	CreateDomains []string

	// RequireACR are authentication contexts (acr); the sign-in at the provider must have had one of them. They are
	// requested (acr_values), in this order. Nil means any.
	RequireACR []string

	// RequireAMR are methods (amr, such as mfa, otp or hwk; RFC 8176); the sign-in at the provider must have used at
	// least one. They cannot be requested: configure the provider to use them. Nil means any.
	RequireAMR []string

	// Client sends the requests to the provider, which are bounded in time and size and follow no redirects. Nil
	// means one that uses no proxy, and reaches public addresses and the issuer's own host only.
	Client *http.Client
}

// Format prints the provider without its secret.
func (p Provider) Format(f fmt.State, _ rune) {
	_, _ = fmt.Fprintf(f, "{Issuer:%s ClientID:%s}", p.Issuer, p.ClientID)
}

// CheckProvider checks that a Provider can be that of [Options].
func CheckProvider(p *Provider) error { return signin.CheckProvider((*signin.Provider)(p)) }
