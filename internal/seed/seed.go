// Package seed fills store files for tests and measurements of the dashboard: with any number of invented notes of a
// few people, over some months; or with text that does harm if a page treats it as anything but text. The texts are the
// same each time.
package seed

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/seed/clock"
)

// Password is the password of every user it creates.
const Password = "nine blue kettles"

// history is the age of the first memory.
const history = 90 * 24 * time.Hour

// Filled describes the content of a filled file. Fields without content are empty.
type Filled struct {
	User     string `json:"user"` // name of the user whose store it is, an admin
	UserID   string `json:"user_id"`
	Other    string `json:"other"`    // name of another user, who has a project in common with the first
	Project  string `json:"project"`  // id of a project with rules, a todo, members and a main memory
	Memory   string `json:"memory"`   // id of a memory with revisions, related memories and files
	File     string `json:"file"`     // id of a file that is linked to Memory
	Memories int    `json:"memories"` // number of memories that the user can find
	Token    string `json:"token"`    // an MCP token of the user
}

// Fill creates a new file at a path and fills it with the given number of memories. Zero leaves a store in its
// state after the set-up: one user and nothing else.
func Fill(ctx context.Context, path string, memories int) (Filled, error) {
	return fill(ctx, path, func(f *filler) error {
		if memories == 0 {
			return nil
		}
		return f.inOrder(f.people, func() error { return f.memories(memories) }, f.known,
			func() error { return f.files(memories) }, f.management,
			func() error { return f.activity(memories) })
	})
}

// Hostile creates a new file at a path with hostile text in every field that can hold text.
func Hostile(ctx context.Context, path string) (Filled, error) {
	return fill(ctx, path, (*filler).hostile)
}

// fill creates a file with one user, and calls with to fill it.
func fill(ctx context.Context, path string, with func(*filler) error) (filled Filled, err error) {
	now := time.Now()
	f := &filler{ctx: ctx, writer: newWriter(), began: now.Add(-history), clock: clock.At(now.Add(-history)),
		ids: map[string][]string{}, texts: map[string]string{}}
	f.store, err = souvenir.Open(ctx, path, &souvenir.Options{Now: f.clock.Now})
	if err != nil {
		return f.Filled, err
	}
	defer func() { err = errors.Join(err, f.store.Close()) }()
	if f.user, err = f.store.Accounts().AddUser(ctx,
		souvenir.NewUser{Name: "anna", Role: souvenir.RoleAdmin, Email: "anna@example.com", Password: Password}); err != nil {
		return f.Filled, err
	}
	f.User, f.UserID, f.view = f.user.Name, f.user.ID, f.store.As(souvenir.Access{User: f.user.ID})
	if err := with(f); err != nil {
		return f.Filled, fmt.Errorf("filling %s: %w", path, err)
	}
	if err := f.store.Upkeep().WaitEmbedded(ctx); err != nil {
		return f.Filled, err
	}
	if err := f.store.Upkeep().StoreIndex(ctx); err != nil { // as a server does within half a minute
		return f.Filled, err
	}
	overview, err := f.view.Insights().Overview(ctx, souvenir.OverviewQuery{})
	f.Memories = overview.Memories
	return f.Filled, err
}

// filler fills one file.
type filler struct {
	Filled
	*writer
	ctx   context.Context
	clock *clock.Clock
	began time.Time // when the first memory is stored
	store *souvenir.Store
	user  souvenir.User
	view  *souvenir.Store // the user's
	other souvenir.User
	ids   map[string][]string // of memories, by topic
	texts map[string]string   // the last text of a topic
	token souvenir.AddedToken
}

// inOrder runs the steps in order, until one fails.
func (f *filler) inOrder(steps ...func() error) error {
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// at sets the clock to a part of the history: 0 is its beginning, 1 is now.
func (f *filler) at(part float64) {
	f.clock.Set(f.began.Add(time.Duration(part * float64(history))))
}
