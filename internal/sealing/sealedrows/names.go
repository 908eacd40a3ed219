package sealedrows

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/souvenir-ai/souvenir/internal/db"
)

// Names, keys and tags are looked up, so equal values of an owner are sealed to equal bytes. A lookup compares with the
// sealed form for each possible owner, and with the plain value: a store may have rows from before it had keys.

// emptyStays reports whether an empty text of the column is stored as it is.
func (c SealedColumn) emptyStays() bool {
	switch c {
	case FileName, FileType, FileDescription, FileCategory, FilePlaces, FileInfo, CollectionDescription, CollectionName,
		ProjectName, ProjectNameKey, MemoryKey, TurnSpeaker:
		return true
	}
	return false
}

// Forms returns the possible stored forms of values of a column that belong to some owners, given as rows of users. In
// a store without user keys, these are the values themselves.
func Forms(tx db.Tx, c SealedColumn, owners []int64, values ...string) ([]string, error) {
	o, is := tx.(*opening)
	if !is {
		return values, nil
	}
	forms := slices.Clone(values)
	for _, owner := range owners {
		s, err := o.knownSealer(owner)
		if err != nil {
			return nil, err
		}
		for _, v := range values {
			if s != nil && v != "" {
				forms = append(forms, c.text(s, v))
			}
		}
	}
	return forms, nil
}

// knownSealer returns the sealer of an owner, nil if the owner has no key.
func (o *opening) knownSealer(owner int64) (Sealer, error) {
	if s := o.sealers[owner]; s != nil {
		return s, nil
	}
	s, looked := o.known[owner]
	if looked {
		return s, nil
	}
	s, err := o.sealing.Known(o.Tx, owner)
	if err == nil {
		o.known[owner] = s
	}
	return s, err
}

// Is returns the condition that a column of names has an owner's value, and its argument.
func Is(tx db.Tx, c SealedColumn, owner int64, column, value string) (condition string, arg any, err error) {
	return IsAny(tx, c, []int64{owner}, column, value)
}

// IsAny is [Is] for several owners, given as rows of users, and one of several values.
func IsAny(tx db.Tx, c SealedColumn, owners []int64, column string, values ...string) (condition string, arg any,
	err error) {
	if !Seals(tx) && len(values) == 1 {
		return column + ` = ?`, values[0], nil
	}
	forms, err := Forms(tx, c, owners, values...)
	return column + ` IN ` + db.Texts, db.List(forms), err
}

// BlindNumber returns a keyed hash of a number that belongs to an owner, given as a row of users. It returns the number
// itself in a store without user keys, and for an owner without a key, who has stored no number.
func BlindNumber(tx db.Tx, owner int64, purpose string, n int64) (int64, error) {
	o, is := tx.(*opening)
	if !is {
		return n, nil
	}
	s, err := o.knownSealer(owner)
	if err != nil || s == nil {
		return n, err
	}
	return int64(binary.BigEndian.Uint64(s.Blind(purpose, binary.BigEndian.AppendUint64(nil, uint64(n))))), nil
}

// foldedSize is the length in bytes of the keyed hash for lookups without regard to case.
const foldedSize = 22

// HasTag returns the condition that a tag is one of several tags of some owners, given as rows of users, without regard
// to case; and its arguments.
func HasTag(tx db.Tx, owners []int64, column string, tags ...string) (condition string, args []any, err error) {
	condition, args = `lower(`+column+`) IN `+db.Texts, []any{db.LowerList(tags...)}
	if !Seals(tx) {
		return condition, args, nil
	}
	forms, err := Forms(tx, Tag, owners, tags...)
	var hashes []string
	for _, form := range forms {
		if strings.HasPrefix(form, Tag.mark()) {
			hashes = append(hashes, form[:len(mark)+1+foldedSize])
		}
	}
	return fmt.Sprintf(`(%s OR substr(%s, 1, %d) IN %s)`, condition, column, len(mark)+1+foldedSize, db.Texts),
		append(args, db.List(hashes)), err
}

// openText opens a text that begins with the mark: one value, or several on a line each, since sealed texts have no
// line breaks. It leaves out lines whose keys were erased.
func (o *opening) openText(text string) (string, error) {
	if strings.HasPrefix(text, MemoryMetadata.mark()) {
		text, _, _ = strings.Cut(text, "\n") // the lookups
	}
	if !strings.Contains(text, "\n") || strings.HasPrefix(text, mark+plainly) {
		plain, err := o.open([]byte(text[len(mark):]), true)
		return string(plain), err
	}
	var all strings.Builder
	for line := range strings.Lines(text) {
		value, ended := strings.CutSuffix(line, "\n")
		plain, err := []byte(value), error(nil)
		if strings.HasPrefix(value, mark) {
			plain, err = o.open([]byte(value[len(mark):]), true)
		}
		if err != nil {
			return "", err
		}
		if len(plain) == 0 {
			continue
		}
		all.Write(plain)
		if ended {
			all.WriteByte('\n')
		}
	}
	return all.String(), nil
}

// OpenTexts opens texts that were read within a list. It leaves out texts whose keys were erased.
func OpenTexts(tx db.Tx, texts []string) ([]string, error) {
	o, is := tx.(*opening)
	if !is {
		return texts, nil
	}
	plain := texts[:0]
	for _, text := range texts {
		if strings.HasPrefix(text, mark) {
			var err error
			if text, err = o.openText(text); err != nil {
				return nil, err
			}
		}
		if text != "" {
			plain = append(plain, text)
		}
	}
	return plain, nil
}
