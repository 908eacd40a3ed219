package systemtest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/db"
)

// readableColumns are the columns that may hold users' texts in plain form, and what they hold. docs/sealing.md lists
// them as readable. The test fails for a column that is missing here, and for one that is here but holds no such text.
var readableColumns = map[string]string{
	"activity.action": "of a tool", "activity.client": "a program", "activity.tool": "a tool",
	"audit.actor": "a user's id", "audit.details": "a user's id", "audit.object": "a user's id",
	"external_identity.email": "an address", "external_identity.issuer": "a provider",
	"external_identity.subject": "an id there", "invitation.email": "an address",
	"invitation.note": "of an administrator", "memory.event_type": "a short word",
	"memory.state": "a short word", "oauth_client.client_id": "a program",
	"oauth_client.name": "a program", "oauth_client.redirect_uris": "a program",
	"project.uid": "a project's id", "project_invitation.invited": "the name of a user", "token.name": "a program",
	"token.projects": "a project's id", "trash.item": "a project's id", "trash.project": "a project's id",
	"users.email": "an address", "users.name": "a user's name", "users.name_key": "a user's name",
	"users.uid": "a user's id", "users.uid_key": "a user's id",
}

// textsInEachField stores a marked text in each field that takes one, and searches all columns for the mark.
func textsInEachField(s *safe) {
	store := s.open(s.in, s.ring, Options{Documents: wordsReader{}})
	fillAll(s.T, store)
	if err := store.Close(); err != nil {
		s.Fatal(err)
	}
	found := s.columnsWith("zebra")
	for column, values := range found {
		if readableColumns[column] == "" {
			s.Errorf("%s: got %q, want it sealed", column, values)
		}
	}
	for _, column := range slices.Sorted(maps.Keys(readableColumns)) {
		if found[column] == nil {
			s.Errorf("%s: got no text, want %s: the list of readable columns names it", column, readableColumns[column])
		}
	}
}

// fillAll stores something of every kind: texts with the mark zebra and the name of their field. The store needs a
// document reader.
func fillAll(t *testing.T, store *Store) {
	t.Helper()
	ctx := t.Context()
	must := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	_, err := store.AddCollection(ctx, NewCollection{Name: "zebra collection", Description: "zebra description"})
	must("AddCollection", err)
	_, err = store.AddProject(ctx, NewProject{ID: "zebra-project-id", Name: "zebra project"})
	must("AddProject", err)
	_, err = store.UpdateProject(ctx, ProjectRef{ID: "zebra-project-id"}, ProjectUpdate{Name: new("zebra renamed")})
	must("UpdateProject", err)
	memory := func(name string) NewMemory {
		return NewMemory{Content: "zebra content " + name, Collection: "zebra collection", ProjectID: "zebra-project-id",
			Tags: []string{"zebra tag", "module:zebra"}, Key: "zebra key " + name, EventType: "zebra event",
			State: "zebra state", Metadata: map[string]any{"zebra metadata key": "zebra metadata value",
				"module_name": "zebra module", "conversation_id": "zebra conversation", "speaker": "zebra speaker"}}
	}
	kept, trashed := mustAdd(t, store, memory("kept")), mustAdd(t, store, memory("trashed"))
	_, err = store.UpdateMemory(ctx, kept.ID, MemoryUpdate{Content: new("zebra changed")})
	must("UpdateMemory", err)
	must("DeleteMemory", store.DeleteMemory(ctx, trashed.ID, nil))
	_, err = store.AddMemory(ctx, NewMemory{Content: "zebra rule", ProjectID: "zebra-project-id",
		EventType: EventProjectRule, RuleType: RuleDo})
	must("AddMemory of a rule", err)
	_, err = store.SetTodo(ctx, NewTodo{ProjectID: "zebra-project-id",
		Content: "## Constitution\n## Spec\n## Plan\n## Tasks\n- [ ] T1 zebra task\n## Gaps\n"})
	must("SetTodo", err)
	_, err = store.Conversation("zebra talk").Append(ctx, Turn{Role: "user", Speaker: "zebra person",
		Content: "zebra said", Key: "zebra turn"})
	must("AddTurns", err)
	file := NewFile{Filename: "zebra.words", Description: "zebra file", Category: "zebra category",
		Tags: []string{"zebra file tag"}}
	f := mustAddFile(t, store, file, "the zebra of the file")
	file.Filename = "zebra trashed.words"
	file.MIMEType = "application/x-zebra"
	must("DeleteFile", store.DeleteFile(ctx, mustAddFile(t, store, file, "x").ID, nil))
	mustAddFile(t, store, file, "y")
	waiting, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	_, err = store.WaitIndexed(waiting, f.ID)
	must("WaitIndexed", err)
	for _, name := range []string{"zebra gone", "zebra going"} {
		_, err = store.AddCollection(ctx, NewCollection{Name: name, Description: "zebra description"})
		must("AddCollection", err)
		mustAdd(t, store, NewMemory{Content: "zebra of " + name, Collection: name, ProjectID: name})
		must("DeleteCollection", store.DeleteCollection(ctx, name, &DeletionOptions{WithMemories: true}))
		must("DeleteProject", store.DeleteProject(ctx, ProjectRef{ID: name}, &DeletionOptions{WithMemories: true}))
	}
	_, err = store.SetPreferences(ctx, map[string]any{"zebra preference": "zebra value"})
	must("SetPreferences", err)
	fillAccounts(ctx, store, must)
	must("Flush", store.Upkeep().RecordActivity(ctx, NewActivity{Client: "zebra client", Tool: "zebra tool",
		Action: "zebra action", MemoryID: kept.ID}))
	_, err = store.Search(ctx, Query{Text: "zebra"})
	must("Search", err)
}

// fillAccounts does so for accounts.
func fillAccounts(ctx context.Context, store *Store, must func(what string, err error)) {
	accounts := store.Accounts()
	u, err := accounts.AddUser(ctx, NewUser{ID: "zebra-id", Name: "zebra name", Email: "zebra@example.com",
		Role: RoleAdmin, Identity: Identity{Issuer: "https://zebra.example.com", Subject: "zebra subject",
			Email: "zebra@example.com"}})
	must("AddUser", err)
	_, err = accounts.AddToken(ctx, NewToken{Name: "zebra token", Projects: []string{"zebra-project-id"}})
	must("AddToken", err)
	_, err = accounts.AddInvitation(ctx, NewInvitation{Email: "zebra@example.com", Note: "zebra note"})
	must("AddInvitation", err)
	_, err = store.AddMember(ctx, NewMember{Project: ProjectRef{ID: "zebra-project-id"}, User: "zebra name",
		Role: MemberWriter})
	must("AddMember", err)
	view := store.As(Access{User: LocalUser})
	_, err = view.AddMember(ctx, NewMember{Project: ProjectRef{ID: "zebra-project-id"}, User: "zebra unknown",
		Role: MemberReader})
	must("AddMember through a view", err)
	_, err = store.As(Access{User: u.ID}).Accounts().AddClient(ctx, NewClient{ID: "zebra-client",
		Name: "zebra application", RedirectURIs: []string{"https://zebra.example.com/"}})
	must("AddClient", err)
	_, err = accounts.RegisterClient(ctx, ClientRegistration{ClientName: "zebra registered",
		RedirectURIs: []string{"https://zebra.example.com/"}})
	must("RegisterClient", err)
}

// columnsWith returns the columns of all tables that hold a text, in any case, with the values.
func (s *safe) columnsWith(text string) map[string][]string {
	s.Helper()
	engine, err := s.in.engine(true)
	if err != nil {
		s.Fatal(err)
	}
	defer engine.Close()
	found := map[string][]string{}
	if err := engine.Read(s.Context(), func(tx db.Tx) error {
		names, err := db.Column[string](tx, s.in.columns())
		if err == nil && len(names) < 100 {
			err = fmt.Errorf("there are %d columns: the test looks in the wrong place", len(names))
		}
		for _, name := range names {
			if err != nil {
				return err
			}
			table, column, _ := strings.Cut(name, ".")
			var values []string
			values, err = db.Column[string](tx, fmt.Sprintf(`SELECT CAST("%s" AS TEXT) FROM "%s" WHERE "%[1]s" IS NOT NULL`,
				column, table))
			for _, v := range values {
				hex := fmt.Sprintf("%x", text) // PostgreSQL shows bytes like this
				if strings.Contains(strings.ToLower(v), text) || strings.Contains(v, hex) {
					found[name] = append(found[name], v)
				}
			}
		}
		return err
	}); err != nil {
		s.Fatal(errors.Join(errors.New("columns"), err))
	}
	return found
}
