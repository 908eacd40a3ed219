package storetest

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/souvenir-ai/souvenir"
)

// conversations are the promises about the handle of a conversation.
func conversations() concept {
	return concept{"Talks", []promise{
		{"return what was appended, in order", talkAppend},
		{"keep each part of a turn", talkParts},
		{"store a turn with a key once", talkKeys},
		{"order turns by time, and never have two at the same", talkTimes},
		{"take turns of many goroutines, each call's together", talkTogether},
		{"take any text as a key", talkNames},
		{"return the turns since a time", talkSince},
		{"fit a window into a budget", talkWindow},
		{"return the turns around a turn", talkAround},
		{"move to the trash and come back in their places", talkCleared},
		{"are erased by their owner", talkErased},
		{"belong to a project and its people", talkProject},
		{"are listed with counts and times", talkListed},
		{"are exported and imported", talkExport},
		{"keep the place of a turn that is updated", talkUpdated},
		{"hold memories stored with a conversation_id", talkMemories},
		{"lend evidence to their turns", talkRanked},
		{"refuse invalid turns", talkRefusals},
	}}
}

func (f *fixture) append(c *souvenir.Conversation, turns ...souvenir.Turn) []souvenir.Turn {
	f.Helper()
	added, err := c.Append(f.ctx, turns...)
	f.check("Append", err)
	return added
}

// say appends contents, each in a call of its own.
func (f *fixture) say(c *souvenir.Conversation, contents ...string) (all []souvenir.Turn) {
	f.Helper()
	for _, content := range contents {
		all = append(all, f.append(c, souvenir.Turn{Role: "user", Content: content})...)
	}
	return all
}

// talk returns the contents of all turns.
func (f *fixture) talk(c *souvenir.Conversation) []string {
	f.Helper()
	all := []string{}
	for t, err := range c.Since(f.ctx, time.Time{}) {
		if f.check("Since", err); err != nil {
			break
		}
		all = append(all, t.Content)
	}
	return all
}

func contentsOf(turns []souvenir.Turn) []string {
	all := []string{}
	for _, t := range turns {
		all = append(all, t.Content)
	}
	return all
}

func talkAppend(f *fixture) {
	c := f.store.Conversation("thread-42")
	last, err := c.Last(f.ctx, 5)
	f.check("Last of none", err)
	f.equal("no turns", len(last), 0)
	added := f.say(c, "one", "two", "three")
	more := f.append(c, souvenir.Turn{Content: "four"}, souvenir.Turn{Content: "five"})
	last, err = f.reader.Conversation("thread-42").Last(f.ctx, 3)
	f.check("Last", err)
	f.equal("last", last, slices.Concat(added[2:], more))
	f.equal("all", f.talk(c), []string{"one", "two", "three", "four", "five"})
	f.equal("another one", f.talk(f.store.Conversation("thread-43")), []string{})
	none, err := c.Append(f.ctx)
	f.check("Append of none", err)
	f.equal("nothing appended", len(none), 0)
	m := f.get(added[0].ID)
	f.equal("memory", []any{m.Collection, m.EventType, m.Metadata},
		[]any{"conversations", "turn", map[string]any{"conversation_id": "thread-42", "role": "user"}})
}

func talkParts(f *fixture) {
	c := f.store.Conversation("parts")
	calls := []any{map[string]any{"name": "weather <now>", "arguments": map[string]any{"city": "北京",
		"days": 3.0}}}
	want := souvenir.Turn{Key: "t/1", Role: "assistant", Speaker: "Ada 李", Content: "天气怎么样？", Time: start,
		ToolCalls: calls, Metadata: map[string]any{"model": "m-1", "time": "1999-01-01", "project_id": "x"}}
	got := f.append(c, want)[0]
	want.ID, want.Revision = got.ID, 1
	f.equal("appended", got, want)
	last, err := c.Last(f.ctx, 1)
	f.check("Last", err)
	f.equal("stored", last, []souvenir.Turn{want})
	silent := f.append(c, souvenir.Turn{Role: "assistant", ToolCalls: calls})[0]
	f.equal("content of a turn with calls alone", silent.Content, "")
	f.equal("calls", silent.ToolCalls, any(calls))
	f.findsTurn("weather", silent.ID)
	long := strings.Repeat("The harbour is long and grey. ", 4000)
	f.append(c, souvenir.Turn{Content: long + "A lighthouse stands at its end."})
	f.equal("a long turn", len(f.talk(c)[2]), len(long)+31)
}

// findsTurn checks that a search finds a memory.
func (f *fixture) findsTurn(text, id string) {
	f.Helper()
	for _, h := range f.search(souvenir.Query{Text: text, Limit: souvenir.MaxLimit}).Hits {
		if h.ID == id {
			return
		}
	}
	f.Errorf("a search for %q: got no %s, want it among the hits", text, id)
}

func talkKeys(f *fixture) {
	c := f.store.Conversation("a")
	first := f.append(c, souvenir.Turn{Key: "k1", Content: "once"})[0]
	f.clock.Pass(time.Hour)
	again := f.append(c, souvenir.Turn{Key: "k1", Content: "another text"}, souvenir.Turn{Key: "k2", Content: "twice"},
		souvenir.Turn{Key: "k2", Content: "thrice"})
	f.equal("returned", []any{again[0], again[1].Content, again[2]}, []any{first, "twice", again[1]})
	f.equal("stored", f.talk(c), []string{"once", "twice"})
	other := f.append(f.store.Conversation("b"), souvenir.Turn{Key: "k1", Content: "elsewhere"})[0]
	f.equal("key elsewhere", []any{other.Key, other.ID != first.ID}, []any{"k1", true})
	f.check("Delete", c.Delete(f.ctx, first.ID))
	f.append(c, souvenir.Turn{Key: "k1", Content: "after deletion"})
	f.equal("key of a deleted turn", f.talk(c), []string{"twice", "after deletion"})
	var wait sync.WaitGroup
	for range 16 {
		wait.Go(func() {
			_, err := c.Append(f.ctx, souvenir.Turn{Key: "k3", Content: "at once"})
			f.check("Append at once", err)
		})
	}
	wait.Wait()
	f.equal("stored at once", f.talk(c), []string{"twice", "after deletion", "at once"})
}

func talkTimes(f *fixture) {
	c := f.store.Conversation("times")
	at := func(content string, t time.Time) time.Time {
		f.Helper()
		return f.append(c, souvenir.Turn{Content: content, Time: t})[0].Time
	}
	f.equal("now", at("now", time.Time{}), start)
	f.equal("at the same time", at("the same", time.Time{}), start.Add(time.Microsecond))
	f.equal("given in seconds", at("second", start.Add(-500*time.Millisecond)), start.Add(2*time.Microsecond))
	past := start.Add(-time.Hour)
	f.equal("given, earlier", at("past", past), past)
	f.equal("taken", at("past, too", past), past.Add(time.Microsecond))
	f.equal("taken twice", at("past, three", past), past.Add(2*time.Microsecond))
	f.equal("taken, later", at("past, four", past.Add(time.Microsecond)), past.Add(3*time.Microsecond))
	f.clock.Pass(-time.Minute)
	f.equal("clock set back", at("back", time.Time{}), start.Add(3*time.Microsecond))
	f.clock.Pass(2 * time.Minute)
	f.equal("later", at("later", time.Time{}), start.Add(time.Minute))
	f.equal("order", f.talk(c), []string{"past", "past, too", "past, three", "past, four", "now", "the same", "second",
		"back", "later"})
	f.add(souvenir.NewMemory{Content: "of a wrong clock", Collection: souvenir.ConversationCollection,
		EventTime: start.AddDate(100, 0, 0), Metadata: map[string]any{"conversation_id": "times"}})
	f.equal("after a wrong clock", at("after", time.Time{}), start.Add(time.Minute+time.Microsecond))
	_, err := c.Append(f.ctx, souvenir.Turn{Content: "to come", Time: start.Add(time.Hour)})
	f.failsAt("a time to come", err, souvenir.ErrInvalid, "time")
}

func talkTogether(f *fixture) {
	const callers, each = 32, 4
	c := f.store.Conversation("crowd")
	var wait sync.WaitGroup
	for i := range callers {
		wait.Go(func() {
			var turns []souvenir.Turn
			for j := range each {
				turns = append(turns, souvenir.Turn{Content: fmt.Sprintf("%d %d", i, j)})
			}
			_, err := c.Append(f.ctx, turns...)
			f.check("Append", err)
		})
	}
	wait.Wait()
	last, err := c.Last(f.ctx, souvenir.MaxTurns)
	f.check("Last", err)
	f.equal("turns", len(last), callers*each)
	for i := 1; i < len(last); i++ {
		var caller, n, before, m int
		if _, err := fmt.Sscan(last[i-1].Content, &before, &m); err != nil {
			f.Fatal(err)
		}
		if _, err := fmt.Sscan(last[i].Content, &caller, &n); err != nil {
			f.Fatal(err)
		}
		if n != i%each || n > 0 && caller != before || !last[i].Time.After(last[i-1].Time) {
			f.Fatalf("turn %d is %q at %v after %q at %v, want numbers and times to rise", i, last[i].Content,
				last[i].Time, last[i-1].Content,
				last[i-1].Time)
		}
	}
}

func talkNames(f *fixture) {
	keys := []string{"a", " a", "a ", "A", "a\x01", "北京", "a\nb", "'; --", "1", "%", strings.Repeat("ä", 256)}
	for _, key := range keys {
		f.say(f.store.Conversation(key), "said in "+key)
	}
	var listed []string
	for info, err := range f.store.Conversations(f.ctx, souvenir.ConversationList{}) {
		f.check("Conversations", err)
		listed = append(listed, info.Key)
	}
	slices.Sort(listed)
	f.equal("keys", listed, slices.Sorted(slices.Values(keys)))
	for _, key := range keys {
		f.equal(fmt.Sprintf("%q", key), f.talk(f.reader.Conversation(key)), []string{"said in " + key})
	}
}

func talkSince(f *fixture) {
	c := f.store.Conversation("long")
	for i := range 6 {
		var turns []souvenir.Turn
		for j := range 100 {
			turns = append(turns, souvenir.Turn{Content: fmt.Sprint("turn ", 100*i+j)})
		}
		f.append(c, turns...)
		f.clock.Pass(time.Hour)
	}
	f.equal("all", len(f.talk(c)), 600)
	var since []string
	for t, err := range c.Since(f.ctx, start.Add(5*time.Hour)) {
		f.check("Since", err)
		since = append(since, t.Content)
		if len(since) == 1 {
			f.say(c, "appended meanwhile")
		}
	}
	f.equal("since", []any{len(since), since[0], since[99]}, []any{100, "turn 500", "turn 599"})
	last, err := c.Last(f.ctx, 1)
	f.check("Last", err)
	f.equal("last", contentsOf(last), []string{"appended meanwhile"})
}

func talkWindow(f *fixture) {
	c := f.store.Conversation("window")
	window := func(tokens int) []string {
		f.Helper()
		got, err := c.Window(f.ctx, tokens)
		f.check("Window", err)
		sum := 0
		for _, t := range got {
			sum += t.Tokens()
		}
		if sum > tokens {
			f.Errorf("a window has %d tokens, want at most %d", sum, tokens)
		}
		return contentsOf(got)
	}
	f.equal("of none", window(100), []string{})
	turns := f.append(c, souvenir.Turn{Role: "user", Content: "Wie wird das Wetter?"},
		souvenir.Turn{Role: "assistant", ToolCalls: []any{"weather"}}, souvenir.Turn{Role: "tool", Content: "sunny"},
		souvenir.Turn{Role: "assistant", Content: "Sonnig."})
	f.equal("all", window(1000), []string{"Wie wird das Wetter?", "", "sunny", "Sonnig."})
	last, tool, call := turns[3].Tokens(), turns[2].Tokens(), turns[1].Tokens()
	f.equal("the last one", window(last), []string{"Sonnig."})
	f.equal("without an answer whose call is missing", window(last+tool), []string{"Sonnig."})
	f.equal("with the call", window(last+tool+call), []string{"", "sunny", "Sonnig."})
	f.equal("too small for anything", window(1), []string{})
	f.say(c, strings.Repeat("很长的话。", 1000))
	got, err := c.Window(f.ctx, 300)
	f.check("Window", err)
	if len(got) != 1 || !got[0].Truncated || got[0].Tokens() < 200 || got[0].Tokens() > 300 {
		f.Errorf("the window of a long turn has %d turns, want one of 200 to 300 tokens", len(got))
	}
	for _, tokens := range []int{0, -1, 1 << 40} {
		_, err := c.Window(f.ctx, tokens)
		f.failsAt("Window", err, souvenir.ErrInvalid, "tokens")
	}
}

func talkAround(f *fixture) {
	c := f.store.Conversation("around")
	turns := f.say(c, "a", "b", "c", "d", "e")
	around := func(id string, before, after int) []string {
		f.Helper()
		got, err := c.Around(f.ctx, id, before, after)
		f.check("Around", err)
		return contentsOf(got)
	}
	f.equal("two and one", around(turns[2].ID, 2, 1), []string{"a", "b", "c", "d"})
	f.equal("at the beginning", around(turns[0].ID, 9, 1), []string{"a", "b"})
	f.equal("alone", around(turns[4].ID, 0, 0), []string{"e"})
	other := f.say(f.store.Conversation("other"), "x")[0]
	for _, id := range []string{"", "nowhere", other.ID, f.add(souvenir.NewMemory{Content: "no turn"}).ID} {
		_, err := c.Around(f.ctx, id, 1, 1)
		f.failsAt("Around", err, souvenir.ErrNotFound, "id")
		f.failsAt("Delete", c.Delete(f.ctx, id), souvenir.ErrNotFound, "id")
	}
	_, err := f.store.Conversation("unknown").Around(f.ctx, other.ID, 1, 1)
	f.failsAt("Around in an unknown one", err, souvenir.ErrNotFound, "id")
}

func talkCleared(f *fixture) {
	c := f.store.Conversation("cleared")
	turns := f.append(c, souvenir.Turn{Key: "k", Content: "a", Time: start}, souvenir.Turn{Content: "b", Time: start},
		souvenir.Turn{Content: "c", Time: start})
	f.say(f.store.Conversation("kept"), "stays")
	deleted, err := c.Clear(f.ctx, nil)
	f.check("Clear", err)
	f.equal("deleted", []any{deleted, f.talk(c)}, []any{3, []string{}})
	f.equal("another one", f.talk(f.store.Conversation("kept")), []string{"stays"})
	for _, i := range []int{2, 0, 1} {
		_, err := f.store.Trash().Restore(f.ctx, turns[i].ID)
		f.check("Trash.Restore", err)
	}
	last, err := c.Last(f.ctx, 3)
	f.check("Last", err)
	f.equal("restored", last, turns)
	again, err := f.store.Conversation("nothing").Clear(f.ctx, nil)
	f.check("Clear of nothing", err)
	f.equal("deleted of nothing", again, 0)
}

func talkErased(f *fixture) {
	c := f.store.Conversation("erased")
	turns := f.say(c, "a", "b")
	deleted, err := c.Clear(f.ctx, &souvenir.DeletionOptions{Erase: true})
	f.check("Clear", err)
	f.equal("deleted", []any{deleted, f.talk(c)}, []any{2, []string{}})
	_, err = f.store.Trash().Get(f.ctx, turns[0].ID)
	f.failsAt("Trash.Get", err, souvenir.ErrNotFound, "id")
}

func talkProject(f *fixture) {
	in := souvenir.ConversationPlace{ProjectID: "p"}
	mine := f.store.Conversation("k", in)
	turns := f.say(mine, "in the project")
	f.say(f.store.Conversation("k"), "outside")
	f.equal("in the project", f.talk(mine), []string{"in the project"})
	f.equal("outside", f.talk(f.store.Conversation("k")), []string{"outside"})
	limited := f.store.As(souvenir.Access{Projects: []string{"p"}})
	f.equal("of a view limited to it", f.talk(limited.Conversation("k")), []string{"in the project"})
	elsewhere := f.store.As(souvenir.Access{Projects: []string{"q"}})
	f.equal("of another view", f.talk(elsewhere.Conversation("k", in)), []string{})
	guest := f.store.As(souvenir.Access{User: "guest"})
	_, err := guest.AddMemory(f.ctx, souvenir.NewMemory{Content: "so that the store knows the user"})
	f.check("AddMemory", err)
	at := souvenir.ConversationPlace{ProjectID: "local/p"}
	f.equal("of a stranger", f.talk(guest.Conversation("k", at)), []string{})
	f.share("p", "guest", souvenir.MemberReader)
	f.equal("of a reader", f.talk(guest.Conversation("k", at)), []string{"in the project"})
	_, err = guest.Conversation("k", at).Append(f.ctx, souvenir.Turn{Content: "x"})
	f.failsAt("a reader's Append", err, souvenir.ErrForbidden, "project_id")
	if known := (*souvenir.Error)(nil); errors.As(err, &known) {
		f.equal("the field of a reader's Append", known.Field, "ConversationPlace.ProjectID")
	}
	_, err = guest.Conversation("k", at).Clear(f.ctx, nil)
	f.failsAt("a reader's Clear", err, souvenir.ErrForbidden, "key")
	f.failsAt("a reader's Delete", guest.Conversation("k", at).Delete(f.ctx, turns[0].ID), souvenir.ErrForbidden, "id")
	_, err = f.operator.UpdateMember(f.ctx, souvenir.ProjectRef{ID: "local/p"}, "guest",
		souvenir.MemberUpdate{Role: souvenir.MemberWriter})
	f.check("UpdateMember", err)
	f.append(guest.Conversation("k", at), souvenir.Turn{Content: "of a guest"})
	f.equal("of both", f.talk(mine), []string{"in the project", "of a guest"})
	_, err = guest.Conversation("k", at).Clear(f.ctx, &souvenir.DeletionOptions{Erase: true})
	f.failsAt("a writer's erasure", err, souvenir.ErrForbidden, "Erase")
	f.check("DeleteProject", f.store.DeleteProject(f.ctx, souvenir.ProjectRef{ID: "p"},
		&souvenir.DeletionOptions{WithMemories: true}))
	f.equal("of a deleted project", f.talk(mine), []string{})
	f.equal("still outside", f.talk(f.store.Conversation("k")), []string{"outside"})
}

func talkListed(f *fixture) {
	f.say(f.store.Conversation("a"), "first of a", "second of a")
	f.clock.Pass(time.Hour)
	f.say(f.store.Conversation("b", souvenir.ConversationPlace{ProjectID: "p"}), "of b")
	f.clock.Pass(time.Hour)
	f.say(f.store.Conversation("c"), "of c")
	list := func(l souvenir.ConversationList) []string {
		f.Helper()
		var all []string
		for info, err := range f.reader.Conversations(f.ctx, l) {
			f.check("Conversations", err)
			all = append(all, fmt.Sprintf("%s %s %d %q %s %s", info.Key, info.ProjectID, info.Turns, info.Begins,
				info.FirstAt.Sub(start), info.LastAt.Sub(start)))
		}
		return all
	}
	a, b, c := `a  2 "first of a" 0s 1µs`, `b p 1 "of b" 1h0m0s 1h0m0s`, `c  1 "of c" 2h0m0s 2h0m0s`
	f.equal("all", list(souvenir.ConversationList{}), []string{c, b, a})
	f.equal("a page", list(souvenir.ConversationList{Limit: 1, Offset: 1}), []string{b})
	f.equal("of a project", list(souvenir.ConversationList{ProjectID: "p"}), []string{b})
	f.equal("of an unknown project", len(list(souvenir.ConversationList{ProjectID: "unknown"})), 0)
	f.equal("of another collection", len(list(souvenir.ConversationList{Collection: "default"})), 0)
	for c, err := range f.store.As(souvenir.Access{User: "guest"}).Conversations(f.ctx, souvenir.ConversationList{}) {
		f.Errorf("what a stranger sees: got %+v, %v, want no conversation", c, err)
	}
	info, err := f.store.Conversation("a").Info(f.ctx)
	f.check("Info", err)
	f.equal("info", []any{info.Key, info.Turns, info.FirstAt}, []any{"a", 2, start})
	info, err = f.store.Conversation("unknown").Info(f.ctx)
	f.check("Info of none", err)
	f.equal("info of none", info, souvenir.ConversationInfo{Key: "unknown"})
}

func talkExport(f *fixture) {
	c := f.store.Conversation("exported", souvenir.ConversationPlace{ProjectID: "p"})
	turns := f.append(c, souvenir.Turn{Key: "1", Role: "user", Content: "a", Time: start.Add(-time.Hour)},
		souvenir.Turn{Key: "2", Role: "assistant", Content: "b", Time: start.Add(-time.Hour), ToolCalls: "x"},
		souvenir.Turn{Key: "3", Speaker: "Ada", Content: "c"})
	var out bytes.Buffer
	_, err := f.operator.Upkeep().Export(f.ctx, &out, nil)
	f.check("Export", err)
	_, err = c.Clear(f.ctx, &souvenir.DeletionOptions{Erase: true})
	f.check("Clear", err)
	_, err = f.operator.Upkeep().Import(f.ctx, &out, nil)
	f.check("Import", err)
	last, err := c.Last(f.ctx, 9)
	f.check("Last", err)
	f.equal("imported", last, turns)
	f.equal("keys of imported turns", f.append(c, souvenir.Turn{Key: "2", Content: "b"}), turns[1:2])
}

func talkUpdated(f *fixture) {
	c := f.store.Conversation("updated")
	turns := f.append(c, souvenir.Turn{Content: "a"}, souvenir.Turn{Key: "k", Content: "b"}, souvenir.Turn{Content: "c"})
	f.clock.Pass(time.Hour)
	changed := "B"
	_, err := f.store.UpdateMemory(f.ctx, turns[1].ID, souvenir.MemoryUpdate{Content: &changed})
	f.check("UpdateMemory", err)
	last, err := c.Last(f.ctx, 3)
	f.check("Last", err)
	turns[1].Content, turns[1].Revision = "B", 2
	f.equal("updated", last, turns)
	_, err = f.store.UpdateMemory(f.ctx, turns[1].ID,
		souvenir.MemoryUpdate{ShownMetadata: map[string]any{"project_id": "p"}})
	f.check("UpdateMemory", err)
	f.equal("after a move", f.talk(c), []string{"a", "c"})
	f.equal("moved", f.talk(f.store.Conversation("updated", souvenir.ConversationPlace{ProjectID: "p"})), []string{"B"})
}

func talkMemories(f *fixture) {
	in := souvenir.ConversationPlace{Collection: "default"}
	f.add(souvenir.NewMemory{Content: "stored by a tool", Metadata: map[string]any{"conversation_id": "k",
		"role": "user"}})
	f.clock.Pass(time.Minute)
	f.say(f.store.Conversation("k", in), "appended")
	f.equal("both", f.talk(f.store.Conversation("k", in)), []string{"stored by a tool", "appended"})
	f.equal("in the usual place", f.talk(f.store.Conversation("k")), []string{})
}

func talkRanked(f *fixture) {
	c := f.store.Conversation("trip")
	f.say(c, "Which way did you take to the heron lake?")
	answer := f.append(c, souvenir.Turn{Role: "user", Content: "by train along the coast"})[0]
	f.equal("lent", f.lenders(answer.ID, souvenir.Query{Text: "way to the heron lake"}),
		[]string{"-1 Which way did you take to the heron lake?"})
}

func talkRefusals(f *fixture) {
	for _, key := range []string{"", "  \t", strings.Repeat("x", 513), "\xff", "\xed\xa0\x80"} {
		c := f.store.Conversation(key)
		_, err := c.Append(f.ctx, souvenir.Turn{Content: "x"})
		f.failsAt("Append", err, keyError(len(key) > 512), "key")
		_, err = c.Last(f.ctx, 1)
		f.failsAt("Last", err, keyError(len(key) > 512), "key")
		_, err = c.Clear(f.ctx, nil)
		f.failsAt("Clear", err, keyError(len(key) > 512), "key")
	}
	c := f.store.Conversation("k")
	for _, refused := range []struct {
		turn     souvenir.Turn
		err      *souvenir.Error
		argument string
	}{
		{souvenir.Turn{}, souvenir.ErrInvalid, "content"},
		{souvenir.Turn{Content: " "}, souvenir.ErrInvalid, "content"},
		{souvenir.Turn{Content: "\xff"}, souvenir.ErrInvalid, "content"},
		{souvenir.Turn{Content: "x", Role: strings.Repeat("r", 65)}, souvenir.ErrTooLarge, "role"},
		{souvenir.Turn{Content: "x", Speaker: "a\nb"}, souvenir.ErrInvalid, "speaker"},
		{souvenir.Turn{Content: "x", Key: strings.Repeat("k", 257)}, souvenir.ErrTooLarge, "key"},
		{souvenir.Turn{Content: "x", Key: "\xff"}, souvenir.ErrInvalid, "key"},
		{souvenir.Turn{Content: "x", Metadata: map[string]any{"role": "user"}}, souvenir.ErrInvalid, "metadata"},
		{souvenir.Turn{Content: "x", ToolCalls: func() {}}, souvenir.ErrInvalid, "tool_calls"},
		{souvenir.Turn{Content: "x", Time: time.Date(10001, 1, 1, 0, 0, 0, 0, time.UTC)}, souvenir.ErrInvalid,
			"event_time"},
	} {
		_, err := c.Append(f.ctx, souvenir.Turn{Content: "fine"}, refused.turn)
		f.failsAt(fmt.Sprintf("Append %.40v", refused.turn), err, refused.err, refused.argument)
		if err != nil && !strings.HasPrefix(err.Error(), "add[1].") {
			f.Errorf("got the error %q, want one that begins with \"add[1].\"", err)
		}
	}
	_, err := c.Append(f.ctx, souvenir.Turn{Content: "x", Key: "a\x00"})
	if err == nil || !strings.Contains(err.Error(), "at offset 1,") {
		f.Errorf("a key with U+0000: got the error %v, want one with \"at offset 1,\"", err)
	}
	_, err = c.Append(f.ctx, make([]souvenir.Turn, souvenir.MaxTurns+1)...)
	f.failsAt("too many", err, souvenir.ErrTooLarge, "turns")
	_, err = f.store.Conversation("k", souvenir.ConversationPlace{}, souvenir.ConversationPlace{}).Info(f.ctx)
	f.failsAt("two places", err, souvenir.ErrInvalid, "in")
	_, err = f.store.Conversation("k", souvenir.ConversationPlace{Collection: "unknown"}).Append(f.ctx,
		souvenir.Turn{Content: "x"})
	f.failsAt("an unknown collection", err, souvenir.ErrNotFound, "collection_name")
	for _, n := range []int{0, souvenir.MaxTurns + 1} {
		_, err := c.Last(f.ctx, n)
		f.failsAt("Last", err, souvenir.ErrInvalid, "n")
	}
	_, err = c.Around(f.ctx, "x", 0, 101)
	f.failsAt("Around", err, souvenir.ErrInvalid, "after")
	for _, err := range f.store.Conversations(f.ctx, souvenir.ConversationList{Limit: -1}) {
		f.failsAt("Conversations", err, souvenir.ErrInvalid, "limit")
	}
	_, err = f.store.As(souvenir.Access{ReadOnly: true}).Conversation("k").Append(f.ctx, souvenir.Turn{Content: "x"})
	f.failsAt("read-only", err, souvenir.ErrReadOnly, "")
	f.equal("nothing was stored", f.talk(c), []string{})
}

func keyError(long bool) *souvenir.Error {
	if long {
		return souvenir.ErrTooLarge
	}
	return souvenir.ErrInvalid
}
