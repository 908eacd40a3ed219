package main

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/souvenir-ai/souvenir"
)

// upkeep is what a server does for its store beside serving it: it deletes what is of no more use.
type upkeep struct {
	every time.Duration // 0: never
	keep  int           // former states of each memory that stay; 0: all
}

// upkeepDelay is how long after the start the first time is at the latest: a server that is restarted each night would
// otherwise never come to it.
const upkeepDelay = 10 * time.Minute

// start begins with it and returns what ends it, and waits for that.
func (u upkeep) start(ctx context.Context, store *souvenir.Store, log *slog.Logger) (stop func()) {
	if u.every == 0 {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() {
		timer := time.NewTimer(min(u.every, upkeepDelay))
		defer timer.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-timer.C:
			}
			u.purge(ctx, store, log)
			timer.Reset(u.every)
		}
	})
	return func() {
		cancel()
		running.Wait()
	}
}

// purge does it once, and tells the log. What fails is tried again the next time.
func (u upkeep) purge(ctx context.Context, store *souvenir.Store, log *slog.Logger) {
	purged, err := store.Upkeep().Purge(ctx, &souvenir.PurgeOptions{KeepRevisions: u.keep})
	switch {
	case ctx.Err() != nil: // the server ends; what is done is done
	case err != nil:
		log.Warn("what is of no more use could not be deleted", "error", err)
	case purged == souvenir.PurgeReport{}:
		log.Debug("there is nothing that is of no more use")
	case !purged.HeldUntil.IsZero():
		log.Warn("what has expired is not deleted yet, because the clock is far past the time at which the store was last used", "until", purged.HeldUntil)
	default:
		log.Info("deleted what is of no more use", "revisions", purged.Revisions, "files", purged.Files, "tokens",
			purged.Tokens, "activity", purged.Activity, "oauth", purged.OAuth)
	}
}
