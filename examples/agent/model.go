package main

import (
	"context"
	"strings"

	"github.com/souvenir-ai/souvenir"
)

// model is the interface of the loop to a language model. A real one gets the prompt as its system message and a tool
// to remember with, and its tool calls become answer.remember.
type model interface {
	reply(ctx context.Context, prompt, input string) (answer, error)
}

type answer struct {
	text     string
	remember []string
}

// prompt tells the model how to behave and what the memory holds on the subject.
func prompt(known souvenir.Context) string {
	var b strings.Builder
	if known.Identity != nil {
		b.WriteString(known.Identity.Content + "\n\n")
	}
	for _, rule := range known.GeneralDoDont {
		b.WriteString("Rule: " + rule.Content + "\n")
	}
	b.WriteString("What you know about the matter, the most relevant first:\n")
	for _, memory := range known.Related {
		b.WriteString("- " + memory.Content + "\n")
	}
	return b.String()
}

// standIn answers a question with the first entry of its prompt, and remembers everything else that the user says.
type standIn struct{}

func (standIn) reply(_ context.Context, prompt, input string) (answer, error) {
	if !strings.HasSuffix(input, "?") {
		return answer{text: "I'll keep that in mind.", remember: []string{input}}, nil
	}
	_, known, _ := strings.Cut(prompt, "\n- ")
	known, _, _ = strings.Cut(known, "\n")
	if known == "" {
		return answer{text: "I don't know yet."}, nil
	}
	return answer{text: "You told me: " + known}, nil
}
