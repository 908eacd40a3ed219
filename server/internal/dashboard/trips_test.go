package dashboard_test

import (
	"net/http"
	"testing"

	"github.com/souvenir-ai/souvenir/server"
	"github.com/souvenir-ai/souvenir/server/internal/servertest"
)

// Pages of a store in a database take no more round trips to it than they did, once what they search is in memory. The
// goal is 8 for each.
func TestPagesTakeABoundedNumberOfRoundTrips(t *testing.T) {
	servertest.NeedsDatabase(t)
	p := servertest.Template(t)
	d, trips := p.Copy(t).Counted(t)
	b := servertest.Serve(t, p, d.Open(t, nil), server.Options{}).SignedIn(servertest.Owner)
	for path, most := range map[string]int64{"/": 40, "/memories": 33, "/memories?q=tea": 43, "/projects": 31, "/files": 20,
		"/trash": 14, "/graph": 15, "/activity": 18, "/tokens": 15, "/settings": 13, "/proposals": 16} {
		b.Get(path).Expect(http.StatusOK)
		got := most + 1
		for try := 0; try < 3 && got > most; try++ { // the server's own work may come in between
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
