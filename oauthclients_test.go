package souvenir

import (
	"errors"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/auth/redirect"
)

func TestAllowedRedirectURIs(t *testing.T) {
	for _, uri := range []string{
		"https://claude.ai/api/mcp/auth_callback", "https://claude.com/api/mcp/auth_callback",
		"https://chatgpt.com/connector/oauth/abc_DEF-1",
		"https://vscode.dev/redirect", "http://127.0.0.1:33418/", "http://127.0.0.1/", "http://localhost:8787/callback",
		"http://localhost", "http://[::1]:3000/cb?x=1",
		"cursor://anysphere.cursor-mcp/oauth/callback", "vscode://vscode.mcp/cb", "com.example.app:/callback",
		"com.example.app://cb", "app:///cb",
		"https://app.example:8443/cb", "https://app.example", "https://app.example?x=%20y", "https://[2001:db8::1]/cb",
		"https://app.example/@user/cb", "https://xn--bcher-kva.example/", "https://localhost/cb",
	} {
		if err := CheckRedirectURI(uri); err != nil {
			t.Errorf("%s: %v", uri, err)
		}
		if !MatchRedirectURI(uri, uri) {
			t.Errorf("%s does not match itself, want it to match", uri)
		}
	}
}

func TestRefusedRedirectURIs(t *testing.T) {
	for _, uri := range append(evilURIs(),
		"", "callback", "/callback", "//app.example/cb", "https:", "https:/app.example", "https://", "https:///cb",
		"https://?x", "app:cb", "app", ":x", "1app:/x", "a b:/x",
		"http://app.example/cb", "http://127.0.0.2/cb", "http://0.0.0.0/cb", "http://localhost.example/",
		"http://127.0.0.1.example/", "http://LOCALHOST/cb", "http://[::1", "http://[0:0:0:0:0:0:0:1]/",
		"https://app.example:/", "https://app.example:0/", "https://app.example:65536/", "https://app.example:1x/",
		"https://app.example:080/", "http://localhost:/", "http://localhost:99999/",
		"https://[::1%25eth0]/", "https://[1.2.3.4]/", "https://...", "urn:ietf:wg:oauth:2.0:oob", "HTTPS://app.example/",
		"App:/cb", "app://u@host/", "app://*/",
		"https://app.example/"+strings.Repeat("x", redirect.MaxURI),
	) {
		err := CheckRedirectURI(uri)
		var cause *OAuthError
		if !errors.Is(err, ErrInvalid) || !errors.As(err, &cause) || cause.Code != OAuthInvalidRedirectURI ||
			!strings.HasPrefix(cause.Description, "Invalid redirect_uri") {
			t.Errorf("%q gives %v, want ErrInvalid with invalid_redirect_uri", uri, err)
		}
		if MatchRedirectURI(uri, uri) {
			t.Errorf("%q: got a match, want none, since it cannot be registered", uri)
		}
	}
}

// evilURIs are attempts to lead a browser elsewhere or to run a program.
func evilURIs() []string {
	return []string{
		"javascript:alert(1)", "JavaScript:alert(1)", "javascript://app.example/%0aalert(1)", "java\tscript:alert(1)",
		" javascript:alert(1)", "data:text/html,x", "data://x/y", "vbscript:x",
		"file:///etc/passwd", "blob:https://app.example/1", "about:blank", "filesystem:https://app.example/x",
		"view-source:https://app.example/", "mailto:a@b.example", "ws://app.example/", "wss://app.example/",
		"ftp://app.example/",
		"ms-msdt:/id", "search-ms:/query", "ms-appinstaller://x", "smb://evil.example/share", "ldap://evil.example/",
		"shell:/x", "content://x", "ssh://evil.example/",
		"https://app.example@evil.example/cb", "https://app.example:443@evil.example/cb", "https://@evil.example/",
		"https://evil.example/#@app.example/cb", "https://app.example/cb#", "https://app.example/cb#x",
		"https://app.example\\@evil.example/", "https://app.example/\\..", "https:\\\\app.example/",
		"https://evil.example\x00.app.example/", "https://app.example/\r\nX: y", "https://app.example/%0d%0aX:%20y",
		"https://app.example/%00", "https://app.example/%", "https://app.example/%zz", "https://app.example/%4",
		"https://app%2eexample/", "https://*.example/", "https://bücher.example/", "https://app.example/ü",
		"https://app.example\u3002evil.example/", "https://аpp.example/", "https://app.example/\u202e",
		"https://app.example /", "https://app.example/`", "https://app.example/{x}", "https://evil.example\t/",
	}
}

func TestRedirectURIsMatchExactly(t *testing.T) {
	for _, c := range []struct {
		registered, given string
		want              bool
	}{
		{"https://app.example/cb", "https://app.example/cb/", false},
		{"https://app.example/cb", "https://app.example/c", false},
		{"https://app.example/cb", "https://app.example/cb?x=1", false},
		{"https://app.example/cb?x=1", "https://app.example/cb", false},
		{"https://app.example/cb", "https://app.example/CB", false},
		{"https://app.example/cb", "https://APP.example/cb", false},
		{"https://app.example/cb", "https://app.example:443/cb", false},
		{"https://app.example/cb", "https://app.example:8443/cb", false},
		{"https://app.example/cb", "http://app.example/cb", false},
		{"https://app.example/cb", "https://app.example.evil.example/cb", false},
		{"https://app.example/cb", "https://evil.example/cb", false},
		{"https://app.example/cb", "https://app.example/x/../cb", false},
		{"https://app.example/cb", "https://app.example/%63b", false},
		{"https://localhost/cb", "https://localhost:8443/cb", false},
		{"http://localhost/cb", "http://localhost:8787/cb", true},
		{"http://localhost:1/cb", "http://localhost:65535/cb", true},
		{"http://localhost:8787/cb", "http://localhost/cb", true},
		{"http://127.0.0.1:33418/", "http://127.0.0.1:5000/", true},
		{"http://[::1]/cb", "http://[::1]:5000/cb", true},
		{"http://localhost/cb", "http://127.0.0.1/cb", false},
		{"http://localhost/cb", "http://localhost:8787/cb/", false},
		{"http://localhost/cb?x=1", "http://localhost:8787/cb?x=2", false},
		{"http://localhost/cb", "http://localhost:8787@evil.example/cb", false},
		{"http://localhost/cb", "http://localhost.evil.example/cb", false},
		{"http://localhost/cb", "http://localhost:0/cb", false},
		{"app://cb/x", "app://cb:1/x", false},
		{"app://cb/x", "app://cb/x", true},
	} {
		if got := MatchRedirectURI(c.registered, c.given); got != c.want {
			t.Errorf("%s registered, %s given: %v; want %v", c.registered, c.given, got, c.want)
		}
	}
}

// FuzzRedirectURI compares the matching with net/url, an independent parser: URIs that match lead to the same place,
// except for a loopback port.
func FuzzRedirectURI(f *testing.F) {
	good := []string{"https://app.example/cb", "https://app.example:8443/cb?x=1", "http://localhost/cb",
		"http://127.0.0.1:33418/", "http://[::1]:9/cb", "cursor://anysphere.cursor-mcp/oauth/callback", "com.example.app:/cb"}
	for _, registered := range good {
		for _, given := range append(evilURIs(), good...) {
			f.Add(registered, given)
		}
		f.Add(registered, registered+"/")
		f.Add(registered, registered+"#")
		f.Add(registered, strings.ToUpper(registered))
		f.Add(registered, strings.Replace(registered, "://", "://evil.example\\@", 1))
		f.Add(registered, strings.Replace(registered, "/cb", ":1/cb", 1))
	}
	f.Fuzz(func(t *testing.T, registered, given string) {
		if (CheckRedirectURI(given) == nil) != MatchRedirectURI(given, given) {
			t.Fatalf("%q: want that it matches itself only if it may be registered", given)
		}
		if MatchRedirectURI(registered, given) != MatchRedirectURI(given, registered) {
			t.Fatalf("%q and %q match in one direction, want both or none", registered, given)
		}
		u, err := url.Parse(given)
		if MatchRedirectURI(given, given) {
			switch {
			case err != nil:
				t.Fatalf("%q is allowed; net/url: %v", given, err)
			case u.User != nil || u.Fragment != "" || strings.ContainsAny(given, "#\\\r\n\t \x00") || u.Opaque != "":
				t.Fatalf("%q is allowed: %+v", given, u)
			case u.Scheme == "https" && (u.Hostname() == "" || strings.ContainsAny(u.Host, "*%@")):
				t.Fatalf("%q is allowed with the host %q", given, u.Host)
			case u.Scheme == "http" && !slices.Contains([]string{"localhost", "127.0.0.1", "::1"}, u.Hostname()):
				t.Fatalf("%q is allowed with the host %q", given, u.Host)
			case slices.Contains([]string{"javascript", "data", "file", "blob", "about", "vbscript", "filesystem", "ws", "wss",
				"mailto", "ftp"}, strings.ToLower(u.Scheme)):
				t.Fatalf("%q is allowed", given)
			}
		}
		if !MatchRedirectURI(registered, given) || registered == given {
			return
		}
		r, err := url.Parse(registered)
		if err != nil {
			t.Fatal(err)
		}
		port, err := strconv.Atoi(u.Port())
		if u.Scheme != "http" || r.Scheme != "http" || r.Hostname() != u.Hostname() || r.EscapedPath() != u.EscapedPath() ||
			r.RawQuery != u.RawQuery || u.Port() != "" && (err != nil || port < 1 || port > 65535) {
			t.Fatalf("%q registered, %q given: they match, and differ in more than a loopback port; want no match",
				registered, given)
		}
	})
}
