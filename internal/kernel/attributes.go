package kernel

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"

	"github.com/souvenir-ai/souvenir/internal/fault"
	"github.com/souvenir-ai/souvenir/internal/json/jsonobject"
	"github.com/souvenir-ai/souvenir/internal/valid"
)

// The values of enumerated known keys. Empty means not set.
var (
	Importances     = []string{"low", "medium", "high", "critical"} // in their order
	Classifications = []string{"do", "dont", "todo", "notes"}
	RuleTypes       = []string{RuleDo, RuleDont, RuleTodo}
)

// Values with a meaning of their own.
const (
	EventIdentity = "IDENTITY" // who the agent is, and how it addresses the user
	StateArchived = "archived"
)

// The types of rules, and the event type of rules.
const (
	RuleDo           = "do"
	RuleDont         = "dont"
	RuleTodo         = "todo"
	EventProjectRule = "project-rule"
)

// Attributes are a memory's data besides its content: the known keys of the interface, which are columns, and the
// caller's own metadata.
type Attributes struct {
	EventType, State       string
	ProjectID, ProjectName string
	Importance             string
	Classification         string
	RuleType               string
	Tags, Related          []string
	Own                    map[string]any
}

// KnownKeys are the metadata keys that are columns.
var KnownKeys = []string{"event_type", "state", "project_id", "project_name", "importance", "classification",
	"rule_type", "tags", "related_memory_ids"}

// CustomKey is the metadata key of an object that holds the caller's own keys, under any names. Own keys with the
// name of a known key are shown in it.
const CustomKey = "custom"

// AttributesOf splits metadata, as callers give and see it, into attributes. The metadata must be canonical. A custom
// object that repeats a key beside it is an own key itself, so that nothing is lost; see [CheckCustom].
func AttributesOf(metadata map[string]any) (Attributes, error) {
	known := map[string]any{}
	own := map[string]any{}
	for key, value := range metadata {
		if slices.Contains(KnownKeys, key) {
			known[key] = value
		} else {
			own[key] = value
		}
	}
	a, err := (Attributes{}).Patch(known)
	if custom, ok := own[CustomKey].(map[string]any); ok && CheckCustom(metadata) == nil {
		delete(own, CustomKey)
		maps.Copy(own, custom)
	}
	a.Own = own
	return a, err
}

// CheckCustom reports a key that metadata has twice: in its custom object and, as an own key, beside it.
func CheckCustom(metadata map[string]any) error {
	custom, _ := metadata[CustomKey].(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(custom)) {
		if _, twice := metadata[key]; twice && key != CustomKey && !slices.Contains(KnownKeys, key) {
			return fault.Invalid("metadata", "{} has the key %s twice: as %s and as %s.%s; give it once",
				fault.Show(key), fault.Clip(key), CustomKey, fault.Clip(key))
		}
	}
	return nil
}

// Patch applies a JSON merge patch (RFC 7396) to the attributes as callers see them in metadata: null removes a key,
// objects merge, other values replace. The patch must be canonical.
func (a Attributes) Patch(patch map[string]any) (Attributes, error) {
	if err := CheckCustom(patch); err != nil {
		return a, err
	}
	a.Own = maps.Clone(a.Own)
	for _, key := range slices.Sorted(maps.Keys(patch)) {
		value := patch[key]
		text := func(into *string) error {
			if value == nil {
				*into = ""
				return nil
			}
			s, ok := value.(string)
			if !ok {
				return fault.Invalid(key, "{} is %s; expected a string", jsonobject.Show(value))
			}
			*into = s
			return nil
		}
		var err error
		switch key {
		case "event_type":
			err = text(&a.EventType)
		case "state":
			err = text(&a.State)
		case "project_id":
			if _, both := patch["project_name"]; !both {
				a.ProjectName = ""
			}
			err = text(&a.ProjectID)
		case "project_name":
			if _, both := patch["project_id"]; !both {
				a.ProjectID = ""
			}
			err = text(&a.ProjectName)
		case "importance":
			err = text(&a.Importance)
		case "classification":
			err = text(&a.Classification)
		case "rule_type":
			err = text(&a.RuleType)
		case "tags":
			a.Tags, err = jsonobject.Strings(key, value)
		case "related_memory_ids":
			a.Related, err = jsonobject.Strings(key, value)
		case CustomKey:
			a = a.patchCustom(value)
		default:
			a = a.PatchOwn(map[string]any{key: value})
		}
		if err != nil {
			return a, err
		}
	}
	return a, nil
}

// PatchOwn applies a JSON merge patch (RFC 7396) to the caller's own metadata, under any names. The
// patch must be canonical.
func (a Attributes) PatchOwn(patch map[string]any) Attributes {
	if len(patch) == 0 {
		return a
	}
	if a.Own = maps.Clone(a.Own); a.Own == nil {
		a.Own = map[string]any{}
	}
	for key, value := range patch {
		if value == nil {
			delete(a.Own, key)
		} else {
			a.Own[key] = jsonobject.MergePatch(a.Own[key], value)
		}
	}
	return a
}

// patchCustom applies a patch's value for the custom object: an object patches its keys, null removes all keys that it
// shows, and any other value is the value of an own key.
func (a Attributes) patchCustom(value any) Attributes {
	if keys, ok := value.(map[string]any); ok {
		return a.PatchOwn(keys)
	}
	if value != nil {
		return a.PatchOwn(map[string]any{CustomKey: value})
	}
	a.Own = maps.Clone(a.Own)
	maps.DeleteFunc(a.Own, func(key string, _ any) bool { return key == CustomKey || slices.Contains(KnownKeys, key) })
	return a
}

// Check validates every known key and brings lists to their stored form: tags trimmed and without repetition.
func (a *Attributes) Check() error {
	for _, word := range []struct{ name, value string }{{"event_type", a.EventType}, {"state", a.State}} {
		if err := valid.Word(word.name, word.value); word.value != "" && err != nil {
			return err
		}
	}
	if err := valid.Project(a.ProjectID, a.ProjectName); err != nil {
		return err
	}
	if err := valid.Enum("importance", a.Importance, Importances); err != nil {
		return err
	}
	if err := valid.Enum("classification", a.Classification, Classifications); err != nil {
		return err
	}
	if err := valid.Enum("rule_type", a.RuleType, RuleTypes); err != nil {
		return err
	}
	if a.RuleType != "" && a.EventType != EventProjectRule {
		return fault.Invalid("rule_type",
			"{} is %q on a memory of {event_type} %q; only a memory of {event_type} %q has a {}",
			a.RuleType, a.EventType, EventProjectRule)
	}
	if a.RuleType == "" && a.EventType == EventProjectRule {
		return fault.Invalid("rule_type", "{} is missing; a memory of {event_type} %q needs one of %s",
			a.EventType,
			fault.OneOf(RuleTypes))
	}
	var err error
	if a.Tags, err = valid.Tags(a.Tags, valid.MaxTags); err != nil {
		return err
	}
	a.Related = valid.Distinct(a.Related)
	if len(a.Related) > valid.MaxRelated {
		return fault.New(fault.KindTooLarge, "related_memory_ids", "{} has %d ids; at most %d are allowed",
			len(a.Related), valid.MaxRelated)
	}
	encoded, err := json.Marshal(a.Own)
	if err != nil {
		return fault.Invalid("metadata", "{} is not JSON: %v", err)
	}
	if len(encoded) > valid.MaxMetadata {
		return fault.New(fault.KindTooLarge, "metadata", "{} is %d bytes as JSON; at most %d are allowed", len(encoded),
			valid.MaxMetadata)
	}
	return nil
}

// Shown returns the metadata as callers see it: the known keys that are set, and the caller's own; own keys with the
// name of a known key are in the object [CustomKey].
func (a Attributes) Shown() map[string]any {
	shown := make(map[string]any, len(a.Own)+4)
	var custom map[string]any
	for key, value := range a.Own {
		if !slices.Contains(KnownKeys, key) {
			shown[key] = value
			continue
		}
		if custom == nil {
			custom = map[string]any{}
		}
		custom[key] = value
	}
	if own, is := a.Own[CustomKey]; is {
		if _, object := own.(map[string]any); object || custom != nil {
			custom = OrEmpty(custom)
			custom[CustomKey] = own
		}
	}
	if custom != nil {
		shown[CustomKey] = custom
	}
	for key, value := range map[string]string{
		"event_type": a.EventType, "state": a.State, "project_id": a.ProjectID, "project_name": a.ProjectName,
		"importance": a.Importance, "classification": a.Classification, "rule_type": a.RuleType,
	} {
		if value != "" {
			shown[key] = value
		}
	}
	if len(a.Tags) > 0 {
		shown["tags"] = a.Tags
	}
	if len(a.Related) > 0 {
		shown["related_memory_ids"] = a.Related
	}
	return shown
}

// AttributesShown returns the attributes of metadata as [Attributes.Shown] returns them, which it changes. A known key
// with a value of another type is an own one; Own is never nil.
func AttributesShown(metadata map[string]any) (a Attributes) {
	custom, _ := metadata[CustomKey].(map[string]any)
	if custom != nil && CheckCustom(metadata) == nil {
		delete(metadata, CustomKey)
	} else {
		custom = nil
	}
	for key, into := range map[string]*string{
		"event_type": &a.EventType, "state": &a.State, "project_id": &a.ProjectID, "project_name": &a.ProjectName,
		"importance": &a.Importance, "classification": &a.Classification, "rule_type": &a.RuleType,
	} {
		if text, ok := metadata[key].(string); ok && text != "" {
			*into = text
			delete(metadata, key)
		}
	}
	for key, into := range map[string]*[]string{"tags": &a.Tags, "related_memory_ids": &a.Related} {
		if list, ok := texts(metadata[key]); ok {
			*into = list
			delete(metadata, key)
		}
	}
	a.Own = OrEmpty(metadata)
	maps.Copy(a.Own, custom)
	return a
}

// texts returns a list of at least one string.
func texts(value any) ([]string, bool) {
	list, ok := value.([]any)
	all := make([]string, len(list))
	for i := 0; ok && i < len(list); i++ {
		all[i], ok = list[i].(string)
	}
	return all, ok && len(list) > 0
}

// Overlaid returns the attributes, replaced by the ones that are set in others. The project stays.
func (a Attributes) Overlaid(others Attributes) Attributes {
	a.State = cmp.Or(others.State, a.State)
	a.Importance = cmp.Or(others.Importance, a.Importance)
	a.Classification = cmp.Or(others.Classification, a.Classification)
	if len(others.Tags) > 0 {
		a.Tags = others.Tags
	}
	if len(others.Related) > 0 {
		a.Related = others.Related
	}
	a.Own = OrEmpty(maps.Clone(a.Own))
	maps.Copy(a.Own, others.Own)
	return a
}

// OrEmpty returns metadata that is never nil.
func OrEmpty(metadata map[string]any) map[string]any {
	if metadata == nil {
		return map[string]any{}
	}
	return metadata
}

// FoldPatch joins two patches, one of the shown metadata and one of the caller's own, so that each key is in only one
// place: folded. rest has the keys that only two patches, one after the other, can express. Known keys are left out.
func FoldPatch(shown, own map[string]any) (folded, rest map[string]any) {
	given := own
	leave := func(key string, value any) {
		if rest == nil {
			rest = map[string]any{}
		}
		rest[key] = value
	}
	fold := func(key string, value any) {
		if _, twice := own[key]; twice {
			leave(key, value)
			return
		}
		if own == nil {
			own = map[string]any{}
		}
		own[key] = value
	}
	custom := map[string]any{}
	for key, value := range shown {
		keys, object := value.(map[string]any)
		switch {
		case slices.Contains(KnownKeys, key):
		case key == CustomKey && value == nil:
			leave(key, nil)
		case key == CustomKey && object:
			custom = keys
		default:
			fold(key, value)
		}
	}
	for key, value := range custom {
		if _, twice := given[key]; twice {
			kept, _ := rest[CustomKey].(map[string]any)
			kept = OrEmpty(kept)
			kept[key] = value
			leave(CustomKey, kept)
			continue
		}
		fold(key, value)
	}
	return own, rest
}
