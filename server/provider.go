package server

import (
	"fmt"
	"net/http"

	"github.com/souvenir-ai/souvenir/server/internal/signin"
)

// Provider is an external OpenID Connect provider at which people sign in. Register this server there as a confidential
// client of the authorization code flow, with the redirect URI PublicURL + "/login/provider/callback".
type Provider struct {
	// Issuer is the provider's identifier, byte by byte as it gives it: https, or http on this machine, such as
	// https://accounts.google.com. What it says of itself is read from there when somebody first signs in: a provider that
	// is down stops nothing else.
	Issuer string

	// ClientID and ClientSecret are what the provider knows this server by. Without a secret there is only PKCE, which
	// some providers accept.
	ClientID     string
	ClientSecret string

	// Name is what the button says: Sign in with Name. Empty means the issuer's host. At most 40 characters.
	Name string

	// Scopes are asked for; openid is always among them. Nil means profile and email.
	Scopes []string

	// CreateDomains are the domains, such as example.com, whose people get an account when they first sign in: the
	// provider must say email_verified, and the part of the address behind the @ must be one of them, letter by letter but
	// for case; subdomains are others. It vouches for all addresses that the provider calls verified, so let it be your
	// own. Nil means that nobody gets one: people link the provider from their profile.
	CreateDomains []string

	// RequireACR are authentication contexts (acr) of which the sign-in at the provider must have been one. They are asked
	// for (acr_values), in this order. Nil means any.
	RequireACR []string

	// RequireAMR are methods (amr, such as mfa, otp or hwk; RFC 8176) of which the sign-in at the provider must have used
	// at least one. The provider cannot be asked for them: set it up to use them. Nil means any.
	RequireAMR []string

	// Client sends the requests to the provider, which are bounded in time and size and follow no redirects. Nil means one
	// that uses no proxy, and reaches public addresses and the issuer's own host only.
	Client *http.Client
}

// Format prints the provider without its secret.
func (p Provider) Format(f fmt.State, _ rune) {
	_, _ = fmt.Fprintf(f, "{Issuer:%s ClientID:%s}", p.Issuer, p.ClientID)
}

// CheckProvider says whether a Provider can be that of [Options].
func CheckProvider(p *Provider) error { return signin.CheckProvider((*signin.Provider)(p)) }
