package servertest

import (
	"encoding/xml"
	"errors"
	"io"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// Element is an element of a page.
type Element struct {
	Name     string
	Attrs    map[string]string
	children []*Element
	Text     string // of it and everything in it
}

// parseHTML reads a page. Its templates close every element that is not always empty, so that an XML parser can read
// it.
func parseHTML(t *testing.T, page string) *Element {
	t.Helper()
	decoder := xml.NewDecoder(strings.NewReader(strings.TrimPrefix(page, "<!doctype html>")))
	decoder.Strict, decoder.AutoClose, decoder.Entity = false, xml.HTMLAutoClose, xml.HTMLEntity
	root := &Element{}
	open, begins := []*Element{root}, []int{0} // where each of them begins in text
	var text strings.Builder                   // of the page so far: that of an element is one part of it
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("the page cannot be read: %v\n%s", err, page)
		}
		switch token := token.(type) {
		case xml.StartElement:
			e := &Element{Name: token.Name.Local, Attrs: map[string]string{}}
			for _, a := range token.Attr {
				if _, twice := e.Attrs[a.Name.Local]; twice {
					t.Errorf("<%s> has %s twice, want twice = false", e.Name, a.Name.Local)
				}
				e.Attrs[a.Name.Local] = a.Value
			}
			open[len(open)-1].children = append(open[len(open)-1].children, e)
			open, begins = append(open, e), append(begins, text.Len())
		case xml.EndElement:
			if last := open[len(open)-1]; last.Name != token.Name.Local {
				t.Fatalf("</%s> ends <%s>, want the same:\n%s", token.Name.Local, last.Name, page)
			}
			n := len(open) - 1
			open[n].Text = text.String()[begins[n]:]
			open, begins = open[:n], begins[:n]
		case xml.CharData:
			text.Write(token)
		}
	}
	if len(open) != 1 {
		t.Fatalf("<%s> is not closed:\n%s; got %v, want 1", open[len(open)-1].Name, page, len(open))
	}
	root.Text = text.String()
	return root
}

// All returns the elements with some names (none: all) within another, in document order.
func (e *Element) All(names ...string) []*Element {
	var found []*Element
	for _, child := range e.children {
		if slices.Contains(names, child.Name) || len(names) == 0 {
			found = append(found, child)
		}
		found = append(found, child.All(names...)...)
	}
	return found
}

// Attr returns the value of an attribute, empty if there is none.
func (e *Element) Attr(name string) string { return e.Attrs[name] }

// Has reports whether there is an attribute.
func (e *Element) Has(name string) bool {
	_, ok := e.Attrs[name]
	return ok
}

// Fields returns the fields that a browser would send of an unchanged form, without its buttons.
func (e *Element) Fields() url.Values {
	fields := url.Values{}
	for _, input := range e.All("input", "select") {
		switch {
		case input.Name == "select":
			for i, option := range input.All("option") {
				if i == 0 || option.Has("selected") {
					fields.Set(input.Attr("name"), option.Attr("value"))
				}
			}
		case (input.Attr("type") == "checkbox" || input.Attr("type") == "radio") && !input.Has("checked"):
		default:
			fields.Add(input.Attr("name"), input.Attr("value"))
		}
	}
	return fields
}
