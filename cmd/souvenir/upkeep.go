package main

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/souvenir-ai/souvenir"
)

// upkeep is a server's housekeeping: it deletes data that is no longer needed.
type upkeep struct {
	every time.Duration // 0: never
	keep  int           // past versions of each memory to keep; 0: all
}

// upkeepDelay bounds the delay from the start to the first run: a server that is restarted each night would
// otherwise never run it.
const upkeepDelay = 10 * time.Minute

// start begins the runs and returns a function that ends them and waits.
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

// purge runs once, and logs the outcome. The next run retries what failed.
func (u upkeep) purge(ctx context.Context, store *souvenir.Store, log *slog.Logger) {
	purged, err := store.Upkeep().Purge(ctx, &souvenir.PurgeOptions{KeepRevisions: u.keep})
	switch {
	case ctx.Err() != nil: // the server is ending
	case err != nil:
		log.Warn("the cleanup failed", "error", err)
	case purged == souvenir.PurgeReport{}:
		log.Debug("nothing to clean up")
	case !purged.HeldUntil.IsZero():
		log.Warn("expired data is not deleted yet, because the clock is far ahead of the time when the store was last used",
			"until", purged.HeldUntil)
	default:
		log.Info("cleaned up", "expired memories", purged.Memories, "moved to the trash by retention rules", purged.Retained,
			"revisions", purged.Revisions, "files", purged.Files,
			"tokens",
			purged.Tokens, "activity", purged.Activity, "oauth", purged.OAuth)
	}
}
