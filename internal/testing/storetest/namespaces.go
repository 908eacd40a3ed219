package storetest

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir"
)

func namespaces() concept {
	return concept{"Namespaces", []promise{
		{"a user of one namespace finds nothing of the user of the same id in another", namespacesApart},
		{"what one application does changes no answer of another", namespacesUnmoved},
		{"what one deletes and restores is its own", namespacesTrash},
		{"names of accounts, passwords, sign-ins and tokens belong to one namespace", namespacesAccounts},
		{"a project has members of its owner's namespace only", namespacesMembers},
		{"deleting a user leaves the one of the same id", namespacesDelete},
		{"recorded calls are those of the namespace", namespacesActivity},
		{"a namespace has a name that can be one", namespacesNamed},
		{"an export keeps namespaces apart, and an import brings them back", namespacesExport},
		{"one namespace can be exported alone, and imported into another", namespacesMoved},
		{"an import replaces nothing of another namespace", namespacesKept},
		{"what an application made does not move into a namespace without it", namespacesGrants},
		{"an import takes no id of what another namespace has in its trash", namespacesTrashed},
	}}
}

const (
	shop = "shop"
	crm  = "crm"
)

// in returns the fixture through the view of a user of a namespace.
func (f *fixture) in(namespace, user string) *fixture {
	return f.as(souvenir.Access{Namespace: namespace, User: user})
}

// equip stores one of everything for a user. All users get the same names; the contents say whose they are.
func (f *fixture) equip(whose string) (memory souvenir.StoredMemory, file souvenir.File) {
	f.Helper()
	f.addCollection(souvenir.NewCollection{Name: "notes", Description: "of " + whose})
	_, err := f.store.AddProject(f.ctx, souvenir.NewProject{ID: "p", Name: "Plan"})
	f.check("AddProject", err)
	memory = f.add(souvenir.NewMemory{Collection: "notes", Content: "a kettle of " + whose, Key: "k", Tags: []string{"t"},
		ProjectID: "p", EventType: "project-main", Metadata: map[string]any{"of": whose}})
	_, err = f.store.SetRule(f.ctx, souvenir.NewRule{Type: souvenir.RuleDo, Content: "rule of " + whose})
	f.check("SetRule", err)
	_, err = f.store.SetRule(f.ctx, souvenir.NewRule{ProjectID: "p", Type: souvenir.RuleDo, Content: "plan of " + whose})
	f.check("SetRule", err)
	_, err = f.store.SetTodo(f.ctx, souvenir.NewTodo{ProjectID: "p", Content: document("- [ ] one")})
	f.check("SetTodo", err)
	_, err = f.store.SetIdentityMemory(f.ctx, souvenir.IdentityMemory{Content: "identity of " + whose})
	f.check("SetIdentityMemory", err)
	_, err = f.store.Conversation("c").Append(f.ctx, souvenir.Turn{Role: "user", Content: "turn of " + whose})
	f.check("Append", err)
	_, err = f.store.SetPreferences(f.ctx, map[string]any{"of": whose})
	f.check("SetPreferences", err)
	file, err = f.store.AddFile(f.ctx, souvenir.NewFile{Filename: "f.txt", MemoryID: memory.ID},
		strings.NewReader("file of "+whose))
	f.check("AddFile", err)
	return memory, file
}

// holdings returns everything that a user can see, by call.
func (f *fixture) holdings() map[string]string {
	f.Helper()
	all := map[string]string{}
	note := func(what string, answer any, err error) {
		f.Helper()
		f.check(what, err)
		all[what] = toJSON(answer)
	}
	note("Memories", f.list(souvenir.MemoryList{}), nil)
	found := f.search(souvenir.Query{Text: "kettle", Limit: souvenir.MaxLimit})
	note("Search", found.Hits, nil)
	note("total", found.Total, nil)
	note("filter", f.search(souvenir.Query{Filter: souvenir.Filter{"of": souvenir.Not("x")}}).Total, nil)
	collections, err := f.reader.Collections(f.ctx)
	note("Collections", collections, err)
	projects, err := f.reader.Projects(f.ctx)
	note("Projects", projects, err)
	rules, err := f.reader.Rules(f.ctx, souvenir.ProjectRef{})
	note("Rules", rules, err)
	inPlan, err := f.reader.Rules(f.ctx, souvenir.ProjectRef{Name: "Plan"})
	note("Rules of a project", inPlan, err)
	keyed, err := f.reader.GetMemoryByKey(f.ctx, souvenir.MemoryKey{Collection: "notes", ProjectID: "p", Key: "k"})
	note("GetMemoryByKey", keyed, err)
	identity, err := f.reader.GetIdentityMemory(f.ctx)
	note("GetIdentityMemory", identity, err)
	answer, err := f.reader.GetContext(f.ctx, souvenir.ContextQuery{Query: "kettle", ProjectID: "p"})
	note("GetContext", answer, err)
	todo, err := f.reader.GetTodo(f.ctx, souvenir.ProjectRef{ID: "p"})
	note("GetTodo", todo, err)
	last, err := f.reader.Conversation("c").Last(f.ctx, 10)
	note("Last", last, err)
	var talks []souvenir.ConversationInfo
	for talk, err := range f.reader.Conversations(f.ctx, souvenir.ConversationList{}) {
		f.check("Conversations", err)
		talks = append(talks, talk)
	}
	note("Conversations", talks, nil)
	preferences, err := f.reader.GetPreferences(f.ctx)
	note("GetPreferences", preferences, err)
	files, err := f.reader.FilePage(f.ctx, souvenir.FileQuery{})
	note("FilePage", files, err)
	tags, err := f.reader.Insights().Tags(f.ctx)
	note("Tags", tags, err)
	overview, err := f.reader.Insights().Overview(f.ctx, souvenir.OverviewQuery{})
	overview.Index = "" // a search may have loaded it
	note("Overview", overview, err)
	deleted, err := f.reader.Trash().Page(f.ctx, souvenir.TrashQuery{})
	note("Trash", deleted, err)
	usage, err := f.reader.Insights().Usage(f.ctx)
	note("Usage", usage, err)
	main, err := f.reader.GetMainMemory(f.ctx, souvenir.ProjectRef{ID: "p"})
	note("GetMainMemory", main, err)
	members, err := f.reader.Members(f.ctx, souvenir.ProjectRef{ID: "p"})
	note("Members", members, err)
	return all
}

func namespacesApart(f *fixture) {
	places := map[string]*fixture{"the default's": f.in("", "anna"), "the shop's": f.in(shop, "anna"), "crm's": f.in(crm,
		"anna")}
	memories, files := map[string]souvenir.StoredMemory{}, map[string]souvenir.File{}
	for whose, view := range places {
		memories[whose], files[whose] = view.equip(whose)
	}
	for whose, view := range places {
		for what, answer := range view.holdings() {
			for other, memory := range memories {
				if other != whose && (strings.Contains(answer, other) || strings.Contains(answer, memory.ID)) {
					f.Errorf("%s through %s view: got something of %s: %s, want nothing of it", what, whose, other, answer)
				}
			}
		}
		for other, memory := range memories {
			if other == whose {
				continue
			}
			text, link := "taken", []string{memory.ID}
			for what, call := range map[string]func() error{
				"GetMemory": func() error { _, err := view.reader.GetMemory(f.ctx, memory.ID); return err },
				"UpdateMemory": func() error {
					_, err := view.store.UpdateMemory(f.ctx, memory.ID, souvenir.MemoryUpdate{Content: &text})
					return err
				},
				"DeleteMemory": func() error { return view.store.DeleteMemory(f.ctx, memory.ID, nil) },
				"erasing": func() error {
					return view.store.DeleteMemory(f.ctx, memory.ID, &souvenir.DeletionOptions{Erase: true})
				},
				"Revisions": func() error { _, err := view.reader.Revisions(f.ctx, memory.ID); return err },
				"a link": func() error {
					_, err := view.store.AddMemory(f.ctx, souvenir.NewMemory{Content: "x", Related: link})
					return err
				},
				"Supersedes": func() error {
					_, err := view.store.AddMemory(f.ctx, souvenir.NewMemory{Content: "x", Collection: "notes", ProjectID: "p",
						Supersedes: memory.ID})
					return err
				},
				"GetFile":    func() error { _, err := view.reader.GetFile(f.ctx, files[other].ID); return err },
				"DeleteFile": func() error { return view.store.DeleteFile(f.ctx, files[other].ID, nil) },
				"a file's memory": func() error {
					_, err := view.store.AddFile(f.ctx, souvenir.NewFile{Filename: "x", MemoryID: memory.ID}, strings.NewReader("x"))
					return err
				},
				"Restore": func() error { _, err := view.store.Trash().Restore(f.ctx, memory.ID); return err },
			} {
				f.fails(what+" of another namespace", call(), souvenir.ErrNotFound)
			}
		}
	}
	for whose, view := range places {
		f.equal("the memory of "+whose, view.get(memories[whose].ID).Content, "a kettle of "+whose)
		f.equal("its access", view.store.Access().User, "anna")
	}
}

func namespacesUnmoved(f *fixture) {
	anna := f.in(shop, "anna")
	anna.equip("the shop's")
	before := anna.holdings()
	for _, other := range []*fixture{f.in("", "anna"), f.in(crm, "anna"), f.in(crm, souvenir.LocalUser)} {
		memory, file := other.equip("another")
		other.rewrite(memory.ID, "a kettle, changed")
		_, err := other.store.UpdateMemories(f.ctx, souvenir.MemoriesUpdate{All: true,
			Change: souvenir.MemoryUpdate{ShownMetadata: map[string]any{"state": "archived"}}})
		f.check("UpdateMemories", err)
		_, err = other.store.UpdateProject(f.ctx, souvenir.ProjectRef{ID: "p"}, souvenir.ProjectUpdate{Name: text("Renamed")})
		f.check("UpdateProject", err)
		f.check("DeleteFile", other.store.DeleteFile(f.ctx, file.ID, nil))
		_, err = other.store.Conversation("c").Clear(f.ctx, nil)
		f.check("Clear", err)
		f.check("DeleteRule", other.store.DeleteRule(f.ctx, souvenir.ProjectRef{}, souvenir.RuleDo))
		_, err = other.store.DeleteMemories(f.ctx, souvenir.MemoriesDeletion{All: true})
		f.check("DeleteMemories", err)
		f.check("DeleteCollection", other.store.DeleteCollection(f.ctx, "notes",
			&souvenir.DeletionOptions{WithMemories: true}))
		f.check("DeleteProject", other.store.DeleteProject(f.ctx, souvenir.ProjectRef{ID: "p"},
			&souvenir.DeletionOptions{WithMemories: true}))
		_, err = other.store.Trash().Empty(f.ctx)
		f.check("Empty", err)
	}
	for what, answer := range anna.holdings() {
		f.equal(what+" after another application has changed all it has", answer, before[what])
	}
}

func text(s string) *string { return &s }

func namespacesTrash(f *fixture) {
	anna, namesake := f.in(shop, "anna"), f.in(crm, "anna")
	deleted, _ := anna.equip("the shop's")
	namesake.equip("crm's")
	before := namesake.holdings()
	anna.delete(deleted.ID)
	f.check("DeleteCollection", anna.store.DeleteCollection(f.ctx, "notes", &souvenir.DeletionOptions{WithMemories: true,
		Erase: true}))
	_, err := namesake.store.Trash().Restore(f.ctx, deleted.ID)
	f.fails("Restore through another namespace", err, souvenir.ErrNotFound)
	_, err = anna.store.Trash().Restore(f.ctx, deleted.ID)
	f.check("Restore", err)
	f.equal("the restored memory", anna.get(deleted.ID).Content, "a kettle of the shop's")
	f.check("DeleteProject", anna.store.DeleteProject(f.ctx, souvenir.ProjectRef{ID: "p"},
		&souvenir.DeletionOptions{WithMemories: true}))
	_, err = anna.store.Trash().Restore(f.ctx, f.trashed(anna, "project"))
	f.check("Restore of a project", err)
	f.equal("the memory of the restored project", anna.get(deleted.ID).Content, "a kettle of the shop's")
	for what, answer := range namesake.holdings() {
		f.equal(what+" after another application has restored its own", answer, before[what])
	}
}

// trashed returns the id of a user's first entry of a kind.
func (f *fixture) trashed(of *fixture, kind souvenir.TrashKind) string {
	f.Helper()
	for e, err := range of.reader.Trash().All(f.ctx, souvenir.TrashList{Kinds: []souvenir.TrashKind{kind}}) {
		f.check("All", err)
		return e.ID
	}
	f.Fatalf("got no entry of kind %s in the trash, want one", kind)
	return ""
}

func namespacesAccounts(f *fixture) {
	const word, other = "glockenspiel and lemon", "a different long secret"
	outside := f.addUser(souvenir.NewUser{ID: "anna", Name: "Anna", Password: word, Role: souvenir.RoleAdmin})
	inShop := f.store.Accounts().Namespace(shop)
	inside, err := inShop.AddUser(f.ctx, souvenir.NewUser{ID: "anna", Name: "ANNA", Password: other,
		Email: "a@example.com"})
	f.check("AddUser in a namespace", err)
	f.equal("ids", inside.ID, outside.ID)
	_, err = inShop.AddUser(f.ctx, souvenir.NewUser{Name: "anna"})
	f.fails("the same name again in the namespace", err, souvenir.ErrConflict)
	f.equal("names", []string{f.getUser("anna").Email, f.getUser("anna").Name}, []string{"", "Anna"})
	_, err = inShop.UpdateUser(f.ctx, "anna", souvenir.UserUpdate{Name: text("Annika")})
	f.check("UpdateUser in a namespace", err)
	f.equal("the name outside after a change inside", f.getUser("anna").Name, "Anna")
	_, err = f.reader.Accounts().GetUser(f.ctx, "Annika")
	f.fails("a name of another namespace", err, souvenir.ErrNotFound)

	_, err = f.reader.Accounts().CheckPassword(f.ctx, souvenir.Credentials{Name: "anna", Password: other})
	f.fails("the password of another namespace", err, souvenir.ErrUnauthenticated)
	_, err = f.reader.Accounts().Namespace(shop).CheckPassword(f.ctx, souvenir.Credentials{Name: "annika",
		Password: other})
	f.check("CheckPassword in the namespace", err)

	anna := f.in(shop, "anna")
	token, err := anna.store.Accounts().AddToken(f.ctx, souvenir.NewToken{Name: "laptop"})
	f.check("AddToken", err)
	_, err = f.reader.Accounts().CheckToken(f.ctx, token.Value)
	f.fails("a token of another namespace", err, souvenir.ErrUnauthenticated)
	p, err := f.reader.Accounts().Namespace(shop).CheckToken(f.ctx, token.Value)
	f.check("CheckToken", err)
	f.equal("the access of a token", p.Access, souvenir.Access{User: "anna", Namespace: shop})
	tokens, err := f.in("", "anna").reader.Accounts().Tokens(f.ctx)
	f.check("Tokens", err)
	f.equal("tokens outside", len(tokens), 0)

	in, err := f.store.Accounts().Namespace(shop).AddSignIn(f.ctx, souvenir.NewSignIn{User: "anna", UserAgent: "x"})
	f.check("AddSignIn", err)
	_, err = f.reader.Accounts().CheckSignIn(f.ctx, in.Value)
	f.fails("a sign-in of another namespace", err, souvenir.ErrUnauthenticated)
	p, err = f.reader.Accounts().Namespace(shop).CheckSignIn(f.ctx, in.Value)
	f.check("CheckSignIn", err)
	f.equal("the access of a sign-in", p.Access, souvenir.Access{User: "anna", Namespace: shop})
	f.fails("the mark of a browser of another namespace",
		f.reader.Accounts().CheckBrowser(f.ctx, souvenir.BrowserCheck{User: "anna", Mark: in.Mark}),
		souvenir.ErrUnauthenticated)
	f.check("CheckBrowser", f.reader.Accounts().Namespace(shop).CheckBrowser(f.ctx, souvenir.BrowserCheck{User: "anna",
		Mark: in.Mark}))

	_, err = inShop.UpdateUser(f.ctx, "anna", souvenir.UserUpdate{Disabled: new(true)})
	f.check("disabling inside", err)
	f.equal("disabled outside", f.getUser("anna").Disabled, false)
	same(f, "users outside", f.users(), []string{"Anna=anna"})
	page, err := f.reader.Accounts().UserPage(f.ctx, souvenir.UserQuery{Accounts: true})
	f.check("UserPage", err)
	f.equal("the total outside", page.Total, 1)
	names, err := f.reader.Accounts().Namespaces(f.ctx)
	f.check("Namespaces", err)
	f.same("Namespaces", names, shop)

	_, err = inShop.RegisterClient(f.ctx, souvenir.ClientRegistration{RedirectURIs: []string{"https://example.com"}})
	f.fails("a client of OAuth in a namespace", err, souvenir.ErrForbidden, shop)
	_, err = inShop.AddInvitation(f.ctx, souvenir.NewInvitation{})
	f.fails("an invitation to a namespace", err, souvenir.ErrForbidden, shop)
	_, err = inShop.AddUser(f.ctx, souvenir.NewUser{Name: "Ben", Identity: souvenir.Identity{Issuer: "https://i",
		Subject: "s"}})
	f.fails("an identity in a namespace", err, souvenir.ErrForbidden, shop)
	_, err = anna.store.Accounts().Clients(f.ctx)
	f.fails("a user's clients in a namespace", err, souvenir.ErrForbidden, shop)
}

func namespacesMembers(f *fixture) {
	anna := f.in(shop, "anna")
	plan := souvenir.ProjectRef{ID: "p"}
	_, err := anna.store.AddProject(f.ctx, souvenir.NewProject{ID: "p", Name: "Plan"})
	f.check("AddProject", err)
	anna.add(souvenir.NewMemory{Content: "shared kettle", ProjectID: "p"})
	for _, ben := range []*fixture{f.in("", "ben"), f.in(crm, "ben"), f.in(shop, "ben")} {
		ben.add(souvenir.NewMemory{Content: "ben's own"})
	}
	_, err = anna.store.AddMember(f.ctx, souvenir.NewMember{Project: plan, User: "ben", Role: souvenir.MemberWriter})
	f.check("AddMember", err)
	for namespace, want := range map[string]int{"": 0, crm: 0, shop: 1} {
		waiting, err := f.in(namespace, "ben").reader.Accounts().ProjectInvitations(f.ctx)
		f.check("ProjectInvitations", err)
		f.equal(fmt.Sprintf("invitations of ben in %q", namespace), len(waiting), want)
		for _, invitation := range waiting {
			_, err := f.in(crm, "ben").store.Accounts().AcceptProjectInvitation(f.ctx, invitation.ID)
			f.fails("accepting another's invitation", err, souvenir.ErrNotFound)
			_, err = f.in(namespace, "ben").store.Accounts().AcceptProjectInvitation(f.ctx, invitation.ID)
			f.check("AcceptProjectInvitation", err)
		}
	}
	for namespace, want := range map[string]int{"": 1, crm: 1, shop: 2} {
		ben := f.in(namespace, "ben")
		f.equal(fmt.Sprintf("memories of ben in %q", namespace), len(ben.list(souvenir.MemoryList{})), want)
		p, err := ben.reader.GetProject(f.ctx, souvenir.ProjectRef{ID: "anna/p"})
		if namespace == shop {
			f.check("GetProject", err)
			f.equal("the owner", p.Owner, "anna")
		} else {
			f.fails("a project of another namespace", err, souvenir.ErrNotFound)
		}
	}
	_, err = f.operator.AddMember(f.ctx, souvenir.NewMember{Project: souvenir.ProjectRef{ID: "anna/p"}, User: "ben",
		Role: souvenir.MemberReader})
	f.fails("the operator's AddMember to a project of a namespace", err, souvenir.ErrNotFound)
}

func namespacesDelete(f *fixture) {
	for _, namespace := range []string{"", shop, crm} {
		f.in(namespace, "anna").equip("one")
	}
	before, outside := f.in(crm, "anna").holdings(), f.in("", "anna").holdings()
	f.check("DeleteUser", f.store.Accounts().Namespace(shop).DeleteUser(f.ctx, "anna",
		&souvenir.DeletionOptions{WithMemories: true}))
	for what, answer := range f.in(crm, "anna").holdings() {
		f.equal(what+" in another namespace", answer, before[what])
	}
	for what, answer := range f.in("", "anna").holdings() {
		f.equal(what+" in the default namespace", answer, outside[what])
	}
	f.equal("memories of the deleted user", len(f.in(shop, "anna").list(souvenir.MemoryList{})), 0)
}

func namespacesActivity(f *fixture) {
	for namespace, tool := range map[string]string{"": "outside", shop: "selling", crm: "calling"} {
		f.check("RecordActivity", f.operator.Upkeep().RecordActivity(f.ctx, souvenir.NewActivity{Tool: tool, Client: tool,
			Principal: souvenir.Principal{Access: souvenir.Access{User: "anna", Namespace: namespace}}}))
	}
	for namespace, tool := range map[string]string{"": "outside", shop: "selling", crm: "calling"} {
		view := f.operator.As(souvenir.Access{User: "anna", Namespace: namespace})
		page, err := view.Insights().ActivityPage(f.ctx, souvenir.ActivityQuery{})
		f.check("ActivityPage", err)
		var tools []string
		for _, a := range page.Activities {
			tools = append(tools, a.Tool)
		}
		f.same(fmt.Sprintf("calls of anna in %q", namespace), tools, tool)
		overview, err := view.Insights().Overview(f.ctx, souvenir.OverviewQuery{})
		f.check("Overview", err)
		if len(overview.Clients) != 1 || overview.Clients[0].Name != tool {
			f.Errorf("clients of anna in %q: got %+v, want %s alone", namespace, overview.Clients, tool)
		}
	}
	for _, q := range []souvenir.ActivityQuery{{}, {User: "anna"}} {
		page, err := f.operator.Insights().ActivityPage(f.ctx, q)
		f.check("Activities of the operator", err)
		if len(page.Activities) != 1 || page.Activities[0].Tool != "outside" {
			f.Errorf("Activities(%+v) of the operator: got %+v, want the call in the default namespace", q, page.Activities)
		}
	}
}

func namespacesNamed(f *fixture) {
	for name, kind := range map[string]*souvenir.Error{strings.Repeat("x", 129): souvenir.ErrTooLarge,
		"two\nlines": souvenir.ErrInvalid, "\xff": souvenir.ErrInvalid} {
		_, err := f.in(name, "anna").store.AddMemory(f.ctx, souvenir.NewMemory{Content: "x"})
		f.failsAt(fmt.Sprintf("the namespace %.20q", name), err, kind, "namespace")
	}
	f.in("日本 shop/1", "anna").add(souvenir.NewMemory{Content: "konnichiwa"})
	f.equal("a search before the first write", f.in("fresh", "anna").search(souvenir.Query{Text: "x"}).Total, 0)
	f.same("a name in any language", f.in("日本 shop/1", "anna").find("konnichiwa"), "konnichiwa")
}

// exportedBy returns an export of the whole store.
func (f *fixture) exportedBy(options *souvenir.ExportOptions) []byte {
	f.Helper()
	var b bytes.Buffer
	_, err := f.operator.Upkeep().Export(f.ctx, &b, options)
	f.check("Export", err)
	return b.Bytes()
}

// importedBy imports into a new store and returns it.
func (f *fixture) importedBy(data []byte, options *souvenir.ImportOptions) (*fixture, souvenir.ImportReport) {
	f.Helper()
	into, err := souvenir.Open(f.ctx, ":memory:", f.options(f.embedder))
	f.check("Open", err)
	f.Cleanup(func() { _ = into.Close() })
	report, err := into.Upkeep().Import(f.ctx, bytes.NewReader(data), options)
	f.check("Import", err)
	copied := *f
	copied.store, copied.reader, copied.operator = into, into, into
	return &copied, report
}

func namespacesExport(f *fixture) {
	before := map[string]map[string]string{}
	for _, namespace := range []string{"", shop, crm} {
		f.in(namespace, "anna").equip("of " + namespace)
		_, err := f.operator.Accounts().Namespace(namespace).AddUser(f.ctx, souvenir.NewUser{Name: "Ben", Password: password})
		f.check("AddUser", err)
		before[namespace] = f.in(namespace, "anna").holdings()
	}
	data := f.exportedBy(&souvenir.ExportOptions{Credentials: true})
	f.check("CheckExport", souvenir.CheckExport(f.ctx, bytes.NewReader(data), nil))
	into, report := f.importedBy(data, nil)
	f.equal("conflicts", report.Conflicts, []souvenir.ImportConflict(nil))
	for namespace, want := range before {
		got := into.in(namespace, "anna").holdings()
		for _, what := range []string{"Memories", "Collections", "Projects", "Rules", "GetTodo", "Last", "FilePage",
			"GetPreferences",
			"Members", "GetContext"} {
			f.equal(fmt.Sprintf("%s of %q after the import", what, namespace), got[what], want[what])
		}
		_, err := into.reader.Accounts().Namespace(namespace).CheckPassword(f.ctx,
			souvenir.Credentials{Name: "ben", Password: password})
		f.check("CheckPassword after the import", err)
	}
	again, err := into.store.Upkeep().Import(f.ctx, bytes.NewReader(data),
		&souvenir.ImportOptions{OnConflict: souvenir.ConflictReplace})
	f.check("Import again", err)
	for kind, n := range again.Counts {
		f.equal("a second import of "+kind, []int{n.Added, n.Replaced, n.Conflicts}, []int{0, 0, 0})
	}
	into.sound()
	plain := f.exportedBy(&souvenir.ExportOptions{Namespaces: []string{""}})
	f.equal("the version of an export of the default namespace", strings.Contains(string(plain), `"version":1`), true)
	f.equal("another namespace in it", strings.Contains(string(plain), shop), false)
}

func namespacesMoved(f *fixture) {
	f.in("", "anna").equip("outside")
	f.in(shop, "anna").equip("of the shop")
	before := f.in(shop, "anna").holdings()
	alone := f.exportedBy(&souvenir.ExportOptions{Namespaces: []string{shop}})
	f.equal("what is outside", strings.Contains(string(alone), "outside"), false)
	into, _ := f.importedBy(alone, &souvenir.ImportOptions{Namespace: crm})
	f.equal("Memories", into.in(crm, "anna").holdings()["Memories"], before["Memories"])
	f.equal("the namespace of the export", len(into.in(shop, "anna").list(souvenir.MemoryList{})), 0)
	names, err := into.reader.Accounts().Namespaces(f.ctx)
	f.check("Namespaces", err)
	f.same("Namespaces", names, crm)

	_, err = f.operator.Upkeep().Export(f.ctx, io.Discard, &souvenir.ExportOptions{Namespaces: []string{"unknown"}})
	f.fails("an unknown namespace", err, souvenir.ErrNotFound, "unknown")
	_, err = f.operator.Upkeep().Export(f.ctx, io.Discard, &souvenir.ExportOptions{Namespaces: []string{}})
	f.fails("no namespace", err, souvenir.ErrInvalid)
	_, err = f.in(shop, "anna").store.Upkeep().Export(f.ctx, io.Discard,
		&souvenir.ExportOptions{Namespaces: []string{crm}})
	f.fails("namespaces of a view's export", err, souvenir.ErrForbidden)
	var own bytes.Buffer
	_, err = f.in(shop, "anna").store.Upkeep().Export(f.ctx, &own, nil)
	f.check("Export of a view", err)
	f.equal("what is outside", strings.Contains(own.String(), "outside"), false)
	into, _ = f.importedBy(own.Bytes(), &souvenir.ImportOptions{Namespace: crm})
	f.equal("Memories of a view's export", into.in(crm, "anna").holdings()["Memories"], before["Memories"])
	for _, sealed := range []bool{true, false} {
		whole := f.exportedBy(nil)
		if !sealed {
			whole = bytes.Replace(whole, []byte(`,"sealed":true`), nil, 1)
			whole = whole[:bytes.LastIndex(whole, []byte(`{"type":"end"`))]
		}
		_, err = into.store.Upkeep().Import(f.ctx, bytes.NewReader(whole), &souvenir.ImportOptions{Namespace: crm})
		f.fails("several namespaces into one", err, souvenir.ErrInvalid, "several")
		f.equal("what the error names", strings.HasPrefix(err.Error(), "ImportOptions.Namespace is"), true)
	}
}

func namespacesKept(f *fixture) {
	anna := f.in(shop, "anna")
	memory, file := anna.equip("the shop's")
	before := anna.holdings()
	f.clock.Pass(time.Minute)
	lines := fmt.Sprintf(`{"souvenir":"export","version":1}
{"type":"memory","id":%q,"owner":"anna","content":"taken over","collection_name":"notes","metadata":{"project_id":"p"}}
{"type":"memory","id":"0190a5f2-0000-7000-8000-00000000000a","owner":"anna","content":"linking","metadata":{"related_memory_ids":[%q]}}
{"type":"file","id":%q,"owner":"anna","memory_id":%q,"filename":"f.txt","mime_type":"text/plain","size":0,"sha256":"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855","created_at":"2026-01-01T00:00:00Z","updated_at":"2026-01-01T00:00:00Z"}
`, memory.ID, memory.ID, file.ID, memory.ID)
	report, err := f.operator.Upkeep().Import(f.ctx, strings.NewReader(lines),
		&souvenir.ImportOptions{OnConflict: souvenir.ConflictReplace})
	f.check("Import", err)
	f.equal("conflicts", []int{report.Counts["memory"].Conflicts, report.Counts["file"].Conflicts}, []int{1, 1})
	f.equal("links to another namespace", report.MissingLinks > 0, true)
	for what, answer := range anna.holdings() {
		f.equal(what+" after an import into another namespace", answer, before[what])
	}
}

// namespacesTrashed imports into one namespace the memory and the file that are in the trash of another one. There they
// are restored as they were, linked to each other.
func namespacesTrashed(f *fixture) {
	anna, other := f.in("", "anna"), f.in(shop, "anna")
	memory := anna.add(souvenir.NewMemory{Content: "a kettle"})
	file, err := anna.store.AddFile(f.ctx, souvenir.NewFile{Filename: "f.txt", MemoryID: memory.ID},
		strings.NewReader("secret"))
	f.check("AddFile", err)
	f.check("DeleteFile", anna.store.DeleteFile(f.ctx, file.ID, nil))
	anna.delete(memory.ID)
	lines := fmt.Sprintf(`{"souvenir":"export","version":1}
{"type":"memory","id":%q,"owner":"anna","content":"taken over"}
{"type":"file","id":%q,"owner":"anna","filename":"f.txt","mime_type":"text/plain","size":0,"sha256":"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855","created_at":"2026-01-01T00:00:00Z","updated_at":"2026-01-01T00:00:00Z"}
`, memory.ID, file.ID)
	report, err := f.operator.Upkeep().Import(f.ctx, strings.NewReader(lines), &souvenir.ImportOptions{Namespace: shop})
	f.check("Import", err)
	f.equal("conflicts", []int{report.Counts["memory"].Conflicts, report.Counts["file"].Conflicts}, []int{1, 1})
	for _, id := range []string{file.ID, memory.ID} {
		_, err := anna.store.Trash().Restore(f.ctx, id)
		f.check("Restore", err)
	}
	f.equal("the memory", anna.get(memory.ID).Content, "a kettle")
	restored, err := anna.reader.GetFile(f.ctx, file.ID)
	f.check("GetFile", err)
	f.equal("the file's memory", restored.MemoryID, memory.ID)
	_, err = other.reader.GetFile(f.ctx, file.ID)
	f.fails("the file through another namespace", err, souvenir.ErrNotFound)
	// With the same owner, items in the trash are imported.
	anna.delete(memory.ID)
	report, err = f.operator.Upkeep().Import(f.ctx, strings.NewReader(lines), nil)
	f.check("Import for the same owner", err)
	f.equal("added", report.Counts["memory"].Added, 1)
}

// namespacesGrants moves the tokens of a user to another namespace. An MCP token that an application made ends with the
// application's grant, which only the default namespace has.
func namespacesGrants(f *fixture) {
	anna := f.in("", "anna")
	f.addUser(souvenir.NewUser{ID: "anna", Name: "Anna"})
	c := f.register("")
	p, err := f.reader.Accounts().CheckAccessToken(f.ctx, checking(anna.obtainTokens(c)))
	f.check("CheckAccessToken", err)
	own := anna.addToken(souvenir.NewToken{Name: "own"})
	made := anna.addToken(souvenir.NewToken{Name: "made", GrantID: p.GrantID})
	anna.addToken(souvenir.NewToken{Name: "made by that", TokenID: made.ID})
	into, report := f.importedBy(f.exportedBy(&souvenir.ExportOptions{Credentials: true}),
		&souvenir.ImportOptions{Namespace: shop})
	f.equal("tokens", []int{report.Counts["token"].Added, report.Counts["token"].Conflicts}, []int{1, 2})
	_, err = into.reader.Accounts().Namespace(shop).CheckToken(f.ctx, own.Value)
	f.check("CheckToken", err)
	_, err = into.reader.Accounts().Namespace(shop).CheckToken(f.ctx, made.Value)
	f.fails("a token of an application", err, souvenir.ErrUnauthenticated)
	into.sound()
}
