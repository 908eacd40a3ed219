package rowhash_test

import (
	"bytes"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/rowhash"
)

func mustHash(t *testing.T, names string, values ...any) []byte {
	t.Helper()
	sum, err := rowhash.Hash(names, values)
	if err != nil || len(sum) != rowhash.Size {
		t.Fatalf("%x, %v; want a length of %v", sum, err, rowhash.Size)
	}
	return sum
}

func TestHashesTellRowsApart(t *testing.T) {
	rows := [][]any{
		{"ab", ""}, {"a", "b"}, {"", "ab"}, {"ab", nil}, {nil, "ab"}, {[]byte("ab"), ""}, {int64(0), nil}, {nil, int64(0)},
		{0.0, nil}, {"0", nil},
		{nil, nil}, {"a\x00", "b"}, {"a", "\x00b"},
	}
	seen := map[string]int{}
	for i, row := range rows {
		sum := string(mustHash(t, "x,y", row...))
		if j, ok := seen[sum]; ok {
			t.Errorf("rows %d and %d have the same hash, want two", i, j)
		}
		seen[sum] = i
	}
}

func TestAHashIsTheSameWithANewEmptyColumn(t *testing.T) {
	if !bytes.Equal(mustHash(t, "x,y", "a", int64(1)), mustHash(t, "x,new,y", "a", nil, int64(1))) {
		t.Error("a new column that is empty changes the hash, want the same hash")
	}
}

func TestHashesCoverTheWholeText(t *testing.T) {
	long := bytes.Repeat([]byte("0123456789"), 1000)
	before := mustHash(t, "x", string(long))
	long[9_999] ^= 1
	if bytes.Equal(before, mustHash(t, "x", string(long))) {
		t.Error("the last byte is not in the hash, want another hash")
	}
}

func TestUnhashableValuesAreRefused(t *testing.T) {
	if sum, err := rowhash.Hash("x", []any{struct{}{}}); err == nil {
		t.Errorf("got %x, want an error", sum)
	}
}

func TestXorIsASetOfRows(t *testing.T) {
	a, b := mustHash(t, "x", "a"), mustHash(t, "x", "b")
	both := rowhash.Xor(a, b)
	if !bytes.Equal(both, rowhash.Xor(b, a)) || !bytes.Equal(rowhash.Xor(both, b), a) || bytes.Equal(both, a) {
		t.Error("joining and leaving do not undo each other, want the same sum in any order, and one back without the " +
			"other")
	}
	if got := rowhash.Xor(nil, a); got == nil || len(got) != 0 {
		t.Errorf("got %x of known damage, want an empty slice that is not nil", got)
	}
}
