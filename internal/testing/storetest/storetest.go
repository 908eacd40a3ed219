// Package storetest is the conformance suite of a store: every backend, every driver and every way to open one must
// pass it. It is black box: it uses only the public API of package souvenir, and tests the promises of that API's
// comments.
package storetest

import (
	"runtime/debug"
	"slices"
	"testing"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

// Open opens the store of a test for the suite: an empty one at first, and the same one again at each further call
// with the same t. The options are never nil. The store is closed when the test ends, if the test has not closed
// it. If a store cannot be opened twice, the second call skips the test.
type Open func(t *testing.T, options *souvenir.Options) *souvenir.Store

// Run tests everything that a backend's store promises.
func Run(t *testing.T, open func(t *testing.T, options *souvenir.Options) *souvenir.Store) {
	run(t, concepts(), func(t *testing.T) *fixture { return newFixture(t, open, false) }, (*fixture).sound)
}

// RunSample tests every nth promise, for a slow backend.
func RunSample(t *testing.T, n int, open func(t *testing.T, options *souvenir.Options) *souvenir.Store) {
	run(t, sample(concepts(), n), func(t *testing.T) *fixture { return newFixture(t, open, false) }, (*fixture).sound)
}

// sample keeps every nth promise.
func sample(all []concept, n int) []concept {
	i := -1
	for k := range all {
		all[k].promises = slices.DeleteFunc(all[k].promises, func(promise) bool {
			i++
			return i%n != 0
		})
	}
	return all
}

// RunTwoHandles is Run with two handles on one store. Tests write through the first and read through the second, which
// must see every completed write.
func RunTwoHandles(t *testing.T, open func(t *testing.T, options *souvenir.Options) *souvenir.Store) {
	run(t, concepts(), func(t *testing.T) *fixture { return newFixture(t, open, true) }, nil)
}

// RunSearches tests a backend once more, after Run, with another way to search: only the concepts that involve
// searches.
func RunSearches(t *testing.T, open func(t *testing.T, options *souvenir.Options) *souvenir.Store) {
	RunSearchesSample(t, 1, open)
}

// RunSearchesSample is RunSearches for every nth promise.
func RunSearchesSample(t *testing.T, n int, open func(t *testing.T, options *souvenir.Options) *souvenir.Store) {
	run(t, sample(searching(), n), func(t *testing.T) *fixture { return newFixture(t, open, false) }, nil)
}

// RunFiles tests a backend once more, after Run, with another place for the content of files: only the concepts that
// involve files.
func RunFiles(t *testing.T, open func(t *testing.T, options *souvenir.Options) *souvenir.Store) {
	RunFilesSample(t, 1, open)
}

// RunFilesSample is RunFiles for every nth promise.
func RunFilesSample(t *testing.T, n int, open func(t *testing.T, options *souvenir.Options) *souvenir.Store) {
	run(t, sample([]concept{files(), trash(), exports(), maintenance(), quotas()}, n),
		func(t *testing.T) *fixture { return newFixture(t, open, false) }, (*fixture).sound)
}

// run tests concepts, each promise in a fixture of its own. after may check the fixture at the end; only the long form
// does so for all promises.
func run(t *testing.T, concepts []concept, fresh func(*testing.T) *fixture, after func(*fixture)) {
	for _, concept := range concepts {
		t.Run(concept.name, func(t *testing.T) {
			for i, promise := range concept.promises {
				t.Run(promise.name, func(t *testing.T) {
					t.Parallel()
					defer func() { // so that one panic does not hide other failures
						if p := recover(); p != nil {
							t.Errorf("got the panic %v, want none\n%s", p, debug.Stack())
						}
					}()
					f := fresh(t)
					promise.test(f)
					if after != nil && longtest.Part(i, 1, 18) {
						after(f)
					}
				})
			}
		})
	}
}

// concept is a part of the API, with its promises. Each has a file of its own.
type concept struct {
	name     string
	promises []promise
}

type promise struct {
	name string
	test func(f *fixture)
}

func concepts() []concept {
	return append(searching(),
		metadata(),
		tags(),
		related(),
		todo(),
		listing(),
		clocks(),
		mainMemories(),
		files(),
		users(),
		passwords(),
		identities(),
		tokens(),
		parents(),
		mistakes(),
		fieldNames(),
		quotas(),
		signIns(),
		invitations(),
		preferences(),
		activities(),
		oauthClients(),
		oauthCodes(),
		oauthRefresh(),
		accessTokens(),
		sharedValues(),
	)
}

// searching returns the concepts that find memories by words or meaning.
func searching() []concept {
	return []concept{
		collections(),
		memories(),
		manyMemories(),
		passages(),
		projects(),
		projectNames(),
		sharing(),
		projectInvitations(),
		updates(),
		keys(),
		ifAbsent(),
		expiry(),
		retention(),
		validities(),
		bulks(),
		transactions(),
		revisions(),
		trash(),
		rules(),
		search(),
		turns(),
		conversations(),
		contexts(),
		identityMemories(),
		modules(),
		paging(),
		filters(),
		ownVectors(),
		similar(),
		embedding(),
		changeOfModel(),
		access(),
		concurrency(),
		openClose(),
		maintenance(),
		exports(),
		overviews(),
		namespaces(),
		hooks(),
	}
}
