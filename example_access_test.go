package souvenir_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/souvenir-ai/souvenir"
)

// A program with many users gives each a view of their own, which costs nothing to make.
func ExampleAccess() {
	store := open()
	defer store.Close()
	for _, user := range []string{"anna", "ben"} {
		add(store.As(souvenir.Access{User: user}), souvenir.NewMemory{Content: "I am " + user + "."})
	}

	printFound(store.As(souvenir.Access{User: "ben"}), souvenir.Query{Text: "Who am I?"})
	// Output: I am ben.
}

// A view limited to projects sees nothing outside of them, and stores into the one that it is limited to.
func ExampleAccess_projects() {
	store := open()
	defer store.Close()
	add(store,
		souvenir.NewMemory{Content: "Invoices go out on the first.", ProjectID: "billing"},
		souvenir.NewMemory{Content: "The salary list is in the safe."})

	billing := store.As(souvenir.Access{Projects: []string{"billing"}})
	stored := add(billing, souvenir.NewMemory{Content: "Refunds take three days."})[0]
	fmt.Println(stored.ProjectID)
	printFound(billing, souvenir.Query{Sort: souvenir.SortCreatedAsc})
	// Output:
	// billing
	// Invoices go out on the first.
	// Refunds take three days.
}

// Several applications in one file have users of the same ids, and know nothing of each other.
func ExampleAccess_namespaces() {
	store := open()
	defer store.Close()
	shop := store.As(souvenir.Access{Namespace: "shop", User: "anna"})
	crm := store.As(souvenir.Access{Namespace: "crm", User: "anna"})
	add(shop, souvenir.NewMemory{Content: "I like the blue kettle."})
	add(crm, souvenir.NewMemory{Content: "Anna's contract ends in May."})

	printFound(shop, souvenir.Query{Sort: souvenir.SortCreatedAsc})
	_, err := shop.GetProject(context.Background(), souvenir.ProjectRef{ID: "sales"}) // not its own
	fmt.Println(errors.Is(err, souvenir.ErrNotFound))
	// Output:
	// I like the blue kettle.
	// true
}

// The users of an application are managed together, and deleted with all that they have.
func ExampleAccounts_Namespace() {
	ctx := context.Background()
	store := open()
	defer store.Close()
	shop := store.Accounts().Namespace("shop")
	if _, err := shop.AddUser(ctx, souvenir.NewUser{ID: "anna", Name: "Anna"}); err != nil {
		log.Fatal(err)
	}
	add(store.As(souvenir.Access{Namespace: "shop", User: "anna"}), souvenir.NewMemory{Content: "I like the blue kettle."})

	for user, err := range shop.Users(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		if err := shop.DeleteUser(ctx, user.ID, &souvenir.DeleteOptions{WithMemories: true}); err != nil {
			log.Fatal(err)
		}
		fmt.Println("deleted", user.Name)
	}
	// Output: deleted Anna
}

func ExampleAccess_readOnly() {
	store := open()
	defer store.Close()
	reader := store.As(souvenir.Access{User: "anna", ReadOnly: true})

	_, err := reader.AddMemory(context.Background(), souvenir.NewMemory{Content: "Not stored."})
	fmt.Println(errors.Is(err, souvenir.ErrReadOnly))
	// Output: true
}

// A token is limited to scopes and projects; its value is shown once.
func ExampleAccounts_AddToken() {
	ctx := context.Background()
	store := open()
	defer store.Close()
	accounts := store.Accounts()
	if _, err := accounts.AddUser(ctx, souvenir.NewUser{ID: "anna", Name: "Anna"}); err != nil {
		log.Fatal(err)
	}

	added, err := accounts.AddToken(ctx, souvenir.NewToken{
		User: "anna", Name: "editor", Scopes: []souvenir.Scope{souvenir.ScopeMemoryRead},
	})
	if err != nil {
		log.Fatal(err)
	}
	who, err := accounts.CheckToken(ctx, added.Value)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(who.User.Name, who.Allows(souvenir.ScopeMemoryRead), who.Allows(souvenir.ScopeMemoryWrite))
	// Output: Anna true false
}

// Preferences are a small JSON object for each user, patched like metadata.
func ExampleStore_UpdatePreferences() {
	ctx := context.Background()
	store := open()
	defer store.Close()
	anna := store.As(souvenir.Access{User: "anna"})

	if _, err := anna.UpdatePreferences(ctx, map[string]any{"theme": "dark", "language": "pt"}); err != nil {
		log.Fatal(err)
	}
	preferences, err := anna.UpdatePreferences(ctx, map[string]any{"theme": nil})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(preferences)
	// Output: map[language:pt]
}
