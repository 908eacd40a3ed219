package souvenir_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir"
)

func ExampleStore_AddMemory() {
	ctx := context.Background()
	store := open()
	defer store.Close()

	stored, err := store.AddMemory(ctx, souvenir.NewMemory{
		Content:   "Anna is allergic to peanuts.",
		Tags:      []string{"health"},
		EventTime: time.Date(2025, 3, 1, 9, 0, 0, 0, time.UTC),
		Metadata:  map[string]any{"session": "s-17", "turn": 4}, // your own keys mean nothing to the store
	})
	if err != nil {
		log.Fatal(err)
	}
	memory, err := store.GetMemory(ctx, stored.ID)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(memory.Content, memory.Tags, memory.Metadata, memory.Revision)
	// Output: Anna is allergic to peanuts. [health] map[session:s-17 turn:4] 1
}

// AddMemories stores many memories in one commit, which is much faster than one at a time. If one is invalid, none is
// stored.
func ExampleStore_AddMemories() {
	ctx := context.Background()
	store := open()
	defer store.Close()

	stored, err := store.AddMemories(ctx, []souvenir.NewMemory{
		{Content: "We deploy on Thursdays."},
		{Content: "Tests run before every merge."},
	}, nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(stored), stored[1].Content)

	_, err = store.AddMemories(ctx, []souvenir.NewMemory{{Content: "Fine."}, {Content: ""}}, nil)
	fmt.Println(err != nil)
	found, err := store.Search(ctx, souvenir.Query{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(found.Total)
	// Output:
	// 2 Tests run before every merge.
	// true
	// 2
}

// A program that mirrors another system puts all its records, as often as it likes. Only changes are written.
func ExampleStore_PutMemories() {
	ctx := context.Background()
	store := open()
	defer store.Close()

	tickets := []souvenir.NewMemory{
		{Key: "ticket/1", Content: "The login page is slow."},
		{Key: "ticket/2", Content: "The export lacks dates."},
	}
	for range 2 {
		put, err := store.PutMemories(ctx, tickets, nil)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(put[0].Effect, put[1].Effect)
		tickets[1].Content = "The export has dates now."
	}
	// Output:
	// added added
	// unchanged updated
}

// A key is the caller's own name for a memory. Each project has its own keys.
func ExampleStore_GetMemoryByKey() {
	ctx := context.Background()
	store := open()
	defer store.Close()
	add(store,
		souvenir.NewMemory{Key: "owner", Content: "Anna owns billing.", ProjectName: "billing"},
		souvenir.NewMemory{Key: "owner", Content: "Ben owns search.", ProjectName: "search"})

	memory, err := store.GetMemoryByKey(ctx, souvenir.MemoryKey{Key: "owner", ProjectName: "search"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(memory.Content)
	// Output: Ben owns search.
}

// With Similar, the result lists what the store already knew.
func ExampleNewMemory_similar() {
	ctx := context.Background()
	store := open()
	defer store.Close()
	add(store, souvenir.NewMemory{Content: "Anna is allergic to peanuts."})

	stored, err := store.AddMemory(ctx, souvenir.NewMemory{Content: "Anna is allergic to peanuts!", Similar: 3})
	if err != nil {
		log.Fatal(err)
	}
	for _, earlier := range stored.Similar {
		fmt.Println(earlier.Content)
	}
	// Output: Anna is allergic to peanuts.
}

// DeleteMemories selects like Memories. A dry run counts what would be deleted.
func ExampleStore_DeleteMemories() {
	ctx := context.Background()
	store := open()
	defer store.Close()
	add(store,
		souvenir.NewMemory{Content: "Hello.", Metadata: map[string]any{"session": "s-17"}},
		souvenir.NewMemory{Content: "Hello to you.", Metadata: map[string]any{"session": "s-17"}},
		souvenir.NewMemory{Content: "Good morning.", Metadata: map[string]any{"session": "s-18"}})

	deletion := souvenir.MemoriesDeletion{
		MemoryList: souvenir.MemoryList{Filter: souvenir.Filter{"session": "s-17"}},
		DryRun:     true,
	}
	count, err := store.DeleteMemories(ctx, deletion)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(count.Selected, count.Changed)

	deletion.DryRun = false
	if count, err = store.DeleteMemories(ctx, deletion); err != nil {
		log.Fatal(err)
	}
	fmt.Println(count.Selected, count.Changed)
	// Output:
	// 2 0
	// 2 2
}

func ExampleStore_UpdateMemories() {
	ctx := context.Background()
	store := open()
	defer store.Close()
	add(store,
		souvenir.NewMemory{Content: "Buy oats", State: "active", Tags: []string{"shopping"}},
		souvenir.NewMemory{Content: "Buy rice", State: "active", Tags: []string{"shopping"}},
		souvenir.NewMemory{Content: "Call the dentist", State: "active"})

	completed := "completed"
	count, err := store.UpdateMemories(ctx, souvenir.MemoriesUpdate{
		MemoryList: souvenir.MemoryList{Tags: []string{"shopping"}},
		Change:     souvenir.MemoryUpdate{State: &completed, Metadata: map[string]any{"by": "Anna"}},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(count.Changed)
	for memory, err := range store.Memories(ctx, souvenir.MemoryList{Filter: souvenir.Filter{"by": "Anna"}}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(memory.Content, memory.State)
	}
	// Output:
	// 2
	// Buy oats completed
	// Buy rice completed
}

// Restoring a past version is one more change: nothing is lost.
func ExampleStore_RestoreRevision() {
	ctx := context.Background()
	store := open()
	defer store.Close()
	memory := add(store, souvenir.NewMemory{Content: "The release is in May."})[0]
	wrong := "The release is cancelled."
	if _, err := store.UpdateMemory(ctx, memory.ID, souvenir.MemoryUpdate{Content: &wrong}); err != nil {
		log.Fatal(err)
	}

	restored, err := store.RestoreRevision(ctx, memory.ID, 1)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(restored.Revision, restored.Content)
	// Output: 3 The release is in May.
}

func ExampleStore_Revisions() {
	ctx := context.Background()
	store := open()
	defer store.Close()
	memory := add(store, souvenir.NewMemory{Content: "The office is in Berlin."})[0]
	moved := "The office is in Hamburg."
	if _, err := store.UpdateMemory(ctx, memory.ID, souvenir.MemoryUpdate{Content: &moved}); err != nil {
		log.Fatal(err)
	}

	revisions, err := store.Revisions(ctx, memory.ID)
	if err != nil {
		log.Fatal(err)
	}
	for _, r := range revisions {
		fmt.Println(r.Number, r.Content, r.Current)
	}
	// Output:
	// 2 The office is in Hamburg. true
	// 1 The office is in Berlin. false
}

// The new version of a document replaces the old one atomically.
func ExampleStore_Transaction() {
	ctx := context.Background()
	store := open()
	defer store.Close()
	add(store, souvenir.NewMemory{Content: "The canteen opens at noon.", Tags: []string{"handbook"}})

	replace := func(parts ...string) error {
		return store.Transaction(ctx, func(ctx context.Context) error { // use this context
			old := souvenir.MemoriesDeletion{MemoryList: souvenir.MemoryList{Tags: []string{"handbook"}}}
			if _, err := store.DeleteMemories(ctx, old); err != nil {
				return err
			}
			for _, part := range parts {
				m := souvenir.NewMemory{Content: part, Tags: []string{"handbook"}}
				if _, err := store.AddMemory(ctx, m); err != nil {
					return err
				}
			}
			return nil
		})
	}
	fmt.Println(replace("The canteen opens at eleven.", "")) // an empty memory is refused
	fmt.Println(replace("The canteen opens at eleven.", "On Fridays there is fish."))
	for memory, err := range store.Memories(ctx, souvenir.MemoryList{}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(memory.Content)
	}
	// Output:
	// NewMemory.Content is empty; expected 1 byte to 1048576 bytes
	// <nil>
	// The canteen opens at eleven.
	// On Fridays there is fish.
}

// Deleted memories stay in the trash, for 30 days unless Options say otherwise.
func ExampleTrash_Restore() {
	ctx := context.Background()
	store := open()
	defer store.Close()
	memory := add(store, souvenir.NewMemory{Content: "The spare key is with the neighbours."})[0]
	if err := store.DeleteMemory(ctx, memory.ID, nil); err != nil {
		log.Fatal(err)
	}

	for entry, err := range store.Trash().All(ctx, souvenir.TrashList{}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(entry.Kind, entry.Title)
		if _, err := store.Trash().Restore(ctx, entry.ID); err != nil {
			log.Fatal(err)
		}
	}
	restored, err := store.GetMemory(ctx, memory.ID)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(restored.Content)
	// Output:
	// memory The spare key is with the neighbours.
	// The spare key is with the neighbours.
}

// Erase removes memories from the trash for good.
func ExampleTrash_Erase() {
	ctx := context.Background()
	store := open()
	defer store.Close()
	memory := add(store, souvenir.NewMemory{Content: "The door code is 4711."})[0]
	if err := store.DeleteMemory(ctx, memory.ID, nil); err != nil {
		log.Fatal(err)
	}
	if err := store.Trash().Erase(ctx, memory.ID); err != nil {
		log.Fatal(err)
	}
	page, err := store.Trash().Page(ctx, souvenir.TrashQuery{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(page.Total)
	// Output: 0
}

// All reads with the context of a snapshot see the store as of its beginning.
func ExampleStore_Snapshot() {
	ctx := context.Background()
	store := open()
	defer store.Close()
	add(store,
		souvenir.NewMemory{Content: "Anna reviews.", Tags: []string{"team"}},
		souvenir.NewMemory{Content: "Ben deploys.", Tags: []string{"team"}})

	err := store.Snapshot(ctx, func(ctx context.Context) error {
		found, err := store.Search(ctx, souvenir.Query{Tags: []string{"team"}, Limit: 1})
		if err != nil {
			return err
		}
		listed := 0
		for _, err := range store.Memories(ctx, souvenir.MemoryList{Tags: []string{"team"}}) {
			if err != nil {
				return err
			}
			listed++
		}
		fmt.Println(found.Total == listed)
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output: true
}

// An agent begins with the main memory of a project, which comes with its files and linked memories.
func ExampleStore_GetMainMemory() {
	ctx := context.Background()
	store := open()
	defer store.Close()
	decision := add(store, souvenir.NewMemory{Content: "We chose SQLite.", ProjectName: "agent"})[0]
	add(store, souvenir.NewMemory{Content: "An assistant that remembers.", ProjectName: "agent",
		EventType: souvenir.EventProjectMain, State: "active", Related: []string{decision.ID}})

	start, err := store.GetMainMemory(ctx, souvenir.ProjectRef{Name: "agent"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(start.Memory.Content)
	fmt.Println(start.Related[0].Content)
	// Output:
	// An assistant that remembers.
	// We chose SQLite.
}

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
	// A turn whose key exists already is not stored again.
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

// A file is stored with a memory, listed by searches, and read back.
func ExampleStore_AddFile() {
	ctx := context.Background()
	store := open()
	defer store.Close()
	decision := add(store, souvenir.NewMemory{Content: "We chose SQLite; the minutes say why."})[0]

	file, err := store.AddFile(ctx, souvenir.NewFile{Filename: "minutes.md", MemoryID: decision.ID},
		strings.NewReader("# Minutes\nOne file, no server.\n"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(file.Filename, file.MIMEType, file.Size)

	found, err := store.Search(ctx, souvenir.Query{Text: "Which database?", IncludeFiles: true})
	if err != nil {
		log.Fatal(err)
	}
	content, err := store.OpenFile(ctx, found.Hits[0].Files[0].ID)
	if err != nil {
		log.Fatal(err)
	}
	defer content.Close()
	if _, err := io.Copy(os.Stdout, content); err != nil {
		log.Fatal(err)
	}
	// Output:
	// minutes.md text/markdown; charset=utf-8 31
	// # Minutes
	// One file, no server.
}

// Files lists files without their bytes. An open file can be read from any offset.
func ExampleStore_OpenFile() {
	ctx := context.Background()
	store := open()
	defer store.Close()
	file, err := store.AddFile(ctx, souvenir.NewFile{Filename: "plan.txt", Tags: []string{"trip"}},
		strings.NewReader("Day 1: Porto. Day 2: Lisbon."))
	if err != nil {
		log.Fatal(err)
	}

	content, err := store.OpenFile(ctx, file.ID)
	if err != nil {
		log.Fatal(err)
	}
	defer content.Close()
	if _, err := content.Seek(14, io.SeekStart); err != nil {
		log.Fatal(err)
	}
	second, err := io.ReadAll(content)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(second))
	// Output: Day 2: Lisbon.
}
