package systemtest

import (
	"errors"
	"slices"
	"strings"
	"testing"

	. "github.com/souvenir-ai/souvenir"
)

// neighbourhood is a store of several users, some of whose projects are shared:
//
//	alice   owns shared (bob and frank read, carol writes, dave owns it, too) and secretplan
//	carol   has her own project with the id shared
//	eve     owns a project with the id shared; frank reads this one and alice's
//
// All of them have accounts. The namespace of another application has the same users, ids and names, with other
// contents.
type neighbourhood struct {
	store    *Store
	ids      map[string]string // memory name -> id
	twins    []string          // ids of the other application's memories
	contents map[string]string
	built    database // to copy
}

// neighbours are the memories, in the order in which they are stored. The name is a word of the content, the tag and
// the metadata, so a user who may not see the memory must not find its name in any answer.
var neighbours = []struct {
	name       string
	user       string
	collection string
	project    string
	related    []string
}{
	{name: "carolown", user: "carol", collection: "umbrella", project: "shared"},
	{name: "alicebench", user: "alice", collection: "garden"},
	{name: "alicesafe", user: "alice", collection: "garden", project: "secretplan"},
	{name: "aliceplan", user: "alice", collection: "ledgerroom", project: "secretplan", related: []string{"alicesafe"}},
	{name: "aliceopen", user: "alice", collection: "garden", project: "shared",
		related: []string{"alicesafe", "alicebench"}},
	{name: "alicemoved", user: "alice", collection: "garden", project: "secretplan"}, // into shared, later
	{name: "bobdiary", user: "bob", collection: "skiff", related: []string{"aliceopen"}},
	{name: "carolreply", user: "carol", collection: "umbrella", project: "alice/shared", related: []string{"aliceopen"}},
	{name: "eveopen", user: "eve", collection: "pickaxe", project: "shared"},
	{name: "evediary", user: "eve", collection: "pickaxe"},
	{name: "frankdiary", user: "frank", collection: "moonlight"},
}

// ownerOf returns the owner of a memory: in a project, the project's owner.
func ownerOf(user, project string) string {
	if owner, _, shared := strings.Cut(project, "/"); shared {
		return owner
	}
	return user
}

// hasCollection reports whether a user has a collection, or would get it because others have stored under that name
// into a project of the user.
func hasCollection(user, name string) bool {
	for _, m := range neighbours {
		if m.collection == name && ownerOf(m.user, m.project) == user {
			return true
		}
	}
	return false
}

// accounts are the account names of the users by id. A user who shares no project with another one must not find that
// name in any answer.
var accounts = map[string]string{"alice": "Atherton", "bob": "Bellamy", "carol": "Carraway", "dave": "Dunmore",
	"eve": "Eastlake", "frank": "Fairfax"}

// neighbourProject is a project. Everyone who sees its memories sees the project and its members.
type neighbourProject struct {
	owner, id string
	memory    string   // a memory in it
	people    []string // "user role", in order
}

func (p neighbourProject) ref() string { return p.owner + "/" + p.id }

// role returns a user's role in the project, or "".
func (p neighbourProject) role(user string) MemberRole {
	for _, line := range p.people {
		if name, role, _ := strings.Cut(line, " "); name == user {
			return MemberRole(role)
		}
	}
	return ""
}

var neighbourProjects = []neighbourProject{
	{"alice", "shared", "aliceopen", []string{"alice owner", "bob reader", "carol writer", "dave owner", "frank reader"}},
	{"alice", "secretplan", "alicesafe", []string{"alice owner"}},
	{"carol", "shared", "carolown", []string{"carol owner"}},
	{"eve", "shared", "eveopen", []string{"eve owner", "frank reader"}},
}

// openNeighbourhood opens a fresh copy of the neighbourhood.
func openNeighbourhood(t *testing.T, like neighbourhood, indexMemory int64) neighbourhood {
	t.Helper()
	like.store = openWords(t, like.built.copied(t), Options{IndexMemory: indexMemory})
	return like
}

// buildNeighbourhood stores everything and closes the store.
func buildNeighbourhood(t *testing.T, empty database) neighbourhood {
	t.Helper()
	built := empty.copied(t)
	n := neighbourhood{store: openWords(t, built, Options{}), built: built, ids: map[string]string{},
		contents: map[string]string{}}
	for user, name := range accounts {
		mustAddUser(t, n.store, NewUser{ID: user, Name: name})
	}
	for _, m := range neighbours {
		view := n.store.As(Access{User: m.user})
		if _, err := view.GetCollection(t.Context(), m.collection); errors.Is(err, ErrNotFound) {
			mustAddCollection(t, view, NewCollection{Name: m.collection, Description: "describes" + m.collection})
		}
		var related []string
		for _, r := range m.related {
			related = append(related, n.ids[r])
		}
		n.contents[m.name] = m.name + " tells of the common kettle"
		added := mustAdd(t, view, NewMemory{
			Collection: m.collection, Content: "draft of " + n.contents[m.name], ProjectID: m.project,
			Tags:    []string{"tag" + m.name, "everyone"},
			Related: related, ShownMetadata: map[string]any{"key": "value" + m.name, "module_name": "module" + m.name},
		})
		n.ids[m.name] = added.ID
		patch := map[string]any{}
		if m.name == "alicemoved" {
			patch["project_id"] = "shared"
		}
		final := n.contents[m.name]
		if _, err := view.UpdateMemory(t.Context(), added.ID,
			MemoryUpdate{Content: &final, ShownMetadata: patch}); err != nil {
			t.Fatal(err)
		}
		switch m.name {
		case "aliceopen":
			share(t, n.store, m.user, "shared", "bob", MemberReader)
			share(t, n.store, m.user, "shared", "carol", MemberWriter)
			share(t, n.store, m.user, "shared", "dave", MemberOwner)
			share(t, n.store, m.user, "shared", "frank", MemberReader)
		case "eveopen":
			share(t, n.store, m.user, "shared", "frank", MemberReader)
		}
	}
	n.twins = buildTwin(t, n.store)
	if err := n.store.Close(); err != nil {
		t.Fatal(err)
	}
	return n
}

// nextDoor is the namespace of the other application, and adjacent a word in all of its data.
const nextDoor, adjacent = "next door", "adjacent"

// buildTwin stores the data of the other application, and returns the ids of its memories.
func buildTwin(t *testing.T, s *Store) (ids []string) {
	t.Helper()
	for user, name := range accounts {
		if _, err := s.Accounts().Namespace(nextDoor).AddUser(t.Context(), NewUser{ID: user, Name: name,
			Email: adjacent + "@example.com"}); err != nil {
			t.Fatal(err)
		}
	}
	byName := map[string]string{}
	for _, m := range neighbours {
		view := s.As(Access{User: m.user, Namespace: nextDoor})
		if _, err := view.GetCollection(t.Context(), m.collection); errors.Is(err, ErrNotFound) {
			mustAddCollection(t, view, NewCollection{Name: m.collection, Description: adjacent})
		}
		var related []string
		for _, r := range m.related {
			related = append(related, byName[r])
		}
		added := mustAdd(t, view, NewMemory{
			Collection: m.collection, Content: adjacent + " tells of the common kettle", ProjectID: m.project,
			Key:  map[string]string{"aliceopen": "the key of alice"}[m.name],
			Tags: []string{"tag" + m.name, "everyone"}, Related: related,
			ShownMetadata: map[string]any{"key": adjacent, "module_name": "module" + m.name},
		})
		byName[m.name], ids = added.ID, append(ids, added.ID)
		switch m.name {
		case "aliceopen":
			shareApart(t, s, "alice", "bob", MemberReader)
			shareApart(t, s, "alice", "carol", MemberWriter)
			shareApart(t, s, "alice", "dave", MemberOwner)
			shareApart(t, s, "alice", "frank", MemberReader)
		case "eveopen":
			shareApart(t, s, "eve", "frank", MemberReader)
		case "aliceplan":
			if _, err := view.SetRule(t.Context(), NewRule{ProjectID: m.project, Type: RuleDo,
				Content: adjacent}); err != nil {
				t.Fatal(err)
			}
			if _, err := view.SetRule(t.Context(), NewRule{Type: RuleDont, Content: adjacent}); err != nil {
				t.Fatal(err)
			}
			if _, err := view.SetIdentityMemory(t.Context(), IdentityMemory{Content: adjacent}); err != nil {
				t.Fatal(err)
			}
			if _, err := view.Conversation("thread").Append(t.Context(), Turn{Role: "user", Content: adjacent}); err != nil {
				t.Fatal(err)
			}
			if _, err := view.AddFile(t.Context(), NewFile{Filename: adjacent + ".txt"},
				strings.NewReader(adjacent)); err != nil {
				t.Fatal(err)
			}
			gone := mustAdd(t, view, NewMemory{Content: adjacent + " in the trash"})
			if err := view.DeleteMemory(t.Context(), gone.ID, nil); err != nil {
				t.Fatal(err)
			}
			if _, err := view.SetPreferences(t.Context(), map[string]any{"like": adjacent}); err != nil {
				t.Fatal(err)
			}
			if err := s.Upkeep().RecordActivity(t.Context(), NewActivity{Tool: adjacent,
				Principal: Principal{Access: view.Access()}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	return ids
}

// shareApart makes a user a member of another user's project "shared" in the other application, by an invitation and
// its acceptance.
func shareApart(t *testing.T, s *Store, owner, user string, role MemberRole) {
	t.Helper()
	if _, err := s.As(Access{User: owner, Namespace: nextDoor}).AddMember(t.Context(),
		NewMember{Project: ProjectRef{ID: "shared"}, User: user, Role: role}); err != nil {
		t.Fatal(err)
	}
	invited := s.As(Access{User: user, Namespace: nextDoor}).Accounts()
	waiting, err := invited.ProjectInvitations(t.Context())
	if err != nil || len(waiting) != 1 {
		t.Fatalf("got the invitations %+v, %v, want one", waiting, err)
	}
	if _, err := invited.AcceptProjectInvitation(t.Context(), waiting[0].ID); err != nil {
		t.Fatal(err)
	}
}

// share makes a user a member of another user's project, as an operator does.
func share(t *testing.T, operator *Store, owner, project, user string, role MemberRole) {
	t.Helper()
	if _, err := operator.AddMember(t.Context(),
		NewMember{Project: ProjectRef{ID: owner + "/" + project}, User: user, Role: role}); err != nil {
		t.Fatal(err)
	}
}

// visitor is a view of the neighbourhood and what it may do.
type visitor struct {
	name        string
	access      Access
	sees        []string // memories
	changes     []string // those of them that it may change
	collections []string // by name
	described   []string // collections with a visible description
	adds        error    // the error for adding a memory without a project
	knows       []string // further words that it may see
}

var (
	aliceAll  = []string{"alicebench", "alicemoved", "aliceopen", "aliceplan", "alicesafe", "carolreply"}
	sharedAll = []string{"alicemoved", "aliceopen", "carolreply"}
)

var visitors = []visitor{
	{name: "the owner", access: Access{User: "alice"}, sees: aliceAll, changes: aliceAll,
		collections: []string{"garden", "ledgerroom", "umbrella"}, described: []string{"garden", "ledgerroom"},
		knows: []string{"secretplan"}},
	{name: "a stranger", access: Access{User: "eve"}, sees: []string{"evediary", "eveopen"},
		changes:     []string{"evediary", "eveopen"},
		collections: []string{"pickaxe"}, described: []string{"pickaxe"}},
	{name: "a new user", access: Access{User: "noah"}},
	{name: "a reader", access: Access{User: "bob"}, sees: []string{"alicemoved", "aliceopen", "bobdiary", "carolreply"},
		changes:     []string{"bobdiary"},
		collections: []string{"garden", "skiff", "umbrella"}, described: []string{"skiff"}},
	{name: "a writer", access: Access{User: "carol"}, sees: []string{"alicemoved", "aliceopen", "carolown", "carolreply"},
		changes: []string{"alicemoved", "aliceopen", "carolown", "carolreply"}, collections: []string{"garden", "umbrella"},
		described: []string{"umbrella"}},
	{name: "another owner", access: Access{User: "dave"}, sees: sharedAll, changes: sharedAll,
		collections: []string{"garden", "umbrella"}},
	{name: "a reader of two projects of one id", access: Access{User: "frank"},
		sees:    []string{"alicemoved", "aliceopen", "carolreply", "eveopen", "frankdiary"},
		changes: []string{"frankdiary"}, collections: []string{"garden", "umbrella", "pickaxe", "moonlight"},
		described: []string{"moonlight"}},

	{name: "the owner, for a project", access: Access{User: "alice", Projects: []string{"shared"}}, sees: sharedAll,
		changes:     sharedAll,
		collections: []string{"garden", "umbrella"}, described: []string{"garden"}},
	{name: "the owner, for another project", access: Access{User: "alice", Projects: []string{"secretplan"}},
		sees:    []string{"aliceplan", "alicesafe"},
		changes: []string{"aliceplan", "alicesafe"}, collections: []string{"garden", "ledgerroom"},
		described: []string{"garden", "ledgerroom"}, knows: []string{"secretplan"}},
	{name: "the owner, for no project", access: Access{User: "alice", Projects: []string{}}, adds: ErrForbidden},
	{name: "the owner, for an unknown project", access: Access{User: "alice", Projects: []string{"nothing"}}},
	{name: "a reader, for a project", access: Access{User: "bob", Projects: []string{"alice/shared"}}, sees: sharedAll,
		collections: []string{"garden", "umbrella"}, adds: ErrForbidden},
	{name: "a reader, for a project that is not shared",
		access: Access{User: "bob", Projects: []string{"alice/secretplan", "secretplan"}}, adds: ErrForbidden,
		knows: []string{"secretplan"}},
	{name: "a writer, for her own of two", access: Access{User: "carol", Projects: []string{"shared"}},
		sees: []string{"carolown"}, changes: []string{"carolown"},
		collections: []string{"umbrella"}, described: []string{"umbrella"}},
	{name: "a writer, for the other one", access: Access{User: "carol", Projects: []string{"alice/shared"}},
		sees: sharedAll, changes: sharedAll,
		collections: []string{"garden", "umbrella"}, described: []string{"umbrella"}},
	{name: "an id that fits two", access: Access{User: "frank", Projects: []string{"shared"}}, adds: ErrInvalid},
	{name: "an id that says which", access: Access{User: "frank", Projects: []string{"eve/shared"}},
		sees: []string{"eveopen"}, collections: []string{"pickaxe"}, adds: ErrForbidden},

	{name: "the owner, read-only", access: Access{User: "alice", ReadOnly: true}, sees: aliceAll,
		collections: []string{"garden", "ledgerroom", "umbrella"}, described: []string{"garden", "ledgerroom"},
		adds: ErrReadOnly, knows: []string{"secretplan"}},
	{name: "a writer, read-only and for a project",
		access: Access{User: "carol", Projects: []string{"alice/shared"}, ReadOnly: true}, sees: sharedAll,
		collections: []string{"garden", "umbrella"}, described: []string{"umbrella"}, adds: ErrReadOnly},
}

// hidden returns the words that must not appear in any answer.
func (v visitor) hidden(n neighbourhood) []string {
	words := append([]string{adjacent}, n.twins...)
	for _, m := range neighbours {
		if slices.Contains(v.sees, m.name) {
			continue
		}
		// Past versions begin with the same content, so the name is enough for them. An answer could also reveal the id.
		words = append(words, m.name, n.ids[m.name])
	}
	for _, c := range []string{"garden", "ledgerroom", "skiff", "umbrella", "pickaxe", "moonlight"} {
		if !slices.Contains(v.collections, c) {
			words = append(words, c)
		}
		if !slices.Contains(v.described, c) {
			words = append(words, "describes"+c)
		}
	}
	if !slices.Contains(v.knows, "secretplan") {
		words = append(words, "secretplan")
	}
	for user, name := range accounts {
		if user != v.access.User && !slices.ContainsFunc(neighbourProjects,
			func(p neighbourProject) bool { return v.seesProject(p) && p.role(user) != "" }) {
			words = append(words, name)
		}
	}
	return words
}

// seesProject reports whether a project and its members are visible to the visitor.
func (v visitor) seesProject(p neighbourProject) bool {
	return slices.Contains(v.sees, p.memory) && p.role(v.access.User) != ""
}
