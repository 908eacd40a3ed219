package memories

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/dashboard/textview"
	"github.com/souvenir-ai/souvenir/server/internal/failure"
)

// memoryTyped is a memory as text in form fields.
type memoryTyped struct {
	Content                              string
	EventType, State                     string
	Importance, Classification, RuleType string
	Project                              string // OWNER/ID; empty: none
	Tags                                 string // comma-separated; a tag with a comma is in double quotes
	Related                              string // ids, one per line
	Metadata                             string // a JSON object; empty: none
}

// typedOf returns a memory's initial form values.
func typedOf(h memoryHead) memoryTyped {
	t := memoryTyped{
		Content: textview.Typed(h.Content), EventType: h.EventType, State: h.State,
		Importance:     string(h.Importance),
		Classification: string(h.Classification), RuleType: string(h.RuleType), Tags: tagsInField(h.Tags),
		Related:  strings.Join(h.Related, "\n"),
		Metadata: objectInField(h.Metadata),
	}
	if h.Status.ProjectOwner != "" {
		t.Project = h.Status.ProjectOwner + "/" + h.Status.ProjectID
	}
	return t
}

// take reads the submitted values.
func (t *memoryTyped) take(values url.Values) {
	*t = memoryTyped{}
	for name, into := range t.fields() {
		*into = textview.Typed(values.Get(name))
		if name == "related" { // one for each ticked memory
			*into = textview.Typed(strings.Join(values[name], "\n"))
		}
	}
}

// fields maps the names of the fields to their values.
func (t *memoryTyped) fields() map[string]*string {
	return map[string]*string{
		"content": &t.Content, "event_type": &t.EventType, "state": &t.State, "importance": &t.Importance,
		"classification": &t.Classification,
		"rule_type":      &t.RuleType, "project": &t.Project, "tags": &t.Tags, "related": &t.Related, "metadata": &t.Metadata,
	}
}

// formField is a field of the form.
type formField struct{ Name, Label string }

// fieldNames are the fields that can be edited, in the order of the form, with their labels.
var fieldNames = []formField{
	{"content", "Text"}, {"project", "Project"}, {"event_type", "Type"}, {"state", "State"}, {"importance", "Importance"},
	{"classification", "Classification"},
	{"rule_type", "Rule"}, {"tags", "Tags"}, {"related", "Related memories"}, {"metadata", "Other metadata"},
}

// labelOf returns how a page names a key of some metadata; empty: it leaves it out, since people read a project's name
// and not its id.
func labelOf(key string, metadata map[string]any) string {
	switch key {
	case "project_id":
		if metadata["project_name"] != nil {
			return ""
		}
		return "Project"
	case "project_name":
		return "Project"
	case "related_memory_ids":
		return "Related memories"
	case "content", "project", "related", "metadata": // fields of the form, but a caller's own keys here
		return key
	}
	for _, f := range fieldNames {
		if f.Name == key {
			return f.Label
		}
	}
	return key
}

// tagsInField formats tags as one line that tagsTyped parses.
func tagsInField(tags []string) string {
	view := make([]string, len(tags))
	for i, tag := range tags {
		if strings.ContainsAny(tag, `,"`) {
			tag = `"` + strings.ReplaceAll(tag, `"`, `""`) + `"`
		}
		view[i] = tag
	}
	return strings.Join(view, ", ")
}

// tagsTyped parses comma-separated tags. A tag with a comma is in double quotes.
func tagsTyped(typed string) ([]string, error) {
	reader := csv.NewReader(strings.NewReader(strings.ReplaceAll(typed, "\n", ",")))
	reader.TrimLeadingSpace, reader.LazyQuotes = true, true
	record, err := reader.Read()
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, failure.Invalid("tags",
			"tags cannot be read: separate them by commas, and put a tag that contains a comma in double quotes")
	}
	var tags []string
	for _, tag := range record {
		if tag = strings.TrimSpace(tag); tag != "" {
			tags = append(tags, tag)
		}
	}
	return tags, nil
}

// relatedTyped parses ids of memories, or addresses of their pages, one on each line. It stops one past the limit, so
// that the store refuses the list: a form has room for a million.
func relatedTyped(typed string) []string {
	var ids []string
	for id := range strings.FieldsFuncSeq(typed,
		func(r rune) bool { return r == '\n' || r == ',' || r == ' ' || r == '\t' }) {
		if len(ids) > souvenir.MaxRelated {
			break
		}
		if _, after, ok := strings.Cut(id, "/memories/"); ok {
			id, _, _ = strings.Cut(after, "?")
			id, _, _ = strings.Cut(id, "/")
		}
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// objectInField formats metadata as text.
func objectInField(object map[string]any) string {
	if len(object) == 0 {
		return ""
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(object); err != nil {
		return "" // it came from JSON
	}
	return strings.TrimSuffix(out.String(), "\n")
}

// ParseMetadata parses the metadata that a user typed.
func ParseMetadata(typed string) (map[string]any, error) {
	if strings.TrimSpace(typed) == "" {
		return map[string]any{}, nil
	}
	decoder := json.NewDecoder(strings.NewReader(typed))
	decoder.UseNumber()
	var object map[string]any
	err := decoder.Decode(&object)
	if err == nil && decoder.More() {
		err = errors.New("there is more after the object")
	}
	var syntax *json.SyntaxError
	var mismatch *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		line := 1 + strings.Count(typed[:min(int(syntax.Offset), len(typed))], "\n")
		return nil, failure.Invalid("metadata", "metadata is not a JSON object: "+syntax.Error()+", on line "+
			strconv.Itoa(line))
	case errors.As(err, &mismatch) || err == nil && object == nil:
		return nil, failure.Invalid("metadata",
			`metadata is JSON, but not an object; an object looks like {"source": "wiki", "votes": 3}`)
	case err != nil:
		return nil, failure.Invalid("metadata", "metadata is not a JSON object: "+err.Error())
	}
	return object, nil
}

// metadataTyped parses the metadata of the form: a JSON object, or one pair of a key and a value on each line. Numbers,
// true and false on a line are not read as text.
func metadataTyped(text string) (map[string]any, error) {
	text = strings.TrimSpace(text)
	if text == "" || strings.ContainsAny(text[:1], `{["`) || json.Valid([]byte(text)) {
		return ParseMetadata(text)
	}
	keys := map[string]any{}
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		key, value, found := strings.Cut(line, ":")
		if key = strings.TrimSpace(key); !found || key == "" {
			return nil, failure.Invalid("metadata", "metadata has the line "+failure.Quote(line)+
				"; expected a key, a colon and a value, such as source: mail")
		}
		if _, twice := keys[key]; twice {
			return nil, failure.Invalid("metadata", "metadata has the key "+failure.Quote(key)+" twice; each key has one value")
		}
		value = strings.TrimSpace(value)
		keys[key] = value
		if other, err := ParseMetadata(`{"": ` + value + "}"); err == nil {
			switch other[""].(type) {
			case json.Number, bool:
				keys[key] = other[""]
			}
		}
	}
	return keys, nil
}

// knownKeys are the metadata keys with a field of their own.
var knownKeys = []string{"event_type", "state", "project_id", "project_name", "importance", "classification",
	"rule_type", "tags", "related_memory_ids"}

// patch returns the changes to the known keys and to the other metadata that the form describes. They contain only
// differences, so that metadata that this user does not see stays unchanged.
func (t memoryTyped) patch(h memoryHead) (patch, changes map[string]any, err error) {
	before := typedOf(h)
	patch = map[string]any{}
	for key, text := range map[string][2]string{
		"event_type": {before.EventType, t.EventType}, "state": {before.State, t.State},
		"importance":     {before.Importance, t.Importance},
		"classification": {before.Classification, t.Classification}, "rule_type": {before.RuleType, t.RuleType},
	} {
		if typed := strings.TrimSpace(text[1]); typed != text[0] {
			patch[key] = orNone(typed)
		}
	}
	if t.Project != before.Project {
		patch["project_id"] = orNone(t.Project)
	}
	tags, err := tagsTyped(t.Tags)
	if err != nil {
		return nil, nil, err
	}
	if t.Tags != before.Tags && !slices.Equal(tags, h.Tags) {
		patch["tags"] = anyList(tags)
	}
	if related := relatedTyped(t.Related); !slices.Equal(related, h.Related) {
		patch["related_memory_ids"] = anyList(related)
	}
	if t.Metadata == before.Metadata {
		return patch, nil, nil
	}
	own, err := metadataTyped(t.Metadata)
	if err != nil {
		return nil, nil, err
	}
	for _, key := range knownKeys {
		_, had := h.Metadata[key]
		if _, known := own[key]; known && !had {
			return nil, nil, failure.Invalid("metadata", "metadata has the key "+failure.Quote(key)+
				", which has a field of its own above")
		}
	}
	was, err := ParseMetadata(before.Metadata)
	if err != nil {
		return nil, nil, err
	}
	changes, err = MetadataPatch("metadata", was, own)
	return patch, changes, err
}

// anyList converts a list for metadata; an empty one removes the key.
func anyList(list []string) any {
	if len(list) == 0 {
		return nil
	}
	all := make([]any, len(list))
	for i, v := range list {
		all[i] = v
	}
	return all
}

// MetadataPatch returns the JSON merge patch (RFC 7396) from one object to another. It cannot add a null.
func MetadataPatch(at string, before, after map[string]any) (map[string]any, error) {
	patch := map[string]any{}
	for key := range before {
		if _, stays := after[key]; !stays {
			patch[key] = nil
		}
	}
	for _, key := range slices.Sorted(maps.Keys(after)) {
		value, was := after[key], before[key]
		if _, there := before[key]; there && reflect.DeepEqual(value, was) {
			continue
		}
		object, isObject := value.(map[string]any)
		switch {
		case value == nil:
			return nil, failure.Invalid("metadata", at+" has null at "+failure.Quote(key)+"; leave the key out instead")
		case isObject:
			old, _ := was.(map[string]any) // none: the patch is the whole object
			inner, err := MetadataPatch(at+" at "+failure.Quote(key), old, object)
			if err != nil {
				return nil, err
			}
			patch[key] = inner
		default:
			patch[key] = value
		}
	}
	return patch, nil
}
