package storetest

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"github.com/souvenir-ai/souvenir"
)

func metadata() concept {
	return concept{"Metadata", []promise{
		{"round-trips as JSON", metadataRoundTrip},
		{"comes back as JSON's own types", metadataTypes},
		{"numbers lose nothing", metadataNumbers},
		{"text that is not UTF-8 is refused", metadataUTF8},
		{"own keys mean nothing to the store, under any name", metadataOwn},
		{"filters find own keys of any name", metadataOwnFilters},
		{"own keys are updated apart from the known ones", metadataOwnUpdates},
		{"a custom object holds own keys where known ones may stand", metadataCustom},
	}}
}

func metadataRoundTrip(f *fixture) {
	for _, encoded := range []string{
		`{}`,
		`{"a":null}`,
		`{"a":{"b":null,"c":1}}`,
		`{"a":[null,{"b":null}]}`,
		`{"":""}`,
		`{"a":"","b":[],"c":{},"d":[[]],"e":false,"f":0}`,
		`{"nested":{"list":[1,"two",[3,{"four":[true,false]}]]}}`,
		`{"日本語":"記憶","emoji":"👩‍👩‍👧‍👦","é":"é","html":"<a href=\"x\">&</a>","lines":"a\n\tb\u0001c\u2028d"}`,
		`{"a.b":1,"$.c":2,"d'e":3,"f\"g":4,"[0]":5,"Tags":6,"id":7,"created_at":8}`,
	} {
		stored := f.add(souvenir.NewMemory{Content: "x", ShownMetadata: object(encoded)})
		f.sameJSON("stored", stored.Metadata, object(encoded))
		f.sameJSON("read", f.get(stored.ID).Metadata, object(encoded))
		f.sameJSON("found", f.search(souvenir.Query{Filter: souvenir.Filter{"id": stored.ID}}).Hits[0].Metadata,
			object(encoded))
		f.rewrite(stored.ID, "y")
		f.sameJSON("kept by an update of the content", f.get(stored.ID).Metadata, object(encoded))
		f.sameJSON("in the history", f.revisions(stored.ID)[1].Metadata, object(encoded))
	}
}

// likeKnown is metadata whose keys have the names of known keys, with values that those would refuse or act on.
const likeKnown = `{"state":"California","importance":5,"project_name":"x","project_id":["a"],"event_type":{"a":1},
	"rule_type":"do","classification":null,"tags":"red","related_memory_ids":[1],"custom":{"state":"inner"},"ticket":7}`

func metadataOwn(f *fixture) {
	want := object(likeKnown)
	stored := f.add(souvenir.NewMemory{Content: "x", State: "active", Tags: []string{"t"}, Metadata: object(likeKnown)})
	projects, err := f.store.Projects(f.ctx)
	f.check("Projects", err)
	f.equal("projects", len(projects), 0)
	f.rewrite(stored.ID, "y")
	for what, m := range map[string]souvenir.Memory{"stored": stored.Memory, "read": f.get(stored.ID),
		"found": f.search(souvenir.Query{Filter: souvenir.Filter{"id": stored.ID}}).Hits[0].Memory} {
		f.sameJSON(what, m.Metadata, want)
		f.equal(what+", its fields", []any{m.State, m.Tags, m.Importance, m.ProjectName, m.RuleType, m.Related},
			[]any{"active", []string{"t"}, souvenir.Importance(""), "", souvenir.RuleType(""), []string(nil)})
		encoded, err := json.Marshal(m)
		f.check("Marshal", err)
		var again souvenir.Memory
		f.check("Unmarshal", json.Unmarshal(encoded, &again))
		f.sameJSON(what+", read from its JSON", again.Metadata, want)
		f.equal(what+", state read from its JSON", again.State, "active")
	}
	f.sameJSON("shown", f.get(stored.ID).ShownMetadata(), object(`{"state":"active","tags":["t"],"ticket":7,"custom":{
		"state":"California","importance":5,"project_name":"x","project_id":["a"],"event_type":{"a":1},"rule_type":"do",
		"classification":null,"tags":"red","related_memory_ids":[1],"custom":{"state":"inner"}}}`))
	restored, err := f.store.RestoreRevision(f.ctx, stored.ID, 1)
	f.check("RestoreRevision", err)
	f.sameJSON("restored", restored.Metadata, want)
	f.check("DeleteMemory", f.store.DeleteMemory(f.ctx, stored.ID, nil))
	_, err = f.store.Trash().Restore(f.ctx, stored.ID)
	f.check("Trash.Restore", err)
	f.sameJSON("back from the trash", f.get(stored.ID).Metadata, want)
	export := f.exported()
	f.inAnother(func(other *fixture) {
		other.imported(export)
		other.sameJSON("imported", other.get(stored.ID).Metadata, want)
		other.equal("its state", other.get(stored.ID).State, "active")
	})
}

func metadataOwnFilters(f *fixture) {
	f.add(souvenir.NewMemory{Content: "own", State: "active", Metadata: object(`{"state":"California","custom":"a"}`)})
	f.add(souvenir.NewMemory{Content: "known", State: "California", Metadata: object(`{"custom.state":1}`)})
	for _, c := range []struct {
		filter souvenir.Filter
		want   string
	}{
		{souvenir.Filter{"state": "California"}, "known"},
		{souvenir.Filter{souvenir.CustomKey("state"): "California"}, "own"},
		{souvenir.Filter{"custom": "a"}, "own"},
		{souvenir.Filter{souvenir.CustomKey("custom"): "a"}, "own"},
		{souvenir.Filter{souvenir.CustomKey("custom.state"): 1}, "known"},
		{souvenir.Filter{souvenir.CustomKey("state"): souvenir.Not("California")}, "known"},
	} {
		f.same(fmt.Sprint(c.filter), contents(f.search(souvenir.Query{Filter: c.filter})), c.want)
	}
}

func metadataOwnUpdates(f *fixture) {
	m := f.add(souvenir.NewMemory{Content: "x", Metadata: object(`{"state":"California","n":1}`)})
	state, tags := "active", []string{"a"}
	u, err := f.store.UpdateMemory(f.ctx, m.ID, souvenir.MemoryUpdate{State: &state, Tags: &tags,
		Metadata: object(`{"state":{"name":"Nevada"},"n":null}`)})
	f.check("UpdateMemory", err)
	f.equal("known keys", []any{u.State, u.Tags}, []any{"active", []string{"a"}})
	f.sameJSON("own keys", u.Metadata, object(`{"state":{"name":"Nevada"}}`))
	none, gone := "", []string{}
	u, err = f.store.UpdateMemory(f.ctx, m.ID, souvenir.MemoryUpdate{State: &none, Tags: &gone})
	f.check("UpdateMemory", err)
	f.equal("known keys removed", []any{u.State, len(u.Tags)}, []any{"", 0})
	f.sameJSON("own keys kept", u.Metadata, object(`{"state":{"name":"Nevada"}}`))
	done, err := f.store.UpdateMemories(f.ctx, souvenir.MemoriesUpdate{
		MemoryList: souvenir.MemoryList{Filter: souvenir.Filter{souvenir.CustomKey("state"): souvenir.Not([]any{nil})}},
		Change:     souvenir.MemoryUpdate{Metadata: object(`{"state":null,"importance":[1]}`)}})
	f.check("UpdateMemories", err)
	f.equal("changed", done.Changed, 1)
	f.sameJSON("own keys of many", f.get(m.ID).Metadata, object(`{"importance":[1]}`))
}

func metadataCustom(f *fixture) {
	m := f.add(souvenir.NewMemory{Content: "x",
		ShownMetadata: object(`{"state":"active","place":1,"custom":{"state":"California","ticket":7}}`)})
	f.equal("state", m.State, "active")
	f.sameJSON("own keys", m.Metadata, object(`{"place":1,"ticket":7,"state":"California"}`))
	patched := f.patch(m.ID, object(`{"custom":{"state":"Nevada","ticket":null}}`))
	f.equal("state, when the custom one changes", patched.State, "active")
	f.sameJSON("patched", patched.Metadata, object(`{"place":1,"state":"Nevada"}`))
	f.sameJSON("custom removed", f.patch(m.ID, object(`{"custom":null}`)).Metadata, object(`{"place":1}`))
	_, err := f.store.AddMemory(f.ctx, souvenir.NewMemory{Content: "x",
		ShownMetadata: object(`{"ticket":1,"custom":{"ticket":2}}`)})
	f.fails("a key given twice", err, souvenir.ErrInvalid)
	_, err = f.store.AddMemory(f.ctx, souvenir.NewMemory{Content: "x", Metadata: object(`{"ticket":1}`),
		ShownMetadata: object(`{"ticket":1}`)})
	f.fails("a key given in both", err, souvenir.ErrInvalid)
}

func metadataTypes(f *fixture) {
	type own struct {
		Name string `json:"name"`
		N    int    `json:"n"`
	}
	stored := f.add(souvenir.NewMemory{Content: "x", ShownMetadata: map[string]any{
		"struct": own{"ann", 7}, "ints": []int{1, 2}, "map": map[string]int{"a": 1}, "raw": json.RawMessage(`[true]`),
		"pointer": &own{},
	}})
	want := map[string]any{
		"struct": map[string]any{"name": "ann", "n": 7.0}, "ints": []any{1.0, 2.0}, "map": map[string]any{"a": 1.0},
		"raw":     []any{true},
		"pointer": map[string]any{"name": "", "n": 0.0},
	}
	f.equal("stored", stored.Metadata, want)
	f.equal("read", f.get(stored.ID).Metadata, want)
}

func metadataNumbers(f *fixture) {
	for _, c := range []struct {
		value any
		json  string
	}{
		{0, "0"}, {-1, "-1"}, {1.5, "1.5"}, {0.1, "0.1"}, {1e21, "1e+21"}, {5e-324, "5e-324"},
		{math.MaxFloat64, "1.7976931348623157e+308"},
		{math.MaxInt64, "9223372036854775807"}, {math.MinInt64, "-9223372036854775808"},
		{uint64(math.MaxUint64), "18446744073709551615"},
		{1<<53 + 1, "9007199254740993"}, {json.Number("123456789012345678901234567890"), "123456789012345678901234567890"},
		{json.Number("0.1000000000000000055511151231257827"), "0.1000000000000000055511151231257827"},
		{json.Number("1.0"), "1.0"}, {json.Number("1e400"), "1e400"},
	} {
		stored := f.add(souvenir.NewMemory{Content: "x", ShownMetadata: map[string]any{"n": c.value, "list": []any{c.value}}})
		want := `{"list":[` + c.json + `],"n":` + c.json + `}`
		f.equal("stored", toJSON(stored.Metadata), want)
		f.equal("read", toJSON(f.get(stored.ID).Metadata), want)
		f.patch(stored.ID, map[string]any{"other": true})
		f.equal("patched", toJSON(f.get(stored.ID).Metadata), strings.TrimSuffix(want, "}")+`,"other":true}`)
	}
	for _, bad := range []float64{math.NaN(), math.Inf(1)} {
		_, err := f.store.AddMemory(f.ctx, souvenir.NewMemory{Content: "x", ShownMetadata: map[string]any{"n": bad}})
		f.failsAt("AddMemory with a number that JSON has not", err, souvenir.ErrInvalid, "metadata", "JSON")
	}
}

func metadataUTF8(f *fixture) {
	for _, bad := range []map[string]any{{"k": "a\xff"}, {"\xff": 1}, {"k": []string{"\xc3"}}, {"state": "\xff"},
		{"tags": []string{"\xff"}}} {
		_, err := f.store.AddMemory(f.ctx, souvenir.NewMemory{Content: "x", ShownMetadata: bad})
		f.fails("AddMemory with "+brief(bad), err, souvenir.ErrInvalid, "UTF-8")
	}
}
