package souvenir

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/souvenir-ai/souvenir/internal/foldname"
)

// Limits of what a memory may hold.
const (
	MaxContent  = 1 << 20   // bytes of content
	MaxMetadata = 64 << 10  // bytes of metadata, as JSON
	MaxTags     = 64        // tags of a memory
	MaxTag      = 128       // characters of a tag
	MaxRelated  = 256       // related memories of a memory
	MaxWord     = 64        // characters of event_type and of state
	maxName     = 128       // characters of the names of collections and projects, and of ids
	maxDepth    = 64        // nesting of metadata
	maxVector   = 16 * 1024 // dimensions
)

// checkNewContent checks what is to be stored. Files from before may hold memories of white space only, which checkContent
// allows.
func checkNewContent(content string) error {
	if content != "" && len(content) <= MaxContent && isBlank(content) {
		return invalid("content", "content is %s, white space only; something to remember is needed", show(content))
	}
	return checkContent(content)
}

// isBlank reports whether a text shows nothing: white space, and characters that are not seen.
func isBlank(text string) bool {
	return strings.IndexFunc(text, func(r rune) bool {
		return !unicode.IsSpace(r) && !unicode.Is(unicode.Cf, r)
	}) < 0
}

func checkContent(content string) error {
	switch {
	case content == "":
		return invalid("content", "content is empty; 1 byte to %d bytes are allowed", MaxContent)
	case len(content) > MaxContent:
		return newError(KindTooLarge, "content", "content is %d bytes; at most %d are allowed", len(content), MaxContent)
	}
	return checkUTF8("content", content)
}

// canonicalID is an id as the store writes it: UUIDs are written in lower case and read in any (RFC 9562, section 4).
func canonicalID(id string) string {
	if len(id) == 36 && uuid.Validate(id) == nil {
		return strings.ToLower(id)
	}
	return id
}

func checkUTF8(argument, value string) error {
	if utf8.ValidString(value) {
		return nil
	}
	return notUTF8(argument, value)
}

// notUTF8 says where a text stops being UTF-8.
func notUTF8(argument, value string) *Error {
	at := 0
	for at < len(value) {
		r, size := utf8.DecodeRuneInString(value[at:])
		if r == utf8.RuneError && size == 1 {
			break
		}
		at += size
	}
	return invalid(argument, "%s is not valid UTF-8: byte 0x%02x at offset %d", argument, value[at], at)
}

// checkWord checks a free word, such as an event type.
func checkWord(argument, value string) error { return orNil(checkLine(argument, value, MaxWord)) }

// checkName checks the name of a collection, a project or a user, or an id.
func checkName(argument, value string) error { return orNil(checkLine(argument, value, maxName)) }

// checkProjectID checks an id, or OWNER/ID, in the place of a project's id.
func checkProjectID(id string) error {
	if strings.Contains(id, "/") {
		return orNil(checkLine("project_id", id, 2*maxName+1))
	}
	return checkName("project_id", id)
}

// checkProject checks how a project is named; either may be empty.
func checkProject(id, name string) error {
	if id != "" {
		if err := checkProjectID(id); err != nil {
			return err
		}
	}
	if name != "" {
		return checkProjectName("project_name", name)
	}
	return nil
}

// checkProjectName checks the name of a project.
func checkProjectName(argument, name string) error {
	if err := checkName(argument, name); err != nil {
		return err
	}
	if foldname.Key(name) == "" {
		return invalid(argument, "%s is %s; it needs a character that can be seen", argument, show(name))
	}
	return nil
}

// checkLine checks a short text: not blank, no control characters, so many characters at most.
func checkLine(argument, value string, most int) *Error {
	if !utf8.ValidString(value) {
		return notUTF8(argument, value)
	}
	if strings.TrimSpace(value) == "" {
		return invalid(argument, "%s is %s; 1 to %d characters are needed", argument, show(value), most)
	}
	if n := utf8.RuneCountInString(value); n > most {
		return newError(KindTooLarge, argument, "%s is %d characters long (%s); at most %d are allowed", argument, n, show(value), most)
	}
	for _, r := range value {
		if unicode.IsControl(r) {
			return invalid(argument, "%s is %s, which contains the control character %U; none is allowed", argument, show(value), r)
		}
	}
	return nil
}

func checkEnum[S ~string](argument string, value S, allowed []S) error {
	if value == "" || slices.Contains(allowed, value) {
		return nil
	}
	return invalid(argument, "%s is %s; allowed are %s", argument, show(string(value)), oneOf(allowed))
}

// checkTags returns the tags in their stored form: trimmed, and each once.
func checkTags(tags []string, most int) ([]string, error) {
	trimmed := make([]string, len(tags))
	for i, tag := range tags {
		trimmed[i] = strings.TrimSpace(tag)
		if err := checkLine(fmt.Sprintf("tags[%d]", i), cmp.Or(trimmed[i], tag), MaxTag); err != nil {
			err.Argument = "tags"
			return nil, err
		}
	}
	trimmed = distinct(trimmed)
	if len(trimmed) > most {
		return nil, newError(KindTooLarge, "tags", "tags has %d tags; at most %d are allowed", len(trimmed), most)
	}
	return trimmed, nil
}

// distinct returns a copy of values without repetitions, in the order of first appearance; nil for none.
func distinct(values []string) []string {
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
