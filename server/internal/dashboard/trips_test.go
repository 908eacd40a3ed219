package dashboard_test

import (
	"net/http"
	"testing"

	"github.com/souvenir-ai/souvenir/server"
	"github.com/souvenir-ai/souvenir/server/internal/servertest"
)

// Once searches run in memory and a person has opened the pages before, pages of a store in a database take no more
// round trips than before. The goal is 8 for each.
func TestPagesTakeABoundedNumberOfRoundTrips(t *testing.T) {
	servertest.NeedsDatabase(t)
	p := servertest.Template(t)
	d, trips := p.Copy(t).Counted(t)
	b := servertest.Serve(t, p, d.Open(t, nil), server.Options{}).SignedIn(servertest.Owner)
	for path, most := range map[string]int64{"/": 8, "/memories": 8, "/memories?q=tea": 8, "/projects": 8, "/files": 8,
		"/trash": 8, "/graph": 8, "/activity": 8, "/tokens": 8, "/settings": 8, "/proposals": 8} {
		for range 4 {
			b.Get(path).Expect(http.StatusOK)
		}
		got := most + 1
		for try := 0; try < 3 && got > most; try++ { // the server's own work may add some
			before := trips()
			b.Get(path)
			got = trips() - before
		}
		t.Logf("%s: %d round trips", path, got)
		if got > most {
			t.Errorf("%s: got %d round trips, want at most %d", path, got, most)
		}
	}
}
