package dashboard_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
	"github.com/souvenir-ai/souvenir/server"
	"github.com/souvenir-ai/souvenir/server/internal/servertest"
)

func TestMembersAreAddedChangedAndRemoved(t *testing.T) {
	w := servertest.New(t, server.Options{})
	olivia, sam := w.SignedIn(servertest.Owner), w.SignedIn(servertest.Stranger)
	members := shop(w) + "/members"
	servertest.CheckPage(w, olivia.Get(members).Expect(http.StatusOK, "3 members", "owner of the project", "rita",
		"walter",
		"Invite someone", "Remove</button>").Without("Leave the project", "pending"))
	servertest.CheckPage(w, w.SignedIn(servertest.Reader).Get(members).Expect(http.StatusOK, "What the roles mean",
		"olivia",
		"Leave the project").Without("Invite someone", "Remove</button>", "<select", "pending"))

	add := func(user, role string) *servertest.Page {
		form := olivia.Get(members).FormTo(members, "change", "add")
		form.Set("user", user)
		form.Set("role", role)
		return olivia.Post(members, form)
	}
	added := add(" Sam ", "writer")
	servertest.CheckPage(w, olivia.Get(added.Header.Get("Location")).Expect(http.StatusOK, "Sam is invited: writer.",
		"3 members",
		"pending", "Withdraw the invitation of Sam"))
	sam.Get(shop(w)).Expect(http.StatusNotFound)
	takesBack(olivia, added, "Sam is invited: writer.")
	olivia.Get(members).Expect(http.StatusOK).Without("pending")

	for user, says := range map[string]string{"walter": "has the role writer in project", "olivia": "needs no other role",
		"": "Name is "} {
		p := add(user, "reader")
		p.Expect(p.Status, says)
		if p.Status != http.StatusNotFound && p.Status != http.StatusBadRequest || user != "" &&
			!strings.Contains(p.Body, fmt.Sprintf("value=%q", user)) {
			t.Errorf("%q: got %d %.300s, want 400 or 404, and the form as it was", user, p.Status, p.Body)
		}
		servertest.CheckPage(w, p)
	}
	add("sam", "king").Expect(http.StatusBadRequest, "Role is &#34;king&#34;; expected")
	servertest.CheckPage(w, olivia.Get(add(servertest.Hostile[:60], "reader").Header.Get("Location")))

	out := olivia.Get(members).FormTo(members, "user", w.Users[servertest.Reader])
	out.Set("change", "end")
	gone := olivia.Post(members, out)
	w.SignedIn(servertest.Reader).Get(shop(w)).Expect(http.StatusNotFound)
	olivia.Post(members, out).Expect(http.StatusNotFound, "is no longer a member of the project")
	takesBack(olivia, gone, "rita is removed. Undo sends an invitation.")
	w.SignedIn(servertest.Reader).Get(members).Expect(http.StatusNotFound)
	if err := acceptAll(w, servertest.Reader); err != nil {
		t.Fatal(err)
	}
	w.SignedIn(servertest.Reader).Get(members).Expect(http.StatusOK, ">reader<")
	out.Set("change", servertest.Hostile)
	olivia.Post(members, out).Stays(http.StatusBadRequest,
		"expected add, withdraw, role or end").Without("<script>alert")
	out.Set("change", "end")
	out.Set("user", w.Users[servertest.Owner])
	olivia.Post(members, out).Stays(http.StatusForbidden, "can be neither changed nor removed")
}

// On the page, a higher role is an offer, which the owner can withdraw and the member can accept. A lower role applies
// at once.
func TestRolesRiseByConsentOnPages(t *testing.T) {
	w := servertest.New(t, server.Options{})
	olivia, rita := w.SignedIn(servertest.Owner), w.SignedIn(servertest.Reader)
	members, edit := shop(w)+"/members", shop(w)+"/edit?text=do"
	offer := func() *servertest.Page {
		t.Helper()
		change := olivia.Get(members).FormTo(members, "user", w.Users[servertest.Reader])
		change.Set("role", "writer")
		return olivia.Post(members, change)
	}
	offered := offer()
	servertest.CheckPage(w, olivia.Get(members).Expect(http.StatusOK, "3 members", "Withdraw the invitation of rita"))
	rita.Get(edit).Expect(http.StatusForbidden)
	servertest.CheckPage(w, rita.Get("/project-invitations").Expect(http.StatusOK, "You are a reader of this project",
		"A writer can also store"))
	takesBack(olivia, offered, "rita is invited to be writer, and stays reader until then.")
	olivia.Get(members).Expect(http.StatusOK, "3 members").Without("pending")
	rita.Get("/project-invitations").Expect(http.StatusOK).Without("The shop")

	offer()
	withdrawn := olivia.Post(members, olivia.Get(members).FormTo(members, "change", "withdraw"))
	olivia.Get(members).Expect(http.StatusOK, "3 members").Without("pending")
	rita.Get(members).Expect(http.StatusOK, ">reader<")
	takesBack(olivia, withdrawn, "The invitation of rita is withdrawn.")
	rita.Get(edit).Expect(http.StatusForbidden)
	rita.Post("/project-invitations", rita.Get("/project-invitations").FormTo("/project-invitations", "answer", "accept"))
	rita.Get(edit).Expect(http.StatusOK)

	change := olivia.Get(members).FormTo(members, "user", w.Users[servertest.Reader])
	change.Set("role", "reader")
	lowered := olivia.Post(members, change)
	rita.Get(edit).Expect(http.StatusForbidden)
	takesBack(olivia, lowered, "rita has the role reader now. Undo sends an invitation to be writer again.")
	rita.Get(edit).Expect(http.StatusForbidden)
	rita.Get("/project-invitations").Expect(http.StatusOK,
		"<bdi>The shop</bdi>") // a name cannot reverse the role beside it
}

// Undoing an owner's change restores no member who has since declined, left, or accepted less.
func TestUndoingRestoresNoMemberWithoutConsent(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{})
	olivia := w.SignedIn(servertest.Owner)
	members := shop(w) + "/members"
	ref := souvenir.ProjectRef{ID: w.Users[servertest.Owner] + "/shop"}
	form := olivia.Get(members).FormTo(members, "user", w.Users[servertest.Writer])
	form.Set("change", "end")
	removed := olivia.Post(members, form)
	view, walter := w.Store.As(souvenir.Access{User: w.Users[servertest.Owner]}),
		w.Store.As(souvenir.Access{User: w.Users[servertest.Writer]})
	steps := servertest.FirstError{}
	_, err := view.AddMember(t.Context(), souvenir.NewMember{Project: ref, User: "walter", Role: souvenir.MemberReader})
	steps.Note(err)
	waiting, err := walter.Accounts().ProjectInvitations(t.Context())
	steps.Note(err)
	steps.Note(walter.Accounts().DeclineProjectInvitation(t.Context(), waiting[0].ID))
	takesBack(olivia, removed, "walter is removed.")
	if steps.Err != nil {
		t.Fatalf("got %v, want nil", steps.Err)
	}
	if p, err := walter.GetProject(t.Context(), ref); err == nil {
		t.Errorf("a user who declined is %+v in the project, want an error", p.Role)
	}
}

func TestLeavingAProject(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{})
	rita, members := w.SignedIn(servertest.Reader), shop(w)+"/members"
	p := rita.Get(members)
	for _, form := range p.HTML.All("form") {
		if form.Attr("action") == members &&
			!strings.Contains(form.Attr("data-confirm"), "You need a new invitation to come back.") {
			t.Errorf("got no confirmation, want one: %v", form.Attrs)
		}
	}
	left := rita.Post(members, p.FormTo(members, "change", "end"))
	rita.LeadsTo(left, "/projects?done=left").Expect(http.StatusOK, "You left the project.").Without("The shop")
	rita.Get(shop(w)).Expect(http.StatusNotFound)
	w.SignedIn(servertest.Owner).Get(members).Expect(http.StatusOK, "2 members").Without("rita</h3>")
}

// A form suggests the names of people whom the user knows from other projects. Only admins get everyone's.
func TestSuggestedMemberNames(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{})
	for caller, project := range map[string]string{servertest.Owner: "plot", servertest.Admin: "own"} {
		store := w.Store.As(souvenir.Access{User: w.Users[caller]})
		if caller == servertest.Admin {
			if _, err := store.AddProject(t.Context(), souvenir.NewProject{ID: project}); err != nil {
				t.Fatal(err)
			}
		}
		p := w.SignedIn(caller).Get("/projects/" + w.Users[caller] + "/" + project + "/members").Expect(http.StatusOK)
		var names []string
		for _, button := range p.HTML.All("button") {
			if button.Attr("name") == "pick" {
				names = append(names, button.Attr("value"))
			}
		}
		want := "rita walter" // of the shop; not sam, who shares nothing
		if caller == servertest.Admin {
			want = "olivia rita sam walter" // without disabled users
		}
		if strings.Join(names, " ") != want {
			t.Errorf("%s is offered %q, want %v", caller, names, want)
		}
		servertest.CheckPage(w, p)
	}
}

func TestPeopleAreInvitedBySearch(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{})
	olivia := w.SignedIn(servertest.Owner)
	members := "/projects/" + w.Users[servertest.Owner] + "/plot/members"
	olivia.Get(members+"?user=WAL").Expect(http.StatusOK, "Invite walter").Without("Invite rita")
	olivia.Get(members+"?user=sam").Expect(http.StatusOK, "You share no project with such a person").
		Without("Invite sam", "Invite rita")
	admin := w.SignedIn(servertest.Admin)
	if _, err := w.Store.As(souvenir.Access{User: w.Users[servertest.Admin]}).AddProject(t.Context(),
		souvenir.NewProject{ID: "pier"}); err != nil {
		t.Fatal(err)
	}
	admin.Get("/projects/"+w.Users[servertest.Admin]+"/pier/members?user=zzz").Expect(http.StatusOK,
		"No other active user has this in their name").Without("You share no project")
	page := olivia.Get(members)
	for _, button := range page.HTML.All("button") { // the Enter key in the field presses the first button of the form
		if button.Attr("name") == "pick" {
			t.Error("a suggestion comes before the button that invites the typed name, want it after")
		} else if strings.TrimSpace(button.Text) == "Invite" {
			break
		}
	}
	olivia.Submit(page, members, url.Values{"pick": {"walter"}, "user": {"wal"}, "change": {"add"}}).
		Expect(http.StatusSeeOther)
	olivia.Get(members+"?user=wal").Expect(http.StatusOK, `<span>walter</span> <span class="tag off">pending</span>`).
		Without("Invite walter")
	olivia.Get(shop(w)+"/members?user=wal").Expect(http.StatusOK, `<span>walter</span> <span class="tag">member</span>`)
	w.SignedIn(servertest.Reader).Get(shop(w) + "/members?user=w").Expect(http.StatusOK).Without(`id="people"`)
}

func TestProjectsAreRenamed(t *testing.T) {
	w := servertest.New(t, server.Options{})
	olivia, settings := w.SignedIn(servertest.Owner), shop(w)+"/settings"
	servertest.CheckPage(w, olivia.Get(settings).Expect(http.StatusOK, "Rename", "The project stays in the trash until",
		"<b>1 memory</b> in it"))
	renamed := olivia.Submit(olivia.Get(settings), settings, url.Values{"name": {servertest.Hostile}})
	servertest.CheckPage(w, olivia.Get(renamed.Header.Get("Location")).Expect(http.StatusOK, "The project is named"))
	servertest.CheckPage(w, olivia.Get(shop(w)))
	olivia.LeadsTo(takesBack(olivia, renamed, "The project is named"), settings+"?done=undone").Expect(http.StatusOK,
		"Settings of The shop")
	olivia.LeadsTo(olivia.Submit(olivia.Get(settings), settings, nil), settings+"?done=unchanged")
	olivia.Submit(olivia.Get(settings), settings, url.Values{"name": {servertest.Secret}}).Stays(http.StatusBadRequest,
		"is taken by the project", "Settings of The shop")
	olivia.Submit(olivia.Get(settings), settings, url.Values{"name": {" "}}).Stays(http.StatusBadRequest,
		"Name is &#34;&#34;")

	_, err := w.Store.UpdateMember(t.Context(),
		souvenir.ProjectRef{ID: w.Users[servertest.Owner] + "/shop"}, "walter",
		souvenir.MemberUpdate{Role: souvenir.MemberOwner})
	if err != nil {
		t.Fatal(err)
	}
	walter := w.SignedIn(servertest.Writer) // a co-owner, not the owner of record
	walter.Get(settings).Expect(http.StatusOK, "Rename").Without("Delete the project")
	walter.Post(shop(w)+"/delete",
		url.Values{"csrf": {walter.Get(settings).Hidden().Get("csrf")}, "typed": {"The shop"}}).Stays(http.StatusForbidden,
		"only the owner can delete it")
	w.SignedIn(servertest.Reader).Get(settings).Expect(http.StatusForbidden, "only its owners may change it")
}

func TestDeletingProjectsNeedsConfirmation(t *testing.T) {
	w := servertest.New(t, server.Options{})
	olivia, settings := w.SignedIn(servertest.Owner), shop(w)+"/settings"
	for _, typed := range []string{"", "shop", "the shop", servertest.Hostile} {
		p := olivia.Submit(olivia.Get(settings), shop(w)+"/delete",
			url.Values{"typed": {typed}}).Stays(http.StatusBadRequest, "Name of the project is", "nothing was deleted")
		servertest.CheckPage(w, p)
	}
	olivia.Get(shop(w)).Expect(http.StatusOK, "The shop opens at nine.")
	olivia.Get(settings).Expect(http.StatusOK, "stays in the trash until",
		"can be restored until then").Without("cannot be",
		"for good")
	gone := olivia.Submit(olivia.Get(settings), shop(w)+"/delete", url.Values{"typed": {" The shop "}})
	said := olivia.Get(gone.Header.Get("Location")).Expect(http.StatusOK, "“The shop” is deleted, with its memories.",
		"The trash keeps it until", "Undo").Without(`href="` + shop(w) + `"`)
	undo(olivia, said).Expect(http.StatusOK, "Undone.", "The shop opens at nine.")
	olivia.Submit(olivia.Get(settings), shop(w)+"/delete", url.Values{"typed": {"The shop"}})
	olivia.Get(shop(w)).Expect(http.StatusNotFound)
	olivia.Get("/memories/" + w.Memory).Expect(http.StatusNotFound)
	olivia.Get("/api/files/"+w.File).Expect(http.StatusOK, "soup")
}
