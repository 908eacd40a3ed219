package jsonbound_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/json/jsonbound"
)

func TestCount(t *testing.T) {
	for text, want := range map[string]int{
		``: 1, `1`: 1, `"a,[{\",["`: 1, `[]`: 2, `[1,2]`: 3, `{"a,":[{},"}"]}`: 5, `"`: 1, `"\`: 1,
	} {
		if got := jsonbound.Count([]byte(text)); got != want {
			t.Errorf("%s has %d values, want %d", text, got, want)
		}
	}
	large := []byte(`{"a":[` + strings.Repeat(`[],`, 1000) + `[]]}`)
	if got := jsonbound.Count(large); got < 2000 {
		t.Errorf("%d values, want at least 2000", got)
	}
	if n := testing.AllocsPerRun(10, func() { jsonbound.Count(large) }); n != 0 {
		t.Errorf("counting allocates %v times, want 0", n)
	}
}

func collect(text string) string {
	var all []string
	jsonbound.Members([]byte(text), func(m jsonbound.Member) bool {
		all = append(all, string(m.Key)+"="+string(m.Value))
		return true
	})
	return strings.Join(all, ";")
}

func TestMembers(t *testing.T) {
	for text, want := range map[string]string{
		` { "a" : [1,{"b":","}] , "c\"d":"}" ,"e":-1.5e3,"f":null} `: `"a"=[1,{"b":","}];"c\"d"="}";"e"=-1.5e3;"f"=null`,
		`{}`: "", `[1]`: "", `"{"`: "", `{"a":{}}`: `"a"={}`,
	} {
		if got := collect(text); got != want {
			t.Errorf("%s has %s, want %s", text, got, want)
		}
	}
}

// The members of any JSON are those that encoding/json finds. Other input ends, too.
func FuzzMembers(f *testing.F) {
	for _, text := range []string{`{"a":1}`, `{"a":[{"b":"]"}],"c":{}}`, `{"a`, `{"a":`, `{"a":1]`, `{"\\":"\\"}`,
		`[[]]`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		found := map[string]bool{}
		jsonbound.Members([]byte(text), func(m jsonbound.Member) bool {
			var key string
			if json.Unmarshal(m.Key, &key) == nil {
				found[key] = json.Valid(m.Value)
			}
			return true
		})
		jsonbound.Count([]byte(text))
		var want map[string]json.RawMessage
		if json.Unmarshal([]byte(text), &want) != nil {
			return
		}
		for key := range want {
			if !found[key] {
				t.Errorf("%q: the member %q is not found", text, key)
			}
		}
		if len(found) != len(want) {
			t.Errorf("%q: %d members are found, want %d", text, len(found), len(want))
		}
	})
}
