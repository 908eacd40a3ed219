package memories

import (
	"cmp"
	"context"
	"html/template"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/shorten"
	"github.com/souvenir-ai/souvenir/server/internal/dashboard/textview"
	"github.com/souvenir-ai/souvenir/server/internal/request"
	"github.com/souvenir-ai/souvenir/server/internal/web"
)

// memoryHead is the data that all pages of a memory share.
type memoryHead struct {
	souvenir.Memory
	Status souvenir.MemoryStatus
	Title  string // its first line
	Path   string // of its first page
	Here   string // name of the open tab
}

// Tabs are the pages of the memory.
func (h memoryHead) Tabs() []web.Tab {
	tabs := []web.Tab{{Path: h.Path, Name: "Memory"}}
	if h.Status.Writable {
		tabs = append(tabs, web.Tab{Path: h.Path + "/edit", Name: "Edit"})
	}
	tabs = append(tabs, web.Tab{Path: h.Path + "/history", Name: "History"})
	for i := range tabs {
		tabs[i].Here = tabs[i].Name == h.Here
	}
	return tabs
}

// ProjectPath is the path of its project's page; empty: it has no project.
func (h memoryHead) ProjectPath() string {
	if h.Status.ProjectOwner == "" {
		return ""
	}
	return web.ProjectPath(souvenir.Project{Owner: h.Status.ProjectOwner, ID: h.Status.ProjectID})
}

// memoryHead loads the data that all pages of the memory in the address share.
func (s *Service) memoryHead(r *http.Request, c request.Caller, here string) (memoryHead, error) {
	m, err := c.Store.GetMemory(r.Context(), r.PathValue("id"))
	if err != nil {
		return memoryHead{}, err
	}
	status, err := c.Store.Insights().MemoryStatus(r.Context(), m.ID)
	return memoryHead{Memory: m, Status: status, Title: Title(m.Content), Path: web.MemoryPath(m.ID), Here: here}, err
}

// titleLength is the length of a title, in characters.
const titleLength = 80

// Title returns the title of a memory: its first line with words, up to 80 characters.
func Title(content string) string {
	return cmp.Or(shorten.Title(content, titleLength), "An empty memory")
}

// memoryPage is the data of the page of a memory.
type memoryPage struct {
	memoryHead
	View  string // markdown or text
	Shown textview.Cut
	HTML  template.HTML // the rendered content
	All   bool          // the whole of a long memory was requested
	Facts []memoryFact
	Own   []memoryFact // the caller's own metadata

	Files     []souvenir.File
	MoreFiles int             // number of further files
	Free      []souvenir.File // that could be linked to it
	Outgoing  []relatedMemory // it links to them
	Incoming  []relatedMemory // they link to it
	Further   []relatedMemory // two links away
	More      int             // related memories left out
}

// memoryFact is a detail of a memory, with a link to memories that share it.
type memoryFact struct {
	Key, Value string
	Path       string // empty: no link
	Long       bool   // multi-line text
}

// relatedMemory is a memory reachable by links.
type relatedMemory struct {
	ID, Title, By string // By: the title of the memory between, for those two links away
	EventType     string
	UpdatedAt     time.Time
}

const (
	shownContent  = 24 << 10 // bytes of a memory that its page shows at first
	shownHTML     = 64 << 10 // maximum bytes of these as HTML
	shownMetadata = 24 << 10 // bytes of the caller's own metadata
	shownLinks    = 12       // related memories of each kind
	shownFiles    = 20
	offeredFiles  = 50
	walkTime      = 300 * time.Millisecond // for related memories past the nearest
)

// showMemory shows a memory.
func (s *Service) showMemory(_ http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	head, err := s.memoryHead(r, c, "Memory")
	if err != nil {
		return nil, err
	}
	query := r.URL.Query()
	data := memoryPage{memoryHead: head, View: "markdown", All: query.Get("all") != ""}
	if query.Get("view") == "text" || data.All {
		data.View = "text"
	}
	switch {
	case data.All:
		data.Shown = textview.Cut{Text: head.Content}
	case data.View == "text":
		data.Shown = textview.CutTo(head.Content, shownContent)
	default:
		data.Shown, data.HTML = renderBeginning(head.Content)
	}
	data.Facts, data.Own = factsOf(head, c.User)
	if err := data.readFiles(r.Context(), c.Store); err != nil {
		return nil, err
	}
	if err := data.readRelated(r.Context(), c.Store); err != nil {
		return nil, err
	}
	heading := data.takeHeading()
	return web.Page{Template: "memory", Title: head.Title, Heading: heading, Data: data}, nil
}

// takeHeading returns the heading of the page: the heading with which the memory's text begins, which it then removes
// from the text below, or else the kind of the memory.
func (p *memoryPage) takeHeading() string {
	first, rest, _ := strings.Cut(strings.TrimLeft(p.Shown.Text, "\r\n"), "\n")
	title, ok := strings.CutPrefix(first, "# ")
	if title = strings.TrimSpace(title); p.View == "markdown" && ok && title == p.Title && strings.TrimSpace(rest) != "" {
		p.HTML = web.Markdown(rest)
		return p.Title
	}
	kind := "Memory"
	if p.EventType != "" {
		kind = web.Sentence(strings.ReplaceAll(p.EventType, "-", " "))
		kind = strings.TrimSuffix(kind, ".")
	}
	if p.ProjectName != "" {
		kind += " in " + p.ProjectName
	}
	return kind
}

// renderBeginning renders a text, or as much of its beginning as a page has room for.
func renderBeginning(content string) (textview.Cut, template.HTML) {
	for most := shownContent; ; most /= 2 {
		view := textview.CutTo(content, most)
		if html := web.Markdown(view.Text); len(html) <= shownHTML || most < 100 {
			return view, html
		}
	}
}

// factsOf returns the details of a memory: the store's, and the metadata that callers have added.
func factsOf(h memoryHead, user souvenir.User) (known, own []memoryFact) {
	listed := func(key, value, parameter, name string) {
		if value != "" {
			known = append(known, memoryFact{Key: key, Value: value, Path: "/memories?" +
				url.Values{parameter: {name}}.Encode()})
		}
	}
	if h.ProjectID != "" || h.ProjectName != "" {
		value := h.ProjectName
		if h.Status.ProjectOwner != user.ID {
			value += " of " + nameOr(h.Status.ProjectOwnerName, h.Status.ProjectOwner)
		}
		known = append(known, memoryFact{Key: "Project", Value: value, Path: h.ProjectPath()})
	}
	listed("Collection", h.Collection, "collection", h.Collection)
	listed("Type", h.EventType, "event_type", h.EventType)
	listed("State", h.State, "state", h.State)
	listed("Importance", string(h.Importance), "importance", string(h.Importance))
	listed("Classification", string(h.Classification), "classification", string(h.Classification))
	listed("Rule", string(h.RuleType), "rule_type", string(h.RuleType))
	if h.Owner != user.ID {
		known = append(known, memoryFact{Key: "Owner", Value: nameOr(h.Status.OwnerName, h.Owner)})
	}
	known = append(known, memoryFact{Key: "Found by", Value: foundBy(h.Status)})
	left := shownMetadata
	keys := slices.Sorted(maps.Keys(h.Metadata))
	for i, key := range keys {
		value := shortly(textview.Plain(h.Metadata[key]))
		if left -= len(template.HTMLEscapeString(key + value)); left < 0 {
			return known, append(own, memoryFact{Key: "…", Value: web.Count(len(keys)-i, "further key")})
		}
		view := memoryFact{Key: key, Value: value, Long: strings.ContainsRune(value, '\n')}
		if name, text := h.Metadata[key].(string); text && key == "module_name" {
			view.Path = "/memories?" + url.Values{"module": {name}}.Encode()
		}
		own = append(own, view)
	}
	return known, own
}

// foundBy describes how search finds a memory.
func foundBy(status souvenir.MemoryStatus) string {
	switch {
	case status.Pending == status.Passages && status.Pending > 0:
		return "words; meaning once it is embedded"
	case status.Pending > 0:
		return "words and meaning, except for " + strconv.Itoa(status.Pending) + " of " +
			web.Count(status.Passages, "passage") +
			", which are not embedded yet"
	case status.Passages > 1:
		return "words and meaning, in " + web.Count(status.Passages, "passage")
	}
	return "words and meaning"
}

// nameOr returns the name of an account, or the id of a user without one.
func nameOr(name, id string) string {
	if name == "" {
		return id
	}
	return name
}

// readFiles loads the files that are linked to the memory, and those available for linking.
func (p *memoryPage) readFiles(ctx context.Context, store *souvenir.Store) error {
	linked, err := store.FilePage(ctx, souvenir.FileQuery{FileList: souvenir.FileList{MemoryID: p.ID}, Limit: shownFiles})
	if err != nil {
		return err
	}
	p.Files, p.MoreFiles = linked.Files, linked.Total-len(linked.Files)
	if !p.Status.Writable {
		return nil
	}
	latest, err := store.FilePage(ctx, souvenir.FileQuery{Limit: 4 * offeredFiles})
	if err != nil {
		return err
	}
	for _, file := range latest.Files {
		if file.MemoryID == "" && len(p.Free) < offeredFiles {
			p.Free = append(p.Free, file)
		}
	}
	return nil
}

// readRelated loads the memory's linked memories: the nearest, and more distant ones within walkTime.
func (p *memoryPage) readRelated(ctx context.Context, store *souvenir.Store) error {
	found, err := store.RelatedMemories(ctx, p.ID, 1)
	if err != nil {
		return err
	}
	if len(found) > 0 && len(found) <= shownLinks {
		soon, cancel := context.WithTimeout(ctx, walkTime)
		if further, err := store.RelatedMemories(soon, p.ID, 2); err == nil {
			found = further
		}
		cancel()
	}
	titles := map[string]string{}
	for _, m := range found {
		titles[m.ID] = Title(m.Content)
		list := &p.Outgoing
		view := relatedMemory{ID: m.ID, Title: titles[m.ID], EventType: m.EventType, UpdatedAt: m.UpdatedAt}
		switch {
		case m.Depth > 1:
			list, view.By = &p.Further, titles[m.Path[1]]
		case m.Direction == souvenir.Incoming:
			list = &p.Incoming
		}
		if len(*list) >= shownLinks {
			p.More++
			continue
		}
		*list = append(*list, view)
	}
	return nil
}

// memoryButton is a one-click action on a memory.
type memoryButton struct{ Key, Value, Label string }

// Buttons are the actions available for the memory.
func (p memoryPage) Buttons() []memoryButton {
	var all []memoryButton
	switch p.State {
	case "archived":
		all = append(all, memoryButton{"state", "active", "Make active again"})
	case "completed":
		all = append(all, memoryButton{"state", "active", "Not completed"}, memoryButton{"state", "archived", "Archive"})
	default:
		all = append(all, memoryButton{"state", "completed", "Completed"}, memoryButton{"state", "archived", "Archive"})
	}
	if p.Importance == souvenir.ImportanceHigh || p.Importance == souvenir.ImportanceCritical {
		return append(all, memoryButton{"importance", "", "★ Unstar"})
	}
	return append(all, memoryButton{"importance", "high", "☆ Star"})
}

// Length is the size of its text in bytes.
func (p memoryPage) Length() int64 { return int64(len(p.Content)) }
