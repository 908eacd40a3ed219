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
