package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// listing is the answer of a search.
type listing struct {
	Results []struct{ Memories []memoryAnswer }
	HasMore bool `json:"has_more"`
}

func (p *listing) all() (all []memoryAnswer) {
	for _, group := range p.Results {
		all = append(all, group.Memories...)
	}
	return all
}

// found is the content of the store.
type found struct {
	ids    map[string]string // by mark
	states map[string]state
	trash  map[string]string // marks by id, "" where the entry does not say
}

// note records an object, which may exist only once.
func (f *found) note(mark, id string, s state) error {
	if other, twice := f.ids[mark]; twice {
		return fmt.Errorf("%q is there twice, as %s and %s", mark, other, id)
	}
	f.ids[mark], f.states[mark] = id, s
	return nil
}

// backAfter is how long the servers may refuse calls after the database is back.
const backAfter = 30 * time.Second

// ask sends until a newly started server answers.
func (l *load) ask(send func() (int, []byte, error)) error {
	for end := time.Now().Add(backAfter); ; time.Sleep(20 * time.Millisecond) {
		status, text, err := send()
		if err == nil && status == http.StatusOK {
			return nil
		}
		if l.settings.endNode == "" || err != nil || status != http.StatusServiceUnavailable || time.Now().After(end) {
			return fmt.Errorf("after the start: status %d, %.400s, %w", status, text, err)
		}
	}
}

// list reads everything in the store.
func (l *load) list(url string) (*found, error) {
	ctx := context.Background()
	f := &found{ids: map[string]string{}, states: map[string]state{}, trash: map[string]string{}}
	for offset := 0; ; offset += 100 {
		var page listing
		if err := l.ask(func() (int, []byte, error) {
			return l.call.tool(ctx, url, "memory", map[string]any{"action": "search", "limit": 100, "offset": offset,
				"sort_order": "created_at_asc", "only_memories": true}, &page)
		}); err != nil {
			return nil, err
		}
		for _, m := range page.all() {
			mark, s := m.seen()
			if err := f.note(mark, m.ID, s); err != nil {
				return nil, err
			}
		}
		if !page.HasMore {
			break
		}
	}
	var files struct {
		Files   []fileAnswer
		HasMore bool `json:"has_more"`
	}
	var kept map[string]any
	err := l.ask(func() (int, []byte, error) {
		return l.call.send(ctx, http.MethodGet, url+"/api/files?limit=1000", "", nil, &files)
	})
	if err == nil {
		err = l.ask(func() (int, []byte, error) {
			return l.call.send(ctx, http.MethodGet, url+"/api/user-preferences", "", nil, &kept)
		})
	}
	if err != nil || files.HasMore {
		return nil, fmt.Errorf("the files and preferences: %w, more: %v", err, files.HasMore)
	}
	for _, one := range files.Files {
		mark, s := one.seen()
		if err := f.note(mark, one.ID, s); err != nil {
			return nil, err
		}
	}
	if len(kept) > 0 {
		text, err := json.Marshal(kept)
		if err != nil {
			return nil, err
		}
		f.ids["preferences"], f.states["preferences"] = "", state{There: true, Text: string(text)}
	}
	if err := l.listMembers(url, f); err != nil {
		return nil, err
	}
	return f, l.listTrash(url, f)
}

// listTrash reads the trash, whose entries have the ids of what was deleted.
func (l *load) listTrash(url string, f *found) error {
	for offset := 0; ; offset += 100 {
		var page struct {
			Entries []struct{ ID string }
			HasMore bool `json:"has_more"`
		}
		if err := l.ask(func() (int, []byte, error) {
			return l.call.send(context.Background(), http.MethodGet,
				url+"/api/trash?limit=100&offset="+strconv.Itoa(offset), "", nil, &page)
		}); err != nil {
			return err
		}
		for _, e := range page.Entries {
			f.trash[e.ID] = ""
		}
		if !page.HasMore {
			return nil
		}
	}
}

// compare checks that the store has everything that was answered, and nothing else.
func (l *load) compare(servers []*server, round int, sum *totals) error {
	p := servers[l.random.IntN(len(servers))]
	f, err := l.list(p.url)
	if err != nil {
		return err
	}
	inTrash := 0
	for _, c := range l.clients {
		for mark, o := range c.objects {
			s := f.states[mark]
			id := f.ids[mark]
			delete(f.states, mark)
			if o.id == "" {
				o.id = id
			}
			if _, there := f.trash[o.id]; there && o.id != "" {
				s.Trash = true
				inTrash++
				if !s.There { // its content is invisible until it is restored
					s = l.asDeleted(o)
				}
			}
			l.compareOne(o, id, s, sum)
			if !o.now.There && !o.now.Trash && (o.kind == memory || o.kind == file) {
				delete(c.objects, mark) // it was not stored
			}
		}
	}
	for mark, s := range f.states {
		l.fault("no one stored %q, which is %v", mark, s)
	}
	if inTrash != len(f.trash) {
		l.fault("the trash has %d entries, of which %d were deleted", len(f.trash), inTrash)
	}
	l.readFiles(p, round%10 == 0)
	l.searchSome(p)
	if round%20 == 0 || l.settings.soak != nil {
		return l.emptyTrash(p)
	}
	return nil
}

// asDeleted is the state of an object that is in the trash alone.
func (l *load) asDeleted(o *object) state {
	for _, may := range o.states() {
		if may.Trash {
			return may
		}
	}
	return state{Trash: true}
}

func (l *load) compareOne(o *object, id string, s state, sum *totals) {
	sum.compared++
	if s.There && o.id != id {
		l.fault("%s %s has the id %s, and was answered with %s", o.kind, o.mark, id, o.id)
	}
	if !o.accept(s) {
		l.fault("%s %s is %v, want one of %v", o.kind, o.mark, s, o.states())
	}
	if o.next != nil && s == *o.next {
		sum.happened++
	}
	o.now, o.next = s, nil
}

// readFiles reads the content of files: those of the round, or all.
func (l *load) readFiles(p *server, all bool) {
	for _, c := range l.clients {
		for _, o := range c.objects {
			if o.kind == file && o.now.There && (o.touched || all) {
				status, content, err := l.call.send(context.Background(), http.MethodGet, p.url+"/api/files/"+o.id, "", nil, nil)
				hash := sha256.Sum256(content)
				if err != nil || status != http.StatusOK || hex.EncodeToString(hash[:]) != o.now.Text {
					l.fault("file %s of %d bytes: status %d, hash %x, %v, want %s", o.mark, len(content), status, hash, err,
						o.now.Text)
				}
			}
			o.touched = o.touched && o.kind == memory
		}
	}
}

// searchSome searches for some of the memories that were changed in the round.
func (l *load) searchSome(p *server) {
	for i, c := range l.clients {
		searched := false
		for _, o := range c.objects {
			if o.touched && o.now.There && !searched && i%2 == l.random.IntN(2) {
				searched = true
				found, text, ok := c.find(p, o)
				if !ok || !found {
					l.fault("after the start, %s is not found by %q: %.600s", o.mark, o.now.Text, text)
				}
			}
			o.touched = false
		}
	}
}

func (l *load) emptyTrash(p *server) error {
	if err := l.ask(func() (int, []byte, error) {
		return l.call.send(context.Background(), http.MethodDelete, p.url+"/api/trash", "", nil, nil)
	}); err != nil {
		return err
	}
	for _, c := range l.clients {
		for mark, o := range c.objects {
			if o.now.Trash {
				delete(c.objects, mark)
			}
		}
	}
	return nil
}
