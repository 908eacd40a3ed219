package tools_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/tools"
)

func ExampleSet_Call() {
	ctx := context.Background()
	store, err := souvenir.Open(ctx, ":memory:", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	set := tools.New(store, nil)

	for _, call := range []string{
		`{"action": "store", "content": "We deploy on Thursdays, never on Fridays.", "tags": "deployment, rules"}`,
		`{"action": "search", "query": "When may we deploy?", "limit": "1"}`,
		`{"action": "search", "limit": 1000}`,
	} {
		result, err := set.Call(ctx, "memory", json.RawMessage(call))
		if err != nil {
			fmt.Println("error:", err) // for the model, which can correct its call
			continue
		}
		encoded, err := json.Marshal(result)
		if err != nil {
			log.Fatal(err)
		}
		var got struct {
			Indexed bool
			Results []struct{ Memories []struct{ Content string } }
		}
		if err := json.Unmarshal(encoded, &got); err != nil {
			log.Fatal(err)
		}
		if len(got.Results) == 0 {
			fmt.Println("stored and indexed:", got.Indexed)
			continue
		}
		fmt.Println(got.Results[0].Memories[0].Content)
	}
	// Output:
	// stored and indexed: true
	// We deploy on Thursdays, never on Fridays.
	// error: limit is 1000; expected 1 to 100
}

func ExampleList() {
	for _, tool := range tools.List() {
		fmt.Println(tool.Name)
	}
	// Output:
	// memory
	// get_project_main_memory
	// get_module_state
	// rules
	// todo
	// upload_document
	// list_collections
	// create_collection
}
