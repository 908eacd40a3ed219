package overview

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/dashboard/textview"
	"github.com/souvenir-ai/souvenir/server/internal/request"
)

// change is the effect of an update on a memory.
type change struct {
	Text       bool
	Gone, Come string   // the first words of the text that differ, or else the values of the first key
	Keys       []string // of the metadata that differ
}

const (
	mostChanged  = 20      // memories whose versions are compared for a page
	mostVersions = 4 << 20 // bytes of their versions, about
	leastVersion = 200     // bytes of a version without text
	changeLength = 80      // characters
	changeBytes  = 4 << 10 // of the differences between two texts
)

// changesOf returns the changes that the reader's own updates made, by the ids of the calls, as far as the versions are
// kept. The histories are the approximate sizes, in bytes, of all versions of each memory: much longer ones are not
// read.
func changesOf(ctx context.Context, c request.Caller, all []souvenir.Activity, histories map[string]int) (
	map[string]*change, error) {
	changes, known, left := map[string]*change{}, map[string][]souvenir.Revision{}, mostVersions
	var updates []souvenir.Activity
	for _, a := range all {
		if a.User != c.User.ID || a.MemoryID == "" || a.Outcome != souvenir.OutcomeOK || deedOf(a).did != "updated" {
			continue
		}
		_, read := known[a.MemoryID]
		if size, is := histories[a.MemoryID]; is && !read && len(known) < mostChanged && size <= left {
			left -= size
			versions, err := c.Store.Revisions(ctx, a.MemoryID)
			if err != nil && !isUnknown(err) {
				return nil, err
			}
			known[a.MemoryID] = versions
		}
		updates = append(updates, a)
	}
	taken := map[versionKey]bool{}
	for _, most := range []time.Duration{inexact, late} { // the exact ones first
		for _, a := range updates {
			versions := known[a.MemoryID]
			free := func(i int) bool { return !taken[versionKey{a.MemoryID, i}] }
			if i := versionOf(a, versions, most, free); changes[a.ID] == nil && i >= 0 {
				changes[a.ID], taken[versionKey{a.MemoryID, i}] = changeBetween(versions[i+1], versions[i]), true
			}
		}
	}
	return changes, nil
}

// versionKey is the place of a version of a memory, among all from the newest one.
type versionKey struct {
	memory string
	place  int
}

const (
	inexact = time.Millisecond // by which a version may seem to be later than its call: times are rounded

	// late is by how much a version may seem to be earlier: a call is recorded when its answer has been sent, which on a
	// busy machine is some time after its end, and only its duration is measured.
	late = time.Second
)

// versionOf returns the place of the free version that an update made, among all from the newest one; -1: none is
// known. If several were made at about that time, as by calls in quick succession, it is the nearest.
func versionOf(a souvenir.Activity, versions []souvenir.Revision, most time.Duration, free func(int) bool) int {
	ended := a.StartedAt.Add(time.Duration(a.DurationMS * float64(time.Millisecond)))
	place, nearest := -1, most
	for i := 0; i+1 < len(versions); i++ {
		made := versions[i].CreatedAt
		if versions[i+1].Number+1 != versions[i].Number || made.Sub(ended) >= inexact || !free(i) {
			continue // the one before is not kept, or cannot be seen; or another call has made it
		}
		if off := max(a.StartedAt.Sub(made), made.Sub(ended), 0); off < nearest {
			place, nearest = i, off
		}
	}
	return place
}

func changeBetween(before, after souvenir.Revision) *change {
	made := &change{Text: before.Content != after.Content}
	if made.Text {
		made.Gone, made.Come = firstWords(textview.Compare(before.Content, after.Content, changeBytes))
	}
	keys := maps.Clone(before.Metadata)
	maps.Copy(keys, after.Metadata)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		old, now := before.Metadata[key], after.Metadata[key]
		if reflect.DeepEqual(old, now) {
			continue
		}
		if made.Keys = append(made.Keys, strings.ReplaceAll(key, "_", " ")); len(made.Keys) == 1 && !made.Text {
			made.Gone, made.Come = valueOf(old), valueOf(now)
		}
	}
	return made
}

func valueOf(value any) string {
	if value == nil {
		return ""
	}
	return textview.Clip(textview.Plain(value), changeLength)
}

// firstWords returns the first words that were removed, and the first that were added; none for texts that are too long
// to compare.
func firstWords(d *textview.Diff) (gone, come string) {
	for _, line := range d.Lines {
		first, whole := "", ""
		for _, span := range line.Spans {
			whole += span.Text
			if span.Changed && first == "" && strings.ContainsFunc(span.Text, isLetterOrDigit) {
				first = span.Text
			}
		}
		if len(line.Spans) == 1 { // the whole line differs
			first = whole
		}
		first = textview.Clip(strings.TrimSpace(first), changeLength)
		switch {
		case line.Kind == "gone" && gone == "":
			gone = first
		case line.Kind == "new" && come == "":
			come = first
		}
	}
	return gone, come
}

func isLetterOrDigit(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// of names the changed parts as the object of a sentence, such as "the text and tags of".
func (c *change) of() string {
	parts := c.Keys
	if c.Text {
		parts = append([]string{"text"}, parts...)
	}
	switch n := len(parts); {
	case n == 0:
		return ""
	case n == 1:
		return " the " + parts[0] + " of"
	case n > 3 && c.Text:
		return " the text and metadata of"
	case n > 3:
		return " the metadata of"
	default:
		return " the " + strings.Join(parts[:n-1], ", ") + " and " + parts[n-1] + " of"
	}
}
