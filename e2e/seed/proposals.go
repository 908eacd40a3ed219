package main

import (
	"context"
	"strings"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/extract"
	"github.com/souvenir-ai/souvenir/internal/seed"
)

// obedient is a model that follows the last turn: "update: TEXT" updates the nearest memory in its input.
type obedient struct{}

func (obedient) Extract(_ context.Context, c extract.Conversation) (extract.Extraction, error) {
	last := c.Turns[len(c.Turns)-1]
	action, text, _ := strings.Cut(last.Content, ": ")
	p := extract.Proposal{Action: extract.Action(action), Content: text, Sources: []string{last.ID}, Confidence: 0.8,
		Reason: "It was said in the kitchen."}
	if p.Action != extract.Add && len(c.Known) > 0 {
		p.Target = c.Known[0].ID
	}
	if p.Action == extract.Forget {
		p.Content = ""
	}
	return extract.Extraction{Proposals: []extract.Proposal{p}}, nil
}

// propose adds pending proposals: of each kind, or with the texts of a hostile store.
func propose(ctx context.Context, path string, filled seed.Filled, hostile bool) error {
	store, err := souvenir.Open(ctx, path, nil)
	if err != nil {
		return err
	}
	defer store.Close()
	view := store.As(souvenir.Access{User: filled.UserID})
	key, said := "kitchen talk", []string{"add: The kettle is descaled every first Monday.",
		"update: The tiles of the coast are blue and white, and so is the door.",
		"supersede: The tiles of the coast are green now.", "forget: The tiles of the coast", "add: 厨房的茶壶每月清洗一次。"}
	if hostile {
		if key, said, err = hostileTurns(ctx, view); err != nil {
			return err
		}
	} else if _, err := view.AddMemory(ctx, souvenir.NewMemory{Content: "The tiles of the coast are blue and white.",
		ProjectID: filled.Project, EventType: extract.EventFact}); err != nil {
		return err
	}
	learner, err := extract.New(view, extract.Options{Extractor: obedient{}, ProjectID: filled.Project, Review: true})
	if err != nil {
		return err
	}
	conversation := view.Conversation(key, souvenir.ConversationPlace{ProjectID: filled.Project})
	for _, text := range said {
		if _, err := conversation.Append(ctx, souvenir.Turn{Role: "user", Speaker: key, Content: text}); err != nil {
			return err
		}
		if _, err := learner.Learn(ctx, key); err != nil {
			return err
		}
	}
	return store.Close()
}

// hostileTurns returns the key of a conversation, and turns that contain the texts of memories.
func hostileTurns(ctx context.Context, view *souvenir.Store) (key string, said []string, err error) {
	for m, err := range view.Memories(ctx, souvenir.MemoryList{}) {
		if err != nil {
			return "", nil, err
		}
		if len(m.Content) > extract.MaxContent || len(said) == 30 {
			continue
		}
		if key == "" {
			key = m.Content[:min(len(m.Content), 60)]
		}
		action := []string{"add: ", "supersede: ", "update: "}[len(said)%3]
		said = append(said, action+m.Content)
	}
	return strings.ToValidUTF8(key, ""), said, nil
}
