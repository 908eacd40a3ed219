package web

import (
	"slices"
	"testing"
)

func TestNamesOfClients(t *testing.T) {
	for client, want := range map[string]string{"cursor/2.0.64": "Cursor", "claude-code/1.0.9": "Claude Code",
		"Claude-User": "Claude", "Kite/2.1": "Kite",
		"my tool": "my tool", "a/b": "a/b", "": "", "Mozilla/5.0 (X11; Linux) Firefox/140.0": "Firefox on Linux"} {
		if got := ClientName(client); got != want {
			t.Errorf("%q is %q, want %q", client, got, want)
		}
	}
	given := []string{"cursor/1.0", "cursor/2.0", "claude-code/1"}
	if got, want := ClientNames(given), []string{"Cursor 1.0", "Cursor 2.0", "Claude Code"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
