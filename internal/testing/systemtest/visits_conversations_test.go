package systemtest

import (
	"errors"
	"slices"
	"time"

	. "github.com/souvenir-ai/souvenir"
)

// conversationVisits are the visits of the methods of conversations.
var conversationVisits = map[string]func(v visit){
	"Conversation": func(v visit) {
		v.check("Conversation", v.view.Conversation("aliceopen"), nil, "aliceopen")
	},
	"Key": func(v visit) { v.check("Key", v.view.Conversation("k").Key(), nil) },
	"Conversations": func(v visit) {
		v.talks()
		seen := 0
		for info, err := range v.view.Conversations(v.Context(), ConversationList{}) {
			v.check("Conversations", info, err)
			if err == nil {
				seen++
			}
		}
		want := 0
		for _, name := range []string{"aliceopen", "alicebench"} { // one in the project, one outside
			if slices.Contains(v.sees, name) {
				want++
			}
		}
		if seen != want {
			v.Errorf("%d conversations are listed, want %d", seen, want)
		}
	},
	"Last": func(v visit) {
		v.onEachTalk("Last", func(c *Conversation, _ string) (int, error) {
			turns, err := c.Last(v.Context(), 10)
			v.check("Last", turns, err)
			return len(turns), err
		})
	},
	"Since": func(v visit) {
		v.onEachTalk("Since", func(c *Conversation, _ string) (n int, err error) {
			for turn, failed := range c.Since(v.Context(), time.Time{}) {
				v.check("Since", turn, failed)
				n, err = n+1, failed
			}
			return n, err
		})
	},
	"Window": func(v visit) {
		v.onEachTalk("Window", func(c *Conversation, _ string) (int, error) {
			turns, err := c.Window(v.Context(), 1000)
			v.check("Window", turns, err)
			return len(turns), err
		})
	},
	"Around": func(v visit) {
		v.onEachTalk("Around", func(c *Conversation, id string) (int, error) {
			turns, err := c.Around(v.Context(), id, 5, 5)
			v.check("Around", turns, err, id)
			if errors.Is(err, ErrNotFound) {
				err = nil
			}
			return len(turns), err
		})
	},
	"Info": func(v visit) {
		v.onEachTalk("Info", func(c *Conversation, _ string) (int, error) {
			info, err := c.Info(v.Context())
			v.check("Info", info, err)
			return info.Turns, err
		})
	},
	"Append": func(v visit) {
		v.changesTalks("Append", nil, func(c *Conversation, _ string) error {
			turns, err := c.Append(v.Context(), Turn{Key: "k", Content: "of a visitor"})
			v.check("Append", turns, err)
			return err
		})
	},
	"Delete": func(v visit) {
		v.changesTalks("Delete", ErrNotFound, func(c *Conversation, id string) error {
			err := c.Delete(v.Context(), id)
			v.check("Delete", nil, err, id)
			return err
		})
	},
	"Clear": func(v visit) {
		v.changesTalks("Clear", nil, func(c *Conversation, _ string) error {
			_, err := c.Clear(v.Context(), nil)
			v.check("Clear", nil, err)
			return err
		})
	},
}

// talks stores a conversation of alice in her shared project, and one with the same key outside, with two turns each.
// It returns the ids of the first turns.
func (v visit) talks() (shared, own string) {
	v.Helper()
	alice := v.n.store.As(Access{User: "alice"})
	for _, place := range []ConversationPlace{{ProjectID: "shared"}, {}} {
		secret := "aliceopen"
		if place.ProjectID == "" {
			secret = "alicebench"
		}
		turns, err := alice.Conversation("k", place).Append(v.Context(), Turn{Key: "k", Content: "about " + secret},
			Turn{Content: "more about " + secret})
		if err != nil {
			v.Fatal(err)
		}
		shared, own = own, turns[0].ID
	}
	return shared, own
}

// talkOfAlice is where visitors find the conversation of her project.
var talkOfAlice = ConversationPlace{ProjectID: "alice/shared"}

// onEachTalk reads the conversations. Each has two turns for users who see it, and none for others.
func (v visit) onEachTalk(what string, read func(c *Conversation, id string) (int, error)) {
	v.Helper()
	shared, own := v.talks()
	got, err := read(v.view.Conversation("k", talkOfAlice), shared)
	want := 0
	if slices.Contains(v.sees, "aliceopen") {
		want = 2
	}
	if got != want || err != nil && !isAny(err, ErrInvalid, ErrForbidden) {
		v.Errorf("%s gives %d turns of the project's conversation, %v, want %d", what, got, err, want)
	}
	got, err = read(v.view.Conversation("k"), own)
	want = 0
	if slices.Contains(v.sees, "alicebench") || v.access.User == "alice" && slices.Equal(v.access.Projects,
		[]string{"shared"}) { // a view of one project finds its conversation
		want = 2
	}
	if what == "Around" && len(v.access.Projects) == 1 {
		want = 0 // that conversation has no such turn
	}
	if (v.access.User == "bob" || v.access.User == "carol") && slices.Equal(v.access.Projects, []string{"alice/shared"}) &&
		what != "Around" {
		want = 2
	}
	if got != want || err != nil && !isAny(err, ErrInvalid, ErrForbidden) {
		v.Errorf("%s gives %d turns of a conversation of no project, %v, want %d", what, got, err, want)
	}
}

// changesTalks changes the conversation of the project, which its writers may do. Users who cannot see it get unseen.
func (v visit) changesTalks(what string, unseen error, change func(c *Conversation, id string) error) {
	v.Helper()
	shared, _ := v.talks()
	err := change(v.view.Conversation("k", talkOfAlice), shared)
	sees, changes := slices.Contains(v.sees, "aliceopen"), slices.Contains(v.changes, "aliceopen")
	switch {
	case v.access.ReadOnly && !errors.Is(err, ErrReadOnly):
		v.Errorf("%s through a read-only view gives %v", what, err)
	case v.access.ReadOnly:
	case changes && err != nil:
		v.Errorf("%s by one who may write gives %v", what, err)
	case sees && !changes && !errors.Is(err, ErrForbidden):
		v.Errorf("%s by a reader gives %v, want ErrForbidden", what, err)
	case !sees && what != "Append" && !errors.Is(err, unseen) && !isAny(err, ErrInvalid, ErrForbidden):
		v.Errorf("%s by a stranger gives %v, want %v", what, err, unseen)
	case !sees && what == "Append" && err == nil:
		v.Errorf("%s by a stranger stores into the project of alice", what)
	}
	turns, err := v.n.store.As(Access{User: "alice"}).Conversation("k").Last(v.Context(), 10)
	if own := v.access.User == "alice"; !own && (err != nil || len(turns) != 2) {
		v.Errorf("%s by a visitor leaves %d turns of alice's own conversation, %v, want 2", what, len(turns), err)
	}
}
