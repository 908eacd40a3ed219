package tools

import (
	"slices"
	"strings"

	"github.com/souvenir-ai/souvenir"
)

// ListReadOnly returns the definitions of the tools that remain if nothing may be changed, in the order of [List]:
// without the tools and actions that change something, and without the arguments that only they take. A [Set] with
// the option ReadOnly refuses calls of them.
func ListReadOnly() []Tool {
	list := []Tool{}
	for i := range registry {
		if d, any := registry[i].reading(); any {
			list = append(list, d.tool())
		}
	}
	return list
}

// changes reports whether the action changes something, according to its scope.
func (a *action) changes() bool {
	return a.scope != souvenir.ScopeMemoryRead && a.scope != souvenir.ScopeFilesRead
}

// reading returns the part of a tool that changes nothing, and whether there is one.
func (d *definition) reading() (part definition, any bool) {
	part = *d
	part.actions = slices.DeleteFunc(slices.Clone(d.actions), func(a action) bool { return a.changes() })
	if len(part.actions) == 0 {
		return definition{}, false
	}
	if len(part.actions) == len(d.actions) {
		return part, true
	}
	part.parameters = slices.DeleteFunc(slices.Clone(d.parameters), func(p parameter) bool {
		return !slices.ContainsFunc(part.actions, func(a action) bool { return a.takes(p.name) })
	})
	// A description has one line per action, which begins with "- " and the action's name.
	lines := slices.DeleteFunc(strings.Split(d.description, "\n"), func(line string) bool {
		name, _, _ := strings.Cut(strings.TrimPrefix(line, "- "), " ")
		return strings.HasPrefix(line, "- ") && !slices.Contains(part.actionNames(), strings.TrimSuffix(name, ":"))
	})
	part.description = strings.Join(append(lines, "For reading only: nothing can be stored or changed here."), "\n")
	part.annotations = Annotations{ReadOnly: true, Idempotent: true}
	return part, true
}
