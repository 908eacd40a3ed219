package souvenir_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/souvenir-ai/souvenir"
)

func ExampleStore_AddMember() {
	ctx := context.Background()
	store, err := souvenir.Open(ctx, ":memory:", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	anna, ben := store.As(souvenir.Access{User: "anna"}), store.As(souvenir.Access{User: "ben"})

	if _, err := ben.AddMemory(ctx, souvenir.NewMemory{Content: "Ben prefers tea."}); err != nil {
		log.Fatal(err)
	}
	project, err := anna.AddProject(ctx, souvenir.NewProject{ID: "kitchen", Name: "The new kitchen"})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := anna.AddMemory(ctx,
		souvenir.NewMemory{Content: "The oven comes on Tuesday.", ProjectID: "kitchen"}); err != nil {
		log.Fatal(err)
	}
	_, err = anna.AddMember(ctx, souvenir.NewMember{Project: souvenir.ProjectRef{ID: project.Ref()}, User: "ben",
		Role: souvenir.MemberReader})
	if err != nil {
		log.Fatal(err)
	}
	_, err = ben.GetProject(ctx, souvenir.ProjectRef{Name: "The new kitchen"})
	fmt.Println(errors.Is(err, souvenir.ErrNotFound)) // he has not accepted yet

	invitations, err := ben.Accounts().ProjectInvitations(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(invitations[0].InvitedBy, "invites to", invitations[0].ProjectName, "as a", invitations[0].Role)
	if _, err := ben.Accounts().AcceptProjectInvitation(ctx, invitations[0].ID); err != nil {
		log.Fatal(err)
	}

	found, err := ben.Search(ctx, souvenir.Query{Text: "When does the oven come?", ProjectName: "The new kitchen"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(found.Hits[0].Owner+":", found.Hits[0].Content)

	shared, err := ben.GetProject(ctx, souvenir.ProjectRef{Name: "The new kitchen"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(shared.Ref(), "as a", shared.Role, "beside", shared.Members-1)

	_, err = ben.AddMemory(ctx, souvenir.NewMemory{Content: "The oven is too small.", ProjectID: shared.Ref()})
	fmt.Println(errors.Is(err, souvenir.ErrForbidden), err)
	// Output:
	// true
	// anna invites to The new kitchen as a reader
	// anna: The oven comes on Tuesday.
	// anna/kitchen as a reader beside 1
	// true project "anna/kitchen" is shared with this user read-only
}

// A project has one todo document. Each edit leaves the rest of it unchanged.
func ExampleStore_CompleteTask() {
	ctx := context.Background()
	store, err := souvenir.Open(ctx, ":memory:", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()

	todo := "## Constitution\nTests first.\n\n## Spec\nA parser.\n\n## Plan\n\n## Tasks\n- [x] T1 read the standard\n- " +
		"[ ] T2 write the scanner\n\n## Gaps\n"
	if _, err := store.SetTodo(ctx, souvenir.NewTodo{ProjectName: "parser", Content: todo}); err != nil {
		log.Fatal(err)
	}
	done, err := store.CompleteTask(ctx, souvenir.TaskRef{ProjectName: "parser", TaskID: "T2"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s is done: %d of %d\n", done.Task.Text, done.Progress.Done, done.Progress.Total)

	_, err = store.CompleteTask(ctx, souvenir.TaskRef{ProjectName: "parser", TaskID: "T3"})
	fmt.Println(err)
	// Output:
	// write the scanner is done: 2 of 2
	// TaskRef.TaskID "T3" is not among the tasks; there are T2, T1
}

// A project has one rule of each type. Past texts are kept as revisions.
func ExampleStore_SetRule() {
	ctx := context.Background()
	store := open()
	defer store.Close()

	for _, content := range []string{"Write a test first.", "Write a test first.", "Write two tests first."} {
		rule, err := store.SetRule(ctx,
			souvenir.NewRule{ProjectName: "parser", Type: souvenir.RuleDo, Content: content})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(rule.Created, rule.Revision)
	}
	rules, err := store.Rules(ctx, souvenir.ProjectRef{Name: "parser"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(rules.Do.Content, rules.Dont == nil)
	// Output:
	// true 1
	// false 1
	// false 2
	// Write two tests first. true
}

// An edit of one section leaves every byte of the others unchanged, even if others edit those at the same time.
func ExampleStore_UpdateTodoSection() {
	ctx := context.Background()
	store := open()
	defer store.Close()
	todo := "## Constitution\nTests first.\n\n## Spec\n\n## Plan\n\n## Tasks\n\n## Gaps\n"
	if _, err := store.SetTodo(ctx, souvenir.NewTodo{ProjectName: "parser", Content: todo}); err != nil {
		log.Fatal(err)
	}

	stored, err := store.UpdateTodoSection(ctx, souvenir.ProjectRef{Name: "parser"}, souvenir.SectionTasks,
		souvenir.TodoSectionUpdate{Content: "- [ ] T1 write the scanner"})
	if err != nil {
		log.Fatal(err)
	}
	done, total := stored.Document.Progress()
	fmt.Println(stored.Revision, done, total)
	// Output: 2 0 1
}

func ExampleParseTodo() {
	document, err := souvenir.ParseTodo("## Constitution\n\n## Spec\n\n## Plan\n\n## Tasks\n- [x] T1 read\n" +
		"- [ ] T2 write\n\n## Gaps\n")
	if err != nil {
		log.Fatal(err)
	}
	for _, task := range document.Section(souvenir.SectionTasks).Checkboxes() {
		fmt.Println(task.ID, task.Text, task.Done)
	}
	// Output:
	// T1 read true
	// T2 write false
}

func ExampleStore_GetContext() {
	ctx := context.Background()
	store := open()
	defer store.Close()
	add(store,
		souvenir.NewMemory{Content: "I am Mira, who looks after the billing service.", EventType: souvenir.EventIdentity},
		souvenir.NewMemory{Content: "Answer in short sentences.", Classification: souvenir.ClassDo},
		souvenir.NewMemory{Content: "Write a test first.", EventType: souvenir.EventProjectRule, RuleType: souvenir.RuleDo,
			ProjectName: "billing"},
		souvenir.NewMemory{Content: "Refunds take three days, because the bank settles at night.", ProjectName: "billing"},
		souvenir.NewMemory{Content: "Invoices are sent on the first of the month.", ProjectName: "billing"})

	c, err := store.GetContext(ctx, souvenir.ContextQuery{
		Query:       "How many days does a refund take?",
		ProjectName: "billing",
		Related:     1,
		TokenBudget: 2000,
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(c.Identity.Content)
	fmt.Println(c.GeneralDoDont[0].Content)
	fmt.Println(c.ProjectRules.Do.Content, c.ProjectRules.Todo == nil)
	fmt.Println(c.Related[0].Content)
	fmt.Println(c.Tokens < 2000)
	// Output:
	// I am Mira, who looks after the billing service.
	// Answer in short sentences.
	// Write a test first. true
	// Refunds take three days, because the bank settles at night.
	// true
}

func ExampleStore_SetIdentityMemory() {
	ctx := context.Background()
	store := open()
	defer store.Close()

	first, err := store.SetIdentityMemory(ctx,
		souvenir.IdentityMemory{Content: "I am Mira.", Personality: "calm", Nicknames: []string{"Mi"}})
	if err != nil {
		log.Fatal(err)
	}
	second, err := store.SetIdentityMemory(ctx,
		souvenir.IdentityMemory{Content: "I am Mira.", Personality: "calm", Address: "by first name"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(first.ID == second.ID, second.Revision)
	fmt.Println(second.Metadata)
	// Output:
	// true 2
	// map[address:by first name personality:calm]
}

func ExampleStore_GetModuleState() {
	ctx := context.Background()
	store := open()
	defer store.Close()
	add(store,
		souvenir.NewMemory{Content: "Refunds take three days.", Tags: []string{"payments"}, EventType: "decision"},
		souvenir.NewMemory{Content: "The card form moved to its own page.",
			ShownMetadata: map[string]any{"module_name": "Payments"}})

	state, err := store.GetModuleState(ctx, souvenir.ModuleQuery{Module: "payments"})
	if err != nil {
		log.Fatal(err)
	}
	for _, m := range state.Memories {
		fmt.Println(m.Match, m.Content)
	}
	fmt.Println(state.Summary.Total, state.Summary.EventTypes)
	// Output:
	// module_name The card form moved to its own page.
	// tag Refunds take three days.
	// 2 map[decision:1]
}
