package souvenir_test

import (
	"context"
	"fmt"
	"log"

	"github.com/souvenir-ai/souvenir"
)

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

func ExampleStore_ModuleState() {
	ctx := context.Background()
	store := open()
	defer store.Close()
	add(store,
		souvenir.NewMemory{Content: "Refunds take three days.", Tags: []string{"payments"}, EventType: "decision"},
		souvenir.NewMemory{Content: "The card form moved to its own page.",
			ShownMetadata: map[string]any{"module_name": "Payments"}})

	state, err := store.ModuleState(ctx, souvenir.ModuleQuery{Module: "payments"})
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
