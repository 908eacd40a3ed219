package server_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server"
)

func TestMembersAreAddedChangedAndPutOut(t *testing.T) {
	w := newWorld(t, server.Options{})
	olivia, sam := w.signedIn(owner), w.signedIn(stranger)
	members := w.shop() + "/members"
	checkPage(w, olivia.get(members).expect(http.StatusOK, "3 members", "owner of the project", "rita", "walter",
		"Invite someone", "Remove</button>").without("Leave the project", "pending"))
	checkPage(w, w.signedIn(reader).get(members).expect(http.StatusOK, "What the roles mean", "olivia",
		"Leave the project").without("Invite someone", "Remove</button>", "<select", "pending"))

	add := func(user, role string) *gotPage {
		form := olivia.get(members).formTo(members, "change", "add")
		form.Set("user", user)
		form.Set("role", role)
		return olivia.post(members, form)
	}
	added := add(" Sam ", "writer")
	checkPage(w, olivia.get(added.header.Get("Location")).expect(http.StatusOK, "Sam is invited: writer.", "3 members",
		"pending", "Withdraw the invitation of Sam"))
	sam.get(w.shop()).expect(http.StatusNotFound)
	olivia.takesBack(added, "Sam is invited: writer.")
	olivia.get(members).expect(http.StatusOK).without("pending")

	for user, says := range map[string]string{"walter": "has the role writer in project", "olivia": "needs no other role",
		"": "Name is "} {
		p := add(user, "reader")
		p.expect(p.status, says)
		if p.status != http.StatusNotFound && p.status != http.StatusBadRequest || user != "" &&
			!strings.Contains(p.body, fmt.Sprintf("value=%q", user)) {
			t.Errorf("%q: %d %.300s", user, p.status, p.body)
		}
		checkPage(w, p)
	}
	add("sam", "king").expect(http.StatusBadRequest, "Role is &#34;king&#34;; allowed are")
	checkPage(w, olivia.get(add(hostile[:60], "reader").header.Get("Location")))

	out := olivia.get(members).formTo(members, "user", w.users[reader])
	out.Set("change", "end")
	gone := olivia.post(members, out)
	w.signedIn(reader).get(w.shop()).expect(http.StatusNotFound)
	olivia.post(members, out).expect(http.StatusNotFound, "is no longer a member of the project")
	olivia.takesBack(gone, "rita is removed. Undo sends an invitation.")
	w.signedIn(reader).get(members).expect(http.StatusNotFound)
	if err := w.acceptAll(reader); err != nil {
		t.Fatal(err)
	}
	w.signedIn(reader).get(members).expect(http.StatusOK, ">reader<")
	out.Set("change", hostile)
	olivia.post(members, out).stays(http.StatusBadRequest,
		"allowed are add, withdraw, role and end").without("<script>alert")
	out.Set("change", "end")
	out.Set("user", w.users[owner])
	olivia.post(members, out).stays(http.StatusForbidden, "can be neither changed nor removed")
}

// A higher role on the page is an offer, which its owner withdraws and the member accepts; a lower one counts at once.
func TestRolesRiseByConsentOnPages(t *testing.T) {
	w := newWorld(t, server.Options{})
	olivia, rita := w.signedIn(owner), w.signedIn(reader)
	members, edit := w.shop()+"/members", w.shop()+"/edit?text=do"
	offer := func() *gotPage {
		t.Helper()
		change := olivia.get(members).formTo(members, "user", w.users[reader])
		change.Set("role", "writer")
		return olivia.post(members, change)
	}
	offered := offer()
	checkPage(w, olivia.get(members).expect(http.StatusOK, "3 members", "Withdraw the invitation of rita"))
	rita.get(edit).expect(http.StatusForbidden)
	checkPage(w, rita.get("/project-invitations").expect(http.StatusOK, "You are a reader of this project",
		"A writer can also store"))
	olivia.takesBack(offered, "rita is invited to be writer, and stays reader until then.")
	olivia.get(members).expect(http.StatusOK, "3 members").without("pending")
	rita.get("/project-invitations").expect(http.StatusOK).without("The shop")

	offer()
	withdrawn := olivia.post(members, olivia.get(members).formTo(members, "change", "withdraw"))
	olivia.get(members).expect(http.StatusOK, "3 members").without("pending")
	rita.get(members).expect(http.StatusOK, ">reader<")
	olivia.takesBack(withdrawn, "The invitation of rita is withdrawn.")
	rita.get(edit).expect(http.StatusForbidden)
	rita.post("/project-invitations", rita.get("/project-invitations").formTo("/project-invitations", "answer", "accept"))
	rita.get(edit).expect(http.StatusOK)

	change := olivia.get(members).formTo(members, "user", w.users[reader])
	change.Set("role", "reader")
	lowered := olivia.post(members, change)
	rita.get(edit).expect(http.StatusForbidden)
	olivia.takesBack(lowered, "rita has the role reader now. Undo sends an invitation to be writer again.")
	rita.get(edit).expect(http.StatusForbidden)
	rita.get("/project-invitations").expect(http.StatusOK,
		"<bdi>The shop</bdi>") // a name cannot turn round the role beside it
}

// Undoing what an owner did brings no one back who has declined, left, or accepted less since.
func TestUndoingRestoresNoMemberWithoutConsent(t *testing.T) {
	w := newWorld(t, server.Options{})
	olivia := w.signedIn(owner)
	members := w.shop() + "/members"
	ref := souvenir.ProjectRef{ID: w.users[owner] + "/shop"}
	form := olivia.get(members).formTo(members, "user", w.users[writer])
	form.Set("change", "end")
	removed := olivia.post(members, form)
	view, walter := w.store.As(souvenir.Access{User: w.users[owner]}), w.store.As(souvenir.Access{User: w.users[writer]})
	steps := firstError{}
	_, err := view.AddMember(t.Context(), souvenir.NewMember{Project: ref, User: "walter", Role: souvenir.MemberReader})
	steps.note(err)
	waiting, err := walter.Accounts().ProjectInvitations(t.Context())
	steps.note(err)
	steps.note(walter.Accounts().DeclineProjectInvitation(t.Context(), waiting[0].ID))
	olivia.takesBack(removed, "walter is removed.")
	if steps.err != nil {
		t.Fatal(steps.err)
	}
	if p, err := walter.GetProject(t.Context(), ref); err == nil {
		t.Errorf("who has declined the project is %+v in it", p.Role)
	}
}

func TestLeavingAProject(t *testing.T) {
	w := newWorld(t, server.Options{})
	rita, members := w.signedIn(reader), w.shop()+"/members"
	p := rita.get(members)
	for _, form := range p.html.all("form") {
		if form.attr("action") == members &&
			!strings.Contains(form.attr("data-confirm"), "You need a new invitation to come back.") {
			t.Errorf("got no confirmation, want one: %v", form.attrs)
		}
	}
	left := rita.post(members, p.formTo(members, "change", "end"))
	rita.leadsTo(left, "/projects?done=left").expect(http.StatusOK, "You left the project.").without("The shop")
	rita.get(w.shop()).expect(http.StatusNotFound)
	w.signedIn(owner).get(members).expect(http.StatusOK, "2 members").without("rita</h3>")
}

// A form offers the names of people whom its user knows from other projects; only an admin learns of everyone.
func TestNamesThatAreOfferedForNewMembers(t *testing.T) {
	w := newWorld(t, server.Options{})
	for caller, project := range map[string]string{owner: "plot", admin: "own"} {
		store := w.store.As(souvenir.Access{User: w.users[caller]})
		if caller == admin {
			if _, err := store.AddProject(t.Context(), souvenir.NewProject{ID: project}); err != nil {
				t.Fatal(err)
			}
		}
		p := w.signedIn(caller).get("/projects/" + w.users[caller] + "/" + project + "/members").expect(http.StatusOK)
		var names []string
		for _, option := range p.html.all("datalist")[0].all("option") {
			names = append(names, option.attr("value"))
		}
		want := "rita walter"
		if caller == admin {
			want = "olivia rita sam walter" // who is disabled cannot be meant
		}
		if strings.Join(names, " ") != want {
			t.Errorf("%s is offered %q", caller, names)
		}
		checkPage(w, p)
	}
}

func TestProjectsAreRenamed(t *testing.T) {
	w := newWorld(t, server.Options{})
	olivia, settings := w.signedIn(owner), w.shop()+"/settings"
	checkPage(w, olivia.get(settings).expect(http.StatusOK, "Rename", "The project stays in the trash until",
		"<b>1 memory</b> in it"))
	renamed := olivia.submit(olivia.get(settings), settings, url.Values{"name": {hostile}})
	checkPage(w, olivia.get(renamed.header.Get("Location")).expect(http.StatusOK, "The project is named"))
	checkPage(w, olivia.get(w.shop()))
	olivia.leadsTo(olivia.takesBack(renamed, "The project is named"), settings+"?done=undone").expect(http.StatusOK,
		"Settings of The shop")
	olivia.leadsTo(olivia.submit(olivia.get(settings), settings, nil), settings+"?done=unchanged")
	olivia.submit(olivia.get(settings), settings, url.Values{"name": {secret}}).stays(http.StatusBadRequest,
		"is taken by the project", "Settings of The shop")
	olivia.submit(olivia.get(settings), settings, url.Values{"name": {" "}}).stays(http.StatusBadRequest,
		"Name is &#34;&#34;")

	_, err := w.store.UpdateMember(t.Context(),
		souvenir.ProjectRef{ID: w.users[owner] + "/shop"}, "walter", souvenir.MemberUpdate{Role: souvenir.MemberOwner})
	if err != nil {
		t.Fatal(err)
	}
	walter := w.signedIn(writer) // an owner, but not of record
	walter.get(settings).expect(http.StatusOK, "Rename").without("Delete the project")
	walter.post(w.shop()+"/delete",
		url.Values{"csrf": {walter.get(settings).hidden().Get("csrf")}, "typed": {"The shop"}}).stays(http.StatusForbidden,
		"only the owner can delete it")
	w.signedIn(reader).get(settings).expect(http.StatusForbidden, "only its owners may change it")
}

func TestProjectsAreDeletedByThoseWhoMeanIt(t *testing.T) {
	w := newWorld(t, server.Options{})
	olivia, settings := w.signedIn(owner), w.shop()+"/settings"
	for _, typed := range []string{"", "shop", "the shop", hostile} {
		p := olivia.submit(olivia.get(settings), w.shop()+"/delete",
			url.Values{"typed": {typed}}).stays(http.StatusBadRequest, "Name of the project is", "nothing was deleted")
		checkPage(w, p)
	}
	olivia.get(w.shop()).expect(http.StatusOK, "The shop opens at nine.")
	olivia.get(settings).expect(http.StatusOK, "stays in the trash until",
		"can be restored until then").without("cannot be",
		"for good")
	gone := olivia.submit(olivia.get(settings), w.shop()+"/delete", url.Values{"typed": {" The shop "}})
	olivia.leadsTo(gone, "/projects?done=project-trashed").expect(http.StatusOK,
		"Project deleted, with its memories. You can restore it from the trash.").without("The shop")
	olivia.get(w.shop()).expect(http.StatusNotFound)
	olivia.get("/memories/" + w.memory).expect(http.StatusNotFound)
	olivia.get("/api/files/"+w.file).expect(http.StatusOK, "soup")
}
