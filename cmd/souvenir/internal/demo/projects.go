package demo

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"io"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/extract"
)

// steps returns the functions that add more than memories to the projects, by the day of the story.
func (f *filler) steps() map[int]func() error {
	return map[int]func() error{
		5: f.rules, 18: f.files, 30: f.todos,
		44: func() error { return f.converse(residentFares) },
		57: func() error { return f.converse(packingList) },
		66: func() error { return f.converse(winterRelease) },
		67: f.progress,
	}
}

func (f *filler) rules() error {
	for _, rule := range []souvenir.NewRule{
		{ProjectName: "berth", Type: souvenir.RuleDo, Content: "- Write the test before the fix.\n" +
			"- Say *sailing*, *service* and *crossing* as the glossary does.\n" +
			"- Fares are integers, with the currency beside them.\n"},
		{ProjectName: "berth", Type: souvenir.RuleDont, Content: "- No releases between 19 December and 2 January.\n" +
			"- Never retry a payment with a new idempotency key.\n"},
		{ProjectName: "lantern", Type: souvenir.RuleDo, Content: "- Every screen works without a network.\n"},
	} {
		if _, err := f.clients[claudeCode].view.SetRule(f.ctx, rule); err != nil {
			return err
		}
	}
	return nil
}

const berthTodo = `The winter release: group bookings for two more operators, and a standby that takes over.

## Constitution

- A seat is never sold twice.
- Every migration works with the release before it.

## Spec

Groups of up to 300 passengers are quoted in under 50 ms and held for 48 hours.

## Plan

1. Group quotes, 2. the standby cluster, 3. the port feed for Stornoway.

## Tasks

- [x] T1 greedy order of discounts
- [x] T2 hold groups for 48 hours
- [ ] T3 replay the log in Bergen
- [ ] T4 practise the takeover with Samuel
- [ ] T5 port adapter for Stornoway
- [ ] T6 screen reader pass over the group form
- [ ] T7 tell Ingrid the date

## Gaps

- Who is on call on the first night of the standby?
`

const lanternTodo = `## Constitution

- Every screen works without a network.

## Spec

## Plan

## Tasks

- [x] T1 tickets verify without a network
- [ ] T2 departure board in large type
- [ ] T3 rebooking in a storm: one button, total price first

## Gaps
`

func (f *filler) todos() error {
	for project, content := range map[string]string{"berth": berthTodo, "lantern": lanternTodo} {
		if _, err := f.clients[cursor].view.SetTodo(f.ctx,
			souvenir.NewTodo{ProjectName: project, Content: content}); err != nil {
			return err
		}
	}
	return nil
}

func (f *filler) files() error {
	drawing, err := deckPlan()
	if err != nil {
		return err
	}
	for _, one := range []struct {
		name, category, project, description string
		content                              io.Reader
	}{
		{"deck-plan-havorn.png", "picture", "berth", "Vehicle deck of the Havørn: lanes and height limits", drawing},
		{"timetable-nordkyst-winter.csv", "data", "berth", "What Nordkyst sent for the winter",
			strings.NewReader("service,weekday,departure,harbour,ship\nN1,Mon-Fri,07:30,Bodø,Havørn\n" +
				"N1,Sat,09:00,Bodø,Havørn\nN2,Mon-Sun,15:45,Værøy,Landego\n")},
		{"standby-measured.eml", "document", "berth", "Samuel's mail about the standby", strings.NewReader(standbyMail)},
		{"group-bookings.html", "document", "berth", "What the operators were sent about groups",
			strings.NewReader(groupBookings)},
		{"takeover.md", "document", "berth", "How the standby takes over",
			strings.NewReader("# Takeover\n\n1. Stop the writers: `shipit pause berth`.\n2. Promote Bergen.\n" +
				"3. Point the pool at it, start the writers.\n\n**Never** start both: seats would be sold twice.\n")},
		{"itinerary.md", "document", "japan", "The journey, day by day",
			strings.NewReader("# Japan, 27 March to 12 April\n\n| days | where |\n|---|---|\n| 1-4 | Tokyo |\n" +
				"| 5-7 | Kanazawa |\n| 8-11 | Kyoto |\n| 12-13 | Naoshima |\n| 14-16 | Osaka, at Kenji's |\n")},
		{"letter-school.txt", "document", "", "From Frau Yildiz",
			strings.NewReader("Liebe Eltern,\n\nam 4. Dezember endet der Unterricht für alle um 11:30 Uhr.\n\nS. Yildiz\n")},
	} {
		n := souvenir.NewFile{Filename: one.name, Category: one.category, ProjectName: one.project,
			Description: one.description}
		added, err := f.clients[claude].view.AddFile(f.ctx, n, one.content)
		if err != nil {
			return err
		}
		if err := f.record(claude, souvenir.NewActivity{Tool: "POST /api/files/upload", FileID: added.ID}); err != nil {
			return err
		}
		if _, err := f.clients[claude].view.WaitIndexed(f.ctx, added.ID); err != nil {
			return err
		}
	}
	return nil
}

const standbyMail = "From: Samuel Osei <samuel@quayside.example>\r\nTo: Mara <mara@quayside.example>\r\n" +
	"Subject: The standby, measured\r\nMIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n" +
	"Hello Mara,\r\n\r\nI pulled the plug of the primary three times on Tuesday night. Bergen was promoted after " +
	"41, 38 and 44 seconds, and no booking was lost. The slowest part is the pool: it waits half a minute before it " +
	"gives up the old address.\r\n\r\nSamuel\r\n"

const groupBookings = `<!doctype html><title>Group bookings</title>
<h1>Group bookings for operators</h1>
<p>A group is ten passengers or more. Groups of up to 300 get a quote at once; larger ones are called back.</p>
<h2>Cancelling</h2>
<p>A group pays nothing if it cancels 21 days before the departure, and a quarter of the fare after that.</p>
<h2>Coaches</h2>
<p>A coach counts as twelve metres of lane. Drivers travel free and sleep in a cabin on night crossings.</p>
`

// deckPlan draws the lanes of a vehicle deck.
func deckPlan() (io.Reader, error) {
	drawn := image.NewRGBA(image.Rect(0, 0, 480, 200))
	for y := range 200 {
		for x := range 480 {
			shade := color.RGBA{226, 234, 240, 255}
			if lane, along := y/40, (x+23*(y/40))%90; y%40 > 8 && along < 70-6*lane {
				shade = color.RGBA{uint8(60 + 30*lane), 120, uint8(190 - 24*lane), 255}
			}
			drawn.Set(x, y, shade)
		}
	}
	var encoded bytes.Buffer
	err := png.Encode(&encoded, drawn)
	return &encoded, err
}

// progress ticks a task.
func (f *filler) progress() error {
	_, err := f.clients[claudeCode].view.CompleteTask(f.ctx, souvenir.TaskRef{
		ProjectName: "berth", TaskID: "T3"})
	if err != nil {
		return err
	}
	return f.record(claudeCode, souvenir.NewActivity{Tool: "todo", Action: "complete",
		Project: souvenir.ProjectRef{Name: "berth"}})
}

// conversation is one between the user and a client, who speak in turn.
type conversation struct {
	key, project string
	by           int
	said         []string
}

var (
	winterRelease = conversation{"winter-release", "berth", claudeCode, []string{
		"Can we move the winter release to the week before Christmas?",
		"The rules say no releases from 19 December to 2 January. The last free Thursday before is 17 December.",
		"Then the 17th, at 14:00 as always. Who is on call that night?",
		"By the rota it is Priya, until hand-over on Wednesday at eleven. I noted the date in the to-do as T7: tell Ingrid.",
	}}
	residentFares = conversation{"resident-fares", "berth", cursor, []string{
		"Where do we check that a passenger is a resident?",
		"At check-in, not at booking: grandparents book for grandchildren. Ingrid asked for that in September.",
		"Good. Then the discount must not block the payment page.",
		"Agreed. I moved the check behind a feature switch, owner Priya, to be gone by the first of March.",
	}}
	packingList = conversation{"packing-list", "japan", claude, []string{
		"What did we forget last time we flew with the children?",
		"Malte's frozen peas, in his own words. Also an adapter, and Ida's book about Saturn.",
		"Put the adapter on the list. And a book about Saturn in paperback.",
		"Done. Frau Kruse takes Pickle from the evening of the 26th.",
	}}
)

func (f *filler) converse(c conversation) error {
	for i, text := range c.said {
		turn := souvenir.Turn{Role: "user", Speaker: "Mara", Content: text}
		if i%2 == 1 {
			turn.Role, turn.Speaker = "assistant", []string{"Claude Code", "Cursor", "Claude"}[c.by]
		}
		added, err := f.clients[c.by].view.Conversation(c.key,
			souvenir.ConversationPlace{ProjectName: c.project}).Append(f.ctx, turn)
		if err != nil {
			return err
		}
		if err := f.record(c.by, souvenir.NewActivity{Tool: "memory", Action: "store",
			MemoryID: added[0].ID}); err != nil {
			return err
		}
	}
	return nil
}

// today adds things that wait for the user: memories that say the same or contradict each other, and deletions to look
// over.
func (f *filler) today() error {
	f.at(f.ends.Add(-90 * time.Minute))
	for _, one := range []struct {
		by int
		m  souvenir.NewMemory
	}{
		{claudeCode, souvenir.NewMemory{ProjectName: "berth", EventType: "decision", Tags: []string{"deploy"},
			Content: "Deploy window: Berth is released on Thursdays at 14:00, after the nightly tests, " +
				"with Samuel at the graphs."}},
		{cursor, souvenir.NewMemory{ProjectName: "berth", EventType: "decision", Tags: []string{"deploy"},
			Content: "Deploy window: Berth is released on Thursdays at 14:00, after the nightly tests. " +
				"Samuel is at the graphs."}},
		{cursor, souvenir.NewMemory{ProjectName: "berth", EventType: "decision", Tags: []string{"deploy"},
			Content: "Deploy window: Berth is released on Tuesdays at 14:00, after the nightly tests, " +
				"with Samuel at the graphs."}},
		{claude, souvenir.NewMemory{EventType: "fact", Tags: []string{"family", "school"},
			Content: "Ida and Malte finish school at 11:30 on 4 December."}},
		{claude, souvenir.NewMemory{EventType: "fact", Tags: []string{"family", "school"},
			Content: "On 4 December school finishes at 11:30 for Ida and Malte."}},
	} {
		if err := f.remember(one.m, one.by); err != nil {
			return err
		}
	}
	window := f.stored[len(f.stored)-5].id
	content := "# Deploy window\n\nBerth is released on **Thursdays at 14:00**, " +
		"after the nightly tests, with Samuel at the graphs.\n"
	if err := f.update(cursor, window, souvenir.MemoryUpdate{Content: &content}); err != nil {
		return err
	}
	if err := f.propose(); err != nil {
		return err
	}
	return f.deletions()
}

// propose adds near duplicates that wait for a decision, as "souvenir learn --consolidate" does without a model.
func (f *filler) propose() error {
	berth, err := f.view.GetProject(f.ctx, souvenir.ProjectRef{Name: "berth"})
	if err != nil {
		return err
	}
	view := f.store.As(souvenir.Access{User: f.user.ID, Through: "learn"})
	for _, project := range []string{"", f.user.ID + "/" + berth.ID} {
		learner, err := extract.New(view, extract.Options{ProjectID: project, Review: true})
		if err != nil {
			return err
		}
		if _, err := learner.Consolidate(f.ctx); err != nil {
			return err
		}
	}
	return nil
}

// deletions puts memories into the trash that the clients and the user have deleted.
func (f *filler) deletions() error {
	for i, content := range []string{
		"Test: does the memory work? Please remember the number 17.",
		"Lunch on Tuesday moved to 12:30.",
		"The build on branch spike/graphql is red; ignore it.",
	} {
		by := i % len(f.clients)
		added, err := f.clients[by].view.AddMemory(f.ctx, souvenir.NewMemory{Content: content, EventType: "note"})
		if err != nil {
			return err
		}
		if err := f.clients[by].view.DeleteMemory(f.ctx, added.ID, nil); err != nil {
			return err
		}
		if err := f.record(by, souvenir.NewActivity{Tool: "memory", Action: "delete", MemoryID: added.ID}); err != nil {
			return err
		}
	}
	old, err := f.view.AddFile(f.ctx, souvenir.NewFile{Filename: "deck-plan-draft.txt", ProjectName: "berth"},
		strings.NewReader("Superseded by the drawing.\n"))
	if err != nil {
		return err
	}
	return f.view.DeleteFile(f.ctx, old.ID, nil)
}
