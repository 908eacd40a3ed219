package souvenir

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/souvenir-ai/souvenir/internal/check"
	"github.com/souvenir-ai/souvenir/internal/jsonobject"
)

// Importance says how much a memory matters.
type Importance string

// The values of [Importance]. The empty value means not set.
const (
	ImportanceLow      Importance = "low"
	ImportanceMedium   Importance = "medium"
	ImportanceHigh     Importance = "high"
	ImportanceCritical Importance = "critical"
)

// Classification says what kind of memory it is.
type Classification string

// The values of [Classification]. The empty value means not set.
const (
	ClassDo    Classification = "do"
	ClassDont  Classification = "dont"
	ClassTodo  Classification = "todo"
	ClassNotes Classification = "notes"
)

// RuleType says which of a project's rules a memory of event type project-rule is.
type RuleType string

// The values of [RuleType]. The empty value means that the memory is no rule.
const (
	RuleDo   RuleType = "do"
	RuleDont RuleType = "dont"
	RuleTodo RuleType = "todo"
)

// EventProjectRule is the event type of project rules, the only one that has a [RuleType].
const EventProjectRule = "project-rule"

var (
	importances     = []Importance{ImportanceLow, ImportanceMedium, ImportanceHigh, ImportanceCritical}
	classifications = []Classification{ClassDo, ClassDont, ClassTodo, ClassNotes}
	ruleTypes       = []RuleType{RuleDo, RuleDont, RuleTodo}
)

// attributes are a memory's data besides its content: the known keys of the interface, which are columns, and the
// caller's own metadata.
type attributes struct {
	eventType, state       string
	projectID, projectName string
	importance             Importance
	classification         Classification
	ruleType               RuleType
	tags, related          []string
	own                    map[string]any
}

// knownKeys are the metadata keys that are columns.
var knownKeys = []string{"event_type", "state", "project_id", "project_name", "importance", "classification",
	"rule_type", "tags", "related_memory_ids"}

// attributesOf splits metadata, as callers give and see it, into attributes. The metadata must be canonical.
func attributesOf(metadata map[string]any) (attributes, error) {
	known := map[string]any{}
	own := map[string]any{}
	for key, value := range metadata {
		if slices.Contains(knownKeys, key) {
			known[key] = value
		} else {
			own[key] = value
		}
	}
	a, err := (attributes{}).patch(known)
	a.own = own
	return a, err
}

// patch applies a JSON merge patch (RFC 7396) to the attributes as callers see them in metadata: null removes a key,
// objects merge, other values replace. The patch must be canonical.
func (a attributes) patch(patch map[string]any) (attributes, error) {
	a.own = maps.Clone(a.own)
	for _, key := range slices.Sorted(maps.Keys(patch)) {
		value := patch[key]
		text := func(into *string) error {
			if value == nil {
				*into = ""
				return nil
			}
			s, ok := value.(string)
			if !ok {
				return invalid(key, "%s is %s; a string is expected", key, jsonobject.Show(value))
			}
			*into = s
			return nil
		}
		var err error
		switch key {
		case "event_type":
			err = text(&a.eventType)
		case "state":
			err = text(&a.state)
		case "project_id":
			if _, both := patch["project_name"]; !both {
				a.projectName = ""
			}
			err = text(&a.projectID)
		case "project_name":
			if _, both := patch["project_id"]; !both {
				a.projectID = ""
			}
			err = text(&a.projectName)
		case "importance":
			err = text((*string)(&a.importance))
		case "classification":
			err = text((*string)(&a.classification))
		case "rule_type":
			err = text((*string)(&a.ruleType))
		case "tags":
			a.tags, err = jsonobject.Strings(key, value)
		case "related_memory_ids":
			a.related, err = jsonobject.Strings(key, value)
		default:
			if a.own == nil {
				a.own = map[string]any{}
			}
			if value == nil {
				delete(a.own, key)
			} else {
				a.own[key] = jsonobject.MergePatch(a.own[key], value)
			}
		}
		if err != nil {
			return a, err
		}
	}
	return a, nil
}

// check validates every known key and brings lists to their stored form: tags trimmed and without repetition.
func (a *attributes) check() error {
	for _, word := range []struct{ name, value string }{{"event_type", a.eventType}, {"state", a.state}} {
		if err := check.Word(word.name, word.value); word.value != "" && err != nil {
			return err
		}
	}
	if err := check.Project(a.projectID, a.projectName); err != nil {
		return err
	}
	if err := check.Enum("importance", a.importance, importances); err != nil {
		return err
	}
	if err := check.Enum("classification", a.classification, classifications); err != nil {
		return err
	}
	if err := check.Enum("rule_type", a.ruleType, ruleTypes); err != nil {
		return err
	}
	if a.ruleType != "" && a.eventType != EventProjectRule {
		return invalid("rule_type", "rule_type is %q on a memory of event_type %q; only a memory of event_type %q has a rule_type",
			a.ruleType, a.eventType, EventProjectRule)
	}
	if a.ruleType == "" && a.eventType == EventProjectRule {
		return invalid("rule_type", "rule_type is missing; a memory of event_type %q has one: allowed are %s", a.eventType,
			oneOf(ruleTypes))
	}
	var err error
	if a.tags, err = check.Tags(a.tags, MaxTags); err != nil {
		return err
	}
	a.related = check.Distinct(a.related)
	if len(a.related) > MaxRelated {
		return newError(KindTooLarge, "related_memory_ids", "related_memory_ids has %d ids; at most %d are allowed",
			len(a.related), MaxRelated)
	}
	encoded, err := json.Marshal(a.own)
	if err != nil {
		return invalid("metadata", "metadata is not JSON: %v", err)
	}
	if len(encoded) > MaxMetadata {
		return newError(KindTooLarge, "metadata", "metadata is %d bytes as JSON; at most %d are allowed", len(encoded),
			MaxMetadata)
	}
	return nil
}

// shown returns the metadata as callers see it: the known keys that are set, and the caller's own.
func (a attributes) shown() map[string]any {
	shown := make(map[string]any, len(a.own)+4)
	maps.Copy(shown, a.own)
	for key, value := range map[string]string{
		"event_type": a.eventType, "state": a.state, "project_id": a.projectID, "project_name": a.projectName,
		"importance": string(a.importance), "classification": string(a.classification), "rule_type": string(a.ruleType),
	} {
		if value != "" {
			shown[key] = value
		}
	}
	if len(a.tags) > 0 {
		shown["tags"] = a.tags
	}
	if len(a.related) > 0 {
		shown["related_memory_ids"] = a.related
	}
	return shown
}
