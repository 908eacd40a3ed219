// Package questions makes the project's own set of questions about the memories of agents: 300 questions in five
// languages, 60 without an answer. See README.md.
package questions

import (
	"embed"
	"fmt"
	"hash/fnv"
	"slices"
)

// Memory is a memory of the set.
type Memory struct {
	ID       string
	Text     string
	Metadata map[string]any
	key      string // the subject; a question is answered by the one memory of a collection with its key, if any
}

// Question is a question of the set.
type Question struct {
	ID         string
	Category   string
	Language   string
	Collection string // where it is asked
	Text       string
	Evidence   string // id of the memory that answers it; empty: nothing does
	Half       string // "dev", to fit parameters on, or "test", to judge
	key        string
}

// Collection is a collection of memories, in the order in which they are stored.
type Collection struct {
	Name     string
	Memories []Memory
}

// Languages are the languages of the set.
var Languages = []string{"en", "de", "es", "zh", "ja"}

// Unanswerable is the category of the questions that nothing answers.
const Unanswerable = "unanswerable"

// DefaultSize is the number of memories of each language.
const DefaultSize = 1500

//go:embed texts/*.txt
var files embed.FS

// Make returns the set with size memories in each collection, always the same. There is a collection for each language,
// or, if that would hold more than size without any distractor, several, each with a part of the questions.
func Make(size int) ([]Collection, []Question, error) {
	var collections []Collection
	var all []Question
	for _, language := range Languages {
		content, err := files.ReadFile("texts/" + language + ".txt")
		if err != nil {
			return nil, nil, err
		}
		t, err := parse(language, string(content))
		if err != nil {
			return nil, nil, err
		}
		m := maker{texts: t, random: newRandom("questions " + language)}
		m.make()
		made, questions, err := m.collections(size)
		if err != nil {
			return nil, nil, err
		}
		collections, all = append(collections, made...), append(all, questions...)
	}
	return collections, all, nil
}

// Half divides questions in two by a hash of their ids: "dev", to fit parameters on, and "test", to judge.
func Half(id string) string {
	h := fnv.New32a()
	h.Write([]byte(id))
	if h.Sum32()%2 == 0 {
		return "dev"
	}
	return "test"
}

// unit is stored in one piece: a memory, or the turns of a dialogue.
type unit struct {
	memories []Memory
	group    string // near misses of each other are in one group
}

// collections distributes units and questions, and adds distractors up to size.
func (m *maker) collections(size int) ([]Collection, []Question, error) {
	parts := 1
	for own := count(m.units); own > size && parts < 16; parts *= 2 {
		own = count(m.units) / (2 * parts)
	}
	var made []Collection
	var asked []Question
	for part := range parts {
		name := m.language
		if parts > 1 {
			name = fmt.Sprintf("%s-%d", m.language, part+1)
		}
		questions := m.part(part, parts)
		units, err := m.choose(questions, size, parts)
		if err != nil {
			return nil, nil, err
		}
		m.random.shuffle(len(units), func(i, j int) { units[i], units[j] = units[j], units[i] })
		c := Collection{Name: name}
		ids := map[string]string{}
		for _, u := range units {
			for _, memory := range u.memories {
				memory.ID = fmt.Sprintf("m%05d", len(c.Memories)+1)
				if memory.key != "" {
					ids[memory.key] = memory.ID
				}
				c.Memories = append(c.Memories, memory)
			}
		}
		for _, q := range questions {
			q.Collection, q.Half = name, Half(q.ID)
			if q.Category != Unanswerable {
				if q.Evidence = ids[q.key]; q.Evidence == "" {
					return nil, nil, fmt.Errorf("question %s has lost the memory that answers it", q.ID)
				}
			}
			asked = append(asked, q)
		}
		made = append(made, c)
	}
	return made, asked, nil
}

// part returns every parts-th question of each category.
func (m *maker) part(part, parts int) []Question {
	var questions []Question
	seen := map[string]int{}
	for _, q := range m.questions {
		if seen[q.Category]%parts == part {
			questions = append(questions, q)
		}
		seen[q.Category]++
	}
	return questions
}

// choose returns the units of a collection: first those with answers to its questions, then near misses, then the rest.
func (m *maker) choose(questions []Question, size, parts int) ([]unit, error) {
	if parts == 1 {
		return append(slices.Clone(m.units), m.distractors(size-count(m.units))...), nil
	}
	answers, groups := map[string]bool{}, map[string]bool{}
	for _, q := range questions {
		answers[q.key] = true
	}
	taken := make([]bool, len(m.units))
	var chosen []unit
	n := 0
	take := func(want func(unit) bool) {
		for i, u := range m.units {
			if !taken[i] && want(u) && n+len(u.memories) <= size {
				taken[i] = true
				n += len(u.memories)
				chosen = append(chosen, u)
			}
		}
	}
	take(func(u unit) bool {
		found := slices.ContainsFunc(u.memories, func(m Memory) bool { return m.key != "" && answers[m.key] })
		if found {
			groups[u.group] = true
		}
		return found
	})
	near := map[string]int{}
	take(func(u unit) bool {
		if !groups[u.group] || near[u.group] == 3 {
			return false
		}
		near[u.group]++
		return true
	})
	take(func(u unit) bool { return m.random.intn(4) == 0 })
	take(func(unit) bool { return true })
	if n < size {
		return nil, fmt.Errorf("%s: a part has %d memories; %d are wanted", m.language, n, size)
	}
	return chosen, nil
}

func count(units []unit) (n int) {
	for _, u := range units {
		n += len(u.memories)
	}
	return n
}
