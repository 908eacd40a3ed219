package tools

import (
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"slices"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/fault"
)

// Choice selects the tools for a model, and their names. The zero value means all tools, under their own names.
type Choice struct {
	// Only names the tools, as in [List]. None means all.
	Only []string

	// Prefix precedes the name of each tool, to keep it apart from others, such as "souvenir_".
	Prefix string

	// ReadOnly chooses from [ListReadOnly]. Also set [Options.ReadOnly], so that calls of other tools are refused.
	ReadOnly bool
}

// Chosen is a tool with its name for a model, Alias. [Set.Call] takes the tool's own name.
type Chosen struct {
	Tool
	Alias string
}

// alias is the form of names that models accept.
var alias = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// Choose returns the chosen tools, in the order of [List]. It returns ErrInvalid for an unknown name in Only, and for a
// Prefix that makes a name other than 1 to 64 letters, digits, _ and -.
func Choose(c Choice) ([]Chosen, error) {
	list := List()
	if c.ReadOnly {
		list = ListReadOnly()
	}
	names := make([]string, len(list))
	for i, t := range list {
		names[i] = t.Name
	}
	for i, name := range c.Only {
		if !slices.Contains(names, name) {
			return nil, fault.Invalid("Only", "Only[%d] is %s; expected one of %s", i, fault.Show(name), fault.OneOf(names))
		}
	}
	var chosen []Chosen
	for _, t := range list {
		if len(c.Only) > 0 && !slices.Contains(c.Only, t.Name) {
			continue
		}
		if !alias.MatchString(c.Prefix + t.Name) {
			return nil, fault.Invalid("Prefix", "Prefix makes the name %s of a tool; expected 1 to 64 letters, digits, _ and -",
				fault.Show(c.Prefix+t.Name))
		}
		chosen = append(chosen, Chosen{t, c.Prefix + t.Name})
	}
	return chosen, nil
}

// CallText is [Set.Call] for frameworks whose tools return text: the result as JSON. An error that a model can correct,
// such as a wrong argument, is also a result, which begins with "error: ". Other failures are errors.
func (s *Set) CallText(ctx context.Context, name string, arguments json.RawMessage) (string, error) {
	result, err := s.Call(ctx, name, arguments)
	var known *souvenir.Error
	if errors.As(err, &known) && slices.Contains(forModels, known.Kind) {
		return "error: " + known.Message, nil
	} else if err != nil {
		return "", err
	}
	encoded, err := json.Marshal(result)
	return string(encoded), err
}

// forModels are the kinds of errors that a model can correct.
var forModels = []souvenir.Kind{souvenir.KindInvalid, souvenir.KindNotFound, souvenir.KindForbidden,
	souvenir.KindConflict, souvenir.KindTooLarge, souvenir.KindReadOnly}
