package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir"
)

func TestVariablesSetFlagsAndFlagsWin(t *testing.T) {
	c := newStore(t)
	if err := os.Rename(filepath.Join(c.dir, "souvenir.db"), filepath.Join(c.dir, "other.db")); err != nil {
		t.Fatal(err)
	}
	c.fails(t, exitError, "souvenir.db", "stats")
	c.env = []string{"SOUVENIR_DB=other.db", "SOUVENIR_JSON=true", "SOUVENIR_USER=anna", "SOUVENIR_LIMIT=3"}
	found := decode[searchResult](t, c.ok(t, "search", "kettle"))
	if found.Limit != 3 || len(found.Results) != 1 {
		t.Errorf("limit %d, %d results; want 3 and the one of anna", found.Limit, len(found.Results))
	}
	found = decode[searchResult](t, c.ok(t, "search", "kettle", "--limit", "5", "--user=ben"))
	if found.Limit != 5 || len(found.Results) != 1 || !strings.Contains(found.Results[0].Content, "Husum") {
		t.Errorf(`limit %d, results %v; the flags on the command line did not win, want limit 5, 1 result and "Husum" in `+
			"the content", found.Limit, found.Results)
	}
	if table := c.ok(t, "stats", "--json=false"); !strings.HasPrefix(table, "WHAT") {
		t.Errorf("--json=false printed %q, want at its start \"WHAT\"", table)
	}

	c.env = []string{"SOUVENIR_DB=other.db", "SOUVENIR_USER=anna", "SOUVENIR_LIMIT=", "SOUVENIR_JSON="}
	if o := c.run(t, "search", "kettle"); o.code != exitOK || !strings.HasPrefix(o.stdout, "SCORE") {
		t.Errorf(`with empty variables: %+v, want code %v and "SCORE" at the beginning of the stdout`, o, exitOK)
	}
	c.env = []string{"SOUVENIR_DB=other.db", "SOUVENIR_LIMIT=many"}
	c.fails(t, exitUsage, `SOUVENIR_LIMIT is "many"|whole number`, "search", "kettle")
}

func TestSecretsComeFromFilesToo(t *testing.T) {
	c := call{dir: t.TempDir()}
	secret := filepath.Join(c.dir, "secret")
	if err := os.WriteFile(secret, []byte("from-a-file-1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	store := openStore(t, filepath.Join(c.dir, "souvenir.db"))
	signsIn := func(name, password string) {
		t.Helper()
		if _, err := store.Accounts().CheckPassword(t.Context(),
			souvenir.Credentials{Name: name, Password: password}); err != nil {
			t.Errorf("%s cannot sign in with %q: %v", name, password, err)
		}
	}
	c.ok(t, "user", "add", "flag", "--password-file", secret)
	signsIn("flag", "from-a-file-1")
	c.env = []string{"SOUVENIR_PASSWORD_FILE=" + secret}
	c.ok(t, "user", "add", "variable", "--email", "v@example.com")
	signsIn("variable", "from-a-file-1")
	c.env = []string{"SOUVENIR_PASSWORD=in-a-variable-1"}
	c.ok(t, "user", "add", "plain")
	signsIn("plain", "in-a-variable-1")
	c.stdin = "from-standard-input\r\nand more"
	c.ok(t, "user", "add", "stdin", "--password-stdin") // the flag wins over the variable
	signsIn("stdin", "from-standard-input")
	c.ok(t, "user", "passwd", "plain", "--password-file", secret)
	signsIn("plain", "from-a-file-1")

	c.env = []string{"SOUVENIR_PASSWORD=in-a-variable-1", "SOUVENIR_PASSWORD_FILE=" + secret}
	c.fails(t, exitUsage, "both --password and --password-file", "user", "add", "twice")
	c.env = nil
	c.stdin = ""
	c.fails(t, exitError, "the password is empty", "user", "add", "empty", "--password-stdin")
}

func TestAnErrorNamesTheFlag(t *testing.T) {
	c := newStore(t)
	c.fails(t, exitError, `--sort is "newest"; expected "relevance"`, "search", "kettle", "--user", "anna", "--sort",
		"newest")
}

// A script passes an empty value where one of its variables is not set: --project "$PROJECT".
func TestALimitWithoutAValueIsRefused(t *testing.T) {
	c := newStore(t)
	for _, args := range []string{
		"token add --user anna --name x --scope", "token add --user anna --name x --project", "export out.jsonl --user",
		"export out.jsonl --receipt", "user delete ben --with-memories --receipt", "receipt verify out.json --key",
		"receipt verify out.json --export", "audit verify --anchor", "audit cut 1:ab --anchors", "audit list --actor",
		"client list --user", "search kettle --user anna --project", "search kettle --user anna --tag",
		"learn --consolidate --user anna --project", "trash list --user anna --kind", "import in.jsonl --project",
		"token add --user anna --name x --expires-in", "doctor --embedder builtin --backups",
		"mcp --user anna --toolsets", "client-config --stdio --toolsets", "serve --oidc-require-amr",
	} {
		words := strings.Fields(args)
		for _, empty := range []string{"", " "} {
			c.fails(t, exitUsage, words[len(words)-1]+" is empty; give a value, or omit the flag", append(words, empty)...)
		}
	}
	if out := c.ok(t, "token", "list", "--user", "anna", "--json"); len(decode[[]souvenir.Token](t, out)) != 0 {
		t.Errorf("got the tokens %s, want none", out)
	}
	if _, err := os.Stat(filepath.Join(c.dir, "out.jsonl")); err == nil {
		t.Error("a refused export wrote a file, want none")
	}
	c.env = []string{"SOUVENIR_SCOPE=", "SOUVENIR_PROJECT="} // an empty variable is not set
	c.ok(t, "token", "add", "--user", "anna", "--name", "x")
}
