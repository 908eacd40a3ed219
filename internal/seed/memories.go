package seed

import (
	"fmt"
	"strings"

	"github.com/souvenir-ai/souvenir"
)

// batch is the number of memories stored at once. The clock advances between batches, and later memories may link to
// earlier ones.
const batch = 500

// memories stores n memories of the user.
func (f *filler) memories(n int) error {
	for name, description := range map[string]string{"journal": "What happened, day by day",
		"reference": "What is looked up again and again", "empty": "Nothing is in here yet"} {
		if _, err := f.view.AddCollection(f.ctx, souvenir.NewCollection{Name: name, Description: description}); err != nil {
			return err
		}
	}
	size := min(batch, max(1, n/8))
	for done := 0; done < n; {
		f.at(0.98 * float64(done) / float64(n))
		size = min(size, n-done)
		all, about := make([]souvenir.NewMemory, size), make([]topic, size)
		for i := range all {
			about[i] = pick(f.writer, f.topics)
			all[i] = f.memory(about[i])
		}
		stored, err := f.view.AddMemories(f.ctx, all, nil)
		if err != nil {
			return err
		}
		for i, s := range stored {
			f.ids[about[i].name] = append(f.ids[about[i].name], s.ID)
		}
		done += size
	}
	return nil
}

// memory creates a memory about a topic.
func (f *filler) memory(t topic) souvenir.NewMemory {
	m := souvenir.NewMemory{
		Content: f.text(t),
		EventType: pick(f.writer, []string{"decision", "decision", "conversation", "note", "note", "fact", "case", "incident",
			""}),
		Tags: []string{t.name},
	}
	if last := f.texts[t.name]; last != "" && f.once(30) {
		m.Content = f.nearly(last)
	}
	f.texts[t.name] = m.Content
	if m.ProjectID = t.project; f.once(10) {
		m.ProjectID = pick(f.writer, []string{"", "atlas", "ledger", "harbour"})
	}
	if f.once(2) {
		m.Importance = pick(f.writer,
			[]souvenir.Importance{souvenir.ImportanceLow, souvenir.ImportanceMedium, souvenir.ImportanceMedium,
				souvenir.ImportanceHigh, souvenir.ImportanceCritical})
	}
	if f.once(2) {
		m.State = pick(f.writer, []string{souvenir.StateActive, souvenir.StateActive, souvenir.StateCompleted,
			souvenir.StateArchived})
	}
	if f.once(8) {
		m.Classification = pick(f.writer,
			[]souvenir.Classification{souvenir.ClassDo, souvenir.ClassDont, souvenir.ClassTodo, souvenir.ClassNotes})
	}
	if f.once(3) {
		m.Tags = append(m.Tags, pick(f.writer,
			[]string{"urgent", "idea", "later", "meeting", "customer", "family", fmt.Sprint("week-", 1+f.random.IntN(52))}))
	}
	if f.once(6) {
		m.Collection = pick(f.writer, []string{"journal", "reference"})
	}
	if f.once(4) {
		m.Metadata = map[string]any{"source": pick(f.writer, []string{"chat", "mail", "call", "ticket"}),
			"confidence": float64(f.random.IntN(100)) / 100}
		if f.once(2) {
			m.Metadata["module_name"] = pick(f.writer, []string{"checkout", "tiles", "mailer", "importer"})
		}
	}
	for earlier := f.ids[t.name]; len(earlier) > 0 && len(m.Related) < 3 && f.once(2); {
		if id := pick(f.writer, earlier); !strings.Contains(strings.Join(m.Related, " "), id) {
			m.Related = append(m.Related, id)
		}
	}
	return m
}

const todo = `What is left to do for the atlas.

## Constitution

- The map works **offline**.
- Nobody has to sign in to look at a map.

## Spec

Tiles are made once a night; see [the format](https://example.com/tiles).

## Plan

1. Tiles, 2. search, 3. print.

## Tasks

- [x] T1 choose the projection
- [x] T2 write the importer
- [ ] T3 make tiles of the coast
- [ ] T4 search by name
  - [ ] T4.1 is no task id, and stays as it is
- [ ] T12 print on A3

## Gaps

- Who pays for the server in winter?
`

// known stores the items that exist once: rules, a todo, main memories, an identity, and the memory named in Filled.
func (f *filler) known() error {
	do := "# How we work on the atlas\n\n- Write a **test** before the fix.\n- Ask Mara before changing `tiles/`.\n\n| " +
		"when | who |\n|---|---|\n| release | Jonas |\n"
	for _, rule := range []souvenir.NewRule{
		{ProjectID: "atlas", Type: souvenir.RuleDo, Content: do},
		{ProjectID: "atlas", Type: souvenir.RuleDont, Content: "- No releases on Fridays.\n- Never delete tiles by hand.\n"},
		{Type: souvenir.RuleDo, Content: "Answer in the language of the question.\n"},
	} {
		if _, err := f.view.SetRule(f.ctx, rule); err != nil {
			return err
		}
	}
	if _, err := f.view.SetTodo(f.ctx, souvenir.NewTodo{ProjectID: "atlas", Content: todo}); err != nil {
		return err
	}
	if _, err := f.view.SetIdentityMemory(f.ctx, souvenir.IdentityMemory{
		Content: "Sol keeps notes for Anna and her team.", Personality: "calm, exact", Nicknames: []string{"Sol"},
		Address: "by first name", EmotionalState: "curious",
	}); err != nil {
		return err
	}
	near := f.ids[f.topics[0].name]
	for _, project := range []string{"atlas", "ledger"} {
		if _, err := f.view.AddMemory(f.ctx, souvenir.NewMemory{
			Content:   "# " + project + "\n\nWhat " + project + " is about, who works on it and where things are.\n",
			EventType: souvenir.EventProjectMain, ProjectID: project,
			Related: near[:min(3, len(near))],
		}); err != nil {
			return err
		}
	}
	stored, err := f.view.AddMemory(f.ctx, souvenir.NewMemory{
		Content: "The coast has **forty** tiles.\n\nThey are made at night.\n", EventType: "decision", ProjectID: "atlas",
		Importance: souvenir.ImportanceHigh,
		State:      souvenir.StateActive, Tags: []string{"tiles", "coast"}, Related: near[:min(3, len(near))],
		ShownMetadata: map[string]any{"source": "meeting", "zoom": 12},
	})
	if err != nil {
		return err
	}
	f.Memory, f.Project = stored.ID, "atlas"
	for i, content := range []string{
		"The coast has **fifty** tiles.\n\nThey are made at night.\n",
		"The coast has **fifty** tiles.\n\nThey are made at night, by the scheduler.\n\n- zoom 12\n- zoom 13\n",
	} {
		if _, err := f.view.UpdateMemory(f.ctx, f.Memory,
			souvenir.MemoryUpdate{Content: &content, ShownMetadata: map[string]any{"zoom": 13 + i}}); err != nil {
			return err
		}
	}
	_, err = f.view.AddMemory(f.ctx,
		souvenir.NewMemory{Content: "The tiles of the coast were forty at first.", ProjectID: "atlas",
			Related: []string{f.Memory}})
	return err
}
