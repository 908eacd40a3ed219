package souvenir

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// How a main memory and a module's state are brought within a token budget.

// DefaultTokenBudget is how many tokens the tools get_project_main_memory and get_module_state answer with if the call does not
// say. A token is taken for 4 bytes of JSON.
const DefaultTokenBudget = 8000

const (
	budgetNotes = 900 // bytes that the warnings about what was left out may take
	mostCounts  = 30  // event types or states that a summary within a budget counts
)

// Within returns the main memory shortened until its JSON has about so many tokens (at least [MinTokenBudget]). One that fits stays whole.
// Otherwise the main memory has up to half of the room, files an eighth, and related memories the rest: in previews, the nearest
// first. Warnings say what was left out, and how to get it.
func (m MainMemory) Within(budget int) MainMemory {
	budget = max(budget, MinTokenBudget)
	room := bytesPerToken * budget
	if jsonSize(m) <= room {
		return m
	}
	room -= budgetNotes + jsonSize(m.Project) + jsonSize(m.Warnings)
	main := ContextMemory{Memory: m.Memory}
	main.within(room / 2)
	m.Memory, m.Warnings = main.Memory, slices.Clone(m.Warnings)
	if main.Truncated {
		m.Warnings = append(m.Warnings, fmt.Sprintf("token_budget %d: the main memory is shortened; memory retrieve with id %s gives the whole", budget, m.Memory.ID))
	}
	room -= jsonSize(main)

	files, related := m.Files, m.Related
	m.Files = fitting(files, room/8)
	if left := len(files) - len(m.Files); left > 0 {
		m.Warnings = append(m.Warnings, fmt.Sprintf("token_budget %d: files shows %d of %d; GET /api/files?memory_id=%s lists all", budget, len(m.Files), len(files), m.Memory.ID))
	}
	room -= jsonSize(m.Files)

	related = slices.Clone(related)
	for i := range related {
		related[i].Truncated = related[i].shorten(defaultPreview)
	}
	m.Related = fitting(related, room)
	if left := related[len(m.Related):]; len(left) > 0 {
		direct := len(slices.DeleteFunc(slices.Clone(left), func(r Related) bool { return r.Depth > 1 }))
		m.Warnings = append(m.Warnings, fmt.Sprintf(
			"token_budget %d: related_memories shows %d of %d; left out are %d linked directly and %d further away. memory search with filter {\"related_memory_ids\": %q} "+
				"pages through those that link to the main memory; its related_memory_ids are those that it links to",
			budget, len(m.Related), len(related), direct, len(left)-direct, m.Memory.ID))
	}
	return m
}

// Within returns the state shortened until its JSON has about so many tokens (at least [MinTokenBudget]). One that fits stays whole.
// Otherwise the summary keeps what is most frequent, files and open tasks have up to an eighth of the room each, and memories the
// rest, in previews. Warnings say what was left out, and how to get it.
func (m ModuleState) Within(budget int) ModuleState {
	budget = max(budget, MinTokenBudget)
	room := bytesPerToken * budget
	if jsonSize(m) <= room {
		return m
	}
	m.Warnings = slices.Clone(m.Warnings)
	note := func(format string, args ...any) {
		m.Warnings = append(m.Warnings, fmt.Sprintf("token_budget %d: ", budget)+fmt.Sprintf(format, args...))
	}
	memories, files, tasks := m.Memories, m.Files, m.Summary.OpenTasks
	types, states := len(m.Summary.EventTypes), len(m.Summary.States)
	m.Summary.EventTypes, m.Summary.States = mostFrequent(m.Summary.EventTypes), mostFrequent(m.Summary.States)
	if types > mostCounts || states > mostCounts {
		note("the summary counts the %d most frequent of %d event types and %d states", mostCounts, types, states)
	}
	m.Memories, m.Files, m.Summary.OpenTasks = nil, nil, []ModuleTask{}
	room -= budgetNotes + jsonSize(m)

	m.Files, m.Summary.OpenTasks = fitting(files, room/8), fitting(tasks, room/8)
	if len(m.Files) < len(files) {
		note("files shows %d of %d; GET /api/files?tags=%s lists those with the module's tag", len(m.Files), len(files), m.Module)
	}
	if len(m.Summary.OpenTasks) < len(tasks) {
		note("open_tasks shows %d of %d; memory get_context gives the whole todo", len(m.Summary.OpenTasks), len(tasks))
	}
	room -= jsonSize(m.Files) + jsonSize(m.Summary.OpenTasks)

	memories = slices.Clone(memories)
	shortened := 0
	for i := range memories {
		if memories[i].Truncated = memories[i].shorten(defaultPreview); memories[i].Truncated {
			shortened++
		}
	}
	m.Memories = fitting(memories, room)
	if left := len(memories) - len(m.Memories); left > 0 || shortened > 0 {
		note("memories shows %d of %d, in previews; memory retrieve gives one whole, and memory search with query %q pages through the others", len(m.Memories), len(memories), m.Module)
	}
	return m
}

// shorten cuts the content after so many characters, and leaves out own metadata that is too long for a preview. It reports whether
// something is missing then.
func (m *Memory) shorten(characters int) bool {
	preview := ContextMemory{Memory: *m}
	preview.shorten(characters)
	*m = preview.Memory
	return preview.Truncated
}

// fitting returns the beginning of a list whose JSON has at most so many bytes.
func fitting[T any](list []T, room int) []T {
	for i := range list {
		if room -= jsonSize(list[i]) + len(`,`); room < 0 {
			return list[:i:i]
		}
	}
	return list
}

// mostFrequent returns the largest counts.
func mostFrequent(counts map[string]int) map[string]int {
	if len(counts) <= mostCounts {
		return counts
	}
	names := slices.SortedFunc(maps.Keys(counts), func(a, b string) int { return cmp.Or(counts[b]-counts[a], strings.Compare(a, b)) })
	kept := map[string]int{}
	for _, name := range names[:mostCounts] {
		kept[name] = counts[name]
	}
	return kept
}
