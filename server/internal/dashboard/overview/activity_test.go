package overview

import (
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir/server/internal/web"
)

// In Havana midnight of 8 March 2026 is skipped.
func TestCallsOfADayWithoutMidnight(t *testing.T) {
	havana, err := time.LoadLocation("America/Havana")
	if err != nil {
		t.Fatal(err)
	}
	q, err := activityFilter{Since: "2026-03-08", Until: "2026-03-08"}.query(web.Zone{Location: havana})
	if err != nil {
		t.Fatal(err)
	}
	const wantSince, wantUntil = "2026-03-08T01:00:00-04:00", "2026-03-09T00:00:00-04:00"
	since, until := q.Since.Format(time.RFC3339), q.Until.Format(time.RFC3339)
	if since != wantSince || until != wantUntil {
		t.Errorf("got calls from %s to %s, want %s to %s", since, until, wantSince, wantUntil)
	}
}
