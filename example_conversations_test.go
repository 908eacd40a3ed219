package souvenir_test

import (
	"context"
	"fmt"
	"log"

	"github.com/souvenir-ai/souvenir"
)

func ExampleStore_Conversation() {
	ctx := context.Background()
	store := open()
	defer store.Close()

	chat := store.Conversation("thread-42")
	_, err := chat.Append(ctx,
		souvenir.Turn{Key: "msg-1", Role: "user", Speaker: "Anna", Content: "Which train do we take to Kiel?"},
		souvenir.Turn{Key: "msg-2", Role: "assistant", Content: "The one at 7:40."})
	if err != nil {
		log.Fatal(err)
	}
	// A turn with a key that is there is not stored again.
	_, err = chat.Append(ctx, souvenir.Turn{Key: "msg-2", Role: "assistant", Content: "The one at 7:40."})
	if err != nil {
		log.Fatal(err)
	}
	turns, err := chat.Last(ctx, 10)
	if err != nil {
		log.Fatal(err)
	}
	for _, t := range turns {
		fmt.Println(t.Role, t.Speaker, t.Content)
	}
	// Output:
	// user Anna Which train do we take to Kiel?
	// assistant  The one at 7:40.
}

func ExampleConversation_Window() {
	ctx := context.Background()
	store := open()
	defer store.Close()

	chat := store.Conversation("thread-42")
	for _, text := range []string{"Good morning.", "Is the report ready?", "Yes, I sent it at nine."} {
		if _, err := chat.Append(ctx, souvenir.Turn{Role: "user", Content: text}); err != nil {
			log.Fatal(err)
		}
	}
	turns, err := chat.Window(ctx, 30)
	if err != nil {
		log.Fatal(err)
	}
	for _, t := range turns {
		fmt.Println(t.Tokens(), t.Content)
	}
	// Output:
	// 12 Is the report ready?
	// 13 Yes, I sent it at nine.
}

func ExampleConversation_Around() {
	ctx := context.Background()
	store := open()
	defer store.Close()

	chat := store.Conversation("thread-42")
	for _, text := range []string{"Who brings the tent?", "Ben has one for four people.", "And the stove?"} {
		if _, err := chat.Append(ctx, souvenir.Turn{Role: "user", Content: text}); err != nil {
			log.Fatal(err)
		}
	}
	found, err := store.Search(ctx, souvenir.Query{Text: "tent for four people", Limit: 1})
	if err != nil {
		log.Fatal(err)
	}
	turns, err := chat.Around(ctx, found.Hits[0].ID, 1, 0)
	if err != nil {
		log.Fatal(err)
	}
	for _, t := range turns {
		fmt.Println(t.Content)
	}
	// Output:
	// Who brings the tent?
	// Ben has one for four people.
}

func ExampleStore_Conversations() {
	ctx := context.Background()
	store := open()
	defer store.Close()

	for _, key := range []string{"monday", "tuesday"} {
		_, err := store.Conversation(key).Append(ctx, souvenir.Turn{Content: "Let us begin."},
			souvenir.Turn{Content: "That was all of " + key + "."})
		if err != nil {
			log.Fatal(err)
		}
	}
	for c, err := range store.Conversations(ctx, souvenir.ConversationList{}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(c.Key, c.Turns, c.Begins)
	}
	// Output:
	// tuesday 2 Let us begin.
	// monday 2 Let us begin.
}
