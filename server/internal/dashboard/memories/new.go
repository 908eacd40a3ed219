package memories

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/failure"
	"github.com/souvenir-ai/souvenir/server/internal/request"
	"github.com/souvenir-ai/souvenir/server/internal/web"
)

// newMemoryPage is the data of the page on which a memory is created.
type newMemoryPage struct {
	Form    web.Form
	choices map[string][]web.Option
}

// Options are the options of a select.
func (p newMemoryPage) Options(name string) []web.Option { return p.choices[name] }

// newMemoryForm is the form for a memory. The types textarea and select are specific to this page.
func newMemoryForm() web.Form {
	return web.Form{Fields: []web.Field{
		{Name: "content", Label: "Content", Type: "textarea", Focus: true,
			Hint: "Plain text or Markdown. Store one thing per memory, so that searches find it."},
		{Name: "project", Label: "Project", Type: "select", Optional: true, Argument: "project_id"},
		{Name: "collection", Label: "Collection", Type: "select", Optional: true, Argument: "collection_name"},
		{Name: "event_type", Label: "Type", Type: "text", Autocomplete: "off", Optional: true,
			Hint: "Such as decision, conversation or note."},
		{Name: "state", Label: "State", Type: "text", Autocomplete: "off", Optional: true,
			Hint: "Such as active, completed or archived."},
		{Name: "importance", Label: "Importance", Type: "select", Optional: true},
		{Name: "classification", Label: "Classification", Type: "select", Optional: true},
		{Name: "tags", Label: "Tags", Type: "text", Autocomplete: "off", Optional: true, Hint: "Separated by commas."},
		{Name: "metadata", Label: "Metadata", Type: "textarea", Optional: true,
			Hint: "A key and its value per line, such as “source: mail”, or a JSON object."},
	}}
}

func (s *Service) showNewMemory(_ http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	form := newMemoryForm()
	form.Fill(r.URL.Query().Get) // a link can lead to the form of a project
	return s.newMemoryPage(r, c, form)
}

func (s *Service) newMemoryPage(r *http.Request, c request.Caller, form web.Form) (web.Page, error) {
	data := newMemoryPage{Form: form, choices: map[string][]web.Option{}}
	for i := range form.Fields {
		value := form.Fields[i].Value
		switch form.Fields[i].Name {
		case "project":
			projects, err := s.projectOptions(r, c, value)
			if err != nil {
				return web.Page{}, err
			}
			data.choices["project"] = projects
		case "collection":
			collections, err := c.Store.Collections(r.Context())
			if err != nil {
				return web.Page{}, err
			}
			pairs := []string{"", "Default"}
			for _, found := range collections {
				if found.Name != souvenir.DefaultCollection {
					pairs = append(pairs, found.Name, found.Name)
				}
			}
			data.choices["collection"] = web.Choices(value, pairs...)
		case "importance":
			data.choices["importance"] = choose(options("Not said", memoryImportances), value)
		case "classification":
			data.choices["classification"] = choose(options("Not said", memoryClassifications), value)
		}
	}
	return web.Page{Template: "memorynew", Title: "New memory", Data: data}, nil
}

// addMemory stores a memory. If near duplicates exist, it redirects to the page that compares them.
func (s *Service) addMemory(w http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	values, err := s.site.ReadLongForm(w, r)
	if err != nil {
		return nil, err
	}
	m, err := readNewMemory(values)
	var stored souvenir.Stored
	if err == nil {
		stored, err = c.Store.AddMemory(r.Context(), m)
	}
	if err != nil {
		form := newMemoryForm()
		form.Fill(func(name string) string { return strings.ToValidUTF8(values.Get(name), "\uFFFD") })
		form.Refuse(err)
		p, failed := s.newMemoryPage(r, c, form)
		if failed != nil {
			return nil, failed
		}
		return web.Again(p, err)
	}
	path, text := "/memories/"+stored.ID, "Memory stored."
	if len(stored.Similar) > 0 {
		ids := []string{stored.ID}
		for _, similar := range stored.Similar {
			ids = append(ids, similar.ID)
		}
		path = mergeAddress(ids)
		text = "Memory stored. " + web.Count(len(stored.Similar), "other memory") +
			" say nearly the same: merge them here, or cancel."
		if len(stored.Similar) == 1 {
			text = "Memory stored. Another one says nearly the same: merge them here, or cancel."
		}
	}
	step := web.Step{Text: text, Path: "/memories", Bytes: 256, Back: func(ctx context.Context) error {
		now, err := c.Store.GetMemory(ctx, stored.ID)
		if err != nil {
			return err
		}
		if now.Revision != stored.Revision {
			return &failure.Error{Status: http.StatusConflict,
				Message: "the memory has been changed since; delete it on its page if you do not want it"}
		}
		return c.Store.DeleteMemory(ctx, stored.ID)
	}}
	return s.site.StepDone(c, path, step), nil
}

// readNewMemory reads the form.
func readNewMemory(values url.Values) (souvenir.NewMemory, error) {
	text := func(name string) string { return strings.TrimSpace(values.Get(name)) }
	m := souvenir.NewMemory{
		// A text area sends each line end as CR LF.
		Content:   strings.TrimSpace(strings.ReplaceAll(values.Get("content"), "\r\n", "\n")),
		ProjectID: text("project"), Collection: text("collection"), EventType: text("event_type"), State: text("state"),
		Importance: souvenir.Importance(text("importance")), Classification: souvenir.Classification(text("classification")),
		Similar: maxMerge - 1,
	}
	for tag := range strings.SplitSeq(values.Get("tags"), ",") {
		if tag = strings.TrimSpace(tag); tag != "" {
			m.Tags = append(m.Tags, tag)
		}
	}
	var err error
	m.ShownMetadata, err = readKeys(values.Get("metadata"))
	return m, err
}

// readKeys reads keys and values: a JSON object, or one pair on each line. Numbers, true and false are not read as
// text.
func readKeys(text string) (map[string]any, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return nil, nil
	}
	keys := map[string]any{}
	if strings.HasPrefix(text, "{") {
		if err := json.Unmarshal([]byte(text), &keys); err != nil {
			return nil, failure.Invalid("metadata", "metadata is not a JSON object: "+err.Error()+
				`; an example is {"source": "mail", "size": 3}`)
		}
		return keys, nil
	}
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		key, value, found := strings.Cut(line, ":")
		if key = strings.TrimSpace(key); !found || key == "" {
			return nil, failure.Invalid("metadata", "metadata has the line "+failure.Quote(line)+
				"; a key, a colon and a value are expected, such as source: mail")
		}
		if _, twice := keys[key]; twice {
			return nil, failure.Invalid("metadata", "metadata has the key "+failure.Quote(key)+" twice; each key has one value")
		}
		value = strings.TrimSpace(value)
		keys[key] = value
		var other any
		if json.Unmarshal([]byte(value), &other) == nil {
			switch other.(type) {
			case float64, bool:
				keys[key] = other
			}
		}
	}
	return keys, nil
}
