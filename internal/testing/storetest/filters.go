package storetest

import (
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir"
)

func filters() concept {
	return concept{"Filters", []promise{
		{"a day is all of it, for every operator", filterDays},
		{"choose what fits, with every operator", filterTable},
		{"take every kind of Go value", filterGoValues},
		{"compare times as time, RFC 3339 or date", filterTimes},
		{"choose the same in searches and listings", filterEverywhere},
		{"name projects of one id as OWNER/ID", filterProjectsOfOneID},
		{"that make no sense are errors which say why", filterErrors},
		{"leave scores alone", filterScores},
		{"find own metadata of any length, however it was written", filterOwnMetadata},
		{"take the memory's own key and the time of what it tells of", filterKeyAndEventTime},
		{"go with orders by key and by event time, where memories without come last", orderKeyAndEventTime},
	}}
}

// zoo stores memories named by their content, with matches for every filter.
func zoo(f *fixture) {
	f.Helper()
	f.addCollection(souvenir.NewCollection{Name: "notes"})
	id := map[string]string{}
	for _, m := range []souvenir.NewMemory{
		{Content: "ant", EventType: "decision", State: "active", Importance: "low", Tags: []string{"x", "y"},
			ShownMetadata: object(`{"n":1,"s":"blue","b":true,"list":["a","b"]}`)},
		{Content: "bee", EventType: "decision", State: "archived", Importance: "high", Tags: []string{"y", "z"},
			ShownMetadata: object(`{"n":2.5,"s":"Blue","b":false,"list":[1,2]}`)},
		{Content: "cat", EventType: "Decision", Classification: "todo", Tags: []string{"x"},
			ShownMetadata: object(`{"n":-10,"s":"","odd.key":1,"list":[]}`), ProjectID: "p", ProjectName: "Project P"},
		{Content: "doe", Collection: "notes", ShownMetadata: object(`{"n":"2","s":"green","nested":{"n":1}}`),
			ProjectID: "p"},
		{Content: "elk", Collection: "notes", EventType: souvenir.EventProjectRule, RuleType: "do",
			ShownMetadata: object(`{"n":9007199254740992,"list":"a","'q\"":"quoted"}`)},
		{Content: "fox"},
	} {
		if m.Content == "fox" {
			m.Related = []string{id["ant"], id["bee"]}
		}
		id[m.Content] = f.add(m).ID
		f.clock.Pass(24 * time.Hour)
	}
	f.patch(id["bee"], map[string]any{"touched": true}) // at day 6
}

func filterTable(f *fixture) {
	zoo(f)
	ant := f.list(souvenir.MemoryList{Filter: souvenir.Filter{"s": "blue"}})[0].ID
	for _, c := range []struct{ filter, want string }{
		{`{}`, "ant bee cat doe elk fox"},
		{`{"event_type":"decision"}`, "ant bee"},
		{`{"event_type":{"eq":"decision"}}`, "ant bee"},
		{`{"event_type":null}`, "doe fox"},
		{`{"event_type":{"ne":null}}`, "ant bee cat elk"},
		{`{"event_type":{"ne":"decision"}}`, "cat doe elk fox"},
		{`{"event_type":["decision","Decision"]}`, "ant bee cat"},
		{`{"event_type":{"in":["Decision",null]}}`, "cat doe fox"},
		{`{"event_type":{"in":[]}}`, ""},
		{`{"event_type":{"ne":["decision","Decision"]}}`, "doe elk fox"},
		{`{"event_type":{"gte":"a","lt":"p"}}`, "ant bee"},
		{`{"state":"active"}`, "ant"},
		{`{"importance":{"in":["low","high"]}}`, "ant bee"},
		{`{"importance":{"in":["low","high"],"ne":"low"}}`, "bee"},
		{`{"importance":{"gte":"medium"}}`, "bee"},
		{`{"importance":{"gte":"high","lt":"critical"}}`, "bee"},
		{`{"importance":{"gt":"high"}}`, ""},
		{`{"importance":{"lte":"critical"}}`, "ant bee"},
		{`{"importance":{"lt":"low"}}`, ""},
		{`{"classification":"todo"}`, "cat"},
		{`{"rule_type":"do"}`, "elk"},
		{`{"project_id":"p"}`, "cat doe"},
		{`{"project_name":"Project P"}`, "cat doe"},
		{`{"project_id":null}`, "ant bee elk fox"},
		{`{"project_id":{"ne":"p"}}`, "ant bee elk fox"},
		{`{"collection_name":"notes"}`, "doe elk"},
		{`{"collection_name":{"ne":"notes"}}`, "ant bee cat fox"},
		{`{"tags":"x"}`, "ant cat"},
		{`{"tags":["x","z"]}`, "ant bee cat"},
		{`{"tags":{"in":["z","nothing"]}}`, "bee"},
		{`{"tags":{"all":["x","y"]}}`, "ant"},
		{`{"tags":{"all":["x","y"],"ne":"x"}}`, ""},
		{`{"tags":{"ne":"x"}}`, "bee doe elk fox"},
		{`{"tags":{"ne":["x","z"]}}`, "doe elk fox"},
		{`{"tags":null}`, "doe elk fox"},
		{`{"tags":{"ne":null}}`, "ant bee cat"},
		{`{"tags":"X"}`, ""},
		{`{"related_memory_ids":"` + ant + `"}`, "fox"},
		{`{"related_memory_ids":null}`, "ant bee cat doe elk"},
		{`{"id":"` + ant + `"}`, "ant"},
		{`{"n":1}`, "ant"},
		{`{"n":2.5}`, "bee"},
		{`{"n":"2"}`, "doe"},
		{`{"n":2}`, ""},
		{`{"n":{"gt":-10,"lte":2.5}}`, "ant bee"},
		{`{"n":{"gte":-10,"lt":2.5}}`, "ant cat"},
		{`{"n":{"gte":"0"}}`, "doe"},
		{`{"n":{"ne":1}}`, "bee cat doe elk fox"},
		{`{"n":null}`, "fox"},
		{`{"n":[1,"2",2.5]}`, "ant bee doe"},
		{`{"s":"blue"}`, "ant"},
		{`{"s":""}`, "cat"},
		{`{"s":{"ne":null}}`, "ant bee cat doe"},
		{`{"b":true}`, "ant"},
		{`{"b":false}`, "bee"},
		{`{"b":{"ne":true}}`, "bee cat doe elk fox"},
		{`{"list":"a"}`, "ant elk"},
		{`{"list":{"all":["a","b"]}}`, "ant"},
		{`{"list":{"gte":2}}`, "bee"},
		{`{"list":{"ne":"a"}}`, "bee cat doe fox"},
		{`{"odd.key":1}`, "cat"},
		{`{"'q\"":"quoted"}`, "elk"},
		{`{"missing":"x"}`, ""},
		{`{"missing":null}`, "ant bee cat doe elk fox"},
		{`{"nested":{"ne":null}}`, "doe"},
		{`{"event_type":"decision","tags":"z"}`, "bee"},
		{`{"event_type":"decision","tags":"z","n":1}`, ""},
	} {
		got := texts(f.list(souvenir.MemoryList{Filter: object(c.filter)}))
		slices.Sort(got)
		f.equal(c.filter, strings.Join(got, " "), c.want)
	}
}

func filterProjectsOfOneID(f *fixture) {
	added, err := f.operator.Accounts().AddUser(f.ctx, souvenir.NewUser{ID: "a", Name: "Ann"})
	f.check("AddUser", err)
	ann := f.as(souvenir.Access{User: added.ID})
	for _, owner := range []*fixture{ann, f.as(souvenir.Access{User: "bob"}), f.as(souvenir.Access{User: "eve"})} {
		owner.add(souvenir.NewMemory{Content: owner.name(), ProjectID: "crm"})
		owner.share("crm", "local", souvenir.MemberReader)
	}
	f.add(souvenir.NewMemory{Content: "own"})
	for _, c := range []struct {
		value any
		want  []string
	}{
		{"bob/crm", []string{"bob"}},
		{"a/crm", []string{"a"}},
		{"ANN/crm", []string{"a"}},
		{souvenir.In("bob/crm", "Ann/crm"), []string{"a", "bob"}},
		{souvenir.In("bob/crm", "crm"), []string{"a", "bob", "eve"}},
		{souvenir.In[any]("bob/crm", nil), []string{"bob", "own"}},
		{souvenir.Not("bob/crm"), []string{"a", "eve", "own"}},
		{souvenir.Not([]string{"bob/crm", "ann/crm"}), []string{"eve", "own"}},
		{souvenir.Not("crm"), []string{"own"}},
		{"zoe/crm", nil},
		{"bob/none", nil},
	} {
		got := texts(f.list(souvenir.MemoryList{Filter: souvenir.Filter{"project_id": c.value}}))
		slices.Sort(got)
		f.same(fmt.Sprintf("project_id %v", c.value), got, c.want...)
	}
}

func filterGoValues(f *fixture) {
	zoo(f)
	for _, c := range []struct {
		filter souvenir.Filter
		want   string
	}{
		{nil, "ant bee cat doe elk fox"},
		{souvenir.Filter{"state": nil}, "cat doe elk fox"},
		{souvenir.Filter{"importance": souvenir.ImportanceHigh}, "bee"},
		{souvenir.Filter{"classification": souvenir.ClassTodo}, "cat"},
		{souvenir.Filter{"rule_type": souvenir.RuleDo}, "elk"},
		{souvenir.Filter{"importance": souvenir.In(souvenir.ImportanceHigh, souvenir.ImportanceLow)}, "ant bee"},
		{souvenir.Filter{"importance": []souvenir.Importance{"high", "low"}}, "ant bee"},
		{souvenir.Filter{"importance": souvenir.Not(souvenir.ImportanceHigh)}, "ant cat doe elk fox"},
		{souvenir.Filter{"importance": souvenir.Not([]string{"high", "low"})}, "cat doe elk fox"},
		{souvenir.Filter{"tags": souvenir.All("x", "y")}, "ant"},
		{souvenir.Filter{"tags": souvenir.In[string]()}, ""},
		{souvenir.Filter{"tags": []string{"x"}}, "ant cat"},
		{souvenir.Filter{"tags": []any{"z"}}, "bee"},
		{souvenir.Filter{"n": 1}, "ant"},
		{souvenir.Filter{"n": int64(1)}, "ant"},
		{souvenir.Filter{"n": int32(1)}, "ant"},
		{souvenir.Filter{"n": uint8(1)}, "ant"},
		{souvenir.Filter{"n": float32(2.5)}, "bee"},
		{souvenir.Filter{"n": json.Number("2.5")}, "bee"},
		{souvenir.Filter{"n": json.Number("9007199254740992")}, "elk"},
		{souvenir.Filter{"n": []int{1, -10}}, "ant cat"},
		{souvenir.Filter{"n": []float64{1, 2.5}}, "ant bee"},
		{souvenir.Filter{"n": souvenir.In(1, -10)}, "ant cat"},
		{souvenir.Filter{"n": souvenir.Between(-10, 2.5)}, "ant bee cat"},
		{souvenir.Filter{"n": souvenir.Condition{MoreThan: -10, LessThan: 2.5}}, "ant"},
		{souvenir.Filter{"n": souvenir.Condition{AtLeast: 1, Not: 2.5}}, "ant elk"},
		{souvenir.Filter{"b": true}, "ant"},
		{souvenir.Filter{"s": map[string]any{"in": []string{"blue", "green"}}}, "ant doe"},
	} {
		found := []string{}
		for m, err := range f.reader.Memories(f.ctx, souvenir.MemoryList{Filter: c.filter}) {
			if err != nil {
				f.Errorf("filter %#v: %v", c.filter, err)
				found = nil
				break
			}
			found = append(found, m.Content)
		}
		if found != nil {
			slices.Sort(found)
			f.equal(fmt.Sprintf("filter %#v", c.filter), strings.Join(found, " "), c.want)
		}
	}
}

func filterTimes(f *fixture) {
	zoo(f) // one a day, from 2026-03-01 09:00 on; bee was updated on 2026-03-07
	day := func(n int) time.Time { return start.AddDate(0, 0, n) }
	for _, c := range []struct {
		filter souvenir.Filter
		want   string
	}{
		{souvenir.Filter{"created_at": start}, "ant"},
		{souvenir.Filter{"created_at": start.In(time.FixedZone("east", 3600))}, "ant"},
		{souvenir.Filter{"created_at": "2026-03-01T09:00:00Z"}, "ant"},
		{souvenir.Filter{"created_at": "2026-03-01T10:00:00+01:00"}, "ant"},
		{souvenir.Filter{"created_at": "2026-03-01T09:00:00.000Z"}, "ant"},
		{souvenir.Filter{"created_at": souvenir.Between(day(1), day(2))}, "bee cat"},
		{souvenir.Filter{"created_at": souvenir.Between("2026-03-02", "2026-03-04")}, "bee cat doe"},
		{souvenir.Filter{"created_at": map[string]any{"gt": day(1), "lte": "2026-03-04T09:00:00Z"}}, "cat doe"},
		{souvenir.Filter{"created_at": map[string]any{"lt": "2026-03-02"}}, "ant"},
		{souvenir.Filter{"created_at": souvenir.In(day(0), day(4))}, "ant elk"},
		{souvenir.Filter{"created_at": []time.Time{day(0), day(4)}}, "ant elk"},
		{souvenir.Filter{"created_at": souvenir.Not(day(0))}, "bee cat doe elk fox"},
		{souvenir.Filter{"created_at": nil}, ""},
		{souvenir.Filter{"updated_at": map[string]any{"gte": "2026-03-06"}}, "bee fox"},
		{souvenir.Filter{"updated_at": map[string]any{"gte": "2026-03-06"}, "created_at": map[string]any{"lt": "2026-03-06"}},
			"bee"},
	} {
		found := []string{}
		for m, err := range f.reader.Memories(f.ctx, souvenir.MemoryList{Filter: c.filter}) {
			if err != nil {
				f.Errorf("filter %#v: %v", c.filter, err)
				found = nil
				break
			}
			found = append(found, m.Content)
		}
		if found != nil {
			f.equal(fmt.Sprintf("filter %#v", c.filter), strings.Join(found, " "), c.want)
		}
	}
}

func filterEverywhere(f *fixture) {
	zoo(f)
	filter := souvenir.Filter{"n": souvenir.Condition{AtMost: 2.5}, "tags": "x"}
	want := []string{"ant", "cat"}
	for name, got := range map[string][]string{
		"listing":         texts(f.list(souvenir.MemoryList{Filter: filter})),
		"search by time":  contents(f.search(souvenir.Query{Filter: filter, Sort: souvenir.SortCreatedAsc})),
		"search by word":  contents(f.search(souvenir.Query{Filter: filter, Text: "ant cat bee"})),
		"search, ordered": contents(f.search(souvenir.Query{Filter: filter, Text: "***", Sort: souvenir.SortCreatedAsc})),
	} {
		slices.Sort(got)
		f.equal(name, got, want)
	}
}

func filterErrors(f *fixture) {
	zoo(f)
	manyKeys := souvenir.Filter{}
	for i := range 33 {
		manyKeys[fmt.Sprint("k", i)] = i
	}
	for _, c := range []struct {
		filter souvenir.Filter
		kind   *souvenir.Error
		says   string
	}{
		{souvenir.Filter{"n": map[string]any{"like": "x"}}, souvenir.ErrInvalid,
			`filter.n has the operator "like"; expected "eq", "in"`},
		{souvenir.Filter{"n": map[string]any{"$gt": 1}}, souvenir.ErrInvalid, `"$gt"`},
		{souvenir.Filter{"n": map[string]any{}}, souvenir.ErrInvalid, "filter.n"},
		{souvenir.Filter{"n": souvenir.Condition{}}, souvenir.ErrInvalid, "filter.n"},
		{souvenir.Filter{"n": map[string]any{"in": "x"}}, souvenir.ErrInvalid, "filter.n.in"},
		{souvenir.Filter{"n": map[string]any{"all": 1}}, souvenir.ErrInvalid, "filter.n.all"},
		{souvenir.Filter{"n": struct{}{}}, souvenir.ErrInvalid, "filter.n"},
		{souvenir.Filter{"n": []any{map[string]any{}}}, souvenir.ErrInvalid, "filter.n"},
		{souvenir.Filter{"n": func() {}}, souvenir.ErrInvalid, "filter.n"},
		{souvenir.Filter{"state": 7}, souvenir.ErrInvalid, "filter.state is 7; expected a string"},
		{souvenir.Filter{"importance": souvenir.Condition{AtLeast: "urgent"}}, souvenir.ErrInvalid,
			`filter.importance has the bound "urgent"; expected "low", "medium", "high" or "critical"`},
		{souvenir.Filter{"tags": []any{1}}, souvenir.ErrInvalid, "filter.tags is 1; expected a string"},
		{souvenir.Filter{"created_at": "yesterday"}, souvenir.ErrInvalid,
			`filter.created_at is "yesterday"; expected a time`},
		{souvenir.Filter{"created_at": 5}, souvenir.ErrInvalid, "filter.created_at is 5"},
		{souvenir.Filter{"state": "\xff"}, souvenir.ErrInvalid, "UTF-8"},
		{souvenir.Filter{"\xff": 1}, souvenir.ErrInvalid, "UTF-8"},
		{souvenir.Filter{"n": make([]any, 1001)}, souvenir.ErrTooLarge, "1001 values; at most 1000"},
		{manyKeys, souvenir.ErrTooLarge, "33 keys; at most 32"},
	} {
		for _, text := range []string{"", "ant"} {
			_, err := f.reader.Search(f.ctx, souvenir.Query{Text: text, Filter: c.filter})
			f.failsAt(fmt.Sprintf("Search with filter %s", brief(c.filter)), err, c.kind, "filter", c.says)
		}
	}
	var names []any
	for i := range 1000 {
		names = append(names, fmt.Sprint("t", i))
	}
	f.equal("a thousand alternatives",
		f.search(souvenir.Query{Filter: souvenir.Filter{"tags": append(names[:999], "x")}}).Total, 2)
}

func filterScores(f *fixture) {
	zoo(f)
	whole := f.search(souvenir.Query{Text: "ant bee"})
	for _, h := range f.search(souvenir.Query{Text: "ant bee", Filter: souvenir.Filter{"state": "archived"}}).Hits {
		for _, w := range whole.Hits {
			if w.ID == h.ID {
				f.equal("score of "+h.Content, []any{h.Score, h.Parts}, []any{w.Score, w.Parts})
			}
		}
	}
}

func filterDays(f *fixture) {
	f.add(souvenir.NewMemory{Content: "first"}) // at 09:00 of 2026-03-01
	f.clock.Pass(14*time.Hour + 59*time.Minute)
	f.add(souvenir.NewMemory{Content: "late"})
	f.clock.Pass(time.Minute)
	f.add(souvenir.NewMemory{Content: "midnight"})
	f.clock.Pass(24 * time.Hour)
	f.add(souvenir.NewMemory{Content: "after"})
	day, next := "2026-03-01", "2026-03-02"
	for _, c := range []struct {
		value any
		want  []string
	}{
		{day, []string{"first", "late"}},
		{next, []string{"midnight"}},
		{map[string]any{"eq": day}, []string{"first", "late"}},
		{map[string]any{"ne": day}, []string{"midnight", "after"}},
		{map[string]any{"gte": next}, []string{"midnight", "after"}},
		{map[string]any{"gt": day}, []string{"midnight", "after"}},
		{map[string]any{"gt": next}, []string{"after"}},
		{map[string]any{"lte": day}, []string{"first", "late"}},
		{map[string]any{"lte": next}, []string{"first", "late", "midnight"}},
		{map[string]any{"lt": next}, []string{"first", "late"}},
		{map[string]any{"lt": day}, nil},
		{map[string]any{"gte": day, "lte": day}, []string{"first", "late"}},
		{map[string]any{"in": []any{day, "2026-03-03"}}, []string{"first", "late", "after"}},
		{map[string]any{"in": []any{day, "2026-03-02T00:00:00Z", nil}}, []string{"first", "late", "midnight"}},
		{map[string]any{"ne": []any{day, next}}, []string{"after"}},
		{souvenir.Between(day, next), []string{"first", "late", "midnight"}},
		{[]string{day, next, "2026-03-03"}, []string{"first", "late", "midnight", "after"}},
		{"2026-03-01T09:00:00Z", []string{"first"}},
		{map[string]any{"gt": "2026-03-01T09:00:00Z", "lte": "2026-03-02T00:00:00Z"}, []string{"late", "midnight"}},
	} {
		for _, key := range []string{"created_at", "updated_at"} {
			f.same(key+" "+brief(c.value), texts(f.list(souvenir.MemoryList{Filter: souvenir.Filter{key: c.value}})), c.want...)
		}
	}
}

func filterOwnMetadata(f *fixture) {
	long := strings.Repeat("long ", souvenir.MaxMetadata/8) // too long for an index
	id := map[string]string{}
	for name, metadata := range map[string]string{
		"text": `{"k":"x","other":1}`, "list": `{"k":["x",7,null]}`, "long": `{"k":["x",7],"filler":"` + long + `"}`,
		"true": `{"k":true}`, "one": `{"k":1.0}`, "null": `{"k":null}`, "none": `{}`, "object": `{"k":{"x":1}}`,
		"empty": `{"k":[]}`, "unnamed": `{"":"x"}`,
	} {
		id[name] = f.add(souvenir.NewMemory{Content: name, Metadata: object(metadata)}).ID
	}
	const set = "empty list long object one text true"
	f.finds("k", "x", "list long text")
	f.finds("k", 7, "list long")
	f.finds("k", 1, "one true")
	f.finds("k", souvenir.Not("x"), "empty none null object one true unnamed")
	f.finds("k", souvenir.Condition{AtLeast: 2}, "list long")
	f.finds("k", souvenir.Condition{AtLeast: "a", LessThan: "y"}, "list long text")
	f.finds("k", souvenir.Not([]any{nil}), set)
	f.finds("k", nil, "none null unnamed")
	f.finds("", "x", "unnamed")
	f.finds("", souvenir.Not([]any{nil}), "unnamed")
	f.finds("filler", long, "long")

	f.update(id["text"], souvenir.MemoryUpdate{Metadata: object(`{"k":"y"}`)})
	f.update(id["long"], souvenir.MemoryUpdate{Metadata: object(`{"filler":null}`)})
	f.update(id["true"], souvenir.MemoryUpdate{Metadata: object(`{"filler":"` + long + `"}`)})
	project := "p"
	f.update(id["list"], souvenir.MemoryUpdate{ProjectID: &project})
	f.delete(id["one"])
	f.finds("k", []any{"x", 1}, "list long true")
	f.finds("k", "y", "text")
	if _, err := f.store.Trash().Restore(f.ctx, id["one"]); err != nil {
		f.Fatal(err)
	}
	f.finds("k", 1, "one true")
	f.equal("of another user",
		len(f.as(souvenir.Access{User: "ann"}).list(souvenir.MemoryList{Filter: souvenir.Filter{"k": 1}})), 0)
}

// finds compares the memories that match a condition on a key, by listing, searching and counting.
func (f *fixture) finds(key string, value any, want string) {
	f.Helper()
	filter := souvenir.Filter{souvenir.CustomKey(key): value}
	listed := texts(f.list(souvenir.MemoryList{Filter: filter}))
	slices.Sort(listed)
	found := f.search(souvenir.Query{Filter: filter, Limit: 100})
	f.equal(fmt.Sprint("listed with ", key, " ", brief(value)), strings.Join(listed, " "), want)
	f.equal(fmt.Sprint("counted with ", key, " ", brief(value)), []int{found.Total, len(found.Hits)},
		[]int{len(listed), len(listed)})
}

func filterKeyAndEventTime(f *fixture) {
	f.add(souvenir.NewMemory{Content: "won", Key: "crm/1", EventTime: start.AddDate(-1, 0, 0)})
	f.add(souvenir.NewMemory{Content: "lost", Key: "crm/2", EventTime: start.AddDate(-2, 0, 0)})
	f.add(souvenir.NewMemory{Content: "open", Metadata: object(`{"key":"crm/1","event_time":"2001-01-01"}`)})
	for _, c := range []struct {
		filter souvenir.Filter
		want   string
	}{
		{souvenir.Filter{"key": "crm/1"}, "won"},
		{souvenir.Filter{"key": souvenir.Condition{AtLeast: "crm/", LessThan: "crm0"}}, "lost won"},
		{souvenir.Filter{"key": nil}, "open"},
		{souvenir.Filter{"event_time": souvenir.Condition{LessThan: start.AddDate(-1, 0, 0)}}, "lost"},
		{souvenir.Filter{"event_time": nil}, "open"},
		{souvenir.Filter{souvenir.CustomKey("key"): "crm/1", souvenir.CustomKey("event_time"): "2001-01-01"}, "open"},
	} {
		found := texts(f.list(souvenir.MemoryList{Filter: c.filter}))
		slices.Sort(found)
		f.equal(fmt.Sprint(c.filter), strings.Join(found, " "), c.want)
	}
}

func orderKeyAndEventTime(f *fixture) {
	for i, name := range []string{"b", "", "c", "a"} {
		m := souvenir.NewMemory{Content: "memory " + name, Key: name, Metadata: object(`{"k":1}`)}
		if name != "" {
			m.EventTime = start.AddDate(0, 0, -i)
		}
		f.add(m)
		f.clock.Pass(time.Hour)
	}
	for order, want := range map[souvenir.SortOrder][]string{
		souvenir.SortKeyAsc: {"a", "b", "c", ""}, souvenir.SortKeyDesc: {"c", "b", "a", ""},
		souvenir.SortEventAsc: {"a", "c", "b", ""}, souvenir.SortEventDesc: {"b", "c", "a", ""},
	} {
		for _, filter := range []souvenir.Filter{nil, {"k": 1}, {"k": 1, "key": souvenir.Not("b")}} {
			wanted := slices.DeleteFunc(slices.Clone(want), func(key string) bool { return len(filter) > 1 && key == "b" })
			var listed, found, searched []string
			for _, m := range f.list(souvenir.MemoryList{Sort: order, Filter: filter}) {
				listed = append(listed, m.Key)
			}
			for offset := range wanted {
				page := f.search(souvenir.Query{Sort: order, Filter: filter, Offset: offset, Limit: 1})
				found = append(found, page.Hits[0].Key)
			}
			for _, h := range f.search(souvenir.Query{Text: "memory", Sort: order, Filter: filter}).Hits {
				searched = append(searched, h.Key)
			}
			f.equal("listed by "+string(order), listed, wanted)
			f.equal("found by "+string(order), found, wanted)
			f.equal("searched by "+string(order), searched, wanted)
		}
	}
	for what, err := range map[string]error{
		"files": firstError(f.store.Files(f.ctx, souvenir.FileList{Sort: souvenir.SortKeyAsc})),
	} {
		f.failsAt(what, err, souvenir.ErrInvalid, "sort_order")
	}
}

func firstError[T any](all iter.Seq2[T, error]) error {
	for _, err := range all {
		return err
	}
	return nil
}
