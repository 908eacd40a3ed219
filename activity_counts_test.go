package souvenir

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

// Stored counts of calls agree with the rows, in any time zone, while calls are recorded and the oldest or all of a
// user's calls are deleted.
func TestKeptCountsOfCallsAgreeWithTheRows(t *testing.T) {
	clock := newMovingClock(time.Date(2026, 10, 20, 9, 0, 0, 0, time.UTC))
	const keep = 6 * 24 * time.Hour
	s := openWords(t, "", Options{Now: clock.Now, KeepActivity: keep, MaxActivity: 600})
	random := rand.New(rand.NewPCG(19, 1)) //nolint:gosec // the same on each run
	user, err := s.Accounts().AddUser(t.Context(), NewUser{Name: "ann", Password: "correct horse battery"})
	if err != nil {
		t.Fatal(err)
	}
	users := []string{user.ID, LocalUser}
	for round := range longtest.Size(16, 2) {
		// On PostgreSQL it takes some time until it is known which rows come last.
		s.counts.Settles = []time.Duration{0, time.Hour, time.Nanosecond}[round%3]
		calls := make([]NewActivity, random.IntN(500))
		for i := range calls {
			calls[i] = randomCall(random, users[random.IntN(2)], clock.Now(), keep)
		}
		recordCalls(t, s, calls...)
		checkCounts(t, s, users[0], fmt.Sprint("before round ", round))
		if round%4 == 3 && len(calls) > 0 { // then only some calls of a day are too old
			clock.Pass(calls[random.IntN(len(calls))].StartedAt.Add(keep).Sub(clock.Now()))
		}
		err := s.db.Write(t.Context(), func(tx db.Tx) error {
			_, err := s.deleteOldActivities(tx, clock.Now().UnixMicro())
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, user := range users {
			checkCounts(t, s, user, fmt.Sprint("round ", round))
		}
	}
	if err := s.Accounts().DeleteUser(t.Context(), user.ID, nil); err != nil {
		t.Fatal(err)
	}
	for _, user := range users {
		checkCounts(t, s, user, "without ann")
	}
}

// With many calls that were not counted yet, an overview may have only the names of clients.
func TestOverviewsNameClientsWithoutCounting(t *testing.T) {
	s := openWords(t, "", Options{})
	at := time.Now().Truncate(time.Second).UTC()
	for i, client := range []string{"cursor/1.4", "claude-code/2.0.14", "claude-code/2.0.14"} {
		recordCalls(t, s, NewActivity{Client: client, Tool: "memory", StartedAt: at.Add(-time.Duration(i) * time.Second)})
	}
	clients := func() []ClientCount {
		o, err := s.Insights().Overview(t.Context(), OverviewQuery{ClientNames: true})
		if err != nil {
			t.Fatal(err)
		}
		return o.Clients
	}
	counted := []ClientCount{{"claude-code/2.0.14", 2, at.Add(-time.Second)}, {"cursor/1.4", 1, at}}
	if got := clients(); !reflect.DeepEqual(got, counted) {
		t.Errorf("of few calls: got %+v, want %+v", got, counted)
	}
	err := s.db.Write(t.Context(), func(tx db.Tx) error {
		_, err := tx.Exec(`UPDATE activity SET id = 20000 WHERE client = 'cursor/1.4'`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := clients(); !reflect.DeepEqual(got, counted) {
		t.Errorf("of few calls among others: got %+v, want %+v", got, counted)
	}
	earlier := NewActivity{Client: counted[0].Name, Tool: "memory", StartedAt: at.Add(-time.Minute)}
	recordCalls(t, s, slices.Repeat([]NewActivity{earlier}, 10_000)...)
	counted[0].Calls += 10_000
	if got, want := clients(), []ClientCount{{Name: counted[0].Name}, {Name: counted[1].Name}}; !reflect.DeepEqual(got,
		want) {
		t.Errorf("of many calls: got %+v, want %+v", got, want)
	}
	if _, err := s.Insights().CallDays(t.Context(), CallDaysQuery{}); err != nil {
		t.Fatal(err)
	}
	if got := clients(); !reflect.DeepEqual(got, counted) {
		t.Errorf("after they were counted: got %+v, want %+v", got, counted)
	}
}

func randomCall(random *rand.Rand, user string, now time.Time, keep time.Duration) NewActivity {
	clients := []string{"claude-code/2.0.14", "cursor/1.4", "Cursor/1.4", "ä/1", ""}
	ago := time.Duration(random.IntN(4))*keep/8 + time.Duration(random.Int64N(int64(time.Hour)))
	n := NewActivity{Principal: Principal{Access: Access{User: user}}, Client: clients[random.IntN(len(clients))],
		Tool: "memory", Action: "search", StartedAt: now.Add(-ago)}
	if random.IntN(5) == 0 {
		n.Principal.SignInID = "browser"
	}
	if random.IntN(4) == 0 {
		n.Outcome = OutcomeCancelled
	}
	if random.IntN(2) == 0 {
		hits := random.IntN(3)
		n.Hits = &hits
	}
	return n
}

// checkCounts compares the counts of a user's calls with the rows.
func checkCounts(t *testing.T, s *Store, user, when string) {
	t.Helper()
	view := s.As(Access{User: user}).Insights()
	all, err := view.ActivityPage(t.Context(), ActivityQuery{Limit: MaxActivityLimit})
	if err != nil || all.HasMore {
		t.Fatalf("%s: %d calls, more %v, %v, want all", when, len(all.Activities), all.HasMore, err)
	}
	byName := map[string]*ClientCount{}
	for _, a := range all.Activities {
		c := cmp.Or(byName[a.Client], &ClientCount{Name: a.Client})
		c.Calls++
		if a.StartedAt.After(c.LastCall) {
			c.LastCall = a.StartedAt
		}
		byName[a.Client] = c
	}
	want := []ClientCount{}
	for _, c := range byName {
		want = append(want, *c)
	}
	slices.SortFunc(want, func(a, b ClientCount) int {
		return cmp.Or(cmp.Compare(b.Calls, a.Calls), cmp.Compare(a.Name, b.Name))
	})
	overview, err := view.Overview(t.Context(), OverviewQuery{})
	if err != nil || !reflect.DeepEqual(overview.Clients, want) {
		t.Errorf("%s: clients of %s: got %+v, %v, want %+v", when, user, overview.Clients, err, want)
	}
	for _, zone := range []string{"UTC", "Asia/Kathmandu", "Australia/Lord_Howe", "America/St_Johns"} {
		location, err := time.LoadLocation(zone)
		if err != nil {
			t.Fatal(err)
		}
		days, err := view.CallDays(t.Context(), CallDaysQuery{Days: 14, Location: location})
		if err != nil {
			t.Fatal(err)
		}
		for _, got := range days {
			if want := dayOfCalls(all.Activities, got.Day, location); got != want {
				t.Errorf("%s: %s in %s: got %+v, want %+v", when, user, zone, got, want)
			}
		}
	}
}

func dayOfCalls(all []Activity, name string, location *time.Location) CallDay {
	d, clients := CallDay{Day: name}, map[string]bool{}
	for _, a := range all {
		if a.StartedAt.In(location).Format(time.DateOnly) != name || a.Credential.Kind == CredentialSignIn {
			continue
		}
		d.Calls++
		clients[a.Client] = true
		if a.Outcome != OutcomeOK {
			d.Failed++
		}
		if a.Hits != nil {
			d.Searches++
			if *a.Hits > 0 {
				d.Found++
			}
		}
	}
	d.Clients = len(clients)
	return d
}

// Counted calls are not read again: a change of their rows, which the store itself never makes, goes unnoticed.
func TestCountedCallsAreNotReadAgain(t *testing.T) {
	now := time.Date(2026, 10, 20, 9, 0, 0, 0, time.UTC)
	s := openWords(t, "", Options{Now: func() time.Time { return now }})
	call := NewActivity{Client: "cursor/1.4", Tool: "memory", StartedAt: now.Add(-time.Hour)}
	recordCalls(t, s, call, call)
	calls := func(want int) {
		t.Helper()
		days, err := s.Insights().CallDays(t.Context(), CallDaysQuery{Days: 1})
		if err != nil || days[0].Calls != want {
			t.Errorf("calls: got %+v, %v, want %d", days, err, want)
		}
	}
	calls(2)
	statements(t, s, `UPDATE activity SET credential = 'session'`)
	calls(2)
	recordCalls(t, s, call)
	calls(3)
	statements(t, s, `DELETE FROM activity`)
	calls(0)
}
