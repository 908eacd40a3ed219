//go:build unix

package server_test

import (
	"fmt"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server"
	"github.com/souvenir-ai/souvenir/server/internal/servertest"
)

// BenchmarkPictures opens what the pictures of 100,000 memories load, each time after another memory that they show
// was changed. It prints medians of the processor time, in the same process as the client's:
//
//	SOUVENIR_PAGES_STORE=/tmp/pages.db go test ./server -run '^$' -bench Pictures -benchtime 15x -timeout 1h
func BenchmarkPictures(b *testing.B) {
	path, filled := filledStore(b)
	store, err := souvenir.Open(b.Context(), path, nil)
	if err != nil {
		b.Fatal(err)
	}
	at := httptest.NewServer(server.New(store, &server.Options{PublicURL: servertest.PublicAt}))
	b.Cleanup(func() { at.Close(); store.Close() })
	session, err := store.Accounts().AddSignIn(b.Context(), souvenir.NewSignIn{User: filled.User})
	if err != nil {
		b.Fatal(err)
	}
	view := store.As(souvenir.Access{User: filled.UserID})
	shown, err := view.Insights().Map(b.Context(), souvenir.MapQuery{Sample: true})
	if err != nil {
		b.Fatal(err)
	}
	changed := 0
	for _, path := range []string{"/map/data", "/graph/data", "/graph/data?limit=5000", "/memories/duplicates",
		"/graph?show=list"} {
		b.Run(path[1:], func(b *testing.B) {
			openPage(b, at, path, session.Value)
			var took []time.Duration
			for b.Loop() {
				time.Sleep(3 * time.Second) // what goes on in the background
				updateOne(b, store, view, shown.Points[changed].ID, changed)
				changed++
				before := processorTime(b)
				openPage(b, at, path, session.Value)
				took = append(took, processorTime(b)-before)
			}
			slices.Sort(took)
			b.ReportMetric(took[len(took)/2].Seconds()*1000, "ms-processor")
			fmt.Println(took)
		})
	}
}
