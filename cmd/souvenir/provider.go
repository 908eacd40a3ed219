package main

import (
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server"
)

// providerFlags are the flags of serve about an external OpenID Connect provider.
type providerFlags struct {
	issuer, clientID, name *string
	secret                 *secret
	createDomains          *[]string
	requireACR, requireAMR *[]string
	proxied                *bool
}

func newProviderFlags(command *cobra.Command) providerFlags {
	flags := command.Flags()
	return providerFlags{
		issuer: flags.String("oidc-issuer", "",
			"`url` of an OpenID Connect provider at which people may sign in, as it gives it"),
		clientID: flags.String("oidc-client-id", "", "`id` that the provider has given to this server"),
		secret:   secretFlag(command, "oidc-client-secret", "the secret that the provider has given to this server"),
		name:     flags.String("oidc-name", "", "`name` of the provider for the button; otherwise its host"),
		createDomains: flags.StringSlice("oidc-create-domain", nil,
			"`domain` of e-mail addresses, verified by the provider, whose people get an account when they first sign in; may be given again"),
		requireACR: flags.StringSlice("oidc-require-acr", nil,
			"`acr` of which the sign-in there must have been one; may be given again"),
		requireAMR: flags.StringSlice("oidc-require-amr", nil,
			"`amr`, such as mfa or otp, of which the sign-in there must have used at least one; may be given again"),
		proxied: flags.Bool("oidc-proxy", false,
			"reach the provider through the proxy that HTTPS_PROXY names; then it alone limits which addresses are reached"),
	}
}

// provider returns the provider from the flags; nil for none.
func (f providerFlags) provider() (*server.Provider, error) {
	secret, err := f.secret.read()
	if err != nil {
		return nil, err
	}
	if *f.issuer == "" {
		if *f.clientID != "" || secret != "" || *f.name != "" || *f.proxied || len(*f.createDomains)+len(*f.requireACR)+
			len(*f.requireAMR) > 0 {
			return nil, misused("the flags --oidc-... need --oidc-issuer and --oidc-client-id; give both")
		}
		return nil, nil
	}
	p := &server.Provider{Issuer: *f.issuer, ClientID: *f.clientID, ClientSecret: secret, Name: *f.name,
		CreateDomains: *f.createDomains, RequireACR: *f.requireACR, RequireAMR: *f.requireAMR}
	if *f.proxied {
		p.Client = &http.Client{Transport: &http.Transport{Proxy: http.ProxyFromEnvironment,
			TLSHandshakeTimeout: 10 * time.Second}}
	}
	err = server.CheckProvider(p)
	var wrong *souvenir.Error
	if errors.As(err, &wrong) {
		flag := "--oidc-" + strings.TrimSuffix(strings.ReplaceAll(wrong.Argument, "_", "-"), "s")
		return nil, misused("%s: %v", flag, err)
	}
	return p, err
}
