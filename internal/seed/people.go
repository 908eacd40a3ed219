package seed

import (
	"crypto/sha256"
	"encoding/base64"
	"time"

	"github.com/souvenir-ai/souvenir"
)

const (
	callback = "https://notebook.example/callback"
	verifier = "a-verifier-that-is-long-enough-for-the-rules-of-pkce"
)

// people creates two more users and the projects: ben writes to atlas and shares harbour with anna, cora reads
// atlas, and has invited anna to the regatta, which is still pending.
func (f *filler) people() error {
	for _, name := range []string{"ben", "cora"} {
		user, err := f.store.Accounts().AddUser(f.ctx,
			souvenir.NewUser{Name: name, Email: name + "@example.com", Password: Password})
		if err != nil {
			return err
		}
		if name == "ben" {
			f.other, f.Other = user, name
		}
	}
	ben := f.store.As(souvenir.Access{User: f.other.ID})
	for _, p := range []struct {
		view     *souvenir.Store
		id, name string
		members  map[string]souvenir.MemberRole
	}{
		{f.view, "atlas", "The atlas",
			map[string]souvenir.MemberRole{"ben": souvenir.MemberWriter, "cora": souvenir.MemberReader}},
		{f.view, "ledger", "Ledger", nil},
		{f.view, "attic", "The attic, where nothing is", nil},
		{ben, "harbour", "Harbour", map[string]souvenir.MemberRole{"anna": souvenir.MemberWriter}},
	} {
		if _, err := p.view.AddProject(f.ctx, souvenir.NewProject{ID: p.id, Name: p.name}); err != nil {
			return err
		}
		for user, role := range p.members {
			if _, err := f.store.AddMember(f.ctx,
				souvenir.NewMember{Project: souvenir.ProjectRef{ID: p.view.Access().User + "/" + p.id}, User: user,
					Role: role}); err != nil {
				return err
			}
		}
	}
	cora, err := f.store.Accounts().GetUser(f.ctx, "cora")
	if err != nil {
		return err
	}
	view := f.store.As(souvenir.Access{User: cora.ID})
	if _, err := view.AddProject(f.ctx, souvenir.NewProject{ID: "regatta", Name: "Regatta"}); err != nil {
		return err
	}
	if _, err := view.AddMember(f.ctx,
		souvenir.NewMember{Project: souvenir.ProjectRef{ID: "regatta"}, User: "anna",
			Role: souvenir.MemberReader}); err != nil {
		return err
	}
	_, err = ben.AddMemories(f.ctx, []souvenir.NewMemory{
		{Content: "The harbour master is Mr Okafor, pier 4.", ProjectID: "harbour", EventType: "fact",
			Tags: []string{"ferry"}},
		{Content: "Pier 4 is closed for repairs in November.", ProjectID: "harbour", EventType: "decision",
			Tags: []string{"ferry"}},
		{Content: "What only ben may see."},
	}, nil)
	return err
}

// management creates tokens, OAuth clients and their grants, sessions, an invitation and preferences.
func (f *filler) management() error {
	f.at(1)
	var err error
	if f.token, err = f.view.Accounts().AddToken(f.ctx, souvenir.NewToken{Name: "laptop"}); err != nil {
		return err
	}
	f.Token = f.token.Value
	for _, n := range []souvenir.NewToken{
		{Name: "reads the atlas only", Scopes: []souvenir.Scope{souvenir.ScopeMemoryRead}, Projects: []string{"atlas"},
			ExpiresIn: 10 * 24 * time.Hour},
		{Name: "everything", Scopes: souvenir.Scopes()},
	} {
		if _, err := f.view.Accounts().AddToken(f.ctx, n); err != nil {
			return err
		}
	}
	if _, err := f.view.Accounts().AddClient(f.ctx,
		souvenir.NewClient{ID: "notebook", Name: "Notebook", RedirectURIs: []string{callback}}); err != nil {
		return err
	}
	if err := f.authorize("Claude", "Sailing log"); err != nil {
		return err
	}
	for _, agent := range []string{
		"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.0 " +
			"Safari/605.1.15",
		"Mozilla/5.0 (Linux; Android 15) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Mobile Safari/537.36",
	} {
		if _, err := f.store.Accounts().AddSignIn(f.ctx, souvenir.NewSignIn{User: f.User, UserAgent: agent}); err != nil {
			return err
		}
	}
	if _, err := f.store.Accounts().AddInvitation(f.ctx,
		souvenir.NewInvitation{Note: "Dora, at home", CreatedBy: f.User}); err != nil {
		return err
	}
	_, err = f.view.SetPreferences(f.ctx, map[string]any{"language": "en", "units": map[string]any{"length": "m"}})
	return err
}

// authorize registers applications and grants each access.
func (f *filler) authorize(names ...string) error {
	sum := sha256.Sum256([]byte(verifier))
	for _, name := range names {
		client, err := f.store.Accounts().RegisterClient(f.ctx,
			souvenir.ClientRegistration{ClientName: name, RedirectURIs: []string{callback},
				TokenEndpointAuthMethod: souvenir.AuthNone})
		if err != nil {
			return err
		}
		code, err := f.view.Accounts().Authorize(f.ctx, souvenir.Authorization{
			ClientID: client.ID, RedirectURI: callback,
			Scopes:        []souvenir.Scope{souvenir.ScopeMemoryRead, souvenir.ScopeMemoryWrite},
			CodeChallenge: base64.RawURLEncoding.EncodeToString(sum[:]), CodeChallengeMethod: "S256",
		})
		if err != nil {
			return err
		}
		if _, err := f.store.Accounts().ExchangeCode(f.ctx, souvenir.CodeExchange{
			Client: souvenir.ClientCredentials{ID: client.ID}, Code: code.Code, RedirectURI: callback, Verifier: verifier,
			Issuer: "http://memory.test", Audience: "http://memory.test/mcp",
		}); err != nil {
			return err
		}
	}
	return nil
}

// activity records calls over the last weeks: one for each memory, more if there are few.
func (f *filler) activity(memories int) error {
	own := souvenir.Principal{User: f.user, Access: souvenir.Access{User: f.user.ID}, TokenID: f.token.ID}
	bens := souvenir.Principal{User: f.other, Access: souvenir.Access{User: f.other.ID}}
	now := f.clock.Now()
	n := min(max(60, memories), 90_000)
	for i := range n {
		call := souvenir.NewActivity{
			Principal: own, Tool: "memory", Duration: time.Duration(200+f.random.IntN(40_000)) * time.Microsecond,
			Bytes: int64(f.random.IntN(20_000)),
			Client: pick(f.writer, []string{"claude-code/2.1", "cursor/1.9", "codex/0.42", "python-requests/2.32",
				"Mozilla/5.0 (X11; Linux x86_64)"}),
			StartedAt: now.Add(-time.Duration(float64(n-i) / float64(n) * float64(25*24*time.Hour))),
			Action:    pick(f.writer, []string{"search", "search", "search", "store", "retrieve", "get_context", "update"}),
		}
		if f.once(4) {
			call.Project = souvenir.ProjectRef{ID: pick(f.writer, []string{"atlas", "ledger"})}
		}
		if about := f.ids[pick(f.writer, f.topics).name]; (call.Action == "retrieve" || call.Action == "update") &&
			len(about) > 0 {
			call.MemoryID = pick(f.writer, about)
		}
		if f.once(12) {
			call.Tool, call.Action = pick(f.writer, []string{"todo", "rules", "get_module_state", "POST /api/files/upload"}), ""
		}
		if f.once(15) {
			call.Outcome = pick(f.writer, []souvenir.Outcome{"invalid", "not_found", "forbidden"})
		}
		if f.once(20) {
			call.Principal, call.MemoryID = bens, ""
		}
		if err := f.store.Upkeep().RecordActivity(f.ctx, call); err != nil {
			return err
		}
		if i%1000 == 999 { // writes waiting calls in time, since beyond a few thousand the oldest are lost
			if _, err := f.view.Insights().ActivityPage(f.ctx, souvenir.ActivityQuery{Limit: 1}); err != nil {
				return err
			}
		}
	}
	return nil
}
