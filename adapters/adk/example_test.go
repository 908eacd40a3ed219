package adk_test

import (
	"context"
	"fmt"
	"log"

	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/agent/llmagent"
	"google.golang.org/adk/v2/runner"
	"google.golang.org/adk/v2/session"
	"google.golang.org/adk/v2/tool"
	"google.golang.org/adk/v2/tool/preloadmemorytool"
	"google.golang.org/genai"

	"github.com/souvenir-ai/souvenir"
	adapter "github.com/souvenir-ai/souvenir/adapters/adk"
)

// An agent that remembers earlier sessions, and has Souvenir's tools.
func Example() {
	ctx := context.Background()
	store, err := souvenir.Open(ctx, ":memory:", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	model := &script{answers: []*genai.Content{says("I will remember it."), says("On Thursdays.")}} // in a program: Gemini
	sessions := session.InMemoryService()

	memory := adapter.NewMemoryService(store, nil)
	toolset, err := memory.Toolset(&adapter.ToolsetOptions{Only: []string{"memory", "rules"}})
	if err != nil {
		log.Fatal(err)
	}
	guide, err := llmagent.New(llmagent.Config{Name: "guide", Model: model,
		Tools: []tool.Tool{preloadmemorytool.New()}, Toolsets: []tool.Toolset{toolset}})
	if err != nil {
		log.Fatal(err)
	}
	r, err := runner.New(runner.Config{AppName: "travel", Agent: guide, SessionService: sessions,
		MemoryService: memory, AutoCreateSession: true})
	if err != nil {
		log.Fatal(err)
	}
	ask := func(sessionID, question string) {
		message := genai.NewContentFromText(question, genai.RoleUser)
		for event, err := range r.Run(ctx, "anna", sessionID, message, agent.RunConfig{}) {
			if err != nil {
				log.Fatal(err)
			}
			fmt.Println(event.Content.Parts[0].Text)
		}
		got, err := sessions.Get(ctx, &session.GetRequest{AppName: "travel", UserID: "anna", SessionID: sessionID})
		if err != nil {
			log.Fatal(err)
		}
		if err := memory.AddSessionToMemory(ctx, got.Session); err != nil {
			log.Fatal(err)
		}
	}

	ask("monday", "The ferry to Oslo leaves on Thursdays.")
	ask("tuesday", "When does the ferry leave?")
	fmt.Println("the model knew the first session:", model.saw("The ferry to Oslo leaves on Thursdays."))
	// Output:
	// I will remember it.
	// On Thursdays.
	// the model knew the first session: true
}
