package kernel

import "github.com/souvenir-ai/souvenir/internal/valid"

// RuleText is the part of a rule that an edit may change.
type RuleText struct {
	Content       string
	Tags, Related []string
}

// NewRuleText validates the text that a caller requests for a rule.
func NewRuleText(content string, tags, related []string) (RuleText, error) {
	if err := valid.NewContent(content); err != nil {
		return RuleText{}, err
	}
	a := Attributes{Tags: tags, Related: related}
	if err := a.Check(); err != nil {
		return RuleText{}, err
	}
	r := RuleText{Content: content, Tags: tags, Related: related}
	if tags != nil {
		r.Tags = append([]string{}, a.Tags...)
	}
	if related != nil {
		r.Related = append([]string{}, a.Related...)
	}
	return r, nil
}

// Over returns the text after storing r over the current one, nil for none: nil lists keep the present values.
func (r RuleText) Over(present *RuleText) (RuleText, error) {
	if present != nil && r.Tags == nil {
		r.Tags = present.Tags
	}
	if present != nil && r.Related == nil {
		r.Related = present.Related
	}
	return r, nil
}
