package servertest

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/extract"
)

// FurnishDashboard gives every page of the dashboard something to show, with hostile names, and fills in the wildcards
// of the pages' paths.
func (w *World) FurnishDashboard(paths map[string]string) {
	for _, furnish := range []func(paths map[string]string){
		w.furnishOverview, w.furnishMemoryList, w.furnishMemory, w.furnishProjects, w.furnishFiles, w.furnishPictures,
		w.furnishUpkeep, w.furnishProposals,
	} {
		furnish(paths)
	}
}

func (w *World) furnishFiles(paths map[string]string) {
	w.T.Helper()
	ada := w.Store.As(souvenir.Access{User: w.Users[Admin]})
	f, err := ada.AddFile(w.T.Context(),
		souvenir.NewFile{Filename: "hostile.md", Description: Hostile, Category: Hostile[:60], Tags: []string{Hostile[:60]},
			ProjectID: "p"},
		strings.NewReader("# "+Hostile+"\n\n[x](javascript:alert(1))\n"))
	if err != nil {
		w.T.Fatal(err)
	}
	paths["/files/{id}"] = "/files/" + f.ID
}

func (w *World) furnishMemoryList(paths map[string]string) {
	w.T.Helper()
	ada := w.Store.As(souvenir.Access{User: w.Users[Admin]})
	if _, err := ada.AddCollection(w.T.Context(), souvenir.NewCollection{Name: "<i>c</i>"}); err != nil {
		w.T.Fatal(err)
	}
	var ids []string
	for i := range 2 {
		m, err := ada.AddMemory(w.T.Context(),
			souvenir.NewMemory{Collection: "<i>c</i>", Content: Hostile + " " + Hostile, EventType: "<b>type", State: "archived",
				Importance: souvenir.ImportanceHigh,
				Tags:       []string{Hostile, fmt.Sprint("n", i)}, ProjectID: "p",
				ShownMetadata: map[string]any{"source": Hostile}})
		if err != nil {
			w.T.Fatal(err)
		}
		ids = append(ids, m.ID)
	}
	paths["/memories/merge"] = "/memories/merge?" + url.Values{"id": ids}.Encode()
	paths["/memories/new"] = "/memories/new?content=" + url.QueryEscape(Hostile)
	paths["/memories"] = "/memories?q=" + url.QueryEscape(Hostile) + "&tag=" + url.QueryEscape(Hostile) +
		"&key=source&value=" + url.QueryEscape(Hostile)
}

func (w *World) furnishMemory(paths map[string]string) {
	w.T.Helper()
	steps := FirstError{}
	ada := w.Store.As(souvenir.Access{User: w.Users[Admin]})
	other, err := ada.AddMemory(w.T.Context(),
		souvenir.NewMemory{Content: Hostile + " beside it", EventType: Hostile[:30]})
	steps.Note(err)
	m, err := ada.AddMemory(w.T.Context(),
		souvenir.NewMemory{Content: "# " + Hostile + "\n\n" + Hostile, ProjectName: "P " + Hostile,
			EventType: "<b>decision</b>", State: "<i>active",
			Tags: []string{`<b>, "quoted"`, "plain"}, Related: []string{other.ID},
			ShownMetadata: map[string]any{Hostile: Hostile, "deep": map[string]any{"<u>": []any{Hostile, nil}}}})
	steps.Note(err)
	_, err = ada.AddMemory(w.T.Context(), souvenir.NewMemory{Content: Hostile + " links to it", Related: []string{m.ID}})
	steps.Note(err)
	text := "# " + Hostile + "\n\n" + Hostile + " again\n"
	_, err = ada.UpdateMemory(w.T.Context(), m.ID,
		souvenir.MemoryUpdate{Content: &text, ShownMetadata: map[string]any{"state": "archived", Hostile: nil}})
	steps.Note(err)
	_, err = ada.AddFile(w.T.Context(), souvenir.NewFile{Filename: "<b>linked.txt", MemoryID: m.ID, Description: Hostile},
		strings.NewReader("text"))
	steps.Note(err)
	_, err = ada.AddFile(w.T.Context(), souvenir.NewFile{Filename: "<b>free.txt"}, strings.NewReader("text"))
	steps.Note(err)
	if steps.Err != nil {
		w.T.Fatalf("got %v, want nil", steps.Err)
	}
	paths["/memories/merge"] = "/memories/merge?id=" + m.ID + "&id=" + other.ID
	for _, page := range []string{"/similar", "/edit", "/history"} {
		paths["/memories/{id}"+page] = "/memories/" + m.ID + page
	}
}

func (w *World) furnishOverview(_ map[string]string) {
	w.T.Helper()
	ada := w.Store.As(souvenir.Access{User: w.Users[Admin]})
	steps := FirstError{}
	_, err := ada.AddMemory(w.T.Context(), souvenir.NewMemory{Content: Hostile, ProjectID: "p", EventType: Hostile[:60]})
	steps.Note(err)
	for _, client := range []string{Hostile, "", BrowserOfTests} {
		steps.Note(w.Store.Upkeep().RecordActivity(w.T.Context(),
			souvenir.NewActivity{Principal: souvenir.Principal{Access: souvenir.Access{User: w.Users[Admin]}}, Client: client,
				Tool:   Hostile,
				Action: Hostile, Project: souvenir.ProjectRef{ID: "p"}, MemoryID: Hostile, FileID: Hostile, Outcome: "internal"}))
	}
	if steps.Err != nil {
		w.T.Fatalf("got %v, want nil", steps.Err)
	}
}

func (w *World) furnishPictures(paths map[string]string) {
	w.T.Helper()
	ada := w.Store.As(souvenir.Access{User: w.Users[Admin]})
	first, err := ada.AddMemory(w.T.Context(),
		souvenir.NewMemory{Content: Hostile + "\nsecond line",
			ShownMetadata: map[string]any{"event_type": "<i>", "importance": "high"}})
	if err == nil {
		_, err = ada.AddMemory(w.T.Context(),
			souvenir.NewMemory{Content: Hostile, ProjectID: "p",
				ShownMetadata: map[string]any{"related_memory_ids": []string{first.ID}}})
	}
	if err != nil {
		w.T.Fatal(err)
	}
	for _, data := range []string{"/graph/data", "/map/data", "/graph/names", "/map/names", "/graph/found", "/map/found"} {
		delete(paths, data)
	}
	paths["/graph/memories/{id}"] = "/graph/memories/" + first.ID
}

// hostileTodo is a to-do with code that would run if it were not escaped.
const hostileTodo = "## Constitution\n\n" + Hostile +
	"\n\n## Spec\n\n[x](javascript:alert(1))\n\n## Plan\n\n## Tasks\n\n- [ ] T1 " + Hostile + "\n  more " + Hostile +
	"\n- [x] T2 `code`\n\n## Gaps\n\n- [ ] " + Hostile + "\n"

func (w *World) furnishProjects(paths map[string]string) {
	w.T.Helper()
	steps := FirstError{}
	ada := w.Store.As(souvenir.Access{User: w.Users[Admin]})
	_, err := ada.SetTodo(w.T.Context(), souvenir.NewTodo{ProjectID: "p", Content: hostileTodo})
	steps.Note(err)
	for _, project := range []string{"p", ""} {
		for _, rule := range []souvenir.RuleType{souvenir.RuleDo, souvenir.RuleDont} {
			_, err = ada.SetRule(w.T.Context(), souvenir.NewRule{ProjectID: project, Type: rule, Content: Hostile})
			steps.Note(err)
		}
	}
	_, err = ada.AddMemory(w.T.Context(),
		souvenir.NewMemory{ProjectID: "p", EventType: souvenir.EventProjectMain, State: souvenir.StateActive,
			Content: Hostile,
			Tags:    []string{"module:" + Hostile}, ShownMetadata: map[string]any{"module_name": Hostile}})
	steps.Note(err)
	_, err = w.Store.AddMember(w.T.Context(),
		souvenir.NewMember{Project: souvenir.ProjectRef{ID: w.Users[Admin] + "/p"}, User: "olivia",
			Role: souvenir.MemberWriter})
	steps.Note(err)
	if steps.Err != nil {
		w.T.Fatalf("got %v, want nil", steps.Err)
	}
	for pattern := range paths {
		if rest, ok := strings.CutPrefix(pattern, "/projects/{owner}/{id}"); ok {
			paths[pattern] = "/projects/" + w.Users[Admin] + "/p" + rest
		}
	}
	paths["/projects/{owner}/{id}/edit"] += "?text=todo"
	paths["/projects/rules/edit"] += "?text=do"
}

func (w *World) furnishUpkeep(map[string]string) {
	w.T.Helper()
	ada := w.Store.As(souvenir.Access{User: w.Users[Admin]})
	for _, name := range []string{Hostile, "Second"} {
		if _, err := ada.Accounts().AddClient(w.T.Context(),
			souvenir.NewClient{Name: name, RedirectURIs: []string{"https://app.example/b?c=%3Cb%3E"}}); err != nil {
			w.T.Fatal(err)
		}
	}
	if _, err := ada.SetPreferences(w.T.Context(),
		map[string]any{Hostile: Hostile, "size": 3, "list": []any{Hostile, map[string]any{"a": nil}}}); err != nil {
		w.T.Fatal(err)
	}
}

// furnishProposals adds pending proposals of all kinds, with hostile text in everything that a model or a tool can
// write.
func (w *World) furnishProposals(map[string]string) {
	w.T.Helper()
	ada := w.Store.As(souvenir.Access{User: w.Users[Admin]})
	steps := FirstError{}
	target, err := ada.AddMemory(w.T.Context(), souvenir.NewMemory{Content: Hostile + "\nof old", ProjectID: "p"})
	steps.Note(err)
	turns, err := ada.Conversation(Hostile, souvenir.ConversationPlace{ProjectID: "p"}).
		Append(w.T.Context(), souvenir.Turn{Role: "user", Speaker: Hostile, Content: Hostile})
	steps.Note(err)
	if steps.Err != nil {
		w.T.Fatalf("got %v, want nil", steps.Err)
	}
	for _, action := range []extract.Action{extract.Add, extract.Update, extract.Supersede, extract.Forget, "<b>"} {
		p := extract.Proposal{Action: action, Content: Hostile, Target: target.ID, Sources: []string{turns[0].ID, Hostile},
			Reason: Hostile, Confidence: 0.5}
		if action == extract.Add {
			p.Target = ""
		}
		if action == extract.Forget {
			p.Content, p.Group = "", Hostile
		}
		w.Propose(Admin, "p", Hostile, p)
	}
}
