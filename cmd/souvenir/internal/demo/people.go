package demo

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"time"

	"github.com/souvenir-ai/souvenir"
)

// tokenDays is how many days the tokens of the story last, from its first.
const tokenDays = 90

// people creates the user, an admin, and three colleagues, who cannot sign in. Two of them have clients.
func (f *filler) people() error {
	var err error
	if f.user, err = f.store.Accounts().AddUser(f.ctx, souvenir.NewUser{Name: "demo", Email: "mara@quayside.example",
		Role: souvenir.RoleAdmin, Password: f.options.Password}); err != nil {
		return err
	}
	f.view = f.store.As(souvenir.Access{User: f.user.ID, Through: "page"})
	f.others = map[string]souvenir.User{}
	for _, name := range []string{"samuel", "priya", "tomasz"} {
		added, err := f.store.Accounts().AddUser(f.ctx, souvenir.NewUser{Name: name, Email: name + "@quayside.example"})
		if err != nil {
			return err
		}
		f.others[name] = added
	}
	for _, name := range []string{"samuel", "tomasz"} {
		added, err := f.store.Accounts().AddToken(f.ctx, souvenir.NewToken{User: name, Name: "Claude Code",
			ExpiresIn: tokenDays * 24 * time.Hour})
		if err != nil {
			return err
		}
		f.tokens[name] = added.Value
	}
	return nil
}

// use returns a function that shows a token to the server, as each call of its client does.
func (f *filler) use(token string) func() error {
	return func() error {
		_, err := f.store.Accounts().CheckToken(f.ctx, token)
		return err
	}
}

// connect connects three clients: two with tokens, one with OAuth.
func (f *filler) connect() error {
	view := f.store.As(souvenir.Access{User: f.user.ID, Through: "tool"})
	for _, one := range []struct{ name, agent string }{{"Claude Code", "claude-code/2.1.4"}, {"Cursor", "cursor/2.0.64"}} {
		token, err := f.view.Accounts().AddToken(f.ctx, souvenir.NewToken{Name: one.name,
			ExpiresIn: tokenDays * 24 * time.Hour})
		if err != nil {
			return err
		}
		if f.token == "" {
			f.token = token.Value
		}
		f.clients = append(f.clients, client{agent: one.agent, view: view, use: f.use(token.Value),
			principal: souvenir.Principal{User: f.user, Access: view.Access(), TokenID: token.ID}})
	}
	id, use, err := f.authorize("Claude")
	f.clients = append(f.clients, client{agent: "Claude-User", view: view, use: use,
		principal: souvenir.Principal{User: f.user, Access: view.Access(), ClientID: id}})
	return err
}

// authorize connects an application as the consent page does, and returns its id, and a function that gets new tokens
// for it.
func (f *filler) authorize(name string) (id string, use func() error, err error) {
	const callback, verifier = "https://claude.ai/api/mcp/auth_callback", "a-verifier-of-43-characters-or-more-for-pkce"
	added, err := f.store.Accounts().RegisterClient(f.ctx, souvenir.ClientRegistration{ClientName: name,
		RedirectURIs: []string{callback}, TokenEndpointAuthMethod: souvenir.AuthNone})
	if err != nil {
		return "", nil, err
	}
	sum := sha256.Sum256([]byte(verifier))
	code, err := f.view.Accounts().Authorize(f.ctx, souvenir.Authorization{ClientID: added.ID, RedirectURI: callback,
		Scopes:        souvenir.DefaultScopes(),
		CodeChallenge: base64.RawURLEncoding.EncodeToString(sum[:]), CodeChallengeMethod: "S256"})
	if err != nil {
		return "", nil, err
	}
	credentials := souvenir.ClientCredentials{ID: added.ID}
	tokens, err := f.store.Accounts().ExchangeCode(f.ctx, souvenir.CodeExchange{
		Client: credentials, Code: code.Code, RedirectURI: callback, Verifier: verifier,
		Issuer: f.options.PublicURL, Audience: f.options.PublicURL + "/mcp"})
	use = func() error {
		next, err := f.store.Accounts().RefreshTokens(f.ctx, souvenir.TokenRefresh{Client: credentials,
			RefreshToken: tokens.RefreshToken, Issuer: f.options.PublicURL, Audience: f.options.PublicURL + "/mcp"})
		tokens = next
		return err
	}
	return added.ID, use, err
}

// sharing shares berth with Samuel and invites Priya, who has not answered yet; Tomasz invites the user.
func (f *filler) sharing() error {
	berth := souvenir.ProjectRef{Name: "berth"}
	p, err := f.view.GetProject(f.ctx, berth)
	if err != nil {
		return err
	}
	if _, err := f.store.AddMember(f.ctx, souvenir.NewMember{Project: souvenir.ProjectRef{ID: f.user.ID + "/" + p.ID},
		User: "samuel", Role: souvenir.MemberWriter}); err != nil {
		return err
	}
	if _, err := f.view.AddMember(f.ctx, souvenir.NewMember{Project: berth, User: "priya",
		Role: souvenir.MemberWriter}); err != nil {
		return err
	}
	if err := errors.Join(f.use(f.tokens["samuel"])(), f.use(f.tokens["tomasz"])()); err != nil {
		return err
	}
	samuel := f.store.As(souvenir.Access{User: f.others["samuel"].ID, Through: "tool"})
	if _, err := samuel.AddMemory(f.ctx, souvenir.NewMemory{ProjectID: f.user.ID + "/" + p.ID, EventType: "note",
		Content: "The new standby cluster in Bergen replays the log within four seconds of the primary, measured for " +
			"a week. I would let it take over by itself from January on; until then a person decides.",
		Tags: []string{"database", "standby"}}); err != nil {
		return err
	}
	tomasz := f.store.As(souvenir.Access{User: f.others["tomasz"].ID})
	if _, err := tomasz.AddProject(f.ctx, souvenir.NewProject{ID: "tides", Name: "Tide tables"}); err != nil {
		return err
	}
	if _, err := tomasz.AddMemory(f.ctx, souvenir.NewMemory{ProjectID: "tides", EventType: "fact",
		Content: "The hydrographic office publishes next year's tide tables in the second week of October."}); err != nil {
		return err
	}
	_, err = tomasz.AddMember(f.ctx, souvenir.NewMember{Project: souvenir.ProjectRef{ID: "tides"}, User: "demo",
		Role: souvenir.MemberReader})
	return err
}
