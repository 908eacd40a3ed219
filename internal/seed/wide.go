package seed

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir"
)

// Wide creates a new file at a path with n of everything that a page lists or offers, all of the user: projects,
// collections, types, tags, keys, files, tokens, applications, clients and so on. Parts of a single project, memory or
// conversation are in the ones named by Filled and WideConversation.
func Wide(ctx context.Context, path string, n int) (Filled, error) {
	return fill(ctx, path, func(f *filler) error {
		w := &widener{filler: f, n: n}
		return f.inOrder(w.places, w.things, w.oneMemory, w.oneProject, w.conversations, w.files, w.accounts, w.callers)
	})
}

// WideConversation is the key of the conversation with many turns.
const WideConversation = "talk 0"

// widener stores n of everything.
type widener struct {
	*filler
	n int
}

// times runs a step n times, a few hundred in a transaction.
func (w *widener) times(step func(ctx context.Context, i int) error) error {
	const at = 250
	for begin := 0; begin < w.n; begin += at {
		err := w.store.Transaction(w.ctx, func(ctx context.Context) error {
			for i := begin; i < min(begin+at, w.n); i++ {
				if err := step(ctx, i); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// mostAccounts is the maximum number of tokens, applications and so on, which a store limits.
const mostAccounts = 900

// alone runs a step up to n times, each in transactions of its own.
func (w *widener) alone(most int, step func(ctx context.Context, i int) error) error {
	for i := range min(w.n, most) {
		if err := step(w.ctx, i); err != nil {
			return err
		}
	}
	return nil
}

// name is a name of 48 characters, some of which are longer in HTML.
func (w *widener) name(noun string, i int) string {
	return line(fmt.Sprintf("%s %05d %s", noun, i, strings.Repeat("é & ö ", 10)), 48)
}

// places creates users, projects and collections.
func (w *widener) places() error {
	w.Project = "atlas"
	if _, err := w.view.AddProject(w.ctx, souvenir.NewProject{ID: w.Project, Name: "Atlas"}); err != nil {
		return err
	}
	return w.times(func(ctx context.Context, i int) error {
		project := souvenir.NewProject{ID: fmt.Sprint("p", i), Name: w.name("project", i)}
		if _, err := w.view.AddProject(ctx, project); err != nil {
			return err
		}
		_, err := w.view.AddCollection(ctx, souvenir.NewCollection{Name: w.name("collection", i)})
		return err
	})
}

// things stores memories, each with a collection, a project, a type, a state, a module, tags and a key of its own, and
// others that it deletes.
func (w *widener) things() error {
	w.at(0.2)
	all := make([]souvenir.NewMemory, w.n)
	for i := range all {
		all[i] = souvenir.NewMemory{Content: fmt.Sprintf("Thing %d: %s", i, w.text(pick(w.writer, w.topics))),
			Collection: w.name("collection", i), EventType: w.name("type", i), State: w.name("state", i),
			ProjectID: fmt.Sprint("p", i),
			Tags:      []string{w.name("tag", i), "module:" + w.name("module", i)},
			Metadata:  map[string]any{w.name("key", i): w.name("value", i)}}
	}
	if err := w.keep(all); err != nil {
		return err
	}
	for i := range all {
		all[i] = souvenir.NewMemory{Content: fmt.Sprintf("Gone %d: %s", i, w.name("gone", i))}
	}
	if err := w.keep(all); err != nil {
		return err
	}
	gone := w.ids["stored"][w.n:]
	return w.times(func(ctx context.Context, i int) error { return w.view.DeleteMemory(ctx, gone[i], nil) })
}

// keep stores memories in batches, and adds their ids to those that are stored.
func (w *widener) keep(all []souvenir.NewMemory) error {
	for begin := 0; begin < len(all); begin += batch {
		stored, err := w.view.AddMemories(w.ctx, all[begin:min(begin+batch, len(all))], nil)
		if err != nil {
			return err
		}
		for _, s := range stored {
			w.ids["stored"] = append(w.ids["stored"], s.ID)
		}
	}
	return nil
}

// oneMemory stores a memory with versions, links from and to it, and near duplicates.
func (w *widener) oneMemory() error {
	w.at(0.4)
	stored, err := w.view.AddMemory(w.ctx, souvenir.NewMemory{Content: "Version 0 of the tiles of the coast.",
		ProjectID: w.Project, Related: w.ids["stored"][:min(w.n, souvenir.MaxRelated)]})
	if err != nil {
		return err
	}
	w.Memory = stored.ID
	if err := w.times(func(ctx context.Context, i int) error {
		content := fmt.Sprintf("Version %d of the tiles of the coast.", i+1)
		_, err := w.view.UpdateMemory(ctx, w.Memory, souvenir.MemoryUpdate{Content: &content})
		return err
	}); err != nil {
		return err
	}
	all := make([]souvenir.NewMemory, w.n)
	for i := range all {
		all[i] = souvenir.NewMemory{ProjectID: w.Project, Related: []string{w.Memory}, EventType: "decision",
			Content: fmt.Sprintf("The ferry leaves pier 4 at %d:%02d every morning. %s", i/60, i%60, w.name("link", i)),
			Tags:    []string{w.name("tag", i), "module:" + w.name("module", i)},
			Classification: pick(w.writer,
				[]souvenir.Classification{souvenir.ClassDo, souvenir.ClassDont, souvenir.ClassTodo})}
	}
	return w.keep(all)
}

// oneProject gives the project people, invitations, rules and tasks, and others invite the user.
func (w *widener) oneProject() error {
	w.at(0.5)
	project := souvenir.ProjectRef{ID: w.view.Access().User + "/" + w.Project}
	err := w.alone(w.n, func(ctx context.Context, i int) error {
		u, err := w.store.Accounts().AddUser(ctx, souvenir.NewUser{Name: w.name("person", i)})
		if err != nil {
			return err
		}
		w.Other = u.Name
		member := souvenir.NewMember{Project: project, User: u.ID, Role: souvenir.MemberWriter}
		if _, err := w.store.AddMember(ctx, member); err != nil {
			return err
		}
		other := w.store.As(souvenir.Access{User: u.ID})
		if _, err := other.AddProject(ctx, souvenir.NewProject{ID: "theirs", Name: w.name("theirs", i)}); err != nil {
			return err
		}
		join, by := souvenir.NewMember{User: w.User, Role: souvenir.MemberReader}, w.store
		join.Project.ID = u.ID + "/theirs"
		if i < souvenir.MaxReceivedInvitations {
			by = other // which invites
		}
		_, err = by.AddMember(ctx, join)
		return err
	})
	if err != nil {
		return err
	}
	if err := w.alone(souvenir.MaxSentInvitations, func(ctx context.Context, i int) error {
		u, err := w.store.Accounts().AddUser(ctx, souvenir.NewUser{Name: w.name("invited", i)})
		if err == nil {
			_, err = w.view.AddMember(ctx, souvenir.NewMember{Project: project, User: u.ID, Role: souvenir.MemberReader})
		}
		return err
	}); err != nil {
		return err
	}
	lines := func(form string) string { // five times, below the maximum of a memory
		var text strings.Builder
		for i := range min(w.n, 2000) {
			fmt.Fprintf(&text, form, i+1, w.name("line", i))
		}
		return text.String()
	}
	for _, kind := range []souvenir.RuleType{souvenir.RuleDo, souvenir.RuleDont} {
		for _, place := range []string{w.Project, ""} {
			rule := souvenir.NewRule{ProjectID: place, Type: kind, Content: lines("- %d. %s\n")}
			if _, err := w.view.SetRule(w.ctx, rule); err != nil {
				return err
			}
		}
	}
	_, err = w.view.SetTodo(w.ctx, souvenir.NewTodo{ProjectID: w.Project,
		Content: "## Constitution\n\n" + lines("- %d. %s\n") + "\n## Spec\n\n" + lines("%d. %s\n") + "\n## Plan\n\n" +
			lines("- [ ] %d. %s\n") + "\n## Tasks\n\n" + lines("- [ ] T%d %s\n") + "\n## Gaps\n\n" + lines("%d. %s\n")})
	return err
}

// conversations stores conversations of the project, of which the first has n turns.
func (w *widener) conversations() error {
	w.at(0.6)
	place := souvenir.ConversationPlace{ProjectID: w.Project}
	turns := make([]souvenir.Turn, w.n)
	for i := range turns {
		turns[i] = souvenir.Turn{Role: "user", Speaker: "anna", Content: w.name("turn", i)}
	}
	long := w.view.Conversation(WideConversation, place)
	for begin := 0; begin < w.n; begin += batch {
		if _, err := long.Append(w.ctx, turns[begin:min(begin+batch, w.n)]...); err != nil {
			return err
		}
	}
	return w.times(func(ctx context.Context, i int) error {
		_, err := w.view.Conversation(fmt.Sprint("talk ", i+1), place).Append(ctx,
			souvenir.Turn{Role: "user", Content: w.name("turn", i)})
		return err
	})
}

// files stores files of the memory, each of a category and a tag of its own.
func (w *widener) files() error {
	w.at(0.7)
	for i := range w.n {
		file, err := w.view.AddFile(w.ctx, souvenir.NewFile{Filename: w.name("file", i) + ".txt", MemoryID: w.Memory,
			Category: w.name("category", i), Tags: []string{w.name("tag", i)}}, strings.NewReader("tea"))
		if err != nil {
			return err
		}
		w.File = file.ID
		free := souvenir.NewFile{Filename: w.name("free", i) + ".txt"}
		if _, err := w.view.AddFile(w.ctx, free, strings.NewReader("tea")); err != nil {
			return err
		}
	}
	return nil
}

// accounts creates tokens, applications, their grants, sign-ins and invitations.
func (w *widener) accounts() error {
	w.at(1)
	limits := make([]string, min(w.n, 100))
	for i := range limits {
		limits[i] = fmt.Sprint("p", i)
	}
	return w.alone(mostAccounts, func(ctx context.Context, i int) error {
		token := souvenir.NewToken{Name: w.name("token", i)}
		if i%10 == 0 {
			token.Projects = limits
		}
		var err error
		if w.token, err = w.view.Accounts().AddToken(ctx, token); err != nil {
			return err
		}
		w.Token = w.token.Value
		if _, err := w.view.Accounts().AddClient(ctx,
			souvenir.NewClient{Name: w.name("client", i), RedirectURIs: []string{callback}}); err != nil {
			return err
		}
		browser := souvenir.NewSignIn{User: w.User, UserAgent: w.name("browser", i)}
		if _, err := w.store.Accounts().AddSignIn(ctx, browser); err != nil {
			return err
		}
		_, err = w.store.Accounts().AddInvitation(ctx, souvenir.NewInvitation{Note: w.name("guest", i), CreatedBy: w.User})
		return err
	})
}

// callers grants access to applications, and records calls of clients, tools and tokens.
func (w *widener) callers() error {
	for i := range min(w.n, mostAccounts) {
		if err := w.authorize(w.name("application", i)); err != nil {
			return err
		}
	}
	own := souvenir.Principal{User: w.user, Access: souvenir.Access{User: w.user.ID}, TokenID: w.token.ID}
	for i := range w.n {
		for _, client := range []string{w.name("program", i), "cursor/1.9"} {
			call := souvenir.NewActivity{Principal: own, Client: client, Tool: "memory", Action: "update",
				MemoryID: w.Memory, StartedAt: w.clock.Now().Add(-time.Duration(i) * time.Minute)}
			if err := w.store.Upkeep().RecordActivity(w.ctx, call); err != nil {
				return err
			}
		}
		if i%500 == 499 {
			if _, err := w.view.Insights().ActivityPage(w.ctx, souvenir.ActivityQuery{Limit: 1}); err != nil {
				return err
			}
		}
	}
	return nil
}
