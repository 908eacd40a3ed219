package souvenir

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/souvenir-ai/souvenir/internal/shorten"
)

// How a context is fitted into a token budget.

// bytesPerToken is the estimated size of a token: the usual rule of thumb for English text.
const bytesPerToken = 4

// minShown is how many bytes of a memory's content are worth showing; before its content gets shorter than that, a
// memory loses its other fields.
const minShown = 120

// jsonSize is the length of a value as JSON.
func jsonSize(v any) int {
	encoded, err := json.Marshal(v)
	if err != nil {
		return 0
	}
	return len(encoded)
}

// tokens is the size of the context, including the field tokens itself.
func (c Context) tokens() int {
	c.Tokens = 0
	size := jsonSize(c) - 1 // without the digit for tokens
	tokens := 0
	for {
		n := (size + len(strconv.Itoa(tokens)) + bytesPerToken - 1) / bytesPerToken
		if n <= tokens {
			return tokens
		}
		tokens = n
	}
}

// shorten cuts the content to a number of characters, and omits own metadata that is too long for a preview.
func (m *ContextMemory) shorten(characters int) {
	if cut := shorten.Words(m.Content, characters); cut != m.Content {
		m.Content, m.Truncated = cut, true
	}
	if jsonSize(m.Metadata) > maxOwnInPreview {
		m.Metadata, m.Truncated = nil, true
	}
}

// within shortens the memory until its JSON has at most most bytes: it cuts the content and, if little of that would
// remain, drops the other fields. The fields that identify the memory stay, so the result may still be larger.
func (m *ContextMemory) within(most int) {
	if jsonSize(m) <= most {
		return
	}
	whole := m.Content
	m.Truncated, m.Content = true, ""
	if most-jsonSize(m) < min(minShown, len(whole)) {
		m.Memory = Memory{ID: m.ID, EventType: m.EventType, RuleType: m.RuleType, SharedBy: m.SharedBy}
	}
	room := most - jsonSize(m)
	for characters := room; characters > 0; {
		m.Content = shorten.Words(whole, characters)
		size := jsonSize(m.Content) - len(`""`)
		if size <= room {
			return
		}
		characters = min(characters-1, characters*room/size) // some bytes take more room in JSON
	}
	m.Content = ""
}

// part is a memory that a context must contain, even if shortened.
type part struct {
	name   string
	memory *ContextMemory
}

// mandatory lists the parts of a context that are never left out.
func (c *Context) mandatory() []part {
	parts := []part{{"identity", c.Identity}}
	if rules := c.ProjectRules; rules != nil {
		parts = append(parts, part{"project_rules.do", rules.Do}, part{"project_rules.dont", rules.Dont},
			part{"project_rules.todo", rules.Todo})
	}
	return slices.DeleteFunc(parts, func(p part) bool { return p.memory == nil })
}

// fit shortens the context to a token budget, 0 for none.
func (c *Context) fit(budget int) {
	if budget == 0 || c.tokens() <= budget {
		return
	}
	parts := c.mandatory()
	suggestion, general, project, related := c.IdentitySuggestion, c.GeneralDoDont, c.ProjectDoDont, c.Related
	rest := *c
	rest.clear()
	rest.Warnings = append(slices.Clone(c.Warnings), shortenedWarning(budget, parts),
		leftOutWarning(budget, 1, len(general), len(project), len(related)))
	room := bytesPerToken*budget - bytesPerToken*rest.tokens() // with the longest possible warnings

	// The parts share the room: short ones leave their rest to longer ones.
	var shortened []part
	slices.SortStableFunc(parts, func(a, b part) int { return cmp.Compare(jsonSize(a.memory), jsonSize(b.memory)) })
	for i, p := range parts {
		if share := room / (len(parts) - i); jsonSize(p.memory) > share {
			p.memory.within(share)
			shortened = append(shortened, p)
		}
		room -= jsonSize(p.memory)
	}
	left := [4]int{}
	c.IdentitySuggestion = nil
	if suggestion != nil {
		if size := len(`"identity_suggestion":,`) + jsonSize(suggestion); size <= room {
			c.IdentitySuggestion, room = suggestion, room-size
		} else {
			left[0] = 1
		}
	}
	c.GeneralDoDont, left[1], room = fitList(general, room)
	if project != nil {
		c.ProjectDoDont, left[2], room = fitList(project, room)
	}
	c.Related, left[3], _ = fitList(related, room)
	if len(shortened) > 0 {
		c.Warnings = append(c.Warnings, shortenedWarning(budget, shortened))
	}
	if left != [4]int{} {
		c.Warnings = append(c.Warnings, leftOutWarning(budget, left[0], left[1], left[2], left[3]))
	}
	if needed := c.tokens(); needed > budget {
		c.Warnings = append(c.Warnings,
			fmt.Sprintf("token_budget %d is too small: the required parts take %d tokens", budget, needed))
	}
}

// clear removes everything from the context that shares the budget.
func (c *Context) clear() {
	c.Identity, c.IdentitySuggestion, c.GeneralDoDont, c.Related = nil, nil, nil, nil
	if c.ProjectRules != nil {
		c.ProjectRules, c.ProjectDoDont = &ContextRules{}, []ContextMemory{}
	}
}

// fitList keeps memories of a list while there is room, and shortens the one that exceeds the remaining room.
func fitList(list []ContextMemory, room int) (kept []ContextMemory, left, roomLeft int) {
	kept = []ContextMemory{}
	for i, m := range list {
		room-- // for the comma
		if jsonSize(m) > room {
			bare := m
			bare.Content, bare.Truncated = "", true
			if room-jsonSize(bare) < minShown {
				return kept, len(list) - i, 0
			}
			m.within(room)
		}
		room -= jsonSize(m)
		kept = append(kept, m)
	}
	return kept, 0, room
}

func shortenedWarning(budget int, parts []part) string {
	names := make([]string, len(parts))
	for i, p := range parts {
		names[i] = p.name + " (" + p.memory.ID + ")"
	}
	slices.Sort(names)
	return fmt.Sprintf("token_budget %d: shortened are %s; retrieve them by id to read the whole", budget,
		strings.Join(names, ", "))
}

func leftOutWarning(budget, suggestion, general, project, related int) string {
	var lists []string
	for _, l := range []struct {
		name string
		left int
	}{{"identity_suggestion", suggestion}, {"general_do_dont", general}, {"project_do_dont", project},
		{"related_memories", related}} {
		if l.left > 0 {
			lists = append(lists, fmt.Sprintf("%d of %s", l.left, l.name))
		}
	}
	return fmt.Sprintf("token_budget %d: left out are %s; give a larger one, or search for them", budget,
		strings.Join(lists, ", "))
}

// How a main memory and a module's state are fitted into a token budget.

// DefaultTokenBudget is how many tokens the tools get_project_main_memory and get_module_state answer with if the call
// does not say. 1 token = 4 bytes of JSON (estimate).
const DefaultTokenBudget = 8000

const (
	budgetNotes = 900 // bytes that the warnings about what was left out may take
	mostCounts  = 30  // event types or states that a summary within a budget counts
)

// shorten cuts the content to a number of characters, and omits own metadata that is too long for a preview. It reports
// whether anything was left out.
func (m *Memory) shorten(characters int) bool {
	preview := ContextMemory{Memory: *m}
	preview.shorten(characters)
	*m = preview.Memory
	return preview.Truncated
}

// fitting returns the beginning of a list whose JSON has at most room bytes.
func fitting[T any](list []T, room int) []T {
	for i := range list {
		if room -= jsonSize(list[i]) + len(`,`); room < 0 {
			return list[:i:i]
		}
	}
	return list
}
