package migrate

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
)

func TestUnpickleReadsValuesAndCallsNothing(t *testing.T) {
	for pickled, want := range map[string]any{
		"\x80\x04N.":                                           nil,
		"\x80\x04K\x05.":                                       int64(5),
		"\x80\x04\x8a\x01\xff.":                                int64(-1),
		"\x80\x04J\xfe\xff\xff\xff.":                           int64(-2),
		"\x80\x02G?\xf0\x00\x00\x00\x00\x00\x00.":              1.0,
		"\x80\x04\x88.":                                        true,
		"\x80\x04]\x94(K\x01\x8c\x01ae.":                       []any{int64(1), "a"},
		"\x80\x04}(\x8c\x01aK\x01K\x02K\x03u.":                 map[string]any{"a": int64(1)}, // a key that is not a text
		"\x80\x04\x8c\x02os\x8c\x06system\x93\x8c\x02ls\x85R.": "ls",
		"\x80\x04K\x01K\x02\x86.":                              []any{int64(1), int64(2)},
	} {
		value, err := unpickle([]byte(pickled))
		if got := new(plainer).plain(value); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: got %#v and %v, want %#v", pickled, got, err, want)
		}
	}
}

func TestUnpickleRefusesWhatIsDamaged(t *testing.T) {
	for _, pickled := range []string{"", ".", "\x80\x04", "e.", "K", "\x8d\xff\xff\xff\xff\xff\xff\xff\xffa.", "s.", "t.",
		"(0t.", "\x8a\x09123456789.", "cos\nsystem\n.", "\xff."} {
		if value, err := unpickle([]byte(pickled)); err == nil {
			t.Errorf("%q: got %#v, want an error", pickled, value)
		}
	}
}

// A list that contains the one before it twice, 60 times over, has 2^60 values.
func TestPlainValuesAreBounded(t *testing.T) {
	pickled := "\x80\x04K\x01\x94" + strings.Repeat("h\x00h\x00\x86q\x00", 60) + "."
	value, err := unpickle([]byte(pickled))
	if err != nil {
		t.Fatal(err)
	}
	p := new(plainer)
	if p.plain(value); p.values > 200_000 {
		t.Errorf("got %d values, want about 100,000 at most", p.values)
	}
}

func FuzzUnpickle(f *testing.F) {
	f.Add([]byte("\x80\x04}(\x8c\x01aK\x01u."))
	f.Add([]byte("\x80\x04]\x94h\x00a."))
	f.Add(bytes.Repeat([]byte("h\x00"), 100))
	f.Fuzz(func(_ *testing.T, data []byte) {
		if value, err := unpickle(data); err == nil {
			new(plainer).plain(value)
		}
		pointItem(data)
	})
}
