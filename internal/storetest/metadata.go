package storetest

import (
	"encoding/json"
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
		`{"日本語":"記憶","emoji":"👩‍👩‍👧‍👦","é":"é","html":"<a href=\"x\">&</a>","lines":"a\n\tb\u0000c\u2028d"}`,
		`{"a.b":1,"$.c":2,"d'e":3,"f\"g":4,"[0]":5,"Tags":6,"id":7,"created_at":8}`,
	} {
		stored := f.add(souvenir.NewMemory{Content: "x", Metadata: object(encoded)})
		f.sameJSON("stored", stored.Metadata, object(encoded))
		f.sameJSON("read", f.get(stored.ID).Metadata, object(encoded))
		f.sameJSON("found", f.search(souvenir.Query{Filter: souvenir.Filter{"id": stored.ID}}).Hits[0].Metadata,
			object(encoded))
		f.rewrite(stored.ID, "y")
		f.sameJSON("kept by an update of the content", f.get(stored.ID).Metadata, object(encoded))
		f.sameJSON("in the history", f.revisions(stored.ID)[1].Metadata, object(encoded))
	}
}

func metadataTypes(f *fixture) {
	type own struct {
		Name string `json:"name"`
		N    int    `json:"n"`
	}
	stored := f.add(souvenir.NewMemory{Content: "x", Metadata: map[string]any{
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
		stored := f.add(souvenir.NewMemory{Content: "x", Metadata: map[string]any{"n": c.value, "list": []any{c.value}}})
		want := `{"list":[` + c.json + `],"n":` + c.json + `}`
		f.equal("stored", toJSON(stored.Metadata), want)
		f.equal("read", toJSON(f.get(stored.ID).Metadata), want)
		f.patch(stored.ID, map[string]any{"other": true})
		f.equal("patched", toJSON(f.get(stored.ID).Metadata), strings.TrimSuffix(want, "}")+`,"other":true}`)
	}
	for _, bad := range []float64{math.NaN(), math.Inf(1)} {
		_, err := f.store.AddMemory(f.ctx, souvenir.NewMemory{Content: "x", Metadata: map[string]any{"n": bad}})
		f.failsAt("AddMemory with a number that JSON has not", err, souvenir.ErrInvalid, "metadata", "JSON")
	}
}

func metadataUTF8(f *fixture) {
	for _, bad := range []map[string]any{{"k": "a\xff"}, {"\xff": 1}, {"k": []string{"\xc3"}}, {"state": "\xff"},
		{"tags": []string{"\xff"}}} {
		_, err := f.store.AddMemory(f.ctx, souvenir.NewMemory{Content: "x", Metadata: bad})
		f.fails("AddMemory with "+brief(bad), err, souvenir.ErrInvalid, "UTF-8")
	}
}
