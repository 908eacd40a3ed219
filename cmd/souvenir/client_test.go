package main

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir"
)

// registered is the JSON output for a client with its secret.
type registered struct {
	ID     string `json:"client_id"`
	Secret string `json:"client_secret"`
	Name   string `json:"name"`
}

// worth reports whether a client's credentials are accepted.
func worth(t *testing.T, store *souvenir.Store, id, secret string) bool {
	t.Helper()
	_, err := store.Accounts().CheckClient(t.Context(), souvenir.ClientCredentials{ID: id, Secret: secret})
	return err == nil
}

func TestClientsFromTheCommandLine(t *testing.T) {
	c := newStore(t)
	store := openStore(t, filepath.Join(c.dir, "souvenir.db"))
	const back = "https://wiki.example.com/callback"
	printed := regexp.MustCompile(`^client_id      (\S+)\nclient_secret  (\S+)\n$`).FindStringSubmatch(
		c.ok(t, "client", "add", "--user", "anna", "--name", "Team wiki", "--redirect-uri", back, "--redirect-uri",
			"http://127.0.0.1/a,b"))
	if printed == nil || !worth(t, store, printed[1], printed[2]) {
		t.Fatalf("client add printed %q, want an id and a secret that are valid together", printed)
	}
	wiki, secret := printed[1], printed[2]
	if client, err := store.Accounts().GetClient(t.Context(), wiki); err != nil ||
		strings.Join(client.Metadata.RedirectURIs, " ") != back+" http://127.0.0.1/a,b" {
		t.Errorf("got %+v, %v, want no error and redirect URIs %v", client, err, back+" http://127.0.0.1/a,b")
	}

	notes := decode[registered](t,
		c.ok(t, "client", "add", "--user", "ben", "--id", "notes", "--public", "--redirect-uri", "http://127.0.0.1/x",
			"--json"))
	if notes != (registered{ID: "notes", Name: "notes"}) || !worth(t, store, "notes", "") {
		t.Errorf("a public client: got %+v, want %+v, valid without a "+
			"secret", notes, registered{ID: "notes", Name: "notes"})
	}
	withSecret := c
	withSecret.env = []string{"SOUVENIR_CLIENT_SECRET=sesame-open"}
	withSecret.ok(t, "client", "add", "--user", "ben", "--id", "shell", "--redirect-uri", back)
	if !worth(t, store, "shell", "sesame-open") {
		t.Error("the secret that was given is refused, want it valid")
	}
	if _, err := store.Accounts().RegisterClient(t.Context(),
		souvenir.ClientRegistration{ClientName: "By itself", RedirectURIs: []string{back}}); err != nil {
		t.Fatal(err)
	}

	for flag, bad := range map[string]string{"--name": strings.Repeat("x", 201), "--id": "a b"} {
		c.fails(t, 1, "souvenir: "+flag+" ", "client", "add", "--user", "ben", flag, bad, "--redirect-uri", back)
	}

	all := c.ok(t, "client", "list")
	for _, want := range []string{`Team wiki +` + wiki + ` +admin +active +anna +20`, `notes +notes +admin +active +ben `,
		`By itself +\S+ +registered +active +- `} {
		if !regexp.MustCompile(want).MatchString(all) {
			t.Errorf("got a list without %q, want it there:\n%s", want, all)
		}
	}
	if strings.Contains(all, secret) {
		t.Errorf("the list shows a secret, want no %q in it:\n%s", secret, all)
	}
	if his := c.ok(t, "client", "list", "--user", "ben"); strings.Contains(his, "Team wiki") ||
		strings.Contains(his, "By itself") || !strings.Contains(his, "notes") {
		t.Errorf("the clients that ben made, want no \"Team wiki\", no \"By itself\" and \"notes\" in it:\n%s",
			his)
	}
	if his := decode[[]registered](t, c.ok(t, "client", "list", "--user", "ben", "--json")); len(his) != 2 {
		t.Errorf("%+v; want a length of 2", his)
	}

	renewed := strings.TrimSuffix(c.ok(t, "client", "regenerate-secret", wiki), "\n")
	if worth(t, store, wiki, secret) || !worth(t, store, wiki, renewed) {
		t.Errorf("after regenerate-secret: old secret valid %v, new one valid %v, want false and true", worth(t, store,
			wiki, secret), worth(t, store, wiki, renewed))
	}
	if again := decode[registered](t, c.ok(t, "client", "regenerate-secret", wiki, "--json")); !worth(t, store, wiki,
		again.Secret) {
		t.Errorf("got %+v, whose secret is refused, want a valid one", again)
	}
	c.ok(t, "client", "deactivate", "shell")
	c.ok(t, "client", "deactivate", "shell") // changes nothing
	if worth(t, store, "shell", "sesame-open") ||
		!regexp.MustCompile(`shell +shell +admin +deactivated `).MatchString(c.ok(t, "client", "list")) {
		t.Error("a deactivated client works on")
	}
	c.fails(t, exitError, "shell|deactivated", "client", "regenerate-secret", "shell")
	c.fails(t, exitError, "notes|secret", "client", "regenerate-secret", "notes")
}
