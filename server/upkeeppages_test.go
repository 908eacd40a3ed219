package server_test

import (
	"github.com/souvenir-ai/souvenir"
)

// furnishUpkeep gives the pages something to show.
func (w *world) furnishUpkeep(map[string]string) {
	w.t.Helper()
	ada := w.store.As(souvenir.Access{User: w.users[admin]})
	for _, name := range []string{hostile, "Second"} {
		if _, err := ada.AddClient(w.t.Context(), souvenir.NewClient{Name: name, RedirectURIs: []string{"https://app.example/b?c=%3Cb%3E"}}); err != nil {
			w.t.Fatal(err)
		}
	}
}

// textOf is the text of what has an id; empty if nothing has.
func (p *shownPage) textOf(id string) string {
	for _, e := range p.html.all() {
		if e.attr("id") == id {
			return e.text
		}
	}
	return ""
}
