package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

// everyCommand visits the visible commands, except shell completion.
func everyCommand(visit func(*cobra.Command)) {
	root := (&cli{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, lookup: os.LookupEnv}).rootCommand()
	var walk func(*cobra.Command)
	walk = func(command *cobra.Command) {
		visit(command)
		for _, child := range command.Commands() {
			walk(child)
		}
	}
	walk(root)
}

func TestEveryCommandHasAPage(t *testing.T) {
	c := call{dir: t.TempDir()}
	everyCommand(func(command *cobra.Command) {
		path := command.CommandPath()
		if command.Short == "" || strings.HasSuffix(command.Short, ".") || command.Long == "" {
			t.Errorf("%s: Short is %q, Long is %q; both are needed, Short without a full stop, want a short one that is not "+
				`empty, no "." at the end of the short and a long that is not empty`, path, command.Short, command.Long)
		}
		if !command.HasSubCommands() && command.Example == "" {
			t.Errorf("%s has no example, want one", path)
		}
		for line := range strings.Lines(command.Long + "\n" + command.Example) {
			if len([]rune(line)) > 140 {
				t.Errorf("%s: a line of its page is too long: %q, got %v, want at most 140", path, line, len([]rune(line)))
			}
		}
		page := c.ok(t, append(strings.Fields(path)[1:], "--help")...)
		for _, part := range []string{strings.Fields(command.Long)[0], "Usage:\n  " + path} {
			if !strings.Contains(page, part) {
				t.Errorf("%s --help: got\n%s\nwant a page that contains %q", path, page, part)
			}
		}
		command.Flags().VisitAll(func(flag *pflag.Flag) {
			if flag.Usage == "" {
				t.Errorf("%s: --%s has no usage, want one", path, flag.Name)
			}
			if hasVariable(flag) && !strings.Contains(page, variable(flag.Name)) {
				t.Errorf("%s --help does not name %s, want it named", path, variable(flag.Name))
			}
		})
	})
	if len(readFolder(t, c.dir)) > 0 {
		t.Errorf("asking for help has made the files %v, want none", readFolder(t, c.dir))
	}
}

func TestListsAsJSON(t *testing.T) {
	c := newStore(t)
	token := c.ok(t, "token", "add", "--user", "anna", "--name", "to be deleted")[:len("mcp_1234")]
	lists := [][]string{
		{"user", "add", "zoe", "--no-password"}, {"user", "list"}, {"user", "invite"},
		{"user", "update", "zoe", "--email", "zoe@example.com"},
		{"user", "disable", "zoe"}, {"user", "enable", "zoe"}, {"user", "passwd", "zoe", "--no-password"},
		{"user", "delete", "zoe"},
		{"token", "add", "--user", "anna", "--name", "x"}, {"token", "list", "--user", "anna"},
		{"token", "delete", token, "--user", "anna"},
		{"client", "add", "--user", "anna", "--id", "app", "--redirect-uri", "https://a.example/b"}, {"client", "list"},
		{"client", "regenerate-secret", "app"}, {"client", "deactivate", "app"}, {"client-config"},
		{"project", "member", "add", "home", "ben", "--owner", "anna"},
		{"project", "member", "list", "home", "--owner", "anna"},
		{"project", "member", "remove", "home", "ben", "--owner", "anna"}, {"search", "kettle", "--user", "anna"},
		{"learn", "--consolidate", "--user", "anna"},
		{"export", "out.jsonl"}, {"import", "out.jsonl"}, {"receipt", "key"},
		{"backup", "copy.db"}, {"restore", "copy.db", "--db", "other.db"}, {"check"},
		{"copy", "--from", "souvenir.db", "--to", "copied.db"},
		{"recover", "souvenir.db", "recovered.db"}, {"reindex"}, {"purge"}, {"stats"}, {"man", "pages"}, {"version"},
	}
	for i, args := range lists {
		if !longtest.Part(i, 1, 4) { // commands do not depend on each other
			continue
		}
		o := c.run(t, append(args, "--json")...)
		if o.code != exitOK {
			t.Errorf("%v: exit status %d: %s; want %v", args, o.code, o.stderr, exitOK)
		}
		decode[any](t, o.stdout)
	}
	everyCommand(func(command *cobra.Command) {
		name := strings.TrimPrefix(command.CommandPath(), "souvenir ")
		listed := name == "health" || name == "doctor" || // which need a server: TestHealth, TestDoctor
			strings.HasPrefix(name, "files ") || // which need a bucket: TestFilesOfTheProgramAreInABucket
			strings.HasPrefix(name, "audit ") || // which need hashes: TestAuditCommands
			strings.HasPrefix(name, "key ") || // which need keys: TestKeyCommands
			name == "receipt verify" || // which needs a receipt: TestReceiptsOfExportsHold
			strings.HasPrefix(name, "retention ") || // which need rules: TestRetentionCommands
			strings.HasPrefix(name, "trash ") // which need something deleted: TestTrashCommands
		for _, args := range lists {
			listed = listed || strings.HasPrefix(strings.Join(args, " ")+" ", name+" ")
		}
		if command.Flags().Lookup("json") != nil && !listed {
			t.Errorf("got no test of the JSON of souvenir %s, want one", name)
		}
	})
	empty := call{dir: t.TempDir()}
	empty.ok(t, "user", "add", "anna", "--no-password")
	if got := strings.TrimSpace(empty.ok(t, "token", "list", "--json")); got != "[]" {
		t.Errorf("no tokens are %q; want []", got)
	}
	for list, words := range map[string]string{"token list": "anna has no tokens", "client list": "no OAuth clients",
		"search": "nothing found"} {
		if got := empty.run(t, strings.Fields(list)...); got.code != exitOK || got.stdout != "" ||
			!strings.Contains(got.stderr, words) {
			t.Errorf("an empty %s: %+v, want code %v, no stdout and %q in the stderr", list, got, exitOK, words)
		}
	}
	if got := empty.run(t, "search", "x", "--json"); !strings.Contains(got.stdout, `"results": []`) {
		t.Errorf(`no results are %q, want "results": [] in the stdout`, got.stdout)
	}
}

// badCommandLines have the words that the error of each contains, separated by |.
var badCommandLines = []struct{ args, words string }{
	{"serv", `no command "serv"|did you mean serve`},
	{"user", "needs a command|passwd"},
	{"user remove ben", `no command "remove"`},
	{"user add", "needs NAME"},
	{"user update ben", "there is nothing to change"},
	{"user update ben --role king", `"king"|admin`},
	{"user update ben --role user --admin", `--role is "user" and --admin is true|give one`},
	{"user add zoe --no-password --role king", `"king"|admin`},
	{"user invite --role king", `"king"|admin`},
	{"user invite --role admin --admin=false", "--admin is false"},
	{"user add one two", `got "two" as well`},
	{"user add zoe", "password is missing|--password-stdin"},
	{"user add zoe --no-password --password-stdin", "more than one way"},
	{"user add zoe --password xyzzy-12345 --password-file x", "both --password and --password-file"},
	{"token add --user anna", "--name is missing"},
	{"token add --name x", "--user is missing|anna, ben"},
	{"token add --user anna --name x --expires-in soon", `"soon"|90d`},
	{"token add --user anna --name x --expires-in -1d", `"-1d"`},
	{"token list", "--user is missing"},
	{"token delete --user anna", "needs ID"},
	{"client", "needs a command|regenerate-secret"},
	{"client add --user anna", "--redirect-uri is missing"},
	{"client add --redirect-uri https://a.example/b", "--user is missing|anna, ben"},
	{"client add --user anna --redirect-uri https://a.example/b --public --client-secret xyzzy-12345", "--public"},
	{"client deactivate", "needs CLIENT-ID"},
	{"client regenerate-secret a b", `got "b" as well`},
	{"search --limit many", `--limit is "many"|whole number`},
	{"search --limit 0", "1 to 100"},
	{"search --nosuchflag", "unknown flag: --nosuchflag"},
	{"export --json", "give a file OUT"},
	{"export a b", `got "b" as well`},
	{"import", "needs IN"},
	{"import x --on-conflict perhaps", `"perhaps"|keep or replace`},
	{"backup", "needs OUT"},
	{"restore", "needs IN"},
	{"check everything", `"everything"`},
	{"purge --keep-revisions=-1", "-1"},
	{"serve --listen nowhere", `"nowhere"|HOST:PORT`},
	{"serve --log-level loud", `"loud"|debug, info, warn or error`},
	{"serve --log-format xml", `"xml"|text or json`},
	{"serve --max-file huge", `"huge"|500MiB`},
	{"serve --trusted-proxies somewhere", `"somewhere"|172.16.0.0/12`},
	{"serve --public-url memory.example.com", "--public-url|memory.example.com"},
	{"serve --admin-user anna", "--admin-user|--admin-password-file"},
	{"serve --admin-password xyzzy-12345", "--admin-user"},
	{"serve --oidc-client-id x", "--oidc-issuer"},
	{"serve --oidc-require-amr mfa", "--oidc-issuer"},
	{"serve --oidc-issuer https://id.example", "--oidc-client-id"},
	{"serve --oidc-issuer http://id.example --oidc-client-id x", "--oidc-issuer|http://id.example|https"},
	{"serve --oidc-issuer https://id.example --oidc-client-id x --oidc-create-domain *.example",
		"--oidc-create-domain|*.example"},
	{"serve --grace long", `"long"|30s`},
	{"serve --purge-every daily", `"daily"|30s`},
	{"serve --purge-every=-1h", "-1h|24h"},
	{"serve --keep-revisions=-1", "-1"},
	{"serve --keep-activity 0s", "--keep-activity is 0s|720h|--no-activity"},
	{"serve --keep-activity 2000000h", "2000000h|876000h"},
	{"serve --keep-activity month", `"month"|30s`},
	{"serve --max-running=-1", "--max-running is -1|1 or more"},
	{"serve --max-running-per-user=-1", "--max-running-per-user is -1|1 or more"},
	{"serve --queue-per-user 0", "--queue-per-user is 0|1 or more"},
	{"serve --queue-wait 0s", "--queue-wait is 0s|15s"},
	{"serve --body-memory 1MiB", "--body-memory is 1MiB|16MiB"},
	{"serve --max-activity 0", "--max-activity is 0|1 or more|--no-activity"},
	{"doctor", "needs a URL"},
	{"doctor memory.example.com", `"memory.example.com"|https://`},
	{"doctor https://memory.example.com --timeout 0", "--timeout|10s"},
	{"health here", `"here"|https://`},
	{"health a b", `got "b" as well`},
	{"health --listen 127.0.0.1:0", "127.0.0.1:0|HOST:PORT"},
	{"health --timeout 0", "--timeout|5s"},
	{"help cook", `no command "cook"`},
	{"help user cook", `souvenir user has no command "cook"`},
	{"help serve cook", `souvenir serve has no command "cook": it is a command itself`},
	{"mcp --toolsets cooking", `"cooking"|memory, chatgpt`},
	{"mcp --log-level loud", `"loud"|debug, info, warn or error`},
	{"mcp souvenir.db", `"souvenir.db"`},
	{"client-config netscape", `"netscape"|claude-code`},
	{"client-config --public-url ftp://x", "ftp://x"},
	{"client-config --oauth --token mcp_x", "--oauth"},
	{"client-config chatgpt --stdio", "chatgpt|--stdio"},
	{"client-config --stdio --toolsets cooking", "cooking"},
}

func TestMistakesInTheCommandLineEndWithTwo(t *testing.T) {
	c := newStore(t)
	before := readFolder(t, c.dir)
	for i, test := range badCommandLines {
		if longtest.Part(i, 1, 5) {
			c.fails(t, exitUsage, test.words+"|--help", strings.Fields(test.args)...)
		}
	}
	if after := readFolder(t, c.dir); fmt.Sprint(before) != fmt.Sprint(after) {
		t.Errorf("a mistake has changed something: got %v, want %v", fmt.Sprint(before), fmt.Sprint(after))
	}
}

func TestFailuresEndWithOne(t *testing.T) {
	c := newStore(t)
	c.ok(t, "backup", "taken.db")
	for i, test := range []struct{ args, words string }{
		{"user add anna --no-password", "anna"},
		{"user add zoe --password short", "password|8"},
		{"user add zoe --password-file missing.txt", "--password-file|missing.txt"},
		{"user disable noah", "noah"},
		{"user delete noah", "noah"},
		{"user update noah --role admin", "noah"},
		{"user update anna --role user", "last admin"},
		{"user update ben --name anna", "anna"},
		{"user disable anna", "last admin"},
		{"user delete ben", "ben"},
		{"user passwd noah --no-password", "noah"},
		{"token add --user noah --name x", "noah"},
		{"token add --user ben --name x --scope admin", "admin"},
		{"token add --user ben --name x --scope cooking", "cooking"},
		{"token delete mcp_none --user anna", "mcp_none"},
		{"client add --user noah --redirect-uri https://a.example/b", "noah"},
		{"client add --user anna --redirect-uri http://a.example/b", "http://a.example/b|https"},
		{"client add --user anna --id https://a --redirect-uri https://a.example/b", "--id is"},
		{"client list --user noah", "noah"},
		{"client deactivate nothing", "nothing"},
		{"client regenerate-secret nothing", "nothing"},
		{"client list --db missing.db", "missing.db"},
		{"search x --user noah", "noah"},
		{"search x --user anna --project nothing", "nothing"},
		{"search x --user anna --sort sideways", "sideways"},
		{"search x --db missing.db", "missing.db|no store"},
		{"backup taken.db", "taken.db|exists"},
		{"backup no/folder/x.db", "no/folder"},
		{"restore taken.db", "souvenir.db|exists"},
		{"restore missing.db --db new.db", "missing.db"},
		{"export taken.db", "taken.db|exists"},
		{"import missing.jsonl", "missing.jsonl"},
		{"import taken.db --db new.db", ""},
		{"serve --db no/folder/x.db", "no/folder"},
		{"serve --listen 127.0.0.1:99999", "--listen"},
		{"mcp", "--user is missing|anna, ben"},
		{"mcp --user noah", "noah"},
		{"mcp --user anna --db no/folder/x.db", "no/folder"},
		{"mcp --read-only --user anna --db missing.db", "missing.db|no store"},
		{"check --db missing.db", "missing.db"},
		{"check --repair --db missing.db", "missing.db"},
		{"stats --db missing.db", "missing.db"},
		{"reindex --db missing.db", "missing.db"},
		{"purge --db missing.db", "missing.db"},
		{"user list --db missing.db", "missing.db"},
		{"backup new.db --db missing.db", "missing.db"},
	} {
		if longtest.Part(i, 1, 4) {
			c.fails(t, exitError, test.words, strings.Fields(test.args)...)
		}
	}
	if _, err := os.Stat(filepath.Join(c.dir, "missing.db")); err == nil {
		t.Error("a command that only reads has made a file, want an error")
	}
}

func TestNamedAloneItListsItsCommands(t *testing.T) {
	c := call{dir: t.TempDir()}
	page := c.ok(t)
	for _, name := range []string{"serve", "user", "token", "client", "search", "export", "import", "backup", "restore",
		"check", "reindex", "purge",
		"mcp", "stats", "health", "client-config", "version", "completion", "demo"} {
		if !strings.Contains(page, "\n  "+name+" ") {
			t.Errorf("the page does not name %s, want %q in the page:\n%s", name, "\n  "+name+" ", page)
		}
	}
}

func TestHelpAndVersionAreFoundInEveryWay(t *testing.T) {
	c := call{dir: t.TempDir(), env: []string{"SOUVENIR_VERSION=1.2.3", "SOUVENIR_HELP=perhaps"}}
	page := c.ok(t, "user", "add", "--help")
	for _, args := range [][]string{{"help", "user", "add"}, {"user", "add", "-h"}} {
		if got := c.ok(t, args...); got != page {
			t.Errorf("%v printed %q, want %v", args, got, page)
		}
	}
	if got := c.ok(t, "--version"); !strings.HasPrefix(got, "souvenir ") {
		t.Errorf("--version printed %q, want at its start \"souvenir \"", got)
	}
	if got := c.ok(t, "version"); !strings.HasPrefix(got, "souvenir ") {
		t.Errorf("version printed %q, want at its start \"souvenir \"", got)
	}
}

func TestCompletionScripts(t *testing.T) {
	c := call{dir: t.TempDir()}
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if script := c.ok(t, "completion", shell); !strings.Contains(script, "souvenir") {
			t.Errorf("the script for %s is %q, want in it \"souvenir\"", shell, script)
		}
	}
	if got := c.run(t, "__complete", "search", "--sort", "").stdout; !strings.Contains(got, "created_at_desc") {
		t.Errorf("--sort is completed to %q, want in it \"created_at_desc\"", got)
	}
}

func TestTheProgramShowsTheLicencesOfWhatItContains(t *testing.T) {
	got := call{dir: t.TempDir()}.ok(t, "version", "--licenses")
	for _, part := range []string{"the Go standard library", "modernc.org/sqlite v", "github.com/jackc/pgx/v5 v",
		"github.com/prometheus/client_golang v", "Apache License", "internal/embedding/static/LICENSES.txt"} {
		if !strings.Contains(got, part) {
			t.Errorf("the licences lack %q, want it", part)
		}
	}
}
