// Package storetest is the conformance suite of a store: what every backend, every driver and every way to open one must
// do alike. It is black box: it knows the public API of package souvenir only, and what that API's comments promise.
package storetest

import (
	"runtime/debug"
	"testing"

	"github.com/souvenir-ai/souvenir"
)

// Open opens the store of a test for the suite: an empty one at first, and the same one again at each further call
// with the same t. The options are never nil. The store is closed when the test ends, if the test has not done so.
// Where a store cannot be opened twice, the second call skips the test.
type Open func(t *testing.T, options *souvenir.Options) *souvenir.Store

// Run holds a backend to everything that a store promises.
func Run(t *testing.T, open func(t *testing.T, options *souvenir.Options) *souvenir.Store) {
	run(t, open, false)
}

// RunTwoHandles does the same with two handles on one store: tests write through the first and read through the second,
// which must see every write that was answered before.
func RunTwoHandles(t *testing.T, open func(t *testing.T, options *souvenir.Options) *souvenir.Store) {
	run(t, open, true)
}

func run(t *testing.T, open Open, twoHandles bool) {
	for _, concept := range concepts() {
		t.Run(concept.name, func(t *testing.T) {
			for _, promise := range concept.promises {
				t.Run(promise.name, func(t *testing.T) {
					t.Parallel()
					defer func() { // so that one panic does not hide what else is broken
						if p := recover(); p != nil {
							t.Errorf("panic: %v\n%s", p, debug.Stack())
						}
					}()
					f := newFixture(t, open, twoHandles)
					promise.test(f)
					f.sound()
				})
			}
		})
	}
}

// concept is a part of the API, with what it promises. Each has a file of its own.
type concept struct {
	name     string
	promises []promise
}

type promise struct {
	name string
	test func(f *fixture)
}

func concepts() []concept {
	return []concept{
		collections(),
		memories(),
		metadata(),
		manyMemories(),
		passages(),
		projects(),
		sharing(),
		updates(),
		revisions(),
		tags(),
		related(),
		rules(),
		todo(),
		listing(),
		search(),
		contexts(),
		identityMemories(),
		mainMemories(),
		modules(),
		paging(),
		filters(),
		ownVectors(),
		similar(),
		files(),
		embedding(),
		changeOfModel(),
		access(),
		users(),
		passwords(),
		identityMemories(),
		tokens(),
		preferences(),
		oauthClients(),
		oauthCodes(),
		oauthRefresh(),
		accessTokens(),
		concurrency(),
		lifecycle(),
		maintenance(),
		exports(),
	}
}
