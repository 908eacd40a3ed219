package server_test

import (
	"github.com/souvenir-ai/souvenir"
)

// furnishUpkeep gives the pages something to show.
func (w *world) furnishUpkeep(map[string]string) {
	w.t.Helper()
	ada := w.store.As(souvenir.Access{User: w.users[admin]})
	for _, name := range []string{hostile, "Second"} {
		if _, err := ada.Accounts().AddClient(w.t.Context(),
			souvenir.NewClient{Name: name, RedirectURIs: []string{"https://app.example/b?c=%3Cb%3E"}}); err != nil {
			w.t.Fatal(err)
		}
	}
	if _, err := ada.SetPreferences(w.t.Context(),
		map[string]any{hostile: hostile, "size": 3, "list": []any{hostile, map[string]any{"a": nil}}}); err != nil {
		w.t.Fatal(err)
	}
}

// textOf is the text of what has an id; empty if nothing has.
func (p *gotPage) textOf(id string) string {
	for _, e := range p.html.all() {
		if e.attr("id") == id {
			return e.text
		}
	}
	return ""
}

// landsAt follows a redirect to an address of which the beginning is known.
func (b *browser) landsAt(p *gotPage, address string) *gotPage {
	b.w.t.Helper()
	p.goesTo(address)
	return b.get(p.header.Get("Location"))
}
