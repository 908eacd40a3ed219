package secrets

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir"
)

// file returns the function that treats a file, nil if files are stored as they are.
func (f *Finder) file() func(context.Context, souvenir.Operation, *souvenir.FileTexts) error {
	if f.mode == Flag {
		return nil
	}
	return func(ctx context.Context, _ souvenir.Operation, t *souvenir.FileTexts) error {
		var c collector
		f.text(&c, "filename", &t.Filename)
		f.text(&c, "description", &t.Description)
		f.text(&c, "category", &t.Category)
		f.list(&c, "tags", t.Tags)
		content := string(t.Content)
		if f.text(&c, "content", &content); content != string(t.Content) {
			t.Content = []byte(content)
		}
		if t.LongText && c.err == nil {
			c.err = &souvenir.Error{Kind: souvenir.KindInvalid, Argument: "content", Message: "content has 4 MiB or more, " +
				"and this store looks for secrets in smaller texts only; store it in parts"}
		}
		if f.mode == Refuse && t.Other != nil && c.err == nil {
			f.other(ctx, &c, t)
		}
		return c.err
	}
}

const (
	longest = 40 * time.Second // that reading a new file may take, besides the wait for others
	readers = 2                // files that are read at a time: a PDF file may take 768 MiB (package documents)
)

// other refuses a new file that is not text if there is a secret in the text that can be extracted from it, or if only
// a part of that text, or none because of an error, could be extracted. A file that has no such text is stored.
func (f *Finder) other(ctx context.Context, c *collector, t *souvenir.FileTexts) {
	if f.reader == nil {
		return
	}
	select {
	case f.reading <- struct{}{}:
		defer func() { <-f.reading }()
	case <-ctx.Done():
		c.err = ctx.Err()
		return
	}
	limited, cancel := context.WithTimeoutCause(ctx, longest, errors.New("it takes too long"))
	defer cancel()
	text, err := f.reader.ReadDocument(limited, *t.Other)
	found, whole := f.Find(text.Text)
	switch {
	case ctx.Err() != nil:
		c.err = ctx.Err()
	case limited.Err() != nil && err != nil:
		c.unread(context.Cause(limited).Error())
	case err != nil:
		c.unread(err.Error())
	case len(found) > 0:
		c.refuse("content", found[0].Rule+placeOf(text, found[0].Start))
	case !whole:
		f.unexamined(c, "content")
	case text.Truncated || text.Text != "" && text.Reason != "":
		c.unread(cmp.Or(text.Reason, "only the beginning of its text is read"))
	}
}

// unread refuses a file whose text was not read completely.
func (c *collector) unread(reason string) {
	c.err = &souvenir.Error{Kind: souvenir.KindInvalid, Argument: "content", Message: "content could not be read to its " +
		"end to look for secrets: " + reason + "; this store refuses such files"}
}

// position returns " in line N" for a place in a text of several lines.
func position(text string, at int) string {
	if !strings.Contains(text, "\n") {
		return ""
	}
	return fmt.Sprintf(" in line %d", 1+strings.Count(text[:at], "\n"))
}

// Documents returns a reader that treats secrets in the texts that another one extracts from files, before they are
// indexed. DocumentText.Reason then names the rules. With [Refuse], a text with a secret is not indexed, and the hooks
// refuse new files with one. Call it once, before the store is opened.
func (f *Finder) Documents(reader souvenir.DocumentReader) souvenir.DocumentReader {
	if f.mode == Off || reader == nil {
		return reader
	}
	f.reader = reader
	return documents{f, reader}
}

type documents struct {
	*Finder
	reader souvenir.DocumentReader
}

// ReadDocument returns the text of a document, with secrets treated.
func (d documents) ReadDocument(ctx context.Context, document souvenir.Document) (souvenir.DocumentText, error) {
	t, err := d.reader.ReadDocument(ctx, document)
	if err != nil {
		return t, err
	}
	found, whole := d.Find(t.Text)
	if !whole && d.mode != Flag {
		return souvenir.DocumentText{Reason: "it has too much that may be a secret to look at all of it"}, nil
	}
	if len(found) == 0 && whole {
		return t, nil
	}
	text, names := mask(t.Text, found)
	if !whole {
		names = append(names, unexamined)
	}
	slices.Sort(names)
	all := strings.Join(slices.Compact(names), ", ")
	switch d.mode {
	case Refuse:
		return souvenir.DocumentText{Reason: "it has what looks like a secret (" + found[0].Rule +
			placeOf(t, found[0].Start) + "), which this store does not keep"}, nil
	case Mask:
		t.Places = moved(t, found)
		t.Text = text
		all = "masked secrets: " + all
	default:
		all = "possible secrets: " + all
	}
	if t.Reason != "" {
		all += "; " + t.Reason
	}
	t.Reason = all
	return t, nil
}

// placeOf returns " near PAGE OR LINE" for a byte of a document's text; "" if that is not known.
func placeOf(t souvenir.DocumentText, at int) string {
	after, _ := slices.BinarySearchFunc(t.Places, at+1,
		func(p souvenir.DocumentPlace, at int) int { return p.Start - at })
	if after == 0 {
		return ""
	}
	name, _, _ := strings.Cut(t.Places[after-1].Name, ",")
	if !strings.HasPrefix(name, "page ") && !strings.HasPrefix(name, "line ") {
		return ""
	}
	return " near " + name
}

// moved returns the places of a text after its secrets were masked, without those whose names have the beginning of a
// secret, such as headings.
func moved(t souvenir.DocumentText, found []Finding) (places []souvenir.DocumentPlace) {
	next, by := 0, 0
	for _, p := range t.Places {
		for ; next < len(found) && found[next].End <= p.Start; next++ {
			by += len(masked(found[next].Rule)) - (found[next].End - found[next].Start)
		}
		if next < len(found) && found[next].Start < p.Start {
			continue // it begins within a secret
		}
		if !slices.ContainsFunc(found, func(g Finding) bool {
			return strings.Contains(p.Name, t.Text[g.Start:min(g.Start+shortest, g.End)])
		}) {
			places = append(places, souvenir.DocumentPlace{Start: p.Start + by, Name: p.Name})
		}
	}
	return places
}
