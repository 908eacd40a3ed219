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

// Form is a form with its errors.
type Form struct {
	Fields []Field
	Error  string // about the whole form; empty: none
}

// Field is an input of a form. The template of that name renders it with a label, and links hint and error to it.
type Field struct {
	Name, Label  string
	Type         string // text, email or password
	Value        string // omitted for passwords
	Autocomplete string // for password managers (HTML, autofill)
	Hint         string
	Error        string
	Optional     bool
	Focus        bool // gets the focus

	Argument  string // its name in the store's errors; empty: as Name
	ElementID string // on the page; empty: as Name
}

// ID is the id of the input on the page.
func (f Field) ID() string { return cmp.Or(f.ElementID, f.Name) }

// Failed reports whether the field has an error.
func (f Form) Failed() bool {
	return f.Error != "" || slices.ContainsFunc(f.Fields, func(field Field) bool { return field.Error != "" })
}

// Described lists the ids of the texts that describe the field besides its label.
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

// Plain reports whether the field holds a name or an address, which keyboards should not correct.
func (f Field) Plain() bool { return f.Autocomplete == "username" || f.Type == "email" }

// Fill puts the submitted values back into a form, except passwords.
func (f *Form) Fill(values func(name string) string) {
	for i := range f.Fields {
		if f.Fields[i].Type != "password" {
			f.Fields[i].Value = values(f.Fields[i].Name)
		}
	}
}

// Refuse sets an error at the field that it is about, or else on the form.
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
				message = f.Fields[i].Label + " " + rest // the label on the page
			}
			f.Fields[i].Error = Sentence(message)
			return
		}
	}
	f.Error = Sentence(message)
}

// Again shows a form's page again after an error, which refuse has put into it. An error that the user cannot fix is
// returned unchanged.
func Again(p Page, err error) (any, error) {
	p, err = AgainAs(p, err)
	if err != nil {
		return nil, err
	}
	return p, nil
}

// AgainAs is Again for a page that the caller changes further.
func AgainAs(p Page, err error) (Page, error) {
	status, _ := failure.Describe(err)
	switch status {
	case http.StatusBadRequest, http.StatusUnauthorized, http.StatusNotFound, http.StatusTooManyRequests:
		p.Status = status
		return p, nil
	}
	// Input is not lost while the store takes no writes.
	if errors.Is(err, ErrBusy) || errors.Is(err, souvenir.ErrReadOnly) || errors.Is(err, souvenir.ErrFull) {
		p.Status = status
		return p, nil
	}
	return Page{}, err
}

// LaneRetry is the number of seconds after which to retry a sign-in that found no place.
const LaneRetry = 5

// ErrBusy is the error of a full lane.
var ErrBusy = &failure.Error{Status: http.StatusServiceUnavailable,
	Message: "too many people are signing in right now; wait " + strconv.Itoa(LaneRetry) + " seconds, then try again"}
