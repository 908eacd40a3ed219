package memories

import (
	"cmp"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/calendar"
	"github.com/souvenir-ai/souvenir/server/internal/failure"
	"github.com/souvenir-ai/souvenir/server/internal/web"
)

// memorySearch is the state of the memories page, as its address holds it.
type memorySearch struct {
	Text                                           string
	Project                                        string // OWNER/ID, or a unique id
	Collection, EventType, State                   string
	Importance, Classification, RuleType           string
	HideArchived                                   bool
	Tags                                           []string // all must match
	Module                                         string
	CreatedFrom, CreatedTo, UpdatedFrom, UpdatedTo string
	Key, Value                                     string // of the memories' own metadata
	Related                                        string // id of a linked memory
	Sort, View                                     string
	Page                                           int

	zone                      web.Zone // of the days
	projectName, relatedTitle string   // for the chips; empty: not known
}

const (
	viewTable   = "table"
	viewReading = "reading"
)

// maxPage bounds numbers of pages so that they can be multiplied.
const maxPage = 1 << 24

var (
	memoryStates      = []string{"active", "archived", "completed"}
	memoryImportances = []string{string(souvenir.ImportanceLow), string(souvenir.ImportanceMedium),
		string(souvenir.ImportanceHigh), string(souvenir.ImportanceCritical)}
	memoryClassifications = []string{string(souvenir.ClassDo), string(souvenir.ClassDont), string(souvenir.ClassTodo),
		string(souvenir.ClassNotes)}
	memoryRuleTypes = []string{string(souvenir.RuleDo), string(souvenir.RuleDont), string(souvenir.RuleTodo)}
	memorySorts     = []string{string(souvenir.SortUpdatedDesc), string(souvenir.SortUpdatedAsc),
		string(souvenir.SortCreatedDesc), string(souvenir.SortCreatedAsc)}
)

// searchLabels maps the store's argument names to the labels of the form where they differ.
var searchLabels = map[string]string{
	"query": "The search text", "project_id": "Project", "collection_name": "Collection", "tags": "Tag",
	"filter": "Filter", "importance": "Importance", "classification": "Classification", "rule_type": "Rule type",
	"created_from": "Created from", "created_to": "Created until", "updated_from": "Updated from",
	"updated_to": "Updated until", "sort": "Order", "view": "View", "key": "Key", "value": "Value",
}

// relabel replaces an argument name at the start of a message by its label.
func relabel(message, argument, label string) string {
	if rest, ok := strings.CutPrefix(message, argument+" "); ok {
		return label + " " + rest
	}
	return message
}

// readMemorySearch reads an address; query validates it.
func readMemorySearch(query url.Values, zone web.Zone) memorySearch {
	// Invalid UTF-8 cannot be shown in the form again.
	get := func(name string) string { return strings.ToValidUTF8(query.Get(name), "\uFFFD") }
	// A value may be blank on purpose; see notSet.
	word := func(name string) string {
		value := get(name)
		if value != "" && strings.TrimSpace(value) == "" {
			return web.NotSet
		}
		return strings.TrimSpace(value)
	}
	text := func(name string) string { return strings.TrimSpace(get(name)) }
	m := memorySearch{
		Text: text("q"), Project: word("project"), Collection: text("collection"), EventType: word("event_type"),
		State: word("state"), Importance: word("importance"), Classification: word("classification"),
		RuleType: word("rule_type"), HideArchived: query.Get("archived") == "hide", Module: text("module"),
		CreatedFrom: text("created_from"), CreatedTo: text("created_to"),
		UpdatedFrom: text("updated_from"), UpdatedTo: text("updated_to"),
		Key: text("key"), Value: text("value"), Related: text("related"), Sort: text("sort"), View: text("view"), Page: 1,
		zone: zone,
	}
	for _, tag := range query["tag"] {
		if tag = strings.TrimSpace(strings.ToValidUTF8(tag, "\uFFFD")); tag != "" && !slices.Contains(m.Tags, tag) {
			m.Tags = append(m.Tags, tag)
		}
	}
	if number, err := strconv.Atoi(query.Get("page")); err == nil {
		m.Page = min(max(1, number), maxPage)
	}
	return m
}

// values returns the address parameters of the state, without the page of the list.
func (m memorySearch) values() url.Values {
	values := url.Values{}
	for name, value := range map[string]string{
		"q": m.Text, "project": m.Project, "collection": m.Collection, "event_type": m.EventType, "state": m.State,
		"importance": m.Importance, "classification": m.Classification, "rule_type": m.RuleType, "module": m.Module,
		"created_from": m.CreatedFrom, "created_to": m.CreatedTo, "updated_from": m.UpdatedFrom,
		"updated_to": m.UpdatedTo, "key": m.Key, "value": m.Value, "related": m.Related, "sort": m.Sort, "view": m.View,
	} {
		if value != "" {
			values.Set(name, value)
		}
	}
	if m.HideArchived {
		values.Set("archived", "hide")
	}
	if len(m.Tags) > 0 {
		values["tag"] = m.Tags
	}
	return values
}

// Address returns the query of the address of the first page of this state.
func (m memorySearch) Address() string { return m.values().Encode() }

// With returns the address with one parameter changed; an empty value removes it.
func (m memorySearch) With(name, value string) string {
	values := m.values()
	values.Del(name)
	if value != "" {
		values.Set(name, value)
	}
	return "?" + values.Encode()
}

// WithoutTag returns the address without a tag.
func (m memorySearch) WithoutTag(tag string) string {
	values := m.values()
	values["tag"] = slices.DeleteFunc(slices.Clone(m.Tags), func(other string) bool { return other == tag })
	return "?" + values.Encode()
}

// Reading reports whether the list has the reading view instead of the table.
func (m memorySearch) Reading() bool { return m.View == viewReading }

// ByRelevance reports whether the best matches come first.
func (m memorySearch) ByRelevance() bool { return m.Text != "" && m.Sort == "" }

// ZoneName is the time zone of the days.
func (m memorySearch) ZoneName() string { return m.zone.Name() }

// sorted is how a column of the table is sorted, "" if it is not, and the address for another order.
type sorted struct{ Order, Other string }

// Sorted returns how a column with times is sorted, "created_at" or "updated_at".
func (m memorySearch) Sorted(column string) sorted {
	sort := m.Sort
	if sort == "" && m.Text == "" {
		sort = string(souvenir.SortUpdatedDesc)
	}
	switch sort {
	case column + "_desc":
		return sorted{"descending", m.With("sort", column+"_asc")}
	case column + "_asc":
		return sorted{"ascending", m.With("sort", column+"_desc")}
	}
	return sorted{"", m.With("sort", column+"_desc")}
}

// DayInput returns the input type for a day: text if the value is not a day.
func (m memorySearch) DayInput(value string) string {
	if _, err := time.Parse(time.DateOnly, value); value == "" || err == nil {
		return "date"
	}
	return "text"
}

// Filtered reports whether anything but the order and the view is chosen.
func (m memorySearch) Filtered() bool { return m.Text != "" || len(m.Chips()) > 0 }

// chip is an active filter, and the address without it.
type chip struct{ Name, Value, Without string }

// Chips are the active filters.
func (m memorySearch) Chips() (all []chip) {
	add := func(name, parameter, value string) {
		if value == web.NotSet {
			value = "not set"
		}
		if value != "" {
			all = append(all, chip{name, value, m.With(parameter, "")})
		}
	}
	project := m.Project
	if _, id, found := strings.Cut(project, "/"); found {
		project = id
	}
	add("Project", "project", cmp.Or(m.projectName, project))
	add("Collection", "collection", m.Collection)
	add("Type", "event_type", m.EventType)
	add("State", "state", m.State)
	for _, tag := range m.Tags {
		all = append(all, chip{"Tag", tag, m.WithoutTag(tag)})
	}
	add("Importance", "importance", m.Importance)
	add("Classification", "classification", m.Classification)
	add("Rule type", "rule_type", m.RuleType)
	add("Module", "module", m.Module)
	add("Created from", "created_from", m.CreatedFrom)
	add("Created until", "created_to", m.CreatedTo)
	add("Updated from", "updated_from", m.UpdatedFrom)
	add("Updated until", "updated_to", m.UpdatedTo)
	add("Linked to", "related", cmp.Or(m.relatedTitle, m.Related))
	if m.Key != "" || m.Value != "" {
		without := m
		without.Key, without.Value = "", ""
		value := "set"
		if m.Value != "" {
			value = m.Value
		}
		all = append(all, chip{m.Key, value, "?" + without.Address()})
	}
	if m.HideArchived {
		all = append(all, chip{"Archived", "hidden", m.With("archived", "")})
	}
	return all
}

// sortOptions are the available orders, the default one first.
func sortOptions(hasText bool) []web.Option {
	first := "Recently updated"
	if hasText {
		first = "Best match"
	}
	all := []web.Option{{Label: first}}
	for value, label := range map[string]string{
		string(souvenir.SortUpdatedDesc): "Recently updated", string(souvenir.SortUpdatedAsc): "Least recently updated",
		string(souvenir.SortCreatedDesc): "Newest first", string(souvenir.SortCreatedAsc): "Oldest first",
	} {
		if label != first {
			all = append(all, web.Option{Value: value, Label: label})
		}
	}
	slices.SortFunc(all[1:], func(a, b web.Option) int {
		return slices.Index(memorySorts, a.Value) - slices.Index(memorySorts, b.Value)
	})
	return all
}

// query returns the store's query.
func (m memorySearch) query() (souvenir.Query, error) {
	list, err := m.list()
	q := souvenir.Query{Text: m.Text, Collections: list.Collections, ProjectID: list.ProjectID, Filter: list.Filter,
		Sort: list.Sort, Limit: web.PerPage, Offset: (m.Page - 1) * web.PerPage}
	return q, err
}

// list returns the query without the text.
func (m memorySearch) list() (souvenir.MemoryList, error) {
	l := souvenir.MemoryList{Sort: souvenir.SortOrder(m.Sort)}
	if m.View != "" && m.View != viewTable && m.View != viewReading {
		return l, notAllowed("view", m.View, []string{viewTable, viewReading})
	}
	if m.Sort != "" && !slices.Contains(memorySorts, m.Sort) {
		return l, notAllowed("sort", m.Sort, memorySorts)
	}
	if m.Collection != "" {
		l.Collections = []string{m.Collection}
	}
	if m.Project != web.NotSet {
		l.ProjectID = m.Project
	}
	var err error
	l.Filter, err = m.filter()
	return l, err
}

// filter returns the conditions on the memories' keys.
func (m memorySearch) filter() (souvenir.Filter, error) {
	filter := souvenir.Filter{}
	if m.Project == web.NotSet {
		filter["project_id"] = nil
	}
	for _, enum := range []struct {
		key, value string
		allowed    []string
	}{{"importance", m.Importance, memoryImportances}, {"classification", m.Classification, memoryClassifications},
		{"rule_type", m.RuleType, memoryRuleTypes}} {
		if enum.value != "" && enum.value != web.NotSet && !slices.Contains(enum.allowed, enum.value) {
			return nil, notAllowed(enum.key, enum.value, enum.allowed)
		}
	}
	for key, value := range map[string]string{
		"event_type": m.EventType, "state": m.State, "importance": m.Importance, "classification": m.Classification,
		"rule_type": m.RuleType, "related_memory_ids": m.Related,
	} {
		switch value {
		case "":
		case web.NotSet:
			filter[key] = nil
		default:
			filter[key] = value
		}
	}
	if m.HideArchived && m.State == "" {
		filter["state"] = souvenir.Not("archived")
	}
	var tags souvenir.Condition
	if len(m.Tags) > 0 {
		tags = souvenir.All(m.Tags...)
	}
	if m.Module != "" {
		tags.In = []any{m.Module, "module:" + m.Module}
	}
	if len(m.Tags) > 0 || m.Module != "" {
		filter["tags"] = tags
	}
	for key, span := range map[string][2]string{"created": {m.CreatedFrom, m.CreatedTo},
		"updated": {m.UpdatedFrom, m.UpdatedTo}} {
		condition, err := spanOf(key, span[0], span[1], m.zone.Location)
		if err != nil {
			return nil, err
		}
		if condition != (timeSpan{}) {
			filter[key+"_at"] = condition.condition()
		}
	}
	return filter, m.ownKey(filter)
}

// ownKey adds the condition on a key of the memories' own metadata.
func (m memorySearch) ownKey(filter souvenir.Filter) error {
	switch {
	case m.Key == "" && m.Value == "":
		return nil
	case m.Key == "":
		return failure.Invalid("key", "key is missing; give the key whose value "+failure.Quote(m.Value)+" should be")
	}
	if _, taken := filter[m.Key]; taken {
		return failure.Invalid("key", "key is "+failure.Quote(m.Key)+
			", which already has a filter of its own; use one of the two")
	}
	if m.Value == "" {
		filter[m.Key] = souvenir.Condition{Not: []any{nil}} // any value
		return nil
	}
	// The input may be meant as text or, such as 3 or true, as another value.
	values := []any{m.Value}
	var other any
	if err := json.Unmarshal([]byte(m.Value), &other); err == nil {
		switch other.(type) {
		case float64, bool, string:
			values = append(values, other)
		}
	}
	if slices.Contains(textKeys, m.Key) {
		values = values[:1]
	}
	filter[m.Key] = souvenir.Condition{In: values}
	return nil
}

// textKeys are the known keys with text values.
var textKeys = []string{"event_type", "state", "importance", "classification", "rule_type", "tags",
	"related_memory_ids", "project_id", "project_name", "collection_name", "id",
	"created_at", "updated_at"}

// timeSpan is the time in [from, before); a zero end is open.
type timeSpan struct{ from, before time.Time }

func (s timeSpan) condition() souvenir.Condition {
	var c souvenir.Condition
	if !s.from.IsZero() {
		c.AtLeast = s.from
	}
	if !s.before.IsZero() {
		c.LessThan = s.before
	}
	return c
}

// spanOf parses the ends of a time span: days in a time zone, the last one included, or exact times.
func spanOf(key, from, to string, zone *time.Location) (timeSpan, error) {
	var s timeSpan
	var err error
	if s.from, _, err = dayOrTime(key+"_from", from, zone); err != nil {
		return s, err
	}
	_, s.before, err = dayOrTime(key+"_to", to, zone)
	if err == nil && !s.before.IsZero() && !s.from.Before(s.before) {
		err = failure.Invalid(key+"_to", key+"_to is "+failure.Quote(to)+", which is before "+failure.Quote(from)+
			"; choose a day on or after that")
	}
	return s, err
}

// dayOrTime parses one end: a day, which begins and ends, or an exact time, which is both.
func dayOrTime(name, value string, zone *time.Location) (begin, end time.Time, err error) {
	if value == "" {
		return begin, end, nil
	}
	if begin, end, err = calendar.Span(value, zone); err == nil {
		return begin, end, nil
	}
	at, err := time.Parse(time.RFC3339Nano, value)
	if err != nil {
		return at, at, failure.Invalid(name, name+" is "+failure.Quote(value)+
			"; expected a day such as 2026-03-01, or a time such as 2026-03-01T09:00:00Z")
	}
	return at, at, nil
}

// notAllowed is the error that lists the allowed values.
func notAllowed(name, value string, allowed []string) error {
	return failure.Invalid(name, name+" is "+failure.Quote(value)+"; expected "+strings.Join(allowed, ", "))
}
