package systemtest

import (
	"context"
	"os"
	"testing"

	. "github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/sealing/keyring"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
	"github.com/souvenir-ai/souvenir/internal/testing/storetest"
)

// TestSearchesWithKeys runs the suite's searches over sealed vectors, blinded words and sealed segments, in memory and
// in the database.
func TestSearchesWithKeys(t *testing.T) {
	storetest.Opening = func(ctx context.Context, t *testing.T) context.Context {
		ring, _ := ringOf.Load(t.Name())
		return keyring.With(ctx, ring.(*keyring.Ring))
	}
	t.Cleanup(func() { storetest.Opening = nil })
	type backend struct {
		name string
		open func(t *testing.T) func(*testing.T, *Options) *Store
		part int // every part-th promise; 0: none
	}
	backends := []backend{{"memory", openWithKeys, 40}, {"on disk", onDisk(openWithKeys), 40}}
	for _, e := range engines {
		if e.server != nil && !e.walled {
			backends = append(backends, backend{e.name, e.openWithKeys, 40},
				backend{e.name + ", on disk", onDisk(e.openWithKeys), 0})
		}
	}
	for _, backend := range backends {
		part := backend.part
		switch {
		case os.Getenv(keysVariable) != "":
			part = 1
		case longtest.All():
			part /= 5
		case !longtest.On():
			part *= 6
		}
		if part > 0 {
			t.Run(backend.name, func(t *testing.T) { storetest.RunSearchesSample(t, part, backend.open(t)) })
		}
	}
}

// onDisk opens stores without an index in memory.
func onDisk(
	open func(t *testing.T) func(*testing.T, *Options) *Store,
) func(*testing.T) func(*testing.T, *Options) *Store {
	return func(t *testing.T) func(*testing.T, *Options) *Store {
		within := open(t)
		return func(t *testing.T, options *Options) *Store {
			onDisk := *options
			onDisk.IndexMemory = -1
			return within(t, &onDisk)
		}
	}
}
