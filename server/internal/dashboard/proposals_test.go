package dashboard_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/extract"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
	"github.com/souvenir-ai/souvenir/server"
	"github.com/souvenir-ai/souvenir/server/internal/servertest"
)

// desk is a world with its proposals.
type desk struct {
	*servertest.World
	shop string // the project that Rita may read and Walter may write, OWNER/ID
}

func newDesk(t *testing.T) desk {
	t.Helper()
	w := servertest.New(t, server.Options{})
	return desk{w, w.Users[servertest.Owner] + "/shop"}
}

// says adds proposals in the shop, one for each text.
func (d desk) says(texts ...string) []string {
	d.T.Helper()
	all := make([]extract.Proposal, len(texts))
	for i, text := range texts {
		all[i] = extract.Proposal{Action: extract.Add, Content: text}
	}
	return d.Propose(servertest.Owner, d.shop, "talk", all...)
}

// content returns the text of a memory as its owner sees it; empty if it is gone.
func (d desk) content(id string) string {
	d.T.Helper()
	m, err := d.Store.As(souvenir.Access{User: d.Users[servertest.Owner]}).GetMemory(d.T.Context(), id)
	if err != nil {
		return ""
	}
	return m.Content
}

// facts returns the contents of the memories learned in the shop.
func (d desk) facts() []string {
	d.T.Helper()
	var all []string
	list := souvenir.MemoryList{ProjectID: d.shop, Filter: souvenir.Filter{"event_type": extract.EventFact}}
	for m, err := range d.Store.As(souvenir.Access{User: d.Users[servertest.Owner]}).Memories(d.T.Context(), list) {
		if err != nil {
			d.T.Fatal(err)
		}
		all = append(all, m.Content)
	}
	return all
}

const proposals = "/proposals"

// choose sends a decision about newly stored proposals.
func choose(b *servertest.Browser, action string, ids ...string) *servertest.Page {
	b.W.T.Helper()
	values := url.Values{"action": {action}, "csrf": {b.Get("/profile").Hidden().Get("csrf")}}
	for _, id := range ids {
		values.Add("id", id+".1")
	}
	return b.Post(proposals, values)
}

func TestProposalsAreAcceptedEditedRefusedAndUndone(t *testing.T) {
	d := newDesk(t)
	olivia := d.SignedIn(servertest.Owner)
	servertest.CheckPage(d.World, olivia.Get(proposals).Expect(http.StatusOK, "Nothing to decide").Without(" new<"))
	view := d.Store.As(souvenir.Access{User: d.Users[servertest.Owner]})
	turns, err := view.Conversation("till talk", souvenir.ConversationPlace{ProjectID: "shop"}).Append(t.Context(),
		souvenir.Turn{Role: "user", Speaker: "Walter", Content: "From May on the shop opens at eight."})
	if err != nil {
		t.Fatal(err)
	}
	ids := d.Propose(servertest.Owner, d.shop, "till talk", extract.Proposal{Action: extract.Update, Target: d.Memory,
		Content: "The shop opens at eight.", Reason: "Walter said so.", Confidence: 0.9, Sources: []string{turns[0].ID}},
		extract.Proposal{Action: extract.Add, Content: "商店五月起八点开门。", Sources: []string{"gone"}})
	ids = append(ids, d.Propose(servertest.Owner, "", "", extract.Proposal{Action: extract.Forget, Target: d.Private,
		Group: d.Private, Reason: "it repeats memory " + d.Memory + ": # The shop\n**opens**"})...)
	p := olivia.Get(proposals).Expect(http.StatusOK, "3 proposals waiting", "From the conversation “<bdi>till talk</bdi>”",
		"<b>nine</b>", "<b>eight</b>", "Walter said so.", "90% sure", "/memories/"+turns[0].ID, "From May on",
		"商店五月起八点开门。", "1 more turn not shown", "Similar or contradictory", "The word is swordfish.",
		`3<span class="visually-hidden"> new`,
		"Accept all 2", "<p>It repeats another memory: The shop",
		`/memories/`+d.Memory+`">The other memory`).Without("same as memory")
	servertest.CheckPage(d.World, p)
	olivia.Get("/attention").Expect(http.StatusOK, "1 proposal about memories that contradict or repeat each other",
		"2 proposals to decide about", `href="/proposals"`)

	done := olivia.Submit(p, proposals, url.Values{"id": {ids[0] + ".1"}, "action": {"accept"}})
	p = olivia.Get(proposals+"?undo="+done.GoesTo(proposals).Get("undo")).Expect(http.StatusOK, "1 proposal accepted.",
		`2<span class="visually-hidden"> new`, "Undo")
	if got := d.content(d.Memory); got != "The shop opens at eight." {
		t.Errorf("accepted: got %q, want the new text", got)
	}
	undo(olivia, p).Expect(http.StatusOK, "Undone.", "Walter said so.", `3<span class="visually-hidden"> new`)
	if got := d.content(d.Memory); got != "The shop opens at nine." {
		t.Errorf("undone: got %q, want the old text", got)
	}
	p = olivia.Get(proposals)
	edited := p.FormTo(proposals, "action", "edit")
	edited.Set("id", ids[0]+".1") // in the same state after the undo
	edited.Set("content", " \r\n ")
	servertest.CheckPage(d.World, olivia.Post(proposals, edited).Stays(http.StatusBadRequest, "The text is empty",
		"<details class=\"other-words\" open>"))
	edited.Set("content", strings.Repeat("long ", 500))
	olivia.Post(proposals, edited).Stays(http.StatusBadRequest, "too long", "long long long")
	edited.Set("content", "The shop opens at eight,\r\nfrom May on.")
	olivia.Post(proposals, edited).GoesTo(proposals)
	if got := d.content(d.Memory); got != "The shop opens at eight,\nfrom May on." {
		t.Errorf("edited: got %q, want the words that were typed", got)
	}
	done = choose(olivia, "refuse", ids[1], ids[2])
	p = olivia.Get(proposals+"?undo="+done.GoesTo(proposals).Get("undo")).Expect(http.StatusOK,
		"2 proposals declined.", "Nothing to decide")
	undo(olivia, p).Expect(http.StatusOK, "2 proposals waiting", "商店")
	choose(olivia, "accept", ids[1]).GoesTo(proposals)
	p = olivia.Get(proposals)
	p = olivia.Submit(p, proposals, url.Values{"id": {p.Hidden().Get("id")}, "action": {"accept"}})
	p = olivia.Get(proposals+"?undo="+p.GoesTo(proposals).Get("undo")).Expect(http.StatusOK, "Nothing to decide")
	if got := d.content(d.Private); got != "" {
		t.Errorf("forgotten: got %q, want nothing", got)
	}
	undo(olivia, p).Expect(http.StatusOK, "1 proposal waiting")
	if got := d.content(d.Private); got == "" {
		t.Error("the undo did not bring the memory back, want it back")
	}
	if got := fmt.Sprint(d.facts()); got != "[商店五月起八点开门。]" {
		t.Errorf("got the facts %s, want the accepted one", got)
	}
}

func TestProposalsOfOthersAreNeitherSeenNorDecided(t *testing.T) {
	d := newDesk(t)
	id := d.says("The till is blue.")[0]
	own := d.Propose(servertest.Owner, "", "", extract.Proposal{Action: extract.Add, Content: servertest.Secret})[0]
	for _, other := range []string{servertest.Stranger, servertest.Admin} {
		b := d.SignedIn(other)
		b.Get(proposals).Expect(http.StatusOK, "Nothing to decide").Without("till", servertest.Secret, " new<")
		for _, action := range []string{"accept", "refuse"} {
			for _, foreign := range []string{id, own} {
				servertest.CheckPage(d.World, choose(b, action, foreign).Stays(http.StatusNotFound, "or you can no longer see it").
					Without("till", servertest.Secret))
			}
		}
	}
	rita := d.SignedIn(servertest.Reader)
	p := rita.Get(proposals).Expect(http.StatusOK, "The till is blue.", "shared with you read-only", "shared by olivia").
		Without(servertest.Secret, ">Accept", ">Decline", ">Edit", " new<", "checkbox")
	servertest.CheckPage(d.World, p)
	for _, action := range []string{"accept", "refuse"} {
		choose(rita, action, id).Stays(http.StatusForbidden, "shared with you read-only")
		choose(rita, action, own).Stays(http.StatusNotFound)
	}
	for _, caller := range []string{servertest.Guest, servertest.Owner, servertest.Limited, servertest.ReadOnly} {
		r := d.Request(caller, http.MethodPost, proposals, strings.NewReader("action=accept&id="+id+".1"))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Origin", d.HTTP.URL)
		if p := d.Browser().Send(r); p.Status < http.StatusMultipleChoices {
			t.Errorf("%s without a session: got %d, want a refusal", caller, p.Status)
		}
	}
	olivia := d.SignedIn(servertest.Owner)
	values := url.Values{"action": {"accept"}, "id": {id + ".1"}}
	olivia.Post(proposals, values).Expect(http.StatusForbidden)
	values.Set("csrf", olivia.Get("/profile").Hidden().Get("csrf"))
	r := d.Request(servertest.Guest, http.MethodPost, proposals, strings.NewReader(values.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Origin", "https://elsewhere.example")
	olivia.Send(r).Expect(http.StatusForbidden)
	if got := d.facts(); len(got) != 0 {
		t.Errorf("got the facts %q, want none", got)
	}
	d.SignedIn(servertest.Writer).Get(proposals).Expect(http.StatusOK,
		`1<span class="visually-hidden"> new`, "The till is blue.")
	choose(d.SignedIn(servertest.Writer), "accept", id).GoesTo(proposals)
	if got := d.facts(); len(got) != 1 {
		t.Errorf("a writer accepts: got the facts %q, want one", got)
	}
}

func TestAThousandProposalsPageByPage(t *testing.T) {
	longtest.Only(t)
	d := newDesk(t)
	texts := make([]string, 1000)
	for i := range texts {
		texts[i] = fmt.Sprintf("Shelf %04d holds jar %d.", i, i*7919%1000)
	}
	d.says(texts...)
	olivia := d.SignedIn(servertest.Owner)
	seen := map[string]bool{}
	for n := 1; n <= 40; n++ {
		p := olivia.Get(fmt.Sprintf("%s?waiting=%d", proposals, n)).Expect(http.StatusOK, fmt.Sprintf("Page %d of 40", n),
			"1,000 proposals waiting", `99+<span class="visually-hidden"> new`)
		for _, shelf := range regexp.MustCompile(`<p class="text">Shelf \d{4}`).FindAllString(p.Body, -1) {
			seen[shelf] = true
		}
		if n == 1 || n == 40 {
			servertest.CheckPage(d.World, p)
		}
	}
	if len(seen) != 1000 {
		t.Errorf("got %d proposals on all pages, want 1000", len(seen))
	}
	last := olivia.Get(proposals+"?waiting=99").Expect(http.StatusOK, "Page 40 of 40")
	done := olivia.Submit(last, proposals+"?waiting=40", url.Values{"id": last.FormTo(proposals+"?waiting=40",
		"action", "refuse")["id"], "action": {"refuse"}})
	done.GoesTo(proposals + "?")
	olivia.Get(done.Header.Get("Location")).Expect(http.StatusOK, "Page 40 of 40", "999 proposals waiting")
}

func TestTheMenuUpdatesItsCountOfProposals(t *testing.T) {
	d := newDesk(t)
	d.says("The till is blue.")
	olivia := d.SignedIn(servertest.Owner)
	olivia.Get("/").Expect(http.StatusOK, `1<span class="visually-hidden"> new`)
	second := d.says("The safe is green.")
	olivia.Get(proposals).Expect(http.StatusOK, `2<span class="visually-hidden"> new`)
	choose(olivia, "accept", second...).GoesTo(proposals)
	olivia.Get(proposals).Expect(http.StatusOK, `1<span class="visually-hidden"> new`)
	olivia.Get("/").Expect(http.StatusOK, `1<span class="visually-hidden"> new`)
	rob := d.SignedIn(servertest.Reader)
	rob.Get("/").Expect(http.StatusOK).Without(`1<span class="visually-hidden"> new`)
}

func TestAProposalIsDecidedOnce(t *testing.T) {
	longtest.Only(t)
	d := newDesk(t)
	ids := d.says("The till is blue.", "The till is heavy.")
	olivia, walter := d.SignedIn(servertest.Owner), d.SignedIn(servertest.Writer)
	choose(olivia, "accept", ids[0]).GoesTo(proposals)
	servertest.CheckPage(d.World, choose(olivia, "accept", ids[0]).Stays(http.StatusNotFound,
		"accepted or declined it already"))
	choose(walter, "refuse", ids[0]).Stays(http.StatusNotFound, "accepted or declined it already")
	p := choose(walter, "accept", ids...)
	walter.Get(p.Header.Get("Location")).Expect(http.StatusOK,
		"1 proposal accepted. 1 proposal left as before: Someone has")

	id := d.says("The door is green.")[0]
	csrf := map[*servertest.Browser]string{}
	for _, b := range []*servertest.Browser{olivia, walter} {
		csrf[b] = b.Get("/profile").Hidden().Get("csrf")
	}
	var mu sync.Mutex
	var all sync.WaitGroup
	statuses := map[int]int{}
	for _, b := range []*servertest.Browser{olivia, walter, olivia, walter} {
		all.Go(func() {
			p := b.Post(proposals, url.Values{"csrf": {csrf[b]}, "action": {"accept"}, "id": {id + ".1"}})
			mu.Lock()
			defer mu.Unlock()
			statuses[p.Status]++
		})
	}
	all.Wait()
	if statuses[http.StatusSeeOther] != 1 || statuses[http.StatusNotFound] != 3 {
		t.Errorf("got %v, want one success and three that come too late", statuses)
	}
	if got := d.facts(); len(got) != 3 {
		t.Errorf("got the facts %q, want each once", got)
	}
}

func TestProposalsThatNoLongerFitAreExplained(t *testing.T) {
	longtest.Only(t)
	d := newDesk(t)
	view := d.Store.As(souvenir.Access{User: d.Users[servertest.Owner]})
	olivia, walter := d.SignedIn(servertest.Owner), d.SignedIn(servertest.Writer)
	about := func(text string) (memory, proposal string) {
		m := d.AddMemory(servertest.Owner, souvenir.NewMemory{Content: text, ProjectID: "shop"})
		return m.ID, d.Propose(servertest.Owner, d.shop, "talk", extract.Proposal{Action: extract.Update, Target: m.ID,
			Content: text + " Or not."})[0]
	}
	changed, first := about("The till is blue.")
	text, plot := "The till is red.", "plot"
	if _, err := view.UpdateMemory(t.Context(), changed, souvenir.MemoryUpdate{Content: &text}); err != nil {
		t.Fatal(err)
	}
	moved, second := about("The cellar is damp.")
	if _, err := view.UpdateMemory(t.Context(), moved, souvenir.MemoryUpdate{ProjectID: &plot}); err != nil {
		t.Fatal(err)
	}
	deleted, third := about("The attic is dry.")
	if err := view.DeleteMemory(t.Context(), deleted, nil); err != nil {
		t.Fatal(err)
	}
	p := olivia.Get(proposals).Expect(http.StatusOK, "The memory was changed or deleted since.", "only declined",
		"/memories/"+changed+"/edit").Without("Accept all", ">Accept<")
	servertest.CheckPage(d.World, p)
	walter.Get(proposals).Expect(http.StatusOK, "Or not.").Without("/memories/" + moved)
	for _, id := range []string{first, second, third} {
		for _, b := range []*servertest.Browser{olivia, walter} {
			choose(b, "accept", id).Stays(http.StatusConflict, "no longer fits")
		}
	}
	choose(walter, "refuse", first, second, third).GoesTo(proposals)
	if got := d.content(changed) + d.content(moved); got != "The till is red.The cellar is damp." {
		t.Errorf("got %q, want the texts of others", got)
	}

	// If a proposal is rewritten between reading and accepting, it is shown again.
	id := d.says("The till is blue.")[0]
	swapped := "The safe's code is 0000."
	if _, err := view.UpdateMemory(t.Context(), id, souvenir.MemoryUpdate{Content: &swapped}); err != nil {
		t.Fatal(err)
	}
	choose(walter, "accept", id).Stays(http.StatusConflict, "was changed since it was read", "0000")

	id = d.says("The till is green.")[0]
	done := choose(walter, "accept", id)
	member := souvenir.ProjectRef{ID: d.shop}
	if err := view.DeleteMember(t.Context(), member, "walter"); err != nil {
		t.Fatal(err)
	}
	choose(walter, "refuse", id).Stays(http.StatusNotFound)
	walter.Get(proposals).Expect(http.StatusOK, "Nothing to decide").Without("0000")
	step := done.GoesTo(proposals).Get("undo")
	walter.Post("/undo", url.Values{"csrf": {walter.Get("/profile").Hidden().Get("csrf")}, "step": {step}}).
		Expect(http.StatusConflict, "was not undone")
	if got := d.facts(); len(got) != 1 {
		t.Errorf("after a former member's change: got the facts %q, want the accepted one", got)
	}
}

func TestTheFormOfProposalsRefusesWhatItDoesNotKnow(t *testing.T) {
	longtest.Only(t)
	d := newDesk(t)
	id := d.says(servertest.Hostile)[0]
	olivia := d.SignedIn(servertest.Owner)
	csrf := olivia.Get("/profile").Hidden().Get("csrf")
	many := make([]string, 26)
	for i := range many {
		many[i] = fmt.Sprintf("%d.1", i)
	}
	for _, test := range []struct {
		action string
		ids    []string
		want   string
	}{
		{servertest.Hostile, []string{id + ".1"}, "expected accept, edit or refuse"}, {"accept", nil, "select 1 to 25"},
		{"accept", many, "select 1 to 25"}, {"edit", []string{id + ".1", "b.1"}, "or edit one"},
		{"accept", []string{id}, "the one on the page"}, {"accept", []string{id + ".0"}, "the one on the page"},
		{"accept", []string{servertest.Hostile}, "the one on the page"}, {"edit", []string{id + ".1"}, "The text is empty"},
	} {
		p := olivia.Post(proposals, url.Values{"csrf": {csrf}, "action": {test.action}, "id": test.ids}).
			Stays(http.StatusBadRequest, test.want).Without("<script>alert")
		servertest.CheckPage(d.World, p)
	}
	choose(olivia, "accept", "nowhere").Stays(http.StatusNotFound)
	choose(olivia, "refuse", d.Memory).Stays(http.StatusNotFound)
	if got := d.facts(); len(got) != 0 || d.content(d.Memory) == "" {
		t.Errorf("got the facts %q, want none", got)
	}
}

func TestWithoutATrashNoUndoIsOffered(t *testing.T) {
	longtest.Only(t)
	store, err := souvenir.Open(t.Context(), filepath.Join(t.TempDir(), "s.db"), &souvenir.Options{KeepTrash: -1})
	if err != nil {
		t.Fatal(err)
	}
	p := servertest.Plan{Tokens: map[string]string{}, TokenIDs: map[string]string{}, Users: map[string]string{}}
	if err := p.Fill(store); err != nil {
		t.Fatal(err)
	}
	d := desk{servertest.Serve(t, p, store, server.Options{}), p.Users[servertest.Owner] + "/shop"}
	olivia := d.SignedIn(servertest.Owner)
	done := choose(olivia, "accept", d.says("The till is blue.")...)
	olivia.Get(done.Header.Get("Location")).Expect(http.StatusOK, "1 proposal accepted.").Without(">Undo<")
}

// parrot proposes to remember each turn.
type parrot struct{}

func (parrot) Extract(_ context.Context, c extract.Conversation) (extract.Extraction, error) {
	var x extract.Extraction
	for _, t := range c.Turns {
		x.Proposals = append(x.Proposals, extract.Proposal{Action: extract.Add, Content: t.Content, Sources: []string{t.ID}})
	}
	return x, nil
}

func TestProposalsOfALearnerAreOnThePage(t *testing.T) {
	d := newDesk(t)
	walter := d.Store.As(souvenir.Access{User: d.Users[servertest.Writer]})
	place := souvenir.ConversationPlace{ProjectID: d.shop}
	_, err := walter.Conversation("floor", place).Append(t.Context(),
		souvenir.Turn{Role: "user", Content: "We sell no fish."})
	if err != nil {
		t.Fatal(err)
	}
	l, err := extract.New(walter, extract.Options{Extractor: parrot{}, ProjectID: d.shop, Review: true})
	if err != nil {
		t.Fatal(err)
	}
	r, err := l.Learn(t.Context(), "floor")
	if err != nil || len(r.Kept) != 1 {
		t.Fatalf("got %+v and the error %v, want one kept", r, err)
	}
	olivia := d.SignedIn(servertest.Owner)
	p := olivia.Get(proposals).Expect(http.StatusOK, "We sell no fish.", "<bdi>floor</bdi>", "1 proposal waiting")
	olivia.Submit(p, proposals, url.Values{"id": {r.Kept[0].ID + ".1"}, "action": {"accept"}}).GoesTo(proposals)
	if got := d.facts(); len(got) != 1 || got[0] != "We sell no fish." {
		t.Errorf("got the facts %q, want what was said", got)
	}
}

func TestForgedProposalsDoNotBreakThePage(t *testing.T) {
	longtest.Only(t)
	d := newDesk(t)
	long := strings.Repeat("Donaudampfschiff", 500)
	d.Propose(servertest.Writer, d.shop, long, extract.Proposal{Action: extract.Add, Content: "The till is blue.",
		Sources: []string{long, "\u202e", "' OR 1=1", servertest.Hostile}, Group: long, Reason: long, Confidence: 1},
		extract.Proposal{Action: "rule", Content: long})
	p := d.SignedIn(servertest.Owner).Get(proposals).Expect(http.StatusOK, "The till is blue.", "It cannot be read",
		"4 more turns not shown", ">Decline<").Without("<script>alert")
	servertest.CheckPage(d.World, p)
	if len(p.Body) > 60_000 {
		t.Errorf("got a page of %d bytes, want that long names are cut", len(p.Body))
	}
}
