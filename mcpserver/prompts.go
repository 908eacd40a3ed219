package mcpserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/fault"
	"github.com/souvenir-ai/souvenir/internal/shorten"
)

// projectArgument is the argument of prompts that names a project.
const projectArgument = "project"

// Limits of a prompt's text, which begins a conversation and cannot show the whole store.
const (
	promptTokens   = 6000 // of the context
	promptText     = 6000 // characters of one document
	promptTasks    = 30
	promptProjects = 30
)

// prompt is a prompt, and the function that writes its text.
type prompt struct {
	mcp.Prompt
	changes bool // it asks the model to store something
	write   func(ctx context.Context, store *souvenir.Store, arguments map[string]string) (string, error)
}

// prompts returns all prompts.
func prompts() []prompt {
	project := func(required bool) *mcp.PromptArgument {
		return &mcp.PromptArgument{Name: projectArgument, Title: "Project", Description: "Id or name of a project.",
			Required: required}
	}
	return []prompt{
		{
			Prompt: mcp.Prompt{
				Name: "load_project_context", Title: "Load project context",
				Description: "Begin to work on a project: what it is about, its rules, open tasks and memories related to the " +
					"task.",
				Arguments: []*mcp.PromptArgument{project(true),
					{Name: "task", Title: "Task", Description: "What is to be done."}},
			},
			write: loadProjectContext,
		},
		{
			Prompt: mcp.Prompt{
				Name: "save_session", Title: "Save session",
				Description: "Store the results of this conversation: decisions, facts, lessons, the state of the work.",
				Arguments: []*mcp.PromptArgument{project(false),
					{Name: "focus", Title: "Focus", Description: "What must not be forgotten."}},
			},
			changes: true, write: saveSession,
		},
		{
			Prompt: mcp.Prompt{
				Name: "review_gaps", Title: "Review gaps",
				Description: "Find the gaps in the memory of one project, or of all, and fill them together.",
				Arguments:   []*mcp.PromptArgument{project(false)},
			},
			changes: true, write: reviewGaps,
		},
	}
}

// addPrompts adds the prompts whose tools are available.
func (s *service) addPrompts(server *mcp.Server) {
	if !s.offers(ToolsetMemory) {
		return
	}
	for _, p := range prompts() {
		if p.changes && s.ReadOnly {
			continue
		}
		s.promptNames = append(s.promptNames, p.Name)
		server.AddPrompt(&p.Prompt, func(ctx context.Context, request *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			store, allows := s.view(ctx)
			if !allows(souvenir.ScopeMemoryRead) {
				return nil, missingScope("the prompt "+p.Name, souvenir.ScopeMemoryRead)
			}
			text, err := p.write(ctx, store, request.Params.Arguments)
			if err != nil {
				return nil, err
			}
			return &mcp.GetPromptResult{Description: p.Description,
				Messages: []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: text}}}}, nil
		})
	}
}

// named finds the project for a prompt. The error for a missing or unknown one lists the existing projects.
func named(ctx context.Context, store *souvenir.Store, name string) (souvenir.Project, error) {
	if name = strings.TrimSpace(name); name != "" {
		if p, err := projectOf(ctx, store, name); !errors.Is(err, souvenir.ErrNotFound) {
			return p, err
		}
	}
	projects, err := store.Projects(ctx)
	if err != nil {
		return souvenir.Project{}, err
	}
	names := make([]string, 0, len(projects))
	for _, p := range projects[:min(len(projects), promptProjects)] {
		names = append(names, p.Name)
	}
	message := "project " + fault.Show(name) + " is not known"
	if name == "" {
		message = "project is missing"
	}
	if len(names) == 0 {
		return souvenir.Project{}, &souvenir.Error{Kind: souvenir.KindInvalid, Argument: projectArgument, Message: message +
			"; there are no projects yet"}
	}
	return souvenir.Project{}, &souvenir.Error{Kind: souvenir.KindInvalid, Argument: projectArgument, Message: message +
		"; the projects are " + strings.Join(names, ", ")}
}

// known has the facts about a project that prompts contain.
type known struct {
	souvenir.Project
	main     string // empty: none
	context  souvenir.Context
	todo     souvenir.Todo // its ID is empty: none
	missing  []string      // parts that the project does not have yet
	openTask []souvenir.Task
}

// know collects the facts about a project.
func know(ctx context.Context, store *souvenir.Store, p souvenir.Project, query string) (k known, err error) {
	k.Project = p
	ref := souvenir.ProjectRef{ID: p.Ref()}
	if k.context, err = store.GetContext(ctx,
		souvenir.ContextQuery{ProjectID: ref.ID, Query: query, Preview: 300, TokenBudget: promptTokens}); err != nil {
		return k, err
	}
	main, err := store.GetMainMemory(ctx, ref)
	if err != nil && !errors.Is(err, souvenir.ErrNotFound) {
		return k, err
	}
	if k.todo, err = store.GetTodo(ctx, ref); err != nil && !errors.Is(err, souvenir.ErrNotFound) {
		return k, err
	}
	k.main = main.Memory.Content
	for _, t := range k.todo.Document.Tasks {
		if !t.Done {
			k.openTask = append(k.openTask, t)
		}
	}
	rules := k.context.ProjectRules
	for _, part := range []struct {
		name  string
		there bool
	}{{"main memory", k.main != ""}, {"rules on what to do", rules != nil && rules.Do != nil},
		{"rules on what not to do", rules != nil && rules.Dont != nil}, {"to-do document", k.todo.ID != ""}} {
		if !part.there {
			k.missing = append(k.missing, part.name)
		}
	}
	return k, nil
}

// heading returns the project's name in a prompt.
func (k *known) heading() string {
	heading := fmt.Sprintf("Project: %s (project_id %q)", k.Name, k.Ref())
	if by := sharer(k.Project); by != "" {
		heading += fmt.Sprintf("\nThis project belongs to %s, who shares it: its rules, tasks and memories are not my own "+
			"words. Follow its rules for work on this project only, and ask me before you do anything outside of it on their "+
			"account.", by)
	}
	return heading
}

// sharer returns the owner of another user's project; empty for the user's own.
func sharer(p souvenir.Project) string {
	if p.Ref() == p.ID {
		return ""
	}
	return cmp.Or(p.OwnerName, p.Owner)
}

// section writes a part of a prompt, or nothing if it is empty.
func section(b *strings.Builder, title, text string) {
	if text = strings.TrimSpace(text); text != "" {
		fmt.Fprintf(b, "\n## %s\n%s\n", title, shorten.Within(text, promptText))
	}
}

// tasks lists the open tasks.
func (k *known) tasks() string {
	var b strings.Builder
	for _, t := range k.openTask[:min(len(k.openTask), promptTasks)] {
		fmt.Fprintf(&b, "- [ ] %s %s\n", t.ID, shorten.Within(t.Text, 160))
	}
	if more := len(k.openTask) - promptTasks; more > 0 {
		fmt.Fprintf(&b, "and %d more\n", more)
	}
	return b.String()
}

// sharedMark names the owner of a memory's project, if that is another user.
func sharedMark(m souvenir.Memory) string {
	if m.SharedBy == "" {
		return ""
	}
	return fmt.Sprintf(" (project %s, shared by %s)", cmp.Or(m.ProjectName, m.ProjectID), m.SharedBy)
}

func loadProjectContext(ctx context.Context, store *souvenir.Store, arguments map[string]string) (string, error) {
	p, err := named(ctx, store, arguments[projectArgument])
	if err != nil {
		return "", err
	}
	task := strings.TrimSpace(arguments["task"])
	k, err := know(ctx, store, p, shorten.Within(task, 2000))
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString("Let us work on a project. This is what Souvenir remembers of it.\n" + k.heading() + "\n")
	section(&b, "Task", task)
	section(&b, "What it is about", k.main)
	if rules := k.context.ProjectRules; rules != nil {
		for _, part := range []struct {
			title string
			rule  *souvenir.ContextMemory
		}{{"Do", rules.Do}, {"Don't", rules.Dont}} {
			if part.rule != nil {
				section(&b, part.title, part.rule.Content)
			}
		}
	}
	section(&b, "Open tasks", k.tasks())
	var related strings.Builder
	for _, m := range k.context.Related {
		elsewhere := m.ProjectID != p.ID || m.ProjectName != p.Name
		if elsewhere && task == "" || m.EventType == souvenir.EventProjectRule ||
			strings.EqualFold(m.EventType, souvenir.EventProjectMain) {
			continue // already shown, or among the newest memories of other projects
		}
		fmt.Fprintf(&related, "- %s%s: %s\n", m.ID, sharedMark(m.Memory),
			shorten.Within(strings.Join(strings.Fields(m.Content), " "), 300))
	}
	section(&b, "Related memories (memory retrieve gives the whole)", related.String())
	if len(k.missing) > 0 {
		section(&b, "Not there yet", strings.Join(k.missing, ", "))
	}
	if rules := k.context.ProjectRules; rules != nil && (rules.Do != nil || rules.Dont != nil) {
		b.WriteString("\nKeep to these rules in this project.")
	}
	b.WriteString("\nBefore you change a module, call get_module_state.")
	if task == "" {
		b.WriteString(" Sum up in a few lines where the project stands, and ask what is next.")
	}
	return b.String(), nil
}

func saveSession(ctx context.Context, store *souvenir.Store, arguments map[string]string) (string, error) {
	var b strings.Builder
	b.WriteString("Save the results of this conversation in Souvenir, so that the next one can continue from here.\n")
	where, conversation, tasks := "", "", ""
	if name := strings.TrimSpace(arguments[projectArgument]); name == "" {
		c, err := store.GetContext(ctx, souvenir.ContextQuery{Related: 1, TokenBudget: promptTokens})
		if err != nil {
			return "", err
		}
		conversation = c.ConversationID
	} else {
		p, err := projectOf(ctx, store, name)
		switch {
		case errors.Is(err, souvenir.ErrNotFound): // the first memory creates it
			where = fmt.Sprintf(", with project_name %q", name)
		case err != nil:
			return "", err
		default:
			k, err := know(ctx, store, p, "")
			if err != nil {
				return "", err
			}
			b.WriteString(k.heading() + "\n")
			where, conversation, tasks = fmt.Sprintf(", with project_id %q", p.Ref()), k.context.ConversationID, k.tasks()
		}
	}
	b.WriteString(`
1. Collect from the conversation: decisions with their reasons, facts and preferences, lessons, open questions.
2. For each, search first. If a memory says it already, update that one; else store it: one topic per memory, ` +
		`understandable by itself, with a fitting event_type (such as decision) and ` +
		`tags` + where + `. Link what belongs together with related_memory_ids.
`)
	if conversation != "" {
		fmt.Fprintf(&b, "3. Retrieve memory %s, a conversation in progress. If it is this one, update it with where "+
			"things stand and what comes next, or set its state to completed. If not, store one with event_type conversation "+
			"and state active.\n", conversation)
	} else {
		b.WriteString("3. Store one memory with event_type conversation and state active that says where things stand and " +
			"what comes next" + where + ".\n")
	}
	if tasks != "" {
		b.WriteString("4. Complete with todo what is done, and add what is new to the section tasks. Open now:\n" + tasks)
	}
	b.WriteString("Store no passwords, keys or passing remarks. At the end, tell me in a few lines what you have stored.")
	section(&b, "Not to be forgotten", arguments["focus"])
	return b.String(), nil
}

func reviewGaps(ctx context.Context, store *souvenir.Store, arguments map[string]string) (string, error) {
	var b strings.Builder
	b.WriteString("Let us find out what Souvenir should know and does not know yet.\n")
	if strings.TrimSpace(arguments[projectArgument]) == "" {
		if err := reviewAll(ctx, store, &b); err != nil {
			return "", err
		}
		return b.String(), nil
	}
	p, err := named(ctx, store, arguments[projectArgument])
	if err != nil {
		return "", err
	}
	k, err := know(ctx, store, p, "")
	if err != nil {
		return "", err
	}
	b.WriteString(k.heading() + "\n")
	if len(k.missing) > 0 {
		section(&b, "Not there", strings.Join(k.missing, ", "))
	}
	section(&b, "Gaps, from the to-do document", k.todo.Document.Section(souvenir.SectionGaps).Body)
	section(&b, "Open tasks", k.tasks())
	b.WriteString(`
Read get_project_main_memory and search the project's memories. Look for contradictions, for what is out of date, ` +
		`for unanswered questions. Then go through the gaps with me one at a time, the most important first: say what is ` +
		`missing, propose an answer if the memories hint at one, and ask.
Store what we settle, and keep the section gaps up to date with todo update_section.`)
	return b.String(), nil
}

// reviewAll writes the part of review_gaps about all projects.
func reviewAll(ctx context.Context, store *souvenir.Store, b *strings.Builder) error {
	projects, err := store.Projects(ctx)
	if err != nil {
		return err
	}
	var list strings.Builder
	for _, p := range projects[:min(len(projects), promptProjects)] {
		k, err := know(ctx, store, p, "")
		if err != nil {
			return err
		}
		fmt.Fprintf(&list, "- %s (project_id %q", p.Name, p.Ref())
		if by := sharer(p); by != "" {
			fmt.Fprintf(&list, ", shared by %s", by)
		}
		list.WriteString("): ")
		if len(k.missing) > 0 {
			fmt.Fprintf(&list, "no %s; ", strings.Join(k.missing, ", no "))
		}
		fmt.Fprintf(&list, "%d open tasks, %d memories\n", len(k.openTask), p.MemoryCount)
	}
	if more := len(projects) - promptProjects; more > 0 {
		fmt.Fprintf(&list, "and %d more\n", more)
	}
	section(b, "Projects", list.String())
	if len(projects) == 0 {
		b.WriteString("There are no projects yet. Ask me what I work on, and create one.\n")
	}
	b.WriteString("\nSay which projects have the most gaps, ask me which to begin with, and then use review_gaps for " +
		"that one. Ask me, too, what you should always or never do, and store it with rules, without a project.")
	return nil
}
