package main

import (
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
	"github.com/souvenir-ai/souvenir/server"
)

// The recorded calls are limited by the flags, or not recorded at all.
func TestServeBoundsRecordedCalls(t *testing.T) {
	longtest.Only(t)
	c := newStore(t)
	token := strings.TrimSpace(c.ok(t, "token", "add", "--user", "anna", "--name", "test"))
	calls := func(flags ...string) int {
		t.Helper()
		p := c.start(t, append([]string{"serve", "--listen", "127.0.0.1:0"}, flags...)...)
		for range 5 {
			if status, body := request(t, "GET", p.url+"/api/projects", token, nil); status != http.StatusOK {
				t.Fatalf("%d %s; want %v", status, body, http.StatusOK)
			}
		}
		time.Sleep(200 * time.Millisecond) // for some purges
		if code, _ := p.stop(t); code != exitOK {
			t.Fatalf("exit status %d: %s; want %v", code, p.stderr, exitOK)
		}
		store, err := souvenir.Open(t.Context(), filepath.Join(c.dir, "souvenir.db"), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		page, err := store.Insights().ActivityPage(t.Context(), souvenir.ActivityQuery{})
		if err != nil {
			t.Fatal(err)
		}
		return len(page.Activities)
	}
	if n := calls("--no-activity"); n != 0 {
		t.Errorf("%d calls are recorded without being wanted", n)
	}
	if n := calls(); n != 5 {
		t.Errorf("%d calls are recorded, not 5, want 5", n)
	}
	// Calls that wait in memory are written when the server ends, so there may be a few more than allowed.
	if n := calls("--max-activity", "1", "--purge-every", "20ms"); n > 6 {
		t.Errorf("%d calls are kept, want at most 6", n)
	}
	if n := calls("--no-activity", "--keep-activity", "1ms", "--purge-every", "20ms"); n != 0 {
		t.Errorf("%d calls are kept that are too old, want 0", n)
	}
}

// Admins can see the server's settings, without secrets.
func TestListedSettings(t *testing.T) {
	command := (&cli{}).serveCommand()
	if err := command.ParseFlags([]string{"--max-file", "5MiB", "--file-quota", "1GiB", "--admin-password", rightSecret,
		"--oidc-client-secret",
		rightSecret}); err != nil {
		t.Fatal(err)
	}
	found := map[string]server.Setting{}
	for _, s := range listedSettings(command.Flags()) {
		found[s.Name] = s
		if strings.Contains(s.Value+s.Meaning, rightSecret) || s.Meaning == "" {
			t.Errorf("got %+v, want no %q in it and a meaning that is not empty", s, rightSecret)
		}
	}
	if s := found["--max-file"]; s.Value != "5MiB" || !s.Given || strings.Contains(s.Meaning, "`") {
		t.Errorf("got %+v, want the value \"5MiB\", given, and no \"`\" in the meaning", s)
	}
	if s := found["--grace"]; s.Value != "30s" || s.Given {
		t.Errorf(`got %+v, want the default "30s", not given`, s)
	}
	if s := found["--admin-password"]; s.Value == "" || !s.Given {
		t.Errorf("got %+v, want a value, given", s)
	}
	if names := changeableHere(command.Flags()); len(names) != 8 || slices.Contains(names, souvenir.SettingFileBytes) {
		t.Errorf("got %v to be changed on the dashboard, want all but file_bytes, whose flag is given", names)
	}
	lookup := func(name string) (string, bool) { return map[string]string{"SOUVENIR_TRASH_DAYS": "9"}[name], true }
	if err := (&cli{lookup: lookup}).applyEnvironment(command); err != nil {
		t.Fatal(err)
	}
	if names := changeableHere(command.Flags()); len(names) != 7 || slices.Contains(names, souvenir.SettingTrash) {
		t.Errorf("got %v to be changed, want the trash left out, too: its variable is set", names)
	}
	if err := command.ParseFlags([]string{"--backup-to", t.TempDir(), "--index-memory", "1GiB"}); err != nil {
		t.Fatal(err)
	}
	if names := changeableHere(command.Flags()); !slices.Contains(names, souvenir.SettingBackups) ||
		!slices.Contains(names, souvenir.SettingKept) || slices.Contains(names, souvenir.SettingIndex) {
		t.Errorf("got %v to be changed, want the schedule of backups, and not the index, whose flag is given", names)
	}
	if names := changeable((&cli{}).mcpCommand().Flags()); slices.Contains(names, souvenir.SettingIndex) ||
		slices.Contains(names, souvenir.SettingKept) || !slices.Contains(names, souvenir.SettingTrash) {
		t.Errorf("got %v for mcp, want the trash, and neither the index nor backups", names)
	}
	for _, s := range listedSettings(command.Flags()) {
		if want := map[string]string{"--trash-days": "SOUVENIR_TRASH_DAYS"}[s.Name]; s.Variable != want {
			t.Errorf("%s says that the variable %q set it, want %q", s.Name, s.Variable, want)
		}
	}
	if _, ok := found["--help"]; ok {
		t.Error("got --help among the settings, want it left out")
	}
}

const rightSecret = "nine blue kettles"
