package dashboard_test

import (
	"github.com/souvenir-ai/souvenir/server/internal/servertest"
)

// textOf returns the text of the element with an id, or "".
func textOf(p *servertest.Page, id string) string {
	for _, e := range p.HTML.All() {
		if e.Attr("id") == id {
			return e.Text
		}
	}
	return ""
}

// landsAt follows a redirect to an address with the given beginning.
func landsAt(b *servertest.Browser, p *servertest.Page, address string) *servertest.Page {
	b.W.T.Helper()
	p.GoesTo(address)
	return b.Get(p.Header.Get("Location"))
}
