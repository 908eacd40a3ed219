// Sharing lets two people, and an agent with read-only access, work on one project in one file, and shows what each
// of them sees.
//
//	go run ./examples/sharing
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/souvenir-ai/souvenir"
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "sharing:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, w io.Writer) error {
	store, err := souvenir.Open(ctx, ":memory:", nil)
	if err != nil {
		return err
	}
	defer store.Close()
	for _, name := range []string{"anna", "ben"} {
		if _, err := store.Accounts().AddUser(ctx, souvenir.NewUser{ID: name, Name: name}); err != nil {
			return err
		}
	}
	anna, ben := store.As(souvenir.Access{User: "anna"}), store.As(souvenir.Access{User: "ben"})

	// Anna has a project, and a private memory.
	for _, m := range []souvenir.NewMemory{
		{Content: "The boat gets a new mast in April.", ProjectID: "boat"},
		{Content: "The sailmaker wants a third of the price in advance.", ProjectID: "boat"},
		{Content: "Ben's birthday present: a sextant. A surprise!"},
	} {
		if _, err := anna.AddMemory(ctx, m); err != nil {
			return err
		}
	}
	if err := ask(ctx, w, ben, "Ben, before", "What is planned for the boat?"); err != nil {
		return err
	}

	// She invites Ben to the project, where he may write once he has accepted.
	boat := souvenir.ProjectRef{ID: "boat"}
	if _, err := anna.AddMember(ctx,
		souvenir.NewMember{Project: boat, User: "ben", Role: souvenir.MemberWriter}); err != nil {
		return err
	}
	if err := ask(ctx, w, ben, "Ben, invited", "What is planned for the boat?"); err != nil {
		return err
	}
	invitations, err := ben.Accounts().ProjectInvitations(ctx)
	if err != nil {
		return err
	}
	for _, i := range invitations {
		if _, err := ben.Accounts().AcceptProjectInvitation(ctx, i.ID); err != nil {
			return err
		}
	}
	if _, err := ben.AddMemory(ctx,
		souvenir.NewMemory{Content: "The mast is ordered, of spruce; it comes by lorry.", ProjectID: "boat"}); err != nil {
		return err
	}
	if err := ask(ctx, w, ben, "Ben", "What is planned for the boat?"); err != nil {
		return err
	}
	if err := ask(ctx, w, anna, "Anna", "Which wood was ordered for the mast?"); err != nil {
		return err
	}
	if err := ask(ctx, w, ben, "Ben", "What is my birthday present?"); err != nil {
		return err
	}

	// An agent works for Anna with a view of this project only, and may not write.
	agent := store.As(souvenir.Access{User: "anna", Projects: []string{"boat"}, ReadOnly: true})
	if err := ask(ctx, w, agent, "Anna's agent", "What is Ben's birthday present?"); err != nil {
		return err
	}
	_, err = agent.AddMemory(ctx, souvenir.NewMemory{Content: "I was here."})
	fmt.Fprintf(w, "Anna's agent, storing: %v\n\n", err)
	if !errors.Is(err, souvenir.ErrReadOnly) {
		return fmt.Errorf("the agent could write: %w", err)
	}

	// Ben leaves and loses access to the project; what he stored in it belongs to the project.
	if err := anna.DeleteMember(ctx, boat, "ben"); err != nil {
		return err
	}
	return ask(ctx, w, ben, "Ben, afterwards", "What is planned for the boat?")
}

func ask(ctx context.Context, w io.Writer, view *souvenir.Store, who, question string) error {
	found, err := view.Search(ctx, souvenir.Query{Text: question, Limit: 2})
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "%s: %s\n", who, question)
	for _, hit := range found.Hits {
		fmt.Fprintf(w, "  %s (by %s)\n", hit.Content, hit.Owner)
	}
	if len(found.Hits) == 0 {
		fmt.Fprintln(w, "  nothing that can be seen")
	}
	fmt.Fprintln(w)
	return nil
}
