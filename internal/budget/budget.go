// Package budget fits JSON values into a token budget: it shortens texts and truncates lists.
package budget

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/souvenir-ai/souvenir/internal/shorten"
)

// BytesPerToken is the estimated size of a token: the usual rule of thumb for English text.
const BytesPerToken = 4

// MinShown is the number of bytes of a piece's text worth showing. Before its text gets shorter, a piece loses its
// other fields.
const MinShown = 120

// Size is the length of a value as JSON.
func Size(v any) int {
	encoded, err := json.Marshal(v)
	if err != nil {
		return 0
	}
	return len(encoded)
}

// Tokens returns the size in tokens of an answer that contains this number; size is the length of its JSON with the
// number 0.
func Tokens(size int) int {
	size-- // without the digit
	tokens := 0
	for {
		n := (size + len(strconv.Itoa(tokens)) + BytesPerToken - 1) / BytesPerToken
		if n <= tokens {
			return tokens
		}
		tokens = n
	}
}

// Fitting returns the beginning of a list whose JSON has at most room bytes.
func Fitting[T any](list []T, room int) []T {
	for i := range list {
		if room -= Size(list[i]) + len(`,`); room < 0 {
			return list[:i:i]
		}
	}
	return list
}

// Piece is something whose JSON can be made shorter.
type Piece interface {
	Text() string
	Cut(text string) // replaces the text by a beginning of it, and marks the piece as truncated
	Strip()          // drops everything but the text and what identifies the piece
}

// PieceOf returns a piece of an answer: a pointer to it, to its text, and to the mark that it is truncated; strip drops
// the rest.
func PieceOf(value any, text *string, truncated *bool, strip func()) Piece {
	return piece{value, text, truncated, strip}
}

type piece struct {
	value     any
	text      *string
	truncated *bool
	strip     func()
}

func (p piece) Text() string { return *p.text }

func (p piece) Cut(text string) { *p.text, *p.truncated = text, true }

func (p piece) Strip() { p.strip() }

func (p piece) MarshalJSON() ([]byte, error) { return json.Marshal(p.value) }

// Within shortens a piece until its JSON has at most most bytes: it cuts the text and, if little of that would remain,
// strips the piece. Its identifying fields stay, so the result may still be larger.
func Within(p Piece, most int) {
	if Size(p) <= most {
		return
	}
	whole := p.Text()
	p.Cut("")
	if most-Size(p) < min(MinShown, len(whole)) {
		p.Strip()
	}
	room := most - Size(p)
	for characters := room; characters > 0; {
		text := shorten.Words(whole, characters)
		size := Size(text) - len(`""`)
		if size <= room {
			p.Cut(text)
			return
		}
		characters = min(characters-1, characters*room/size) // some bytes take more room in JSON
	}
}

// Part is a piece that an answer must contain, even if shortened.
type Part struct {
	Name, ID string
	Piece
}

// Share shortens parts to a total size. Longer parts get the room that short ones do not need. It returns the shortened
// parts and the remaining size.
func Share(parts []Part, room int) (shortened []Part, left int) {
	parts = slices.Clone(parts)
	slices.SortStableFunc(parts, func(a, b Part) int { return cmp.Compare(Size(a.Piece), Size(b.Piece)) })
	for i, p := range parts {
		if share := room / (len(parts) - i); Size(p.Piece) > share {
			Within(p.Piece, share)
			shortened = append(shortened, p)
		}
		room -= Size(p.Piece)
	}
	return shortened, room
}

// FitList keeps pieces of a list while there is room, and shortens the one that exceeds the remaining room. The
// function converts an element to a piece.
func FitList[T any](list []T, room int, piece func(*T) Piece) (kept []T, left, roomLeft int) {
	kept = []T{}
	for i, m := range list {
		room-- // for the comma
		if Size(m) > room {
			bare := m
			piece(&bare).Cut("")
			piece(&bare).Strip()
			if room-Size(bare) < MinShown {
				return kept, len(list) - i, 0
			}
			Within(piece(&m), room)
		}
		room -= Size(m)
		kept = append(kept, m)
	}
	return kept, 0, room
}

// ShortenedWarning returns a warning that names the shortened parts.
func ShortenedWarning(budget int, parts []Part) string {
	names := make([]string, len(parts))
	for i, p := range parts {
		names[i] = p.Name + " (" + p.ID + ")"
	}
	slices.Sort(names)
	return fmt.Sprintf("token_budget %d: shortened %s; retrieve them by id to read them in full", budget,
		strings.Join(names, ", "))
}

// LeftOut describes how much of a list does not fit.
type LeftOut struct {
	List  string
	Count int
}

// LeftOutWarning returns a warning about the left out elements.
func LeftOutWarning(budget int, lists ...LeftOut) string {
	var names []string
	for _, l := range lists {
		if l.Count > 0 {
			names = append(names, fmt.Sprintf("%d of %s", l.Count, l.List))
		}
	}
	return fmt.Sprintf("token_budget %d: left out %s; give a larger one, or search for them", budget,
		strings.Join(names, ", "))
}

// Answer is an answer that is fitted into a budget of tokens: parts that it must contain, one that it may contain, and
// lists, in the order in which they get room.
type Answer[T any] struct {
	Tokens   int
	Parts    []Part
	Optional Optional
	Lists    []List[T]
	Piece    func(*T) Piece
}

// Optional is a part that is left out if there is no room for it.
type Optional struct {
	Name string
	Size int    // of its JSON, with its name and a comma; 0: there is none
	Drop func() // leaves it out
}

// List is a list of an answer.
type List[T any] struct {
	Name  string
	Items *[]T // a nil list stays nil
}

// Fit shortens the answer, and returns warnings about it. The function returns the tokens of an answer with warnings
// alone, without parts and lists.
func (a Answer[T]) Fit(bare func(warnings ...string) int) (warnings []string) {
	left := []LeftOut{{a.Optional.Name, 1}}
	for _, l := range a.Lists {
		left = append(left, LeftOut{l.Name, len(*l.Items)})
	}
	// the longest possible warnings
	room := BytesPerToken * (a.Tokens - bare(ShortenedWarning(a.Tokens, a.Parts), LeftOutWarning(a.Tokens, left...)))
	shortened, room := Share(a.Parts, room)
	left[0].Count = 0
	switch size := a.Optional.Size; {
	case size == 0:
	case size > room:
		a.Optional.Drop()
		left[0].Count = 1
	default:
		room -= size
	}
	for i, l := range a.Lists {
		left[i+1].Count = 0
		if *l.Items != nil {
			*l.Items, left[i+1].Count, room = FitList(*l.Items, room, a.Piece)
		}
	}
	if len(shortened) > 0 {
		warnings = append(warnings, ShortenedWarning(a.Tokens, shortened))
	}
	if slices.ContainsFunc(left, func(l LeftOut) bool { return l.Count > 0 }) {
		warnings = append(warnings, LeftOutWarning(a.Tokens, left...))
	}
	return warnings
}
