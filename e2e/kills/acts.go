package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
)

// The maximum numbers of objects that a client keeps.
const mostMemories, mostFiles = 40, 6

// act makes one call. The weights are those of an agent that writes a lot.
func (c *client) act(p *server) {
	acts := []struct {
		weight int
		do     func(*server)
	}{
		{24, c.store}, {20, c.update}, {8, c.annotate}, {9, c.remove}, {4, c.restore}, {8, c.setRule}, {12, c.tick},
		{4, c.setSpec}, {6, c.upload}, {3, c.describe}, {3, c.removeFile}, {7, c.search}, {7, c.retrieve}, {2, c.prefer},
		{5, c.invite},
	}
	n := c.random.IntN(122)
	for _, a := range acts {
		if n -= a.weight; n < 0 {
			a.do(p)
			return
		}
	}
}

func (c *client) add(k kind) *object {
	c.last++
	o := &object{kind: k, mark: mark(k, c.number, c.last)}
	c.objects[o.mark] = o
	return o
}

func (c *client) count(k kind) (n int) {
	for _, o := range c.objects {
		if o.kind == k && (o.now.There || o.next != nil) {
			n++
		}
	}
	return n
}

func (c *client) store(p *server) {
	if c.count(memory) >= mostMemories {
		c.remove(p)
		return
	}
	o := c.add(memory)
	if c.random.IntN(2) == 0 {
		o.project = "p" + strconv.Itoa(c.number)
	}
	next := state{There: true, Text: c.sentence(o.mark), Note: strconv.Itoa(c.said), Project: o.project, Revision: 1}
	arguments := map[string]any{"action": "store", "content": next.Text, "tags": []string{"load", o.mark},
		"metadata": map[string]any{"number": c.said}}
	if o.project != "" {
		arguments["project_id"] = o.project
	}
	var m memoryAnswer
	status, text, err := c.call.tool(context.Background(), p.url, "memory", arguments, &m)
	if c.settle(p, o, next, "store", status, text, err) {
		o.id = m.ID
	}
}

func (c *client) update(p *server) {
	if o := c.pick(memory, there); o != nil {
		next := o.now
		next.Text = c.sentence(o.mark)
		c.change(p, o, next, map[string]any{"content": next.Text})
	}
}

func (c *client) annotate(p *server) {
	if o := c.pick(memory, there); o != nil {
		c.said++
		next := o.now
		next.Note = strconv.Itoa(c.said)
		c.change(p, o, next, map[string]any{"metadata": map[string]any{"number": c.said}})
	}
}

func (c *client) change(p *server, o *object, next state, arguments map[string]any) {
	arguments["action"], arguments["id"] = "update", o.id
	if c.random.IntN(2) == 0 {
		arguments["expected_revision"] = o.now.Revision
	}
	next.Revision++
	var m memoryAnswer
	status, text, err := c.call.tool(context.Background(), p.url, "memory", arguments, &m)
	if c.settle(p, o, next, "update", status, text, err) && m.Revision != next.Revision {
		c.load.fault("update of %s: got revision %d, want %d", o.mark, m.Revision, next.Revision)
	}
}

func (c *client) remove(p *server) {
	if o := c.pick(memory, there); o != nil {
		next := o.now
		next.There, next.Trash = false, true
		status, text, err := c.call.tool(context.Background(), p.url, "memory",
			map[string]any{"action": "delete", "id": o.id}, new(map[string]any))
		c.settle(p, o, next, "delete", status, text, err)
	}
}

func (c *client) restore(p *server) {
	o := c.pick(memory, inTrash)
	if c.random.IntN(4) == 0 {
		o = c.pick(file, inTrash)
	}
	if o != nil {
		next := o.now
		next.There, next.Trash = true, false
		status, text, err := c.call.send(context.Background(), http.MethodPost, p.url+"/api/trash/"+o.id+"/restore", "", nil,
			nil)
		c.settle(p, o, next, "restore", status, text, err)
	}
}

func (c *client) setRule(p *server) {
	if o := c.pick(rule, func(*object) bool { return true }); o != nil {
		next := state{There: true, Text: c.sentence(o.mark), Project: o.project, Revision: o.now.Revision + 1}
		c.written(p, o, next, "rules", map[string]any{"action": "store", "rule_type": "do", "project_id": o.project,
			"content": next.Text})
	}
}

// written calls a tool that replaces the one text of its kind in a project.
func (c *client) written(p *server, o *object, next state, tool string, arguments map[string]any) {
	var m memoryAnswer
	status, text, err := c.call.tool(context.Background(), p.url, tool, arguments, &m)
	if c.settle(p, o, next, tool, status, text, err) {
		if o.id != "" && m.ID != o.id || m.Revision != next.Revision {
			c.load.fault("%s of %s: got id %s and revision %d, want %s and %d", tool, o.mark, m.ID, m.Revision, o.id,
				next.Revision)
		}
		o.id = m.ID
	}
}

// tick completes the next task of a todo, or begins a new todo.
func (c *client) tick(p *server) {
	o := c.pick(todo, func(*object) bool { return true })
	if o == nil {
		return
	}
	next := o.now
	next.There, next.Project = true, o.project
	next.Revision++
	open := strings.IndexByte(o.now.Text[max(0, len(o.now.Text)-tasks):], '0')
	if !o.now.There || open < 0 {
		c.said++
		content := newTodo(o.mark + " time " + strconv.Itoa(c.said))
		next.Text = textOfTodo(content)
		c.written(p, o, next, "todo", map[string]any{"action": "store", "project_id": o.project, "content": content})
		return
	}
	next.Text = ticked(o.now.Text, open)
	c.written(p, o, next, "todo", map[string]any{"action": "complete", "project_id": o.project,
		"task_id": "T" + strconv.Itoa(open+1)})
}

func (c *client) setSpec(p *server) {
	if o := c.pick(todo, there); o != nil {
		c.said++
		spec := o.mark + " time " + strconv.Itoa(c.said)
		next := o.now
		next.Text = withSpec(o.now.Text, spec)
		next.Revision++
		c.written(p, o, next, "todo", map[string]any{"action": "update_section", "project_id": o.project, "section": "spec",
			"content": spec})
	}
}

func (c *client) prefer(p *server) {
	if o := c.pick(preferences, func(*object) bool { return true }); o != nil {
		c.said++
		body, err := json.Marshal(map[string]any{"number": c.said, "text": strings.Repeat("ä", c.random.IntN(2000))})
		if err != nil {
			panic(err) // everything in it can be marshalled
		}
		status, text, err := c.call.send(context.Background(), http.MethodPut, p.url+"/api/user-preferences",
			"application/json", body, nil)
		c.settle(p, o, state{There: true, Text: string(body)}, "preferences", status, text, err)
	}
}

func (c *client) upload(p *server) {
	if c.count(file) >= mostFiles {
		c.removeFile(p)
		return
	}
	o := c.add(file)
	size := 1 + c.random.IntN(4<<10)
	switch n := c.random.IntN(20); {
	case n == 0:
		size = c.random.IntN(700 << 10) // several pieces
	case n < 4:
		size = c.random.IntN(100 << 10)
	}
	content := make([]byte, size)
	for i := range content {
		content[i] = byte(c.random.Uint32())
	}
	hash := sha256.Sum256(content)
	c.said++
	next := state{There: true, Text: hex.EncodeToString(hash[:]), Note: strconv.Itoa(c.said)}
	kind, body := form(o.mark, next.Note, content)
	var uploaded struct{ File fileAnswer }
	status, text, err := c.call.send(context.Background(), http.MethodPost, p.url+"/api/files/upload", kind, body,
		&uploaded)
	if c.settle(p, o, next, "upload", status, text, err) {
		o.id = uploaded.File.ID
	}
}

func (c *client) describe(p *server) {
	if o := c.pick(file, there); o != nil {
		c.said++
		next := o.now
		next.Note = strconv.Itoa(c.said)
		status, text, err := c.call.send(context.Background(), http.MethodPut, p.url+"/api/files/"+o.id+"/metadata",
			"application/json", []byte(`{"description":"`+next.Note+`"}`), nil)
		c.settle(p, o, next, "describe", status, text, err)
	}
}

func (c *client) removeFile(p *server) {
	if o := c.pick(file, there); o != nil {
		next := o.now
		next.There, next.Trash = false, true
		status, text, err := c.call.send(context.Background(), http.MethodDelete, p.url+"/api/files/"+o.id, "", nil, nil)
		c.settle(p, o, next, "delete", status, text, err)
	}
}

// asked records the answer of a call that changes nothing. It reports whether there is an answer.
func (c *client) asked(p *server, what string, status int, text []byte, err error) bool {
	var o object
	return c.settle(p, &o, state{}, what, status, text, err)
}

// search searches for a memory whose calls were answered, by its own words.
func (c *client) search(p *server) {
	if o := c.pick(memory, there); o != nil {
		found, text, ok := c.find(p, o)
		if ok && !found {
			c.load.fault("%s does not find %s by %q: %.600s", p.url, o.mark, o.now.Text, text)
		}
	}
}

func (c *client) find(p *server, o *object) (found bool, text []byte, ok bool) {
	var page listing
	status, text, err := c.call.tool(context.Background(), p.url, "memory", map[string]any{"action": "search",
		"query": "note " + o.mark, "limit": 10, "only_memories": true}, &page)
	if !c.asked(p, "search", status, text, err) {
		return false, text, false
	}
	for _, m := range page.all() {
		found = found || m.ID == o.id
	}
	return found, text, true
}

// retrieve reads a memory whose calls were answered.
func (c *client) retrieve(p *server) {
	if o := c.pick(memory, there); o != nil {
		var got struct{ Memory memoryAnswer }
		status, text, err := c.call.tool(context.Background(), p.url, "memory",
			map[string]any{"action": "retrieve", "id": o.id}, &got)
		if !c.asked(p, "retrieve", status, text, err) {
			return
		}
		if _, s := got.Memory.seen(); s != o.now {
			c.load.fault("%s: %s is %v, want %v", p.url, o.mark, s, o.now)
		}
	}
}
