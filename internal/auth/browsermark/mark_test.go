package browsermark

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

func TestAMarkIsGoodForItsUserAndKeyUntilItEnds(t *testing.T) {
	key, other := bytes.Repeat([]byte{1}, KeySize), bytes.Repeat([]byte{2}, KeySize)
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	mark := New("k1", key, "anna", now)
	if id := KeyID(mark); id != "k1" {
		t.Errorf("its key is %q, want k1", id)
	}
	later := strings.Replace(mark, ".204", ".205", 1)
	if later == mark {
		t.Fatalf("another day has the name %v, want another one than %v", later, mark)
	}
	for what, test := range map[string]struct {
		mark string
		key  []byte
		user string
		now  time.Time
		good bool
	}{
		"at once":             {mark, key, "anna", now, true},
		"before its end":      {mark, key, "anna", now.Add(Life - 2*day), true},
		"at its end":          {mark, key, "anna", now.Add(Life), false},
		"long before":         {mark, key, "anna", now.Add(-3 * day), false},
		"of another user":     {mark, key, "ben", now, false},
		"of no user":          {New("k1", key, "", now), key, "", now, false},
		"of another key":      {mark, other, "anna", now, false},
		"without a key":       {New("k1", nil, "anna", now), nil, "anna", now, false},
		"with another day":    {later, key, "anna", now, false},
		"with a part more":    {mark + ".x", key, "anna", now, false},
		"cut off":             {mark[:len(mark)-1], key, "anna", now, false},
		"empty":               {"", key, "anna", now, false},
		"with a day too long": {"k1.99999999999." + sign(key, "anna", "99999999999"), key, "anna", now, false},
	} {
		if got := Valid(test.mark, test.key, test.user, test.now); got != test.good {
			t.Errorf("%s: %v, want %v", what, got, test.good)
		}
	}
	for _, text := range []string{"", "x", "a.b", "a.b.c.d", strings.Repeat("a", 300) + ".1.x"} {
		if id := KeyID(text); id != "" {
			t.Errorf("the key of %.20q is %q, want none", text, id)
		}
	}
}
