package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir"
)

func activities() concept {
	return concept{"Activity", []promise{
		{"a recorded call is shown as it was", activityListed},
		{"what was recorded last comes first, in pages that neither repeat nor skip", activityPages},
		{"all that was recorded can be looped over, a portion at a time", activityIsIterated},
		{"a user sees the own calls, the operator all", activityOwn},
		{"a project is named to those who see it", activityProjects},
		{"calls are found by everything that is known of them", activityFilters},
		{"what programs call themselves is one short line without tokens", activityClients},
		{"the outcome of a call is the kind of its error", activityOutcomes},
		{"calls are counted by day, where the reader is", activityDays},
		{"what was recorded is there when the store is opened again", activityReopened},
		{"too old and too many calls are deleted", activityPurged},
		{"too many calls are deleted without being asked", activityBounded},
		{"the calls of a deleted user are gone", activityDeletedUser},
		{"a read-only handle tells calls and records none", activityReadOnly},
	}}
}

// record records calls and waits until every handle sees them.
func (f *fixture) record(calls ...souvenir.NewActivity) {
	f.Helper()
	for _, n := range calls {
		f.check("RecordActivity", f.operator.Upkeep().RecordActivity(f.ctx, n))
	}
	_, err := f.operator.Insights().ActivityPage(f.ctx, souvenir.ActivityQuery{})
	f.check("ActivityPage", err)
}

func (f *fixture) activities(q souvenir.ActivityQuery) []souvenir.Activity {
	f.Helper()
	page, err := f.reader.Insights().ActivityPage(f.ctx, q)
	f.check("ActivityPage", err)
	return page.Activities
}

func activityDays(f *fixture) {
	two, none := 2, 0
	search := souvenir.NewActivity{Principal: by("ann"), Client: "cursor", Tool: "memory", Action: "search", Hits: &two}
	missed, other, failed := search, search, search
	missed.Hits = &none
	other.Client, other.Action, other.Hits = "claude", "store", nil
	failed.Outcome, failed.Hits = souvenir.OutcomeOf(errOffline), nil
	person, another := search, search
	person.Principal = souvenir.Principal{Access: souvenir.Access{User: "ann"}, SignInID: "of a browser"}
	another.Principal = by("ben")
	f.record(search, missed, other, person, another)
	f.clock.Pass(14 * time.Hour) // midnight in Berlin, 23:00 in UTC
	f.record(failed, failed)
	f.clock.Pass(time.Hour)
	ann := f.as(souvenir.Access{User: "ann"})
	days := func(q souvenir.CallDaysQuery) []souvenir.CallDay {
		found, err := ann.reader.Insights().CallDays(f.ctx, q)
		f.check("CallDays", err)
		return found
	}
	berlin, err := time.LoadLocation("Europe/Berlin")
	f.check("LoadLocation", err)
	f.equal("in UTC", days(souvenir.CallDaysQuery{Days: 2}), []souvenir.CallDay{
		{Day: "2026-03-01", Calls: 5, Failed: 2, Searches: 2, Found: 1, Clients: 2}, {Day: "2026-03-02"}})
	f.equal("in Berlin", days(souvenir.CallDaysQuery{Days: 2, Location: berlin}), []souvenir.CallDay{
		{Day: "2026-03-01", Calls: 3, Searches: 2, Found: 1, Clients: 2},
		{Day: "2026-03-02", Calls: 2, Failed: 2, Clients: 1}})
	f.equal("today", days(souvenir.CallDaysQuery{Days: 1}), []souvenir.CallDay{{Day: "2026-03-02"}})
	for i := range 60 { // this many clients are counted in another way
		once := search
		once.Client, once.Hits = fmt.Sprint("client ", i), nil
		f.record(once)
	}
	f.equal("of many clients, in Berlin", days(souvenir.CallDaysQuery{Days: 2, Location: berlin}), []souvenir.CallDay{
		{Day: "2026-03-01", Calls: 3, Searches: 2, Found: 1, Clients: 2},
		{Day: "2026-03-02", Calls: 62, Failed: 2, Clients: 61}})
	_, err = ann.reader.Insights().CallDays(f.ctx, souvenir.CallDaysQuery{Days: 367})
	f.failsAt("CallDays", err, souvenir.ErrInvalid, "days")
	_, err = f.as(souvenir.Access{User: "ann", Projects: []string{"p"}}).reader.Insights().CallDays(f.ctx,
		souvenir.CallDaysQuery{})
	f.fails("of a limited view", err, souvenir.ErrForbidden)
}

// called returns the tools of some calls.
func called(activities []souvenir.Activity) []string {
	list := []string{}
	for _, a := range activities {
		list = append(list, strings.TrimSpace(a.Tool+" "+a.Action))
	}
	return list
}

// by returns a principal who uses an MCP token.
func by(user string) souvenir.Principal {
	return souvenir.Principal{Access: souvenir.Access{User: user}, TokenID: "token of " + user}
}

func activityListed(f *fixture) {
	ann := f.addUser(souvenir.NewUser{Name: "Ann"})
	view := f.as(souvenir.Access{User: ann.ID})
	token, err := view.store.Accounts().AddToken(f.ctx, souvenir.NewToken{Name: "laptop"})
	f.check("AddToken", err)
	principal, err := f.operator.Accounts().CheckToken(f.ctx, token.Value)
	f.check("CheckToken", err)
	m := view.add(souvenir.NewMemory{Content: "x", ProjectID: "p", ProjectName: "Apollo"})
	f.clock.Pass(time.Hour)
	f.record(souvenir.NewActivity{
		Principal: principal, Client: "claude-code/2.0", Tool: "memory", Action: "retrieve",
		Project:  souvenir.ProjectRef{Name: "Apollo"},
		MemoryID: m.ID, FileID: "f", Duration: 1500 * time.Microsecond, Bytes: 77,
	})
	all := view.activities(souvenir.ActivityQuery{})
	f.equal("how many", len(all), 1)
	id := all[0].ID
	want := souvenir.Activity{
		ID: id, User: ann.ID, UserName: "Ann",
		Credential: souvenir.Credential{Kind: souvenir.CredentialToken, ID: token.ID, Name: "laptop"},
		Client:     "claude-code/2.0", Tool: "memory", Action: "retrieve", ProjectID: "p", MemoryID: m.ID, FileID: "f",
		Outcome: souvenir.OutcomeOK, StartedAt: f.clock.Now().Add(-1500 * time.Microsecond), DurationMS: 1.5, Bytes: 77,
	}
	f.equal("call", all[0], want)
	f.equal("as JSON", object(toJSON(all[0])),
		object(`{"id": "`+id+`", "user": "`+ann.ID+`", "user_name": "Ann", "credential": {"kind": "token", "id": "`+token.ID+
			`", "name": "laptop"},
		"client": "claude-code/2.0", "tool": "memory", "action": "retrieve", "project_id": "p", "memory_id": "`+m.ID+
			`", "file_id": "f", "outcome": "ok",
		"started_at": "2026-03-01T09:59:59.9985Z", "duration_ms": 1.5, "bytes": 77}`))
	at := time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC)
	f.record(
		souvenir.NewActivity{Tool: "GET /health", StartedAt: at},
		souvenir.NewActivity{Principal: souvenir.Principal{ClientID: "unknown", Access: souvenir.Access{User: ann.ID}},
			Tool: "memory"},
		souvenir.NewActivity{Principal: souvenir.Principal{SignInID: "s", Access: souvenir.Access{User: ann.ID}},
			Tool: "memory"},
	)
	all = f.activities(souvenir.ActivityQuery{Limit: 3})
	f.equal("credentials", []souvenir.Credential{all[0].Credential, all[1].Credential, all[2].Credential},
		[]souvenir.Credential{{Kind: souvenir.CredentialSignIn, ID: "s"}, {Kind: souvenir.CredentialClient, ID: "unknown"},
			{}})
	f.equal("a user without an account", []any{all[2].User, all[2].UserName, all[2].StartedAt},
		[]any{souvenir.LocalUser, "", at})
	f.check("RevokeToken", view.store.Accounts().RevokeToken(f.ctx, token.ID))
	f.equal("the name of a token that is deleted",
		f.activities(souvenir.ActivityQuery{Tool: "memory", Action: "retrieve"})[0].Credential.ID, token.ID)
}

func activityPages(f *fixture) {
	f.equal("none", f.activities(souvenir.ActivityQuery{}), []souvenir.Activity{})
	for i := range 25 {
		f.check("RecordActivity", f.operator.Upkeep().RecordActivity(f.ctx,
			souvenir.NewActivity{Principal: by([]string{"ann", "ben"}[i%2]), Tool: fmt.Sprint("t", i)}))
	}
	f.record()
	ann := f.as(souvenir.Access{User: "ann"})
	var got []string
	q := souvenir.ActivityQuery{Limit: 5}
	for {
		page, err := ann.reader.Insights().ActivityPage(f.ctx, q)
		f.check("ActivityPage", err)
		got = append(got, called(page.Activities)...)
		f.record(souvenir.NewActivity{Principal: by("ann"), Tool: "meanwhile"})
		if !page.HasMore {
			break
		}
		q.Before = page.Activities[len(page.Activities)-1].ID
	}
	var want []string
	for i := 24; i >= 0; i -= 2 {
		want = append(want, fmt.Sprint("t", i))
	}
	f.same("pages", got, want...)
	bens := f.activities(souvenir.ActivityQuery{User: "ben", Limit: 1})[0].ID
	for _, c := range []struct {
		q        souvenir.ActivityQuery
		kind     *souvenir.Error
		argument string
	}{
		{souvenir.ActivityQuery{Before: bens}, souvenir.ErrNotFound, "before"},
		{souvenir.ActivityQuery{Before: "nowhere"}, souvenir.ErrNotFound, "before"},
		{souvenir.ActivityQuery{Limit: souvenir.MaxActivityLimit + 1}, souvenir.ErrInvalid, "limit"},
		{souvenir.ActivityQuery{Outcome: "well"}, souvenir.ErrInvalid, "outcome"},
		{souvenir.ActivityQuery{Credential: "key"}, souvenir.ErrInvalid, "credential"},
		{souvenir.ActivityQuery{Tool: "\xff"}, souvenir.ErrInvalid, "tool"},
		{souvenir.ActivityQuery{Calls: []souvenir.ToolAction{{Tool: "\xff"}}}, souvenir.ErrInvalid, "calls"},
		{souvenir.ActivityQuery{Calls: make([]souvenir.ToolAction, 65)}, souvenir.ErrTooLarge, "calls"},
		{souvenir.ActivityQuery{ProjectID: "\xff"}, souvenir.ErrInvalid, "project_id"},
	} {
		_, err := ann.reader.Insights().ActivityPage(f.ctx, c.q)
		f.failsAt(fmt.Sprintf("%+v", c.q), err, c.kind, c.argument)
	}
}

func activityIsIterated(f *fixture) {
	const calls = 600 // more than two portions
	want := make([]string, calls)
	for i := range calls {
		want[calls-1-i] = fmt.Sprint("t", i)
		f.check("RecordActivity", f.operator.Upkeep().RecordActivity(f.ctx,
			souvenir.NewActivity{Principal: by("ann"), Tool: fmt.Sprint("t", i)}))
	}
	f.record() // waits for them
	ann := f.as(souvenir.Access{User: "ann"})
	all := ann.reader.Insights().Activities(f.ctx, souvenir.ActivityQuery{})
	for range 2 { // each loop begins with the newest
		var got []string
		for a, err := range all {
			f.check("Activities", err)
			if got = append(got, a.Tool); len(got) == 3 {
				break
			}
		}
		f.same("the first", got, want[:3]...)
	}
	var got, last []string
	before := ""
	for a, err := range all {
		f.check("Activities", err)
		if got = append(got, a.Tool); len(got) == 1 {
			f.record(souvenir.NewActivity{Principal: by("ann"), Tool: "meanwhile"})
		}
		if len(got) == calls-2 {
			before = a.ID
		}
	}
	f.same("all", got, want...)
	for a, err := range ann.reader.Insights().Activities(f.ctx, souvenir.ActivityQuery{Before: before}) {
		f.check("Activities", err)
		last = append(last, a.Tool)
	}
	f.same("the ones before another", last, "t1", "t0")
	for _, err := range ann.reader.Insights().Activities(f.ctx, souvenir.ActivityQuery{Limit: 1}) {
		f.failsAt("a limit", err, souvenir.ErrInvalid, "limit")
	}
	for _, err := range f.as(souvenir.Access{User: "ann", Projects: []string{"p"}}).reader.Insights().Activities(f.ctx,
		souvenir.ActivityQuery{}) {
		f.fails("a view limited to projects", err, souvenir.ErrForbidden)
	}
}

func activityOwn(f *fixture) {
	f.addUser(souvenir.NewUser{Name: "Ann", ID: "ann"})
	f.record(souvenir.NewActivity{Principal: by("ann"), Tool: "hers"},
		souvenir.NewActivity{Principal: by("ben"), Tool: "his"}, souvenir.NewActivity{Tool: "local"})
	f.same("all", called(f.activities(souvenir.ActivityQuery{})), "local", "his", "hers")
	f.same("of one, by name", called(f.activities(souvenir.ActivityQuery{User: "ANN"})), "hers")
	ann := f.as(souvenir.Access{User: "ann", ReadOnly: true})
	f.same("the own", called(ann.activities(souvenir.ActivityQuery{})), "hers")
	f.same("the own, by id", called(ann.activities(souvenir.ActivityQuery{User: "ann"})), "hers")
	f.same("of a new user", called(f.as(souvenir.Access{User: "ben"}).activities(souvenir.ActivityQuery{})), "his")
	_, err := ann.reader.Insights().ActivityPage(f.ctx, souvenir.ActivityQuery{User: "ben"})
	f.failsAt("another's", err, souvenir.ErrForbidden, "user")
	_, err = f.reader.As(souvenir.Access{User: "ann", Projects: []string{"p"}}).Insights().ActivityPage(f.ctx,
		souvenir.ActivityQuery{})
	f.fails("through a limited view", err, souvenir.ErrForbidden)
	_, err = f.reader.Insights().ActivityPage(f.ctx, souvenir.ActivityQuery{User: "noah"})
	f.failsAt("of an unknown user", err, souvenir.ErrNotFound, "user")
	f.fails("recording through a view", ann.store.Upkeep().RecordActivity(f.ctx, souvenir.NewActivity{Tool: "x"}),
		souvenir.ErrForbidden)
	f.failsAt("recording nothing", f.operator.Upkeep().RecordActivity(f.ctx, souvenir.NewActivity{}), souvenir.ErrInvalid,
		"tool")
}

func activityProjects(f *fixture) {
	ann, ben := f.as(souvenir.Access{User: "ann"}), f.as(souvenir.Access{User: "ben"})
	ann.add(souvenir.NewMemory{Content: "x", ProjectID: "open"})
	ann.add(souvenir.NewMemory{Content: "x", ProjectID: "secret"})
	ben.addTexts("mine")
	_, err := f.operator.AddMember(f.ctx,
		souvenir.NewMember{Project: souvenir.ProjectRef{ID: "ann/open"}, User: "ben", Role: souvenir.MemberReader})
	f.check("AddMember", err)
	limited := by("ann")
	limited.Access.Projects = []string{"open"}
	for _, c := range []struct {
		by      souvenir.Principal
		project string
	}{{by("ann"), "secret"}, {by("ben"), "open"}, {by("ben"), "secret"}, {by("ben"), "ann/secret"}, {by("ben"), "\xff"},
		{limited, "secret"}, {limited, "open"}} {
		f.check("RecordActivity", f.operator.Upkeep().RecordActivity(f.ctx,
			souvenir.NewActivity{Principal: c.by, Tool: "t", Project: souvenir.ProjectRef{ID: c.project}}))
	}
	f.record()
	reported := func(f *fixture) (list []string) {
		for _, a := range f.activities(souvenir.ActivityQuery{}) {
			list = append(list, a.ProjectID)
		}
		return list
	}
	f.same("to the operator", reported(f), "open", "", "", "", "", "open", "secret")
	f.same("to ann", reported(ann), "open", "", "secret")
	f.same("to ben", reported(ben), "", "", "", "open")
	f.equal("by project", len(ben.activities(souvenir.ActivityQuery{ProjectID: "ann/open"})), 1)
	f.equal("by one that ben cannot see", len(ben.activities(souvenir.ActivityQuery{ProjectID: "ann/secret"})), 0)
	f.check("DeleteMember", ann.store.DeleteMember(f.ctx,
		souvenir.ProjectRef{ID: "open"}, "ben"))
	f.same("to ben, a former member", reported(ben), "", "", "", "")
	f.check("DeleteProject", ann.store.DeleteProject(f.ctx,
		souvenir.ProjectRef{ID: "secret"}, &souvenir.DeletionOptions{WithMemories: true}))
	f.same("to ann, without the project", reported(ann), "open", "", "")
}

func activityFilters(f *fixture) {
	ann := by("ann")
	session := souvenir.Principal{Access: souvenir.Access{User: "ann"}, SignInID: "s1"}
	base := f.clock.Now()
	f.record(
		souvenir.NewActivity{Principal: ann, Client: "cursor", Tool: "memory", Action: "search", StartedAt: base},
		souvenir.NewActivity{Principal: ann, Client: "claude", Tool: "memory", Action: "store",
			Outcome: souvenir.OutcomeOf(souvenir.ErrTooLarge), StartedAt: base.Add(time.Hour)},
		souvenir.NewActivity{Principal: session, Client: "cursor", Tool: "rules", Outcome: souvenir.OutcomeCancelled,
			StartedAt: base.Add(2 * time.Hour)},
	)
	for _, c := range []struct {
		q    souvenir.ActivityQuery
		want []string
	}{
		{souvenir.ActivityQuery{}, []string{"rules", "memory store", "memory search"}},
		{souvenir.ActivityQuery{Client: "cursor"}, []string{"rules", "memory search"}},
		{souvenir.ActivityQuery{Calls: []souvenir.ToolAction{{Tool: "memory", Action: "store"}, {Tool: "rules"}}},
			[]string{"rules", "memory store"}},
		{souvenir.ActivityQuery{Client: "cursor", Calls: []souvenir.ToolAction{{Tool: "memory"}}},
			[]string{"memory search"}},
		{souvenir.ActivityQuery{Tool: "memory"}, []string{"memory store", "memory search"}},
		{souvenir.ActivityQuery{Tool: "memory", Action: "search"}, []string{"memory search"}},
		{souvenir.ActivityQuery{Tool: "memor"}, nil},
		{souvenir.ActivityQuery{Credential: souvenir.CredentialSignIn}, []string{"rules"}},
		{souvenir.ActivityQuery{Credential: souvenir.CredentialToken, ID: "token of ann"},
			[]string{"memory store", "memory search"}},
		{souvenir.ActivityQuery{Credential: souvenir.CredentialToken, ID: "s1"}, nil},
		{souvenir.ActivityQuery{Outcome: souvenir.OutcomeOK}, []string{"memory search"}},
		{souvenir.ActivityQuery{Outcome: "too_large"}, []string{"memory store"}},
		{souvenir.ActivityQuery{Outcome: souvenir.OutcomeError}, []string{"rules", "memory store"}},
		{souvenir.ActivityQuery{Since: base.Add(time.Hour)}, []string{"rules", "memory store"}},
		{souvenir.ActivityQuery{Until: base.Add(time.Hour)}, []string{"memory search"}},
		{souvenir.ActivityQuery{Since: base.Add(time.Minute), Until: base.Add(2 * time.Hour)}, []string{"memory store"}},
		{souvenir.ActivityQuery{ProjectID: "unknown"}, nil},
	} {
		f.same(fmt.Sprintf("%+v", c.q), called(f.as(souvenir.Access{User: "ann"}).activities(c.q)), c.want...)
	}
}

func activityClients(f *fixture) {
	token := "mcp_" + strings.Repeat("a", 43)
	for given, want := range map[string]string{
		"": "", "  curl/8\t1\n": "curl/8 1", "a\x00\u200bb": "ab", "bad \xff utf": "bad utf",
		"agent " + token + " x":                "agent … x",
		"x-" + token + " ses_y inv_z":          "x-… … …",
		"Bearer eyJhbGciOiJFZERTQSJ9.e30.c2ln": "Bearer …",
		strings.Repeat("ö", 80):                strings.Repeat("ö", 50),
	} {
		f.record(souvenir.NewActivity{Client: given, Tool: "t\nt", Action: strings.Repeat("long ", 100)})
		a := f.activities(souvenir.ActivityQuery{Limit: 1})[0]
		f.equal(fmt.Sprintf("%q", given), []any{a.Client, a.Tool}, []any{want, "t t"})
		if len(a.Action) > 200 {
			f.Errorf("an action of %d bytes, want at most 200", len(a.Action))
		}
	}
	f.record(souvenir.NewActivity{Tool: strings.Repeat("tool ",
		100)}) // kept as far as the final check of each promise allows
	f.equal("bytes of the tool", len(f.activities(souvenir.ActivityQuery{Limit: 1})[0].Tool), 199)
}

func activityOutcomes(f *fixture) {
	_, err := f.store.GetMemory(f.ctx, "nowhere")
	for _, c := range []struct {
		err  error
		want souvenir.Outcome
	}{
		{nil, souvenir.OutcomeOK}, {err, "not_found"}, {souvenir.ErrReadOnly, "read_only"},
		{fmt.Errorf("wrapped: %w", souvenir.ErrTooLarge), "too_large"},
		{errors.New("broken"), "internal"}, {context.Canceled, souvenir.OutcomeCancelled},
		{fmt.Errorf("late: %w", context.DeadlineExceeded), souvenir.OutcomeCancelled},
	} {
		got := souvenir.OutcomeOf(c.err)
		f.equal(fmt.Sprint(c.err), got, c.want)
		if !slices.Contains(souvenir.Outcomes(), got) {
			f.Errorf("got the outcome %s, want one of %q", got, souvenir.Outcomes())
		}
	}
	f.record(souvenir.NewActivity{Tool: "t", Outcome: "made up"})
	f.equal("an unknown one", f.activities(souvenir.ActivityQuery{})[0].Outcome, souvenir.Outcome("internal"))
}

func activityReopened(f *fixture) {
	for i := range 600 {
		f.check("RecordActivity", f.operator.Upkeep().RecordActivity(f.ctx, souvenir.NewActivity{Tool: fmt.Sprint("t", i)}))
	}
	closed := f.operator
	f.reopen(f.embedder)
	f.fails("recording in a closed store", closed.Upkeep().RecordActivity(f.ctx, souvenir.NewActivity{Tool: "late"}),
		souvenir.ErrClosed)
	all := called(f.activities(souvenir.ActivityQuery{Limit: 1000}))
	f.equal("how many, the first and the last", []any{len(all), all[0], all[len(all)-1]}, []any{600, "t599", "t0"})
}

func activityPurged(f *fixture) {
	purge := func(want int) {
		f.Helper()
		purged, err := f.operator.Upkeep().Purge(f.ctx, &souvenir.PurgeOptions{TrustClock: true})
		f.check("Purge", err)
		f.equal("purged", purged, souvenir.PurgeReport{Activity: want})
	}
	f.record(souvenir.NewActivity{Tool: "first"})
	f.clock.Pass(30 * day)
	purge(0)
	f.record(souvenir.NewActivity{Tool: "second"})
	f.clock.Pass(time.Microsecond)
	purge(1)
	f.same("left", called(f.activities(souvenir.ActivityQuery{})), "second")
	f.close()
	options := f.options(f.embedder)
	options.KeepActivity, options.MaxActivity = time.Hour, 3
	few := f.open(f.T, options)
	f.store, f.reader, f.operator = few, few, few
	f.clock.Pass(time.Hour)
	purge(1)
	for i := range 3 {
		f.record(souvenir.NewActivity{Tool: fmt.Sprint("t", i)})
	}
	purge(0)
	for i := range 4 {
		f.record(souvenir.NewActivity{Tool: fmt.Sprint("u", i)})
	}
	purge(4)
	f.same("the newest", called(f.activities(souvenir.ActivityQuery{})), "u3", "u2", "u1")
}

func activityBounded(f *fixture) {
	options := f.options(f.embedder)
	options.MaxActivity = 100
	few := f.open(f.T, options)
	const calls, together = 7000, 100
	for i := range calls {
		f.check("RecordActivity", few.Upkeep().RecordActivity(f.ctx, souvenir.NewActivity{Tool: fmt.Sprint("t", i)}))
		if i%together == together-1 { // a query writes waiting calls, and every 64th one deletes surplus calls
			_, err := few.Insights().ActivityPage(f.ctx, souvenir.ActivityQuery{Limit: 1})
			f.check("ActivityPage", err)
		}
	}
	n, before := 0, ""
	for more := true; more; {
		page, err := few.Insights().ActivityPage(f.ctx, souvenir.ActivityQuery{Limit: 1000, Before: before})
		f.check("ActivityPage", err)
		n, more = n+len(page.Activities), page.HasMore
		before = page.Activities[len(page.Activities)-1].ID
	}
	if n < options.MaxActivity || n > calls-2000 {
		f.Errorf("got %d calls kept of %d, want %d, and up to some thousands until the next look", n, calls,
			options.MaxActivity)
	}
	f.check("Close", few.Close())
}

func activityDeletedUser(f *fixture) {
	ann := f.addUser(souvenir.NewUser{Name: "ann"})
	f.check("RecordActivity", f.operator.Upkeep().RecordActivity(f.ctx,
		souvenir.NewActivity{Principal: by(ann.ID), Tool: "waits"}))
	f.check("RecordActivity", f.operator.Upkeep().RecordActivity(f.ctx, souvenir.NewActivity{Tool: "another's"}))
	f.check("DeleteUser", f.operator.Accounts().DeleteUser(f.ctx, "ann", nil))
	f.record()
	f.same("left", called(f.activities(souvenir.ActivityQuery{})), "another's")
}

func activityReadOnly(f *fixture) {
	f.record(souvenir.NewActivity{Tool: "t"})
	options := f.options(f.embedder)
	options.ReadOnly = true
	reader := f.open(f.T, options)
	page, err := reader.Insights().ActivityPage(f.ctx, souvenir.ActivityQuery{})
	f.check("ActivityPage", err)
	f.same("calls", called(page.Activities), "t")
	f.fails("RecordActivity", reader.Upkeep().RecordActivity(f.ctx, souvenir.NewActivity{Tool: "t"}), souvenir.ErrReadOnly)
}
