// Package valid validates values: the limits of memories, and the form of names, texts and tags. Its errors come from
// package [fault].
package valid

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/souvenir-ai/souvenir/internal/fault"
	"github.com/souvenir-ai/souvenir/internal/foldname"
)

// Limits of a memory.
const (
	MaxContent  = 1 << 20   // bytes of content
	MaxMetadata = 64 << 10  // bytes of metadata, as JSON
	MaxTags     = 64        // tags of a memory
	MaxTag      = 128       // characters of a tag
	MaxRelated  = 256       // related memories of a memory
	MaxWord     = 64        // characters of event_type and of state
	MaxName     = 128       // characters of the names of collections and projects, and of ids
	MaxDepth    = 64        // nesting of metadata
	MaxVector   = 16 * 1024 // dimensions
)

// Limits of rules for how long memories stay.
const (
	MinRetention = 24 * time.Hour
	MaxRetention = 36_500 * 24 * time.Hour
)

// NewContent checks content to be stored. Older files may hold memories of white space only, which Content allows.
func NewContent(content string) error {
	if content != "" && len(content) <= MaxContent && Blank(content) {
		return fault.Invalid("content", "{} is %s, white space only; expected text to remember",
			fault.Show(content))
	}
	return Content(content)
}

// Blank reports whether a text is invisible: it has only white space and invisible characters.
func Blank(text string) bool {
	return strings.IndexFunc(text, func(r rune) bool {
		return !unicode.IsSpace(r) && !unicode.Is(unicode.Cf, r)
	}) < 0
}

// Content checks the content of a stored memory.
func Content(content string) error {
	switch {
	case content == "":
		return fault.Invalid("content", "{} is empty; expected 1 byte to %d bytes", MaxContent)
	case len(content) > MaxContent:
		return fault.New(fault.KindTooLarge, "content", "{} is %d bytes; at most %d are allowed", len(content),
			MaxContent)
	}
	return Text("content", content)
}

// CanonicalID returns an id as the store writes it: UUIDs are written in lower case and read in any (RFC 9562,
// section 4).
func CanonicalID(id string) string {
	if len(id) == 36 && uuid.Validate(id) == nil {
		return strings.ToLower(id)
	}
	return id
}

// UTF8 checks that a text is UTF-8.
func UTF8(argument, value string) error {
	if utf8.ValidString(value) {
		return nil
	}
	return NotUTF8(argument, value)
}

// Text checks a text to be stored: UTF-8 without U+0000, which PostgreSQL cannot hold (its manual,
// section 8.3).
func Text(argument, value string) error {
	if at := strings.IndexByte(value, 0); at >= 0 {
		return fault.Invalid(argument, "{} has the character U+0000 at offset %d, which is not allowed in text; remove it",
			at)
	}
	return UTF8(argument, value)
}

// NotUTF8 returns the error for a text, with the place where it stops being UTF-8.
func NotUTF8(argument, value string) *fault.Error {
	at := 0
	for at < len(value) {
		r, size := utf8.DecodeRuneInString(value[at:])
		if r == utf8.RuneError && size == 1 {
			break
		}
		at += size
	}
	return fault.Invalid(argument, "{} is not valid UTF-8: byte 0x%02x at offset %d", value[at], at)
}

// Word checks a free word, such as an event type.
func Word(argument, value string) error { return fault.OrNil(Line(argument, value, MaxWord)) }

// Name checks the name of a collection, a project or a user, or an id.
func Name(argument, value string) error { return fault.OrNil(Line(argument, value, MaxName)) }

// ProjectID checks a project's id, or OWNER/ID in its place.
func ProjectID(id string) error {
	if strings.Contains(id, "/") {
		return fault.OrNil(Line("project_id", id, 2*MaxName+1))
	}
	return Name("project_id", id)
}

// Project checks a reference to a project; either part may be empty.
func Project(id, name string) error {
	if id != "" {
		if err := ProjectID(id); err != nil {
			return err
		}
	}
	if name != "" {
		return ProjectName("project_name", name)
	}
	return nil
}

// ProjectName checks the name of a project.
func ProjectName(argument, name string) error {
	if err := Name(argument, name); err != nil {
		return err
	}
	if foldname.Key(name) == "" {
		return fault.Invalid(argument, "{} is %s; it needs a visible character", fault.Show(name))
	}
	return nil
}

// Line checks a short text: not blank, no control characters, and not longer than most characters.
func Line(argument, value string, most int) *fault.Error {
	if !utf8.ValidString(value) {
		return NotUTF8(argument, value)
	}
	if strings.TrimSpace(value) == "" {
		return fault.Invalid(argument, "{} is %s; expected 1 to %d characters", fault.Show(value), most)
	}
	if n := utf8.RuneCountInString(value); n > most {
		return fault.New(fault.KindTooLarge, argument, "{} is %d characters long (%s); at most %d are allowed", n,
			fault.Show(value), most)
	}
	for _, r := range value {
		if unicode.IsControl(r) {
			return fault.Invalid(argument, "{} is %s, which contains the control character %U; remove it",
				fault.Show(value), r)
		}
	}
	return nil
}

// Enum checks that a value is empty or one of the allowed ones.
func Enum[S ~string](argument string, value S, allowed []S) error {
	if value == "" || slices.Contains(allowed, value) {
		return nil
	}
	return fault.Invalid(argument, "{} is %s; expected %s", fault.Show(string(value)), fault.OneOf(allowed))
}

// Tags returns the tags in their stored form: trimmed and without duplicates.
func Tags(tags []string, most int) ([]string, error) {
	trimmed := make([]string, len(tags))
	for i, tag := range tags {
		trimmed[i] = strings.TrimSpace(tag)
		if err := Line(fmt.Sprintf("tags[%d]", i), cmp.Or(trimmed[i], tag), MaxTag); err != nil {
			err.Argument = "tags"
			return nil, err
		}
	}
	trimmed = Distinct(trimmed)
	if len(trimmed) > most {
		return nil, fault.New(fault.KindTooLarge, "tags", "{} has %d tags; at most %d are allowed", len(trimmed), most)
	}
	return trimmed, nil
}

// Distinct returns a copy of values without repetitions, in the order of first appearance; nil for none.
func Distinct(values []string) []string {
	var kept []string
	seen := make(map[string]bool, len(values))
	for _, v := range values {
		if !seen[v] {
			seen[v] = true
			kept = append(kept, v)
		}
	}
	return kept
}
