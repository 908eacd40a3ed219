package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

// shown runs the program with its error output and, if asked, its standard output on a terminal, and returns what the
// terminal shows.
func shown(t *testing.T, c call, output bool, args ...string) (terminal, stdout string) {
	t.Helper()
	x, cmd := openTerminal(t), c.command(t.Context(), args...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, x.program
	if output {
		cmd.Stdout = x.program
	}
	_ = cmd.Run() // some tests want a failure
	if _, err := x.program.WriteString("the end\r\n"); err != nil {
		t.Fatal(err)
	}
	x.await(t, "the end", func() bool { return strings.Contains(x.text(), "the end\r") })
	return x.text(), out.String()
}

// Everything that may take long shows its progress on a terminal, and nothing in a pipe.
func TestLongWorkShowsHowFarItIs(t *testing.T) {
	longtest.Only(t)
	c := newStore(t)
	c.env = []string{"TERM=xterm", "NO_COLOR="}
	c.ok(t, "export", "--credentials", "in.jsonl")
	for i, test := range []struct{ args, stage, makes string }{
		{"check", "memories", ""},
		{"import in.jsonl", "import", ""},
		{"import in.jsonl --db imported.db", "check", "imported.db"},
		{"export out.jsonl", "memories", "out.jsonl"},
		{"backup taken.db", "copy", "taken.db"},
		{"copy --from souvenir.db --to copied.db", "compare memories", "copied.db"},
		{"restore copied.db --db restored.db", "copy", "restored.db"}, // the copy made last
		{"recover souvenir.db recovered.db", "read", "recovered.db"},
		{"reindex", "reindex", ""},
		{"purge --compact", "compacting …", ""},
		{"purge", "purging …", ""},
		{"audit verify", "verifying …", ""},
	} {
		args := strings.Fields(test.args)
		if test.stage != "compare memories" && !longtest.Part(i, 3, 9) {
			continue
		}
		if got := c.run(t, args...); got.code != exitOK || strings.Contains(got.stdout, "\r") || got.stderr != "" {
			t.Errorf("%s in a pipe: %+v; want status 0 and no progress", test.args, got)
		}
		if test.makes != "" {
			removeStore(t, filepath.Join(c.dir, test.makes))
		}
		if got, _ := shown(t, c, false, args...); !strings.Contains(got, "\r"+test.stage) {
			t.Errorf("%s on a terminal shows %q; want the stage %q", test.args, got, test.stage)
		}
	}
}

// So do deletions, without a count.
func TestDeletionsShowThatTheyRun(t *testing.T) {
	longtest.Only(t)
	c, anna, _ := trashed(t)
	c.env = []string{"TERM=xterm", "NO_COLOR="}
	for _, test := range []struct{ args, shows string }{
		{"trash restore --user anna " + anna[2], "\rrestoring …"},
		{"trash empty --yes --user anna " + anna[0], "\rerase        ░"},
		{"trash empty --yes --user anna", "\rerasing …"},
		{"user delete ben --with-memories", "\rdeleting …"},
	} {
		if got, _ := shown(t, c, false, strings.Fields(test.args)...); !strings.Contains(got, test.shows) {
			t.Errorf("%s on a terminal shows %q; want %q", test.args, got, test.shows)
		}
	}
}

// removeStore removes a store's file and its companions.
func removeStore(t *testing.T, path string) {
	t.Helper()
	for _, end := range []string{"", "-wal", "-shm"} {
		if err := os.Remove(path + end); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
}

// An export to standard output shows its progress if the output is a file; a pipe may lead to the same terminal.
func TestAnExportIntoAFileShowsHowFarItIs(t *testing.T) {
	c := newStore(t)
	x, cmd := openTerminal(t), c.command(t.Context(), "export")
	file, err := os.Create(filepath.Join(c.dir, "exported"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	cmd.Stdout, cmd.Stderr = file, x.program
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	x.await(t, "a stage", func() bool { return strings.Contains(x.text(), "\rmemories") })
	got, stdout := shown(t, c, false, "export")
	if strings.Contains(got, "\rmemories") || !strings.Contains(stdout, "kettle") {
		t.Errorf("an export into a pipe shows %q, want nothing", got)
	}
}

func TestColoursAreForTerminalsOnly(t *testing.T) {
	longtest.Only(t)
	c := newStore(t)
	const any = "\x1b["
	for i, test := range []struct{ args, painted string }{
		{"user list", "\x1b[1mNAME  ROLE"},
		{"check", "\x1b[32mok:\x1b[0m "},
		{"help", "\x1b[1mServer and clients:\x1b[0m"},
		{"help user add", "\x1b[36m--admin\x1b[0m"},
		{"user disable noah", "\x1b[1;31msouvenir:\x1b[0m "},
		{"user lisp", "\x1b[1;31msouvenir:\x1b[0m "},
	} {
		if !longtest.Part(i, 2, 3) {
			continue
		}
		args := strings.Fields(test.args)
		c.env = []string{"TERM=xterm", "NO_COLOR="}
		if got, _ := shown(t, c, true, args...); !strings.Contains(got, test.painted) {
			t.Errorf("%s on a terminal shows %q; want in it %q", test.args, got, test.painted)
		}
		if got := c.run(t, args...); strings.Contains(got.stdout+got.stderr, any) {
			t.Errorf("%s in a pipe prints %q; want no colours", test.args, got.stdout+got.stderr)
		}
		for _, env := range [][]string{{"TERM=xterm", "NO_COLOR=1"}, {"TERM=dumb", "NO_COLOR="}} {
			c.env = env
			if got, _ := shown(t, c, true, args...); strings.Contains(got, any) {
				t.Errorf("%s with %v shows %q; want no colours", test.args, env, got)
			}
		}
	}
}

// Colours take no columns: the columns of a table stay aligned.
func TestPaintTakesNoColumns(t *testing.T) {
	c := newStore(t)
	c.env = []string{"TERM=xterm", "NO_COLOR="}
	got, _ := shown(t, c, true, "help", "user")
	bare := c.ok(t, "help", "user")
	for _, sequence := range []string{"\x1b[1m", "\x1b[2m", "\x1b[36m", "\x1b[0m", "\r", "the end\n"} {
		got = strings.ReplaceAll(got, sequence, "")
	}
	if got != bare {
		t.Errorf("without paint the page is %q; want %q", got, bare)
	}
}
