package storetest

import (
	"fmt"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir"
)

func sharedValues() concept {
	return concept{"SharedValues", []promise{
		{"what one server sets the other changes and deletes", sharedChanged},
		{"each key has a value of its own, and several change together", sharedTogether},
		{"what cannot be is refused and changes nothing", sharedRefused},
	}}
}

// shared returns the values of keys in a store's view.
func shared(f *fixture, s *souvenir.Store, keys ...string) string {
	var got []string
	err := s.Accounts().UpdateSharedValues(f.ctx, souvenir.SharedValuesUpdate{Keys: keys, Life: time.Hour,
		Change: func(values [][]byte) {
			got = nil
			for _, v := range values {
				got = append(got, fmt.Sprintf("%q", v))
			}
		}})
	f.check("UpdateSharedValues that changes nothing", err)
	return strings.Join(got, " ")
}

func setShared(f *fixture, s *souvenir.Store, change func(values [][]byte), keys ...string) error {
	return s.Accounts().UpdateSharedValues(f.ctx, souvenir.SharedValuesUpdate{Keys: keys, Life: time.Hour, Change: change})
}

func sharedChanged(f *fixture) {
	f.equal("at first", shared(f, f.reader, "k"), `""`)
	f.check("UpdateSharedValues", setShared(f, f.store, func(v [][]byte) { v[0] = []byte("一") }, "k"))
	f.equal("for another server", shared(f, f.reader, "k"), `"一"`)
	f.check("UpdateSharedValues again", setShared(f, f.store, func(v [][]byte) { v[0] = append(v[0], 0, 255) }, "k"))
	f.equal("after a change", shared(f, f.reader, "k"), `"一\x00\xff"`)
	f.check("UpdateSharedValues to nil", setShared(f, f.store, func(v [][]byte) {
		if v[0] != nil {
			v[0] = nil
		}
	}, "k"))
	f.equal("after the end", shared(f, f.reader, "k"), `""`)
}

func sharedTogether(f *fixture) {
	f.check("UpdateSharedValues", setShared(f, f.store, func(v [][]byte) { v[0], v[1] = []byte("1"), []byte("2") },
		"a", "键"))
	f.equal("in the other order", shared(f, f.reader, "键", "none", "a"), `"2" "" "1"`)
}

func sharedRefused(f *fixture) {
	set := func(v [][]byte) { v[0] = []byte("x") }
	long := strings.Repeat("x", 201)
	for name, u := range map[string]souvenir.SharedValuesUpdate{
		"Keys":   {Keys: nil, Life: time.Hour, Change: set},
		"twice":  {Keys: []string{"k", "k"}, Life: time.Hour, Change: set},
		"201":    {Keys: []string{long}, Life: time.Hour, Change: set},
		"UTF-8":  {Keys: []string{"k\xff"}, Life: time.Hour, Change: set},
		"Life":   {Keys: []string{"k"}, Change: set},
		"24h":    {Keys: []string{"k"}, Life: 25 * time.Hour, Change: set},
		"Change": {Keys: []string{"k"}, Life: time.Hour},
		"17":     {Keys: strings.Split("a b c d e f g h i j k l m n o p q", " "), Life: time.Hour, Change: set},
	} {
		f.fails("UpdateSharedValues with wrong "+name, f.store.Accounts().UpdateSharedValues(f.ctx, u),
			souvenir.ErrInvalid, name)
	}
	f.fails("UpdateSharedValues with a long value", setShared(f, f.store, func(v [][]byte) {
		v[0], v[1] = []byte("x"), make([]byte, 1001)
	}, "k", "l"), souvenir.ErrTooLarge, "1001")
	f.equal("after refusals", shared(f, f.reader, "k", "l"), `"" ""`)
}
