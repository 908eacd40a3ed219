package web

import (
	"cmp"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/request"
)

const (
	optionsOffered = 25 // in a list, after the first one; others are chosen by name
	optionLabel    = 80 // characters
	named          = "_named"
)

// ProjectOptions are the options of a list of projects, after a first one such as "All projects". Their values are
// OWNER/ID.
func ProjectOptions(all []souvenir.Project, user, chosen, first string) []Option {
	options := []Option{{Label: first}}
	for _, p := range all {
		o := Option{Value: p.Owner + "/" + p.ID, Label: cmp.Or(p.Name, p.ID)}
		if p.Owner != user {
			o.Label += " of " + cmp.Or(p.OwnerName, p.Owner)
		}
		if chosen != "" && (chosen == o.Value || chosen == p.Ref() || chosen == p.ID) {
			o.Chosen, chosen = true, ""
		}
		options = append(options, o)
	}
	if chosen != "" { // a value that names no project is kept, so that the page refuses it
		options = append(options, Option{chosen, chosen, true})
	}
	return options
}

// Offered cuts a list of options: it keeps the first ones and the chosen one. Long labels are cut, too.
func Offered(all []Option) []Option {
	var offered []Option
	for i, o := range all {
		if i > optionsOffered && !o.Chosen {
			continue
		}
		if label := []rune(o.Label); len(label) > optionLabel {
			o.Label = string(label[:optionLabel-1]) + "…"
		}
		offered = append(offered, o)
	}
	return offered
}

// otherNamed is the field for a name that a list may not offer: a project, a collection, a type or a user.
type otherNamed struct {
	Base, Field string
	Many        bool // the list is full
}

func otherThan(p frame, field string, list []Option) otherNamed {
	return otherNamed{p.Base, field, len(list) > optionsOffered}
}

const (
	collectionNamed = "collection" + named
	typeNamed       = "event_type" + named
)

// NamesLike is the data of the names that a field suggests.
type NamesLike struct{ Names []string }

// FindNames finds the names of projects, collections or types that contain the text of the field for which a script
// requests them; nil: the request is for no such field.
func FindNames(r *http.Request, projects []souvenir.Project) (*NamesLike, error) {
	field, store := r.Header.Get("HX-Trigger-Name"), request.Of(r.Context()).Caller.Store
	var all []string
	switch {
	case !FromScript(r):
		return nil, nil
	case field == collectionNamed:
		collections, err := store.Collections(r.Context())
		if err != nil {
			return nil, err
		}
		for _, c := range collections {
			all = append(all, c.Name)
		}
		all = slices.Compact(all) // several owners may use the same name
	case field == typeNamed:
		overview, err := store.Insights().Overview(r.Context(), souvenir.OverviewQuery{Days: 1, MemoriesOnly: true})
		if err != nil {
			return nil, err
		}
		for _, t := range overview.EventTypes {
			all = append(all, t.Name)
		}
	case strings.Contains(field, "project_"):
		for _, p := range projects {
			all = append(all, p.Name)
		}
	case !strings.HasSuffix(field, named):
		return nil, nil
	}
	sought, found := strings.ToLower(strings.TrimSpace(r.URL.Query().Get(field))), &NamesLike{}
	for _, name := range all {
		if len(found.Names) < optionsOffered && name != "" && strings.Contains(strings.ToLower(name), sought) {
			found.Names = append(found.Names, name)
		}
	}
	return found, nil
}

// NameProjects sets fields such as "project" to the project whose name, or part of it, was typed into "project_named",
// and adds those in the lines of "project_others". Input that names no project stays unchanged, so that the page
// refuses it. Other fields are set to the input, such as "collection" to "collection_named".
func NameProjects(r *http.Request, values url.Values) error {
	store := request.Of(r.Context()).Caller.Store
	for _, key := range slices.Collect(maps.Keys(values)) {
		text := strings.TrimSpace(values.Get(key))
		field, one := strings.CutSuffix(key, named)
		several, others := strings.CutSuffix(key, "_others")
		if !one && !others || text == "" || store == nil {
			continue
		}
		if !strings.Contains(field, "project") {
			values.Set(field, text)
			continue
		}
		all, err := store.Projects(r.Context())
		if err != nil {
			return err
		}
		if one {
			values.Set(field, projectNamed(all, text))
			continue
		}
		for line := range strings.Lines(text) {
			if line = strings.TrimSpace(line); line != "" {
				values.Add(several, projectNamed(all, line))
			}
		}
	}
	return nil
}

// WithProjects is NameProjects for the address of a page.
func WithProjects(r *http.Request) (*http.Request, error) {
	if !strings.Contains(r.URL.RawQuery, named+"=") {
		return r, nil
	}
	values := r.URL.Query()
	err := NameProjects(r, values)
	r = r.Clone(r.Context())
	r.URL.RawQuery = values.Encode()
	return r, err
}

// projectNamed is the project with an id or name, or the only one with a text in its name, as OWNER/ID; else the text.
func projectNamed(all []souvenir.Project, text string) string {
	var like []souvenir.Project
	for _, equal := range []func(souvenir.Project) bool{
		func(p souvenir.Project) bool { return p.Ref() == text || p.Owner+"/"+p.ID == text },
		func(p souvenir.Project) bool { return strings.EqualFold(p.Name, text) },
		func(p souvenir.Project) bool { return strings.Contains(strings.ToLower(p.Name), strings.ToLower(text)) },
	} {
		like = like[:0]
		for _, p := range all {
			if equal(p) {
				like = append(like, p)
			}
		}
		if len(like) == 1 {
			return like[0].Owner + "/" + like[0].ID
		}
		if len(like) > 1 {
			break
		}
	}
	return text
}
