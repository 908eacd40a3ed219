package web

import (
	"cmp"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/failure"
)

// Form is what somebody fills in, with what is wrong with it.
type Form struct {
	Fields []Field
	Error  string // about the form as a whole; empty: nothing
}

// Field is an input of a form. The template of that name shows it, with a label, and ties hint and error to it.
type Field struct {
	Name, Label  string
	Type         string // text, email or password
	Value        string // not of passwords
	Autocomplete string // what a browser's own or another keeper of passwords goes by (HTML, autofill)
	Hint         string
	Error        string
	Optional     bool
	Focus        bool // begin here

	Argument  string // what the store calls it in errors; empty: as Name
	ElementID string // on the page; empty: as Name
}

// ID is the id of the input on the page.
func (f Field) ID() string { return cmp.Or(f.ElementID, f.Name) }

// Failed reports whether something is wrong with the form.
func (f Form) Failed() bool {
	return f.Error != "" || slices.ContainsFunc(f.Fields, func(field Field) bool { return field.Error != "" })
}

// Described lists the ids of what is said about the field besides its label.
func (f Field) Described() string {
	var ids []string
	if f.Hint != "" {
		ids = append(ids, f.ID()+"-hint")
	}
	if f.Error != "" {
		ids = append(ids, f.ID()+"-wrong")
	}
	return strings.Join(ids, " ")
}

// Plain reports whether the field holds a name or an address, which is no language that a keyboard could mend.
func (f Field) Plain() bool { return f.Autocomplete == "username" || f.Type == "email" }

// Fill puts what was typed back into a form, but for passwords.
func (f *Form) Fill(values func(name string) string) {
	for i := range f.Fields {
		if f.Fields[i].Type != "password" {
			f.Fields[i].Value = values(f.Fields[i].Name)
		}
	}
}

// Refuse puts an error where it belongs: to the field that it is about, or over the form.
func (f *Form) Refuse(err error) {
	_, message := failure.Describe(err)
	var known *souvenir.Error
	if errors.As(err, &known) && known.Argument != "" {
		i := slices.IndexFunc(f.Fields,
			func(field Field) bool { return known.Argument == field.Argument || known.Argument == field.Name })
		if i >= 0 {
			for j := range f.Fields {
				f.Fields[j].Focus = j == i
			}
			if rest, ok := strings.CutPrefix(message, known.Argument+" "); ok {
				message = f.Fields[i].Label + " " + rest // the name that people see
			}
			f.Fields[i].Error = Sentence(message)
			return
		}
	}
	f.Error = Sentence(message)
}

// Again shows the page of a form once more, after what was sent in it has been refused: refuse has put the error into
// it. What whoever filled it in cannot mend is an error as everywhere.
func Again(p Page, err error) (any, error) {
	p, err = AgainAs(p, err)
	if err != nil {
		return nil, err
	}
	return p, nil
}

// AgainAs is Again for a page that is changed further.
func AgainAs(p Page, err error) (Page, error) {
	status, _ := failure.Describe(err)
	switch status {
	case http.StatusBadRequest, http.StatusUnauthorized, http.StatusNotFound, http.StatusTooManyRequests:
		p.Status = status
		return p, nil
	}
	if errors.Is(err, ErrBusy) {
		p.Status = status
		return p, nil
	}
	return Page{}, err
}

// LaneRetry is after how many seconds a sign-in may be tried again that found no place.
const LaneRetry = 5

// ErrBusy says that a lane is full.
var ErrBusy = &failure.Error{Status: http.StatusServiceUnavailable,
	Message: "many people are signing in at the moment; wait " + strconv.Itoa(LaneRetry) + " seconds, then try again"}
