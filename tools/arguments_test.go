package tools_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
	"github.com/souvenir-ai/souvenir/tools"
)

const (
	invalid  = souvenir.KindInvalid
	tooLarge = souvenir.KindTooLarge
)

func TestHarmlessMistakesWithArgumentsAreTakenAsMeant(t *testing.T) {
	first := map[string]any{"results.0.memories.0.id": "{pillars}", "total": 1}
	runPart(t, 5, []scenario{
		{name: "a number as text", tool: "memory", args: `{"action": "search", "limit": "3"}`,
			want: map[string]any{"limit": 3}},
		{name: "a number with spaces", tool: "memory", args: `{"action": "search", "limit": " 3 "}`,
			want: map[string]any{"limit": 3}},
		{name: "a whole number with a fraction", tool: "memory", args: `{"action": "search", "limit": 3.0}`,
			want: map[string]any{"limit": 3}},
		{name: "a whole number with a fraction as text", tool: "memory", args: `{"action": "search", "limit": "3.0"}`,
			want: map[string]any{"limit": 3}},
		{name: "a whole number with an exponent", tool: "memory", args: `{"action": "search", "limit": 1e1}`,
			want: map[string]any{"limit": 10}},
		{name: "null", tool: "memory",
			args: `{"action": "search", "limit": null, "offset": null, "tags": null, "filter": null, "query": null, ` +
				`"query_embedding": null, "include_files": null, "sort_order": null}`,
			want: map[string]any{"limit": 7, "offset": 0, "sort_order": "updated_at_desc"}},
		{name: "empty texts", tool: "memory",
			args: `{"action": "search", "limit": "", "offset": "", "tags": "", "filter": "", "query": "", "query_embedding": ` +
				`"", "include_files": "", "sort_order": "", "collection_name": " "}`,
			want: map[string]any{"limit": 7, "offset": 0, "sort_order": "updated_at_desc"}},
		{name: "empty lists and objects", tool: "memory",
			args: `{"action": "search", "tags": [], "query_embedding": [], "filter": {}, "metadata": {}, ` +
				`"related_memory_ids": [], "content": ""}`},
		{name: "a truth as text", tool: "memory",
			args: `{"action": "search", "include_files": "True", "filter": {"id": "{main}"}}`,
			want: map[string]any{"results.0.memories.0.files.0.id": "{plan}"}},
		{name: "an untruth as text", tool: "memory",
			args: `{"action": "search", "include_files": "false", "filter": {"id": "{main}"}}`,
			want: map[string]any{"results.0.memories.0.files.0": nil}},
		{name: "a list with commas", tool: "memory", args: `{"action": "search", "tags": "nothing, pillars"}`, want: first},
		{name: "a list as JSON in a text", tool: "memory", args: `{"action": "search", "tags": "[\"pillars\"]"}`,
			want: first},
		{name: "one text for a list", tool: "memory", args: `{"action": "search", "tags": "pillars"}`, want: first},
		{name: "gaps in a list", tool: "memory", args: `{"action": "search", "tags": ["", null, " pillars "]}`, want: first},
		{name: "an object as JSON in a text", tool: "memory",
			args: `{"action": "search", "filter": "{\"architect\": \"Eva\"}"}`, want: first},
		{name: "a vector with commas", tool: "memory", args: `{"action": "search", "query_embedding": "1,2"}`, kind: invalid,
			argument: "query_embedding", says: []string{"has 2 dimensions"}},
		{name: "an action in capitals", tool: "memory", args: `{"action": "SEARCH", "tags": "pillars"}`, want: first},
		{name: "an action with a hyphen", tool: "memory", args: `{"action": "get-context"}`,
			want: map[string]any{"identity.id": "{identity}"}},
		{name: "an action in camel case", tool: "memory", args: `{"action": " getContext "}`,
			want: map[string]any{"identity.id": "{identity}"}},
		{name: "an enumerated word in another case", tool: "memory",
			args: `{"action": "search", "importance": "High", "sort_order": "Created-At-Asc"}`,
			want: map[string]any{"results.0.memories.0.id": "{pillars}", "total": 1, "sort_order": "created_at_asc"}},
		{name: "the same in a filter", tool: "memory", args: `{"action": "search", "filter": {"importance": "High"}}`,
			want: first},
		{name: "an apostrophe", tool: "rules", args: `{"action": "store", "rule_type": "don't", "content": "x"}`,
			want: map[string]any{"memory.metadata.rule_type": "dont"}},
		{name: "names of arguments in camel case", tool: "memory",
			args: `{"action": "search", "projectName": "Bridge", "Tags": "pillars"}`, want: first},
		{name: "the right name wins over another spelling", tool: "memory",
			args: `{"action": "search", "tags": "pillars", "Tags": "nothing"}`, want: first, says: []string{`"Tags"`}},
		{name: "white space around an id", tool: "memory", args: `{"action": "retrieve", "id": " {pillars}\n"}`,
			want: map[string]any{"memory.id": "{pillars}"}},
		{name: "all arguments as JSON in a text", tool: "memory", args: `"{\"action\": \"search\", \"tags\": \"pillars\"}"`,
			want: first},
		{name: "no arguments", tool: "list_collections", args: ``, want: map[string]any{"count": 3}},
		{name: "null as arguments", tool: "list_collections", args: `null`, want: map[string]any{"count": 3}},
		{name: "an empty text as arguments", tool: "list_collections", args: `""`, want: map[string]any{"count": 3}},
		{name: "filters that are empty are none", tool: "memory",
			args: `{"action": "search", "filter": {"project_name": "", "tags": [], "architect": "Eva"}}`, want: first},
	})
}

// unclearMistakes are arguments that cannot be read in one certain way.
var unclearMistakes = []scenario{
	{name: "no action", tool: "memory", args: `{}`, kind: invalid, argument: "action",
		says: []string{"action is missing", `"get_context", "store", "search", "retrieve", "update" or "delete"`}},
	{name: "an unknown action", tool: "memory", args: `{"action": "find"}`, kind: invalid, argument: "action",
		says: []string{`action is "find"`, `"search"`}},
	{name: "an action that is not a text", tool: "todo", args: `{"action": 7}`, kind: invalid, argument: "action",
		says: []string{"action is 7", `"complete"`}},
	{name: "an action of another tool", tool: "rules", args: `{"action": "delete"}`, kind: invalid, argument: "action",
		says: []string{`"delete"`, `"store"`}},
	{name: "arguments in a list", tool: "memory", args: `[1]`, kind: invalid, argument: "arguments",
		says: []string{"[1]", "JSON object"}},
	{name: "arguments that are a number", tool: "memory", args: `7`, kind: invalid, argument: "arguments"},
	{name: "arguments that are a text", tool: "memory", args: `"search"`, kind: invalid, argument: "arguments",
		says: []string{`"search"`}},
	{name: "arguments that end early", tool: "memory", args: `{"action": "sea`, kind: invalid, argument: "arguments",
		says: []string{"not JSON"}},
	{name: "two objects", tool: "memory", args: `{} {}`, kind: invalid, argument: "arguments"},
	{name: "bytes that are no text", tool: "memory", args: "{\"action\": \"store\", \"content\": \"\xff\"}",
		kind: invalid, argument: "arguments", says: []string{"UTF-8"}},
	{name: "a limit of nothing", tool: "memory", args: `{"action": "search", "limit": 0}`, kind: invalid,
		argument: "limit", says: []string{"limit is 0", "1 to 100"}},
	{name: "a limit too high", tool: "memory", args: `{"action": "search", "limit": 101}`, kind: invalid,
		argument: "limit", says: []string{"limit is 101", "1 to 100"}},
	{name: "a negative limit", tool: "memory", args: `{"action": "search", "limit": "-1"}`, kind: invalid,
		argument: "limit", says: []string{"-1"}},
	{name: "a limit with a fraction", tool: "memory", args: `{"action": "search", "limit": 2.5}`, kind: invalid,
		argument: "limit", says: []string{"limit is 2.5", "whole number from 1 to 100"}},
	{name: "a least score too high", tool: "memory", args: `{"action": "search", "query": "x", "min_score": 1.5}`,
		kind: invalid, argument: "min_score", says: []string{"min_score is 1.5", "0 to 1"}},
	{name: "a least score below nothing", tool: "memory", args: `{"action": "search", "query": "x", "min_score": -0.1}`,
		kind: invalid, argument: "min_score", says: []string{"min_score is -0.1", "0 to 1"}},
	{name: "a least score in words", tool: "memory", args: `{"action": "search", "query": "x", "min_score": "high"}`,
		kind: invalid, argument: "min_score", says: []string{`"high"`, "number from 0 to 1"}},
	{name: "a limit in words", tool: "memory", args: `{"action": "search", "limit": "seven"}`, kind: invalid,
		argument: "limit", says: []string{`"seven"`}},
	{name: "a limit that is not a number", tool: "memory", args: `{"action": "search", "limit": "NaN"}`, kind: invalid,
		argument: "limit", says: []string{`"NaN"`}},
	{name: "a limit without end", tool: "memory", args: `{"action": "search", "limit": "Infinity"}`, kind: invalid,
		argument: "limit"},
	{name: "a limit in hexadecimal", tool: "memory", args: `{"action": "search", "limit": "0x7"}`, kind: invalid,
		argument: "limit"},
	{name: "a huge limit", tool: "memory", args: `{"action": "search", "limit": 1e300}`, kind: invalid, argument: "limit",
		says: []string{"1e300"}},
	{name: "a limit past every number", tool: "memory", args: `{"action": "search", "limit": 1e999}`, kind: invalid,
		argument: "limit", says: []string{"1e999"}},
	{name: "a limit of many digits", tool: "memory", args: `{"action": "search", "limit": 99999999999999999999}`,
		kind: invalid, argument: "limit"},
	{name: "a limit that is a truth", tool: "memory", args: `{"action": "search", "limit": true}`, kind: invalid,
		argument: "limit", says: []string{"true"}},
	{name: "a negative offset", tool: "memory", args: `{"action": "search", "offset": -1}`, kind: invalid,
		argument: "offset", says: []string{"offset is -1", "at least 0"}},
	{name: "a huge offset", tool: "memory", args: `{"action": "search", "offset": 9007199254740991}`, kind: invalid,
		argument: "offset"},
	{name: "a truth in other words", tool: "memory", args: `{"action": "search", "include_files": "yes"}`, kind: invalid,
		argument: "include_files", says: []string{`"yes"`, "true or false"}},
	{name: "an order there is not", tool: "memory", args: `{"action": "search", "sort_order": "newest"}`, kind: invalid,
		argument: "sort_order", says: []string{`"newest"`, `"relevance"`, `"created_at_desc"`}},
	{name: "a word that is not a text", tool: "memory", args: `{"action": "search", "classification": 1}`, kind: invalid,
		argument: "classification", says: []string{"classification is 1", `"notes"`}},
	{name: "an id that is not a text", tool: "memory", args: `{"action": "retrieve", "id": 7}`, kind: invalid,
		argument: "id", says: []string{"id is 7", "string"}},
	{name: "a query that is not a text", tool: "memory", args: `{"action": "search", "query": {"text": "x"}}`,
		kind:     invalid,
		argument: "query"},
	{name: "a list with a number", tool: "memory", args: `{"action": "search", "tags": ["a", 7]}`, kind: invalid,
		argument: "tags", says: []string{"tags[1] is 7"}},
	{name: "a list that is an object", tool: "memory", args: `{"action": "search", "tags": {"a": 1}}`, kind: invalid,
		argument: "tags"},
	{name: "a list that ends early", tool: "memory", args: `{"action": "search", "tags": "[\"a\""}`, kind: invalid,
		argument: "tags"},
	{name: "an object that is a list", tool: "memory", args: `{"action": "search", "filter": ["a"]}`, kind: invalid,
		argument: "filter", says: []string{"JSON object"}},
	{name: "an object that is words", tool: "memory", args: `{"action": "store", "content": "x", "metadata": "much"}`,
		kind: invalid, argument: "metadata", says: []string{`"much"`}},
	{name: "half a character in metadata as a text", tool: "memory",
		args: `{"action": "store", "content": "x", "metadata": "{\"a\": \"\\ud800\"}"}`, kind: invalid,
		argument: "metadata", says: []string{`metadata has the escape \ud800`, "half of a character"}},
	{name: "half a character in a list as a text", tool: "memory",
		args: `{"action": "search", "tags": "[\"\\udc00\"]"}`, kind: invalid, argument: "tags",
		says: []string{`tags has the escape \udc00`}},
	{name: "a vector with words", tool: "memory", args: `{"action": "search", "query_embedding": ["a"]}`, kind: invalid,
		argument: "query_embedding", says: []string{"query_embedding[0]"}},
	{name: "a vector with a number past every float", tool: "memory",
		args: `{"action": "search", "query_embedding": [1e39]}`, kind: invalid, argument: "query_embedding",
		says: []string{"1e39"}},
	{name: "a vector with NaN", tool: "memory", args: `{"action": "search", "query_embedding": "NaN"}`, kind: invalid,
		argument: "query_embedding"},
	{name: "a filter past every number", tool: "memory", args: `{"action": "search", "filter": {"size": {"gte": 1e999}}}`,
		kind: invalid, argument: "filter", says: []string{"filter.size", "1e999"}},
	{name: "metadata past every number", tool: "memory",
		args: `{"action": "store", "content": "x", "metadata": {"a": {"b": [1, -1e999]}}}`, kind: invalid,
		argument: "metadata", says: []string{"metadata.a", "-1e999"}},
	{name: "a filter with an unknown operator", tool: "memory",
		args: `{"action": "search", "filter": {"size": {"like": "x"}}}`, kind: invalid, argument: "filter",
		says: []string{`"like"`, `"gte"`}},
	{name: "a filter with a word there is not", tool: "memory",
		args: `{"action": "search", "filter": {"importance": "utmost"}}`, kind: invalid, argument: "importance",
		says: []string{"filter.importance", `"critical"`}},
	{name: "metadata with a word there is not", tool: "memory",
		args: `{"action": "store", "content": "x", "metadata": {"importance": "utmost"}}`, kind: invalid,
		argument: "importance", says: []string{"metadata.importance", `"critical"`}},
}

func TestMistakesWithoutACertainMeaningAreNamed(t *testing.T) {
	runPart(t, 5, unclearMistakes)
}

func TestArgumentsThatACallDoesNotTakeAreNamedInItsWarnings(t *testing.T) {
	runScenarios(t, []scenario{
		{name: "unknown to the tool", tool: "memory",
			args: `{"action": "search", "tags": "pillars", "fuzzy": true, "boost": 2}`, want: map[string]any{"total": 1},
			says: []string{`memory search does not take: "boost", "fuzzy"`, "it takes query,"}},
		{name: "of another action", tool: "memory", args: `{"action": "retrieve", "id": "{main}", "query": "x"}`,
			says: []string{`"query"`}},
		{name: "of a tool without arguments", tool: "list_collections", args: `{"x": 1}`,
			says: []string{"it takes no arguments"}},
		{name: "beside the warnings of the store", tool: "memory",
			args: `{"action": "search", "project_name": "nowhere", "fuzzy": true}`, want: map[string]any{"total": 0},
			says: []string{"nowhere", "fuzzy"}},
		{name: "in a context", tool: "memory", args: `{"action": "get_context", "limit": 3}`, says: []string{`"limit"`}},
		{name: "in a main memory", tool: "get_project_main_memory", args: `{"project_name": "Bridge", "depth": 9}`,
			want: map[string]any{"memory.id": "{main}"}, says: []string{`"depth"`}},
		{name: "in a file", tool: "upload_document", args: `{"filename": "a", "content": "b", "size": 1}`,
			want: map[string]any{"filename": "a"}, says: []string{`"size"`}},
		{name: "very many", tool: "memory",
			args: `{"action": "search", "a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1,"h":1,"i":1,"j":1,"k":1,"l":1}`,
			says: []string{`"j" and 2 more`}},
	})
}

func TestAContextWithWarningsAboutArgumentsKeepsItsBudget(t *testing.T) {
	w := newWorld(t)
	for range 40 {
		w.must("owner", "memory", `{"action": "store", "project_id": "p-bridge", "content": "`+
			strings.Repeat("granite and more granite ", 20)+`"}`)
	}
	for _, budget := range []int{700, 1000, 2000} {
		answer, err := w.set("owner").Call(t.Context(), "memory",
			json.RawMessage(fmt.Sprintf(
				`{"action": "get_context", "query": "granite", "project_id": "p-bridge", "fuzzy": 1, "token_budget": %d}`, budget)))
		if err != nil {
			t.Fatal(err)
		}
		encoded, err := json.Marshal(answer)
		if err != nil {
			t.Fatal(err)
		}
		var shown struct{ Tokens int }
		if err := json.Unmarshal(encoded, &shown); err != nil {
			t.Fatal(err)
		}
		if got := tokens(encoded); got > budget || shown.Tokens < got || shown.Tokens > got+5 {
			t.Errorf("with a budget of %d the answer is %d tokens and says %d, want at most %v tokens, and "+
				"a count of %v to %v", budget, got, shown.Tokens, budget, got, got+5)
		}
	}
}

func TestHugeAndDeepArgumentsAreErrorsOrStored(t *testing.T) {
	longtest.Only(t)
	w := newWorld(t)
	set := w.set("owner")
	text := func(n int) string { return `{"action": "store", "content": "` + strings.Repeat("granite ", n/8) + `"}` }
	for _, c := range []struct {
		name, tool, args string
		kind             souvenir.Kind
		argument         string
	}{
		{"a memory of 1 MiB", "memory", text(1 << 20), "", ""},
		{"a memory of 1 MiB, each byte escaped", "memory", `{"action": "store", "content": "` +
			strings.Repeat(`\u0041`, 1<<20) + `"}`, "", ""},
		{"a memory of more", "memory", text(1<<20 + 8), tooLarge, "content"},
		{"arguments past every limit", "memory", text(tools.MaxArguments), tooLarge, "arguments"},
		{"deep metadata", "memory", `{"action": "store", "content": "x", "metadata": {"a":` + strings.Repeat("[", 100) +
			strings.Repeat("]", 100) + `}}`, tooLarge, "metadata"},
		{"very deep arguments", "memory", strings.Repeat(`{"a":`, 1e5) + "1" + strings.Repeat("}", 1e5), invalid,
			"arguments"},
		{"deep filters", "memory", `{"action": "search", "filter": {"a":` + strings.Repeat("[", 5000) +
			strings.Repeat("]", 5000) + `}}`, invalid, "filter"},
		{"a deep list", "memory", `{"action": "search", "tags": ` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) +
			`}`, invalid, "tags"},
		{"a long query", "memory", `{"action": "search", "query": "` + strings.Repeat("granite ", 1e4) + `"}`, tooLarge,
			"query"},
		{"a long vector", "memory", `{"action": "search", "query_embedding": [1` + strings.Repeat(",1", 1e5) + `]}`, invalid,
			"query_embedding"},
		{"many tags", "memory", `{"action": "store", "content": "x", "tags": ["a0"` + manyTags(100) + `]}`, tooLarge, "tags"},
		{"a long name", "create_collection", `{"collection_name": "` + strings.Repeat("x", 129) + `"}`, tooLarge,
			"collection_name"},
	} {
		answer, err := set.Call(t.Context(), c.tool, json.RawMessage(c.args))
		var known *souvenir.Error
		switch {
		case c.kind == "" && err != nil:
			t.Errorf("%s: %v", c.name, err)
		case c.kind != "" && (!errors.As(err, &known) || known.Kind != c.kind || known.Argument != c.argument):
			t.Errorf("%s gives %v, %.200v; want the kind %q and the argument %q", c.name, answer, err, c.kind, c.argument)
		case err != nil && len(err.Error()) > 1000:
			t.Errorf("%s: the message has %d bytes", c.name, len(err.Error()))
		}
	}
}

func manyTags(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `, "tag%d"`, i)
	}
	return b.String()
}
