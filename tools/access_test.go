package tools_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
	"github.com/souvenir-ai/souvenir/tools"
)

// outcomes are kinds of errors by persona. Personas without one succeed.
type outcomes map[string]souvenir.Kind

const (
	notFound  = souvenir.KindNotFound
	forbidden = souvenir.KindForbidden
	readOnly  = souvenir.KindReadOnly
)

// Who may not make a call that reads, sees private or shared data, or stores: the others may.
var (
	reads   = outcomes{"files": forbidden}
	private = outcomes{"reader": notFound, "writer": notFound, "stranger": notFound, "limited": notFound,
		"nothing": notFound, "files": forbidden}
	shared    = outcomes{"stranger": notFound, "nothing": notFound, "files": forbidden}
	writesNew = outcomes{"read-only": readOnly, "memories for reading": forbidden, "files": forbidden,
		"nothing": forbidden}
	writesShared = outcomes{"reader": forbidden, "read-only": readOnly, "memories for reading": forbidden,
		"files": forbidden, "stranger": notFound, "nothing": notFound}
	writesPrivate = outcomes{
		"reader": notFound, "writer": notFound, "stranger": notFound, "limited": notFound, "nothing": notFound,
		"read-only": readOnly, "memories for reading": forbidden, "files": forbidden,
	}
)

// with changes the outcome of one caller.
func with(o outcomes, who string, kind souvenir.Kind) outcomes {
	changed := outcomes{who: kind}
	for other, k := range o {
		if other != who {
			changed[other] = k
		}
	}
	return changed
}

// reaches are calls with the ids of anna's data and of her project, and who may not make them.
var reaches = []struct {
	name, tool, args string
	want             outcomes
}{
	{"list", "list_collections", ``, reads},
	{"create", "create_collection", `{"collection_name": "new"}`, with(writesNew, "limited", forbidden)},
	{"context", "memory", `{"action": "get_context", "query": "granite secretdiary secretvault secretrecipe", ` +
		`"project_id": "p-bridge", "detected_identity": {"name": "Sam"}}`, reads},
	{"context of everything", "memory", `{"action": "get_context", "query": "of anna"}`, reads},
	{"context of a private project", "memory", `{"action": "get_context", "project_id": "p-vault"}`, reads},
	{"store", "memory", `{"action": "store", "content": "of anna"}`, with(writesNew, "limited", "")},
	{"store into the shared project", "memory",
		`{"action": "store", "content": "The pillars are of grey stone.", "project_id": "anna/p-bridge"}`,
		outcomes{"reader": forbidden, "read-only": readOnly, "memories for reading": forbidden, "files": forbidden,
			"stranger": souvenir.KindInvalid, "nothing": forbidden}},
	{"store into a private project", "memory", `{"action": "store", "content": "x", "project_id": "p-vault"}`,
		with(writesNew, "limited", forbidden)},
	{"store into the work collection", "memory",
		`{"action": "store", "content": "x", "collection_name": "work", "project_id": "p-bridge"}`,
		outcomes{"reader": forbidden, "stranger": notFound, "nothing": forbidden, "read-only": readOnly,
			"memories for reading": forbidden, "files": forbidden}},
	{"store into a private collection", "memory",
		`{"action": "store", "content": "x", "collection_name": "empty", "project_id": "p-bridge"}`,
		outcomes{"reader": forbidden, "writer": notFound, "stranger": notFound, "nothing": forbidden,
			"read-only": readOnly, "memories for reading": forbidden, "files": forbidden}},
	{"store into an unknown collection", "memory",
		`{"action": "store", "content": "x", "collection_name": "nowhere", "project_id": "p-bridge"}`,
		outcomes{"owner": notFound, "reader": forbidden, "writer": notFound, "limited": notFound, "stranger": notFound,
			"nothing": forbidden, "read-only": readOnly, "memories for reading": forbidden, "files": forbidden}},
	{"store with links to private memories", "memory",
		`{"action": "store", "content": "x", "project_id": "p-bridge", "related_memory_ids": ["{diary}"]}`,
		outcomes{"reader": forbidden, "writer": notFound, "stranger": notFound, "limited": notFound, "nothing": forbidden,
			"read-only": readOnly, "memories for reading": forbidden, "files": forbidden}},
	{"search", "memory", `{"action": "search", "query": "granite secretdiary secretvault secretrecipe of anna", ` +
		`"limit": 100, "include_files": true}`, reads},
	{"search by time", "memory", `{"action": "search", "limit": 100}`, reads},
	{"search a private project", "memory", `{"action": "search", "project_id": "p-vault"}`, reads},
	{"search by filter", "memory", `{"action": "search", "filter": {"event_type": {"in": ["project-main", "IDENTITY"]}}}`,
		reads},
	{"search the work collection", "memory", `{"action": "search", "collection_name": "work"}`, shared},
	{"search a private collection", "memory", `{"action": "search", "collection_name": "empty"}`, private},
	{"retrieve of the project", "memory", `{"action": "retrieve", "id": "{main}"}`, shared},
	{"retrieve a private one", "memory", `{"action": "retrieve", "id": "{diary}"}`, private},
	{"retrieve from the wrong collection", "memory", `{"action": "retrieve", "id": "{diary}", "collection_name": "work"}`,
		with(with(with(private, "owner", notFound), "read-only", notFound), "memories for reading", notFound)},
	{"update of the project", "memory", `{"action": "update", "id": "{pillars}", "content": "of basalt"}`, writesShared},
	{"update a private one", "memory", `{"action": "update", "id": "{diary}", "state": "archived"}`, writesPrivate},
	{"update moves it out", "memory", `{"action": "update", "id": "{case}", "project_id": "p-elsewhere"}`,
		with(with(writesShared, "limited", forbidden), "writer", forbidden)},
	{"delete of the project", "memory", `{"action": "delete", "id": "{pillars}"}`, writesShared},
	{"delete a private one", "memory", `{"action": "delete", "id": "{diary}"}`, writesPrivate},
	{"rule of the project", "rules",
		`{"action": "store", "project_id": "anna/p-bridge", "rule_type": "do", "content": "Use grey stone."}`,
		outcomes{"reader": forbidden, "read-only": readOnly, "memories for reading": forbidden, "files": forbidden,
			"stranger": souvenir.KindInvalid, "nothing": forbidden}},
	{"general rule", "rules", `{"action": "store", "rule_type": "dont", "content": "No."}`,
		with(writesNew, "limited", forbidden)},
	{"todo", "todo", `{"action": "store", "project_id": "anna/p-bridge", "content": "## Constitution\n## Spec\n## ` +
		`Plan\n## Tasks\n## Gaps\n"}`,
		outcomes{"reader": forbidden, "read-only": readOnly, "memories for reading": forbidden, "files": forbidden,
			"stranger": souvenir.KindInvalid, "nothing": forbidden}},
	{"section", "todo", `{"action": "update_section", "project_name": "Bridge", "section": "gaps", "content": "none"}`,
		writesShared},
	{"task", "todo", `{"action": "complete", "project_name": "Bridge", "task_id": "T2"}`, writesShared},
	{"main memory", "get_project_main_memory", `{"project_name": "Bridge"}`, shared},
	{"private main memory", "get_project_main_memory", `{"project_id": "p-vault"}`, private},
	{"module", "get_module_state", `{"module_name": "pillars", "project_name": "Bridge"}`, reads},
	{"module anywhere", "get_module_state", `{"module_name": "pillars"}`, reads},
	{"upload", "upload_document", `{"filename": "a.txt", "content": "hello"}`,
		outcomes{"read-only": readOnly, "memories for reading": forbidden, "nothing": forbidden}},
	{"upload to the project", "upload_document", `{"filename": "a.txt", "content": "hello", "memory_id": "{main}"}`,
		outcomes{"reader": forbidden, "stranger": notFound, "nothing": notFound, "read-only": readOnly,
			"memories for reading": forbidden}},
	{"upload to a private memory", "upload_document", `{"filename": "a.txt", "content": "hello", "memory_id": "{diary}"}`,
		outcomes{"reader": notFound, "writer": notFound, "stranger": notFound, "limited": notFound, "nothing": notFound,
			"read-only": readOnly, "memories for reading": forbidden}},
	{"link a private file", "upload_document", `{"file_id": "{loose}", "memory_id": "{main}"}`,
		outcomes{"reader": notFound, "writer": notFound, "stranger": notFound, "limited": notFound, "nothing": notFound,
			"read-only": readOnly, "memories for reading": forbidden}},
}

// Everyone calls every tool and action with the ids of anna's data and of her project. world.call checks that no one
// sees anything that is not for them.
func TestEveryCallAnswersWithinTheCallersReach(t *testing.T) {
	t.Parallel()
	for i, c := range reaches {
		if !longtest.Part(i, 1, 8) {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			reads := slices.ContainsFunc([]string{"list", "search", "retrieve", "get_"},
				func(action string) bool {
					return strings.HasPrefix(c.tool, action) || strings.Contains(c.args, `"`+action)
				})
			var shared *world
			for _, who := range slices.Sorted(maps.Keys(personas)) {
				if shared == nil {
					shared = newWorld(t)
				}
				t.Run(who, func(t *testing.T) {
					_, err := shared.call(who, c.tool, c.args)
					if err == nil && !reads { // the world has changed
						shared = nil
					}
					var known *souvenir.Error
					if errors.As(err, &known) != (c.want[who] != "") || known != nil && known.Kind != c.want[who] {
						t.Errorf("%s %s gives %v, want the kind %q", c.tool, c.args, err, c.want[who])
					}
				})
			}
		})
	}
}

func TestAMissingScopeIsNamed(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct {
		who, tool, args string
		want            souvenir.Scope
	}{
		{"files", "list_collections", ``, souvenir.ScopeMemoryRead},
		{"files", "memory", `{"action": "get_context"}`, souvenir.ScopeMemoryRead},
		{"files", "memory", `{"action": "delete"}`, souvenir.ScopeMemoryWrite},
		{"memories for reading", "memory", `{"action": "store", "content": "x"}`, souvenir.ScopeMemoryWrite},
		{"memories for reading", "upload_document", `{}`, souvenir.ScopeFilesWrite},
	} {
		_, err := w.call(c.who, c.tool, c.args)
		var missing *tools.MissingScope
		if !errors.Is(err, souvenir.ErrForbidden) || !errors.As(err, &missing) || missing.Scope != c.want {
			t.Errorf("%s %s as %s gives %v, want ErrForbidden naming %s", c.tool, c.args, c.who, err, c.want)
		}
	}
}
