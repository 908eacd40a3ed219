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
	defer limits(command, "oidc-create-domain", "oidc-require-acr", "oidc-require-amr")
	return providerFlags{
		issuer: flags.String("oidc-issuer", "",
			"issuer `url` of an OpenID Connect provider where people can sign in, exactly as the provider states it"),
		clientID: flags.String("oidc-client-id", "", "client `id` of this server at the provider"),
		secret:   secretFlag(command, "oidc-client-secret", "client secret of this server at the provider"),
		name:     flags.String("oidc-name", "", "`name` of the provider on the sign-in button; if empty, its host"),
		createDomains: flags.StringSlice("oidc-create-domain", nil,
			"`domain` of e-mail addresses, verified by the provider, whose users get an account at their first sign-in; can "+
				"be repeated"),
		requireACR: flags.StringSlice("oidc-require-acr", nil,
			"an accepted `acr` of the sign-in there; can be repeated"),
		requireAMR: flags.StringSlice("oidc-require-amr", nil,
			"an `amr`, such as mfa or otp; the sign-in there must have used at least one of them; can be repeated"),
		proxied: flags.Bool("oidc-proxy", false,
			"connect to the provider through the proxy in HTTPS_PROXY; then only that proxy limits the addresses"),
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
