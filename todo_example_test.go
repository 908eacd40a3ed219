package souvenir_test

import (
	"context"
	"fmt"
	"log"

	"github.com/souvenir-ai/souvenir"
)

// A project has one todo document, and each edit of it leaves all else in it as it is.
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
	// task_id "T3" is not among the tasks; there are T2, T1
}
