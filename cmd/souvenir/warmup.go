package main

import (
	"context"
	"log/slog"
	"maps"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/souvenir-ai/souvenir"
)

const (
	warmedUsers = 4 // those seen last
	warmedSince = 7 * 24 * time.Hour
	warmedEach  = 6   // tags, and keys of metadata
	manyOf      = 2   // percent: a tag or key of fewer memories is read quickly
	warmedAlike = 0.8 // as on the overview
)

// startWarming makes the store compute, in the background, the counts and orders that the first pages after a start
// show, so that these pages need not wait for them. It returns a function that ends that and waits.
func startWarming(ctx context.Context, store *souvenir.Store, log *slog.Logger) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() {
		defer func() { // work that only saves time must not end the server
			if broken := recover(); broken != nil {
				log.Error("the first pages may be slow: warming up the dashboard panicked", "error", broken,
					"stack", string(debug.Stack()))
			}
		}()
		warmed, err := warm(ctx, store, time.Now())
		if err != nil {
			if ctx.Err() == nil {
				log.Warn("the first pages may be slow: the dashboard could not be warmed up", "error", err)
			}
			return
		}
		log.Debug("warmed up the dashboard", "users", len(warmed))
	})
	return func() {
		cancel()
		running.Wait()
	}
}

// warm warms the pages of the users who were seen last, of the first souvenir.MaxUserLimit, and returns their ids.
func warm(ctx context.Context, store *souvenir.Store, now time.Time) (warmed []string, err error) {
	page, err := store.Accounts().UserPage(ctx, souvenir.UserQuery{Limit: souvenir.MaxUserLimit})
	if err != nil {
		return nil, err
	}
	users := page.Users
	slices.SortStableFunc(users, func(a, b souvenir.User) int { return b.LastSeenAt.Compare(a.LastSeenAt) })
	for _, user := range users[:min(warmedUsers, len(users))] {
		if now.Sub(user.LastSeenAt) > warmedSince {
			break
		}
		if err := warmPages(ctx, store.As(souvenir.Access{User: user.ID})); err != nil {
			return warmed, err
		}
		warmed = append(warmed, user.ID)
	}
	return warmed, nil
}

// warmPages requests the data that the overview and the list of memories show, without filters and with filters that
// many memories match.
func warmPages(ctx context.Context, view *souvenir.Store) error {
	insights := view.Insights()
	if _, err := insights.CallDays(ctx, souvenir.CallDaysQuery{}); err != nil { // the overview uses its counts
		return err
	}
	overview, err := insights.Overview(ctx, souvenir.OverviewQuery{})
	if err != nil {
		return err
	}
	if _, err := insights.Graph(ctx, souvenir.GraphQuery{Duplicates: warmedAlike}); err != nil {
		return err
	}
	some, err := spread(ctx, view, overview.Memories)
	if err != nil {
		return err
	}
	filters := []souvenir.Filter{{"state": souvenir.Not("archived")}, {"state": "archived"}}
	many := max(overview.Memories*manyOf/100, 1)
	tags, err := insights.Tags(ctx)
	if err != nil {
		return err
	}
	for _, tag := range tags[:min(warmedEach, len(tags))] {
		if tag.Count >= many {
			filters = append(filters, souvenir.Filter{"tags": souvenir.All(tag.Name)})
		}
	}
	for _, key := range usualKeys(some) {
		filters = append(filters, souvenir.Filter{key: souvenir.Condition{Not: []any{nil}}})
	}
	for _, filter := range filters {
		if _, err := view.Search(ctx, souvenir.Query{Sort: souvenir.SortUpdatedDesc, Limit: 1, Filter: filter}); err != nil {
			return err
		}
	}
	return nil
}

// spread returns a sample of a user's memories, given their number: new ones and older ones.
func spread(ctx context.Context, view *souvenir.Store, memories int) (some []souvenir.Hit, err error) {
	for part := range 4 {
		found, err := view.Search(ctx, souvenir.Query{Sort: souvenir.SortUpdatedDesc, Limit: souvenir.MaxLimit,
			Offset: part * memories / 4})
		if err != nil {
			return nil, err
		}
		some = append(some, found.Hits...)
	}
	return some, nil
}

// usualKeys returns the most frequent keys of own metadata in some memories.
func usualKeys(some []souvenir.Hit) []string {
	counts := map[string]int{}
	for _, m := range some {
		for key := range m.Metadata {
			counts[key]++
		}
	}
	keys := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		if counts[a] != counts[b] {
			return counts[b] - counts[a]
		}
		return strings.Compare(a, b)
	})
	keys = slices.DeleteFunc(keys, func(key string) bool { return counts[key]*100 < len(some)*manyOf })
	return keys[:min(warmedEach, len(keys))]
}
