package sealedrows

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"math"
	"strconv"
	"strings"

	"github.com/souvenir-ai/souvenir/internal/db"
)

// Sealed metadata of memories are followed by a line with their lookups, the source of the table memory_own: the same
// object with keyed hashes instead of its keys, texts, numbers and booleans.

const (
	ownKey   = "memory.metadata key"
	ownValue = "memory.metadata value"
)

// SealMetadata is [SealText] for the metadata of a memory, with lookups.
func SealMetadata(tx db.Tx, owner int64, metadata string) (any, error) {
	if !Seals(tx) {
		return metadata, nil
	}
	s, err := sealerFor(tx, owner, MemoryMetadata)
	if err != nil {
		return nil, err
	}
	return Sealed{MemoryMetadata.text(s, metadata) + "\n" + lookupsOf(metadata, s.Blind)}, nil
}

// SealedMetadataLength returns the length in bytes of metadata sealed by [SealMetadata].
func SealedMetadataLength(metadata string) int {
	size := func(purpose string, value []byte) []byte { // as many hashes, as long
		sum := sha256.Sum256(append([]byte(purpose), value...))
		return sum[:16]
	}
	return SealedLength(len(metadata)) + len("\n") + len(lookupsOf(metadata, size))
}

type blind func(purpose string, value []byte) []byte

// lookupsOf returns the lookups of metadata; "" if they are damaged and so have no keys.
func lookupsOf(metadata string, hash blind) string {
	var object map[string]any
	d := json.NewDecoder(strings.NewReader(metadata))
	d.UseNumber()
	if d.Decode(&object) != nil {
		return ""
	}
	lookups := make(map[string]any, len(object))
	for key, value := range object {
		lookups[lookup(hash, ownKey, key)] = blinded(hash, key, value)
	}
	text, _ := json.Marshal(lookups) // texts, lists and empty objects are always JSON
	return string(text)
}

func lookup(hash blind, purpose, value string) string {
	return base64.RawStdEncoding.EncodeToString(hash(purpose, []byte(value)))
}

// blinded returns the blinded form of a key's value: a list for a list, and for a value that cannot be looked up a form
// that is not indexed either.
func blinded(hash blind, key string, value any) any {
	switch v := value.(type) {
	case nil:
		return nil
	case map[string]any:
		return struct{}{}
	case []any:
		list := make([]any, len(v))
		for i, element := range v {
			if _, nested := element.([]any); !nested {
				list[i] = blinded(hash, key, element)
			}
		}
		return list
	}
	form, _ := scalarForm(value)
	return lookup(hash, ownValue, key+"\x00"+form)
}

// scalarForm returns the same text for values that are equal to a filter: numbers by their value, booleans as 1 and 0.
func scalarForm(value any) (form string, is bool) {
	switch v := value.(type) {
	case string:
		return "t" + v, true
	case bool:
		if v {
			return "n1", true
		}
		return "n0", true
	case int64:
		return "n" + strconv.FormatInt(v, 10), true
	case json.Number:
		if i, err := v.Int64(); err == nil {
			return scalarForm(i)
		}
		if f, err := v.Float64(); err == nil {
			return scalarForm(f)
		}
		return "t" + v.String(), true
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1<<63 {
			return scalarForm(int64(v))
		}
		return "n" + strconv.FormatFloat(v, 'g', -1, 64), true
	}
	return "", false
}

// OwnLookups returns the lookup forms of a key of metadata and of its values for some owners, given as rows of users.
func OwnLookups(tx db.Tx, owners []int64, key string, values []any) (keys, found []any, err error) {
	o, is := tx.(*opening)
	if !is {
		return nil, nil, nil
	}
	for _, owner := range owners {
		s, err := o.knownSealer(owner)
		if err != nil {
			return nil, nil, err
		}
		if s == nil {
			continue
		}
		keys = append(keys, lookup(s.Blind, ownKey, key))
		for _, v := range values {
			if form, is := scalarForm(v); is {
				found = append(found, lookup(s.Blind, ownValue, key+"\x00"+form))
			}
		}
	}
	return keys, found, nil
}
