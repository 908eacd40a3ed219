package questions

import (
	"fmt"
	"strings"
	"time"
)

// maker makes the memories and questions of one language.
type maker struct {
	texts
	random    *random
	units     []unit
	questions []Question
	seen      map[string]bool // texts that are taken
}

// Numbers for each language that its file does not set.
const (
	perFrame  = 8  // memories of a frame
	notes     = 40 // memories that answer nothing
	longNote  = 12 // sentences of a long text, at least
	longNotes = 28 // and how many more it may have
)

func (m *maker) make() {
	m.seen = map[string]bool{}
	for i, f := range m.frames {
		m.frame(i, f)
	}
	for i, f := range m.identifiers {
		m.identifier(i, f)
	}
	for i, p := range m.paraphrases {
		key := fmt.Sprintf("paraphrase %d", i)
		m.add(key, key, m.memory(p.memory, "note"))
		m.add("", key, m.memory(p.near, "note"))
		m.ask("paraphrase", i, key, p.question)
	}
	for i, d := range m.dialogues {
		m.dialogue(i, d)
	}
	for i, q := range m.unanswered {
		m.ask(Unanswerable, 100+i, "", q)
	}
	for range notes {
		m.note()
	}
}

// frame makes the memories of a frame about eight of the twelve subjects, and a question about one of them. For every
// fourth frame it also makes a question about one of the other four, which nothing answers.
func (m *maker) frame(i int, f frame) {
	names := m.names[f.subjects]
	subject := func(k int) string { return names[(3*i+5*k)%len(names)] }
	values := m.random.permuted(f.values)
	group := fmt.Sprintf("frame %d", i)
	for k := range perFrame {
		m.add(group+subject(k), group, m.fact(f, subject(k), values[k%len(values)]))
	}
	asked := subject(m.random.intn(perFrame))
	m.ask(f.category, i, group+asked, fill(f.question, "{x}", asked))
	if i%4 == 0 {
		missing := subject(perFrame + m.random.intn(len(names)-perFrame))
		m.ask(Unanswerable, i, group+missing, fill(f.question, "{x}", missing))
	}
}

// fact is a memory of a frame: alone, with an aside, or among other sentences.
func (m *maker) fact(f frame, subject, value string) Memory {
	text := fill(f.wordings[m.random.intn(len(f.wordings))], "{x}", subject, "{y}", value)
	switch m.random.intn(8) {
	case 0, 1, 2:
		text = m.join(text, m.asides[m.random.intn(len(m.asides))])
	case 3:
		text = m.among(text, 1+m.random.intn(4))
	}
	return m.memory(text, f.category)
}

// dialogue adds the turns of a conversation, a minute apart.
func (m *maker) dialogue(i int, d dialogue) {
	key := fmt.Sprintf("dialogue %d", i)
	began := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC).Add(time.Duration(m.random.intn(200*24*60)) * time.Minute)
	thread := fmt.Sprintf("thread-%04d", m.random.intn(10_000))
	u := unit{group: key}
	for k, t := range d.turns {
		memory := m.memory(t.speaker+": "+t.text, "conversation")
		memory.Metadata["conversation_id"], memory.Metadata["speaker"] = thread, t.speaker
		memory.Metadata["time"] = began.Add(time.Duration(k) * time.Minute).Format(time.RFC3339)
		if t.answer {
			memory.key = key
		}
		u.memories = append(u.memories, memory)
	}
	m.units = append(m.units, u)
	m.ask("conversation", i, key, d.question)
}

// note adds a memory of a few sentences that answers nothing.
func (m *maker) note() {
	for {
		if text := m.among("", 2+m.random.intn(4)); !m.seen[text] {
			m.add("", "notes", m.memory(text, "note"))
			return
		}
	}
}

// distractors makes n memories like those of the frames, about other projects and people.
func (m *maker) distractors(n int) []unit {
	var units []unit
	names := m.furtherNames()
	for i := 0; len(units) < n; i++ {
		f := m.frames[i%len(m.frames)]
		memory := m.fact(f, names[i/len(m.frames)%len(names)], f.values[m.random.intn(len(f.values))])
		if i/len(m.frames) >= len(names) || m.random.intn(10) == 0 {
			memory = m.memory(m.among("", 3+m.random.intn(4)), "note")
		}
		if m.seen[memory.Text] {
			continue
		}
		m.seen[memory.Text] = true
		units = append(units, unit{memories: []Memory{memory}})
	}
	return units
}

// furtherNames combines syllables, in a random order.
func (m *maker) furtherNames() []string {
	var names []string
	for _, first := range m.syllables[0] {
		for _, middle := range m.syllables[1] {
			for _, last := range m.syllables[2] {
				names = append(names, first+middle+last)
			}
		}
	}
	return m.random.permuted(names)
}

func (m *maker) memory(text, eventType string) Memory {
	return Memory{Text: text, Metadata: map[string]any{"event_type": eventType}}
}

func (m *maker) add(key, group string, memory Memory) {
	memory.key = key
	m.seen[memory.Text] = true
	m.units = append(m.units, unit{memories: []Memory{memory}, group: group})
}

func (m *maker) ask(category string, n int, key, text string) {
	m.questions = append(m.questions, Question{ID: fmt.Sprintf("%s-%s-%d", m.language, category, n), Category: category,
		Language: m.language, Text: text, key: key})
}

// among puts a sentence among n others; an empty one is left out.
func (m *maker) among(sentence string, n int) string {
	people := m.random.permuted(m.names["people"])
	var all []string
	for i, at := range m.random.permutation(len(m.fillers) * (1 + n/len(m.fillers))) {
		if i == n {
			break
		}
		all = append(all, fill(m.fillers[at%len(m.fillers)], "{p}", people[i%len(people)], "{p2}", people[(i+1)%len(people)]))
	}
	if sentence != "" {
		at := m.random.intn(len(all) + 1)
		all = append(all[:at], append([]string{sentence}, all[at:]...)...)
	}
	return m.join(all...)
}

// join puts sentences one after another, as the language does.
func (m *maker) join(sentences ...string) string {
	if m.language == "zh" || m.language == "ja" {
		return strings.Join(sentences, "")
	}
	return strings.Join(sentences, " ")
}

// fill puts values in place of the names in a template.
func fill(text string, pairs ...string) string {
	return capitalised(strings.NewReplacer(pairs...).Replace(text))
}

// capitalised returns a sentence with a capital first letter, unless it begins with an identifier or a path.
func capitalised(s string) string {
	first, _, _ := strings.Cut(s, " ")
	if strings.ContainsAny(first, "/._0123456789") || s == "" || s[0] >= 0x80 {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}
