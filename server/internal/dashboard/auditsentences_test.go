package dashboard_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/dashboard/upkeep"
)

// Every action of the table in docs/audit.md has a sentence without unfilled placeholders, and each sentence belongs to
// an action of the table.
func TestEveryActionHasASentence(t *testing.T) {
	document, err := os.ReadFile("../../../docs/audit.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(document), "| action | details |")
	table, _, _ = strings.Cut(table, "\n\n")
	known := map[string]bool{}
	for _, row := range strings.Split(table, "\n") {
		actions, _, _ := strings.Cut(strings.TrimPrefix(row, "|"), "|")
		for _, found := range regexp.MustCompile("`([a-z.]+)`").FindAllStringSubmatch(actions, -1) {
			known[found[1]] = true
			entry := souvenir.AuditEntry{Action: found[1], Object: "id", Details: map[string]any{}}
			said := upkeep.AuditText(entry, func(string) string { return "Anna {role}" }, "")
			if strings.HasPrefix(said, "did ") || strings.ContainsAny(strings.ReplaceAll(said, "Anna {role}", ""), "{}") {
				t.Errorf("%s: got %q, want a sentence", found[1], said)
			}
		}
	}
	if len(known) < 30 {
		t.Fatalf("the table has %d actions, want 30 or more", len(known))
	}
	names := &upkeep.AuditNames{}
	if said := upkeep.AuditText(souvenir.AuditEntry{Action: "member.add", Details: map[string]any{"role": "writer"}},
		names.Of, ""); said != "invited someone to a project, as writer" {
		t.Errorf("an invitation by a user without an account: got %q, want someone", said)
	}
	for action := range upkeep.AuditSentences {
		if !known[action] {
			t.Errorf("there is a sentence for %s, which docs/audit.md does not have", action)
		}
	}
}

// A sentence names its object, if the name is known.
func TestSentencesNameTheirObjects(t *testing.T) {
	nameOf := func(string) string { return "Anna" }
	for _, test := range []struct{ action, kind, thing, want string }{
		{"token.add", "token", "Cursor {role}", "created the token “Cursor {role}” of Anna"},
		{"token.add", "token", "", "created a token of Anna"},
		{"client.secret", "client", "Claude", "gave the OAuth client “Claude” a new secret"},
		{"member.add", "project", "berth", "invited Anna to the project “berth”"},
		{"retention.set", "collection", "notes", "changed how long memories stay in the collection “notes”"},
		{"purge", "store", "", "cleaned up"},
	} {
		e := souvenir.AuditEntry{Action: test.action, Kind: test.kind, Details: map[string]any{}}
		if got := upkeep.AuditText(e, nameOf, test.thing); got != test.want {
			t.Errorf("%s of %q: got %q, want %q", test.action, test.thing, got, test.want)
		}
	}
}
