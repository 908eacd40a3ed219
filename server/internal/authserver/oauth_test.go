package authserver

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/fault"
	"github.com/souvenir-ai/souvenir/server/internal/failure"
	"github.com/souvenir-ai/souvenir/server/internal/web"
)

// Every spelling of its URL names a resource, and nothing else does.
func TestResources(t *testing.T) {
	for public, c := range map[string]struct{ good, bad []string }{
		"https://memory.example": {
			[]string{"https://memory.example", "https://memory.example/", "https://memory.example/mcp",
				"https://memory.example/mcp/", "HTTPS://Memory.Example/mcp", "https://memory.example:443/mcp"},
			[]string{"http://memory.example", "https://memory.example/MCP", "https://memory.example/mcp/x",
				"https://memory.example:8443/mcp", "https://memory.example.evil.example/mcp",
				"https://memory.example/mcp?x", "https://memory.example/mcp#", "https://user@memory.example/mcp", "memory.example",
				"https://memory.example//mcp", "%zz", "https:memory.example", " "},
		},
		"http://127.0.0.1:8377/memory": {
			[]string{"http://127.0.0.1:8377/memory", "http://127.0.0.1:8377/memory/", "http://127.0.0.1:8377/memory/mcp"},
			[]string{"http://127.0.0.1:8377", "http://127.0.0.1:8377/mcp", "http://localhost:8377/memory",
				"http://127.0.0.1/memory"},
		},
	} {
		s := &Server{site: web.New(web.Options{PublicURL: public})}
		for _, asked := range c.good {
			got, err := s.resource(asked)
			if err != nil || got != public && got != public+"/mcp" {
				t.Errorf("%s: got %q %v, want no error and %v or %v", asked, got, err, public, public+"/mcp")
			}
		}
		for _, asked := range c.bad {
			if got, err := s.resource(asked); err == nil {
				t.Errorf("%s means %s, want an error", asked, got)
			}
		}
		if got, err := s.resource(""); got != "" || err != nil {
			t.Errorf("%q %v, want none", got, err)
		}
	}
}

// Reading any form ends. It gives the parameters, or an error for the client.
func FuzzOAuthForm(f *testing.F) {
	f.Add("grant_type=authorization_code&code=a&client_id=b&resource=c&resource=d", "Basic YTpi")
	f.Add("code=%zz", "Basic")
	f.Add("a=b&a=c", "Bearer x")
	f.Add("client_id=a%2Bb&client_secret=%25", "basic JTI1OiUyNQ==")
	f.Fuzz(func(t *testing.T, body, authorization string) {
		r := httptest.NewRequest(http.MethodPost, "/oauth/token", strings.NewReader(body))
		r.Header.Set("Content-Type", formType)
		r.Header.Set("Authorization", authorization)
		var form TokenRequest
		err := readOAuthForm(httptest.NewRecorder(), r, &form)
		if err == nil {
			_, err = clientCredentials(r, form.clientForm)
		}
		if err == nil {
			return
		}
		if status, _ := failure.Describe(err); status != http.StatusBadRequest && status != http.StatusUnauthorized {
			t.Fatalf("got %d %v, want %v or %v", status, err, http.StatusBadRequest, http.StatusUnauthorized)
		}
		for _, c := range fault.OAuthDescription(err.Error()) {
			if c < ' ' || c > '~' || c == '"' || c == '\\' {
				t.Fatalf("%q has %q, want only ' ' to '~' without '\"' and '\\\\'", err, c)
			}
		}
	})
}
