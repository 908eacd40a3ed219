package server

import (
	"cmp"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/souvenir-ai/souvenir"
)

// pageForm is what somebody fills in, with what is wrong with it.
type pageForm struct {
	Fields []field
	Error  string // about the form as a whole; empty: nothing
}

// field is an input of a form. The template of that name shows it, with a label, and ties hint and error to it.
type field struct {
	Name, Label  string
	Type         string // text, email or password
	Value        string // not of passwords
	Autocomplete string // what a browser's own or another keeper of passwords goes by (HTML, autofill)
	Hint         string
	Error        string
	Optional     bool
	Focus        bool // begin here

	argument string // what the store calls it in errors; empty: as Name
	id       string // on the page; empty: as Name
}

// ID is the id of the input on the page.
func (f field) ID() string { return cmp.Or(f.id, f.Name) }

// Failed reports whether something is wrong with the form.
func (f pageForm) Failed() bool {
	return f.Error != "" || slices.ContainsFunc(f.Fields, func(field field) bool { return field.Error != "" })
}

// Described lists the ids of what is said about the field besides its label.
func (f field) Described() string {
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
func (f field) Plain() bool { return f.Autocomplete == "username" || f.Type == "email" }

// fill puts what was typed back into a form, but for passwords.
func (f *pageForm) fill(values func(name string) string) {
	for i := range f.Fields {
		if f.Fields[i].Type != "password" {
			f.Fields[i].Value = values(f.Fields[i].Name)
		}
	}
}

// refuse puts an error where it belongs: to the field that it is about, or over the form.
func (f *pageForm) refuse(err error) {
	_, message := told(err)
	var known *souvenir.Error
	if errors.As(err, &known) && known.Argument != "" {
		i := slices.IndexFunc(f.Fields, func(field field) bool { return known.Argument == field.argument || known.Argument == field.Name })
		if i >= 0 {
			for j := range f.Fields {
				f.Fields[j].Focus = j == i
			}
			if rest, ok := strings.CutPrefix(message, known.Argument+" "); ok {
				message = f.Fields[i].Label + " " + rest // the name that people see
			}
			f.Fields[i].Error = sentence(message)
			return
		}
	}
	f.Error = sentence(message)
}

// again shows the page of a form once more, after what was sent in it has been refused: refuse has put the error into it.
// What whoever filled it in cannot mend is an error as everywhere.
func again(p page, err error) (any, error) {
	p, err = againAs(p, err)
	if err != nil {
		return nil, err
	}
	return p, nil
}

func againAs(p page, err error) (page, error) {
	status, _ := told(err)
	switch status {
	case http.StatusBadRequest, http.StatusUnauthorized, http.StatusNotFound, http.StatusTooManyRequests:
		p.status = status
		return p, nil
	}
	if errors.Is(err, errBusy) {
		p.status = status
		return p, nil
	}
	return page{}, err
}
