// Package upload reads forms with files in them as they arrive (RFC 7578).
package upload

import (
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/files/chunked"
	"github.com/souvenir-ai/souvenir/internal/json/jsonobject"
	"github.com/souvenir-ai/souvenir/server/internal/failure"
)

// Limits for a form besides its file.
const (
	MaxField  = 64 << 10 // bytes of a field
	MaxFields = 1000
)

// Form is a multipart body that is read once, from front to back. Everything but the file is bounded.
type Form struct {
	*multipart.Reader
	in     io.Reader
	left   int64 // bytes still allowed outside of the file
	most   int64
	InFile bool
	fields int
}

// Open begins to read a form with at most the given number of bytes outside of its file.
func Open(r *http.Request, most int64) (*Form, error) {
	given := r.Header.Get("Content-Type")
	kind, parameters, err := mime.ParseMediaType(given)
	switch {
	case err != nil || kind != "multipart/form-data":
		return nil, failure.Invalid("Content-Type", "the body's Content-Type is "+failure.Quote(given)+
			"; expected multipart/form-data")
	case parameters["boundary"] == "":
		return nil, failure.Invalid("Content-Type",
			"the body's Content-Type has no boundary; let the program that builds the form set it")
	}
	// Package multipart accepts a form that ends in the header of a part as complete. So the body never ends by
	// itself: only the final boundary, completed by this line end, ends the form.
	body := io.MultiReader(r.Body, strings.NewReader("\r\n"), brokenOff{})
	f := &Form{in: body, left: most, most: most}
	f.Reader = multipart.NewReader(f, parameters["boundary"])
	return f, nil
}

// brokenOff follows a form without a final boundary.
type brokenOff struct{}

// Read fails: the form is truncated.
func (brokenOff) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// Read reads available data.
func (f *Form) Read(p []byte) (int, error) {
	n, err := f.in.Read(p)
	if f.InFile {
		return n, err
	}
	if f.left -= int64(n); f.left < 0 {
		return 0, &souvenir.Error{Kind: souvenir.KindTooLarge, Argument: "body",
			Message: fmt.Sprintf("the form is longer than %d bytes, the maximum besides its file", f.most)}
	}
	return n, err
}

// ReadFields reads fields up to the next file, which it returns, or to the end of the form.
func (f *Form) ReadFields(into *Fields) (*multipart.Part, error) {
	for {
		part, err := f.NextPart()
		switch {
		case err == io.EOF: //nolint:errorlint // wrapped, it is a truncated body
			return nil, nil
		case err != nil:
			return nil, failure.Unreadable(err)
		case part.FormName() == "file":
			return part, nil
		case part.FileName() != "":
			return nil, failure.Invalid(part.FormName(), "the form has a file named "+failure.Quote(part.FormName())+
				"; the file must be named \"file\"")
		}
		if f.fields++; f.fields > MaxFields {
			return nil, &souvenir.Error{Kind: souvenir.KindTooLarge, Argument: "body",
				Message: fmt.Sprintf("the form has more than %d fields, the maximum", MaxFields)}
		}
		value, err := io.ReadAll(io.LimitReader(part, MaxField+1))
		if err != nil {
			return nil, failure.Unreadable(err)
		}
		if err := into.set(part.FormName(), string(value)); err != nil {
			return nil, err
		}
	}
}

// Fields are the fields of an upload; empty means not given.
type Fields struct {
	MemoryID    string   `json:"memory_id,omitempty"`
	Description string   `json:"description,omitempty"`
	Category    string   `json:"category,omitempty"`
	ProjectID   string   `json:"project_id,omitempty"`
	ProjectName string   `json:"project_name,omitempty"`
	Tags        []string `json:"tags[],omitempty"`
	TagLists    tagLists `json:"tags,omitempty"`
}

// tagLists is the field for lists of tags, which become Tags.
type tagLists string

// set stores a field. Unknown ones are ignored.
func (f *Fields) set(name, value string) error {
	switch {
	case len(value) > MaxField:
		return &souvenir.Error{Kind: souvenir.KindTooLarge, Argument: name,
			Message: fmt.Sprintf("%s has more than %d bytes, the maximum", name, MaxField)}
	case !utf8.ValidString(value):
		return failure.Invalid(name, name+" is not valid UTF-8")
	}
	switch field := jsonobject.Fields(f)[name].(type) {
	case *string:
		if *field != "" && value != "" && *field != value {
			return failure.Invalid(name, name+" is given twice, as "+failure.Quote(*field)+" and as "+failure.Quote(value)+
				"; send it once")
		}
		if value != "" {
			*field = value
		}
	case *[]string:
		tags := []string{value} // a comma is part of a tag; a JSON list has several
		if strings.HasPrefix(strings.TrimSpace(value), "[") {
			if listed := []string{}; json.Unmarshal([]byte(value), &listed) == nil {
				tags = listed
			}
		}
		for _, tag := range tags {
			if tag != "" {
				*field = append(slices.Clip(*field), tag)
			}
		}
	case *tagLists:
		f.Tags = append(slices.Clip(f.Tags), Tags([]string{value})...)
	}
	return nil
}

// NewFile describes the file of a part.
func (f Fields) NewFile(part *multipart.Part) souvenir.NewFile {
	return souvenir.NewFile{
		Filename: part.FileName(), MIMEType: part.Header.Get("Content-Type"), Description: f.Description,
		Category: f.Category, Tags: f.Tags,
		MemoryID: f.MemoryID, ProjectID: f.ProjectID, ProjectName: f.ProjectName,
	}
}

// content is the file of a form, whose fields may also follow it.
type content struct {
	*multipart.Part
	form   *Form
	fields Fields
}

// Content is the file of a part, with all fields of the form: before it, and after it. The
// form ends with it.
func (f *Form) Content(part *multipart.Part, before Fields) chunked.Described {
	f.InFile = true
	return &content{part, f, before}
}

// Description reads what follows the file.
func (c *content) Description() (chunked.Description, error) {
	c.form.InFile = false
	second, err := c.form.ReadFields(&c.fields)
	switch {
	case err != nil:
		return chunked.Description{}, err
	case second != nil:
		return chunked.Description{}, failure.Invalid("file", "file is given twice; send one file per request")
	}
	all := c.fields
	return chunked.Description{Text: all.Description, Category: all.Category, Tags: all.Tags, MemoryID: all.MemoryID,
		ProjectID: all.ProjectID, ProjectName: all.ProjectName}, nil
}

// Tags splits lists of tags, which are comma-separated or JSON; empty tags are ignored.
func Tags(lists []string) []string {
	var tags []string
	for _, list := range lists {
		var elements []string
		if json.Unmarshal([]byte(list), &elements) != nil {
			elements = strings.Split(list, ",")
		}
		for _, tag := range elements {
			if tag = strings.TrimSpace(tag); tag != "" {
				tags = append(tags, tag)
			}
		}
	}
	return tags
}
