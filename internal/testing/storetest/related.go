package storetest

import (
	"fmt"
	"strings"

	"github.com/souvenir-ai/souvenir"
)

func related() concept {
	return concept{"Related memories", []promise{
		{"are reached in both directions, nearest first, on a shortest path", relatedWalk},
		{"are walked as far as asked", relatedDepth},
		{"of a cycle appear once", relatedCycle},
		{"end where the view ends", relatedInvisible},
		{"are linked in the order given, each once", relatedOrder},
		{"links out of sight survive an update", relatedHiddenLinks},
	}}
}

// graph stores one memory for each name and the links between them, given as "from>to".
func graph(f *fixture, names, links string) map[string]string {
	f.Helper()
	id := map[string]string{}
	for _, name := range strings.Fields(names) {
		id[name] = f.addTexts(name)[0]
	}
	targets := map[string][]string{}
	for _, link := range strings.Fields(links) {
		from, to, _ := strings.Cut(link, ">")
		targets[from] = append(targets[from], id[to])
		f.patch(id[from], map[string]any{"related_memory_ids": targets[from]})
	}
	return id
}

// walk returns the results of RelatedMemories, one text for each: "c 2 outgoing a>b>c".
func walk(f *fixture, id map[string]string, from string, depth int) []string {
	f.Helper()
	name := map[string]string{}
	for n, i := range id {
		name[i] = n
	}
	all, err := f.reader.RelatedMemories(f.ctx, id[from], depth)
	f.check("RelatedMemories", err)
	var notes []string
	for _, r := range all {
		var path []string
		for _, step := range r.Path {
			path = append(path, name[step])
		}
		notes = append(notes, fmt.Sprint(r.Content, " ", r.Depth, " ", r.Direction, " ", strings.Join(path, ">")))
	}
	return notes
}

func relatedWalk(f *fixture) {
	id := graph(f, "a b c d e f lonely", "a>b a>c d>a b>e c>e e>f")
	f.same("from a", walk(f, id, "a", 10),
		"b 1 outgoing a>b", "c 1 outgoing a>c", "d 1 incoming a>d", "e 2 outgoing a>b>e", "f 3 outgoing a>b>e>f")
	f.same("from f", walk(f, id, "f", 2), "e 1 incoming f>e", "b 2 incoming f>e>b", "c 2 incoming f>e>c")
	f.same("from a lonely one", walk(f, id, "lonely", 10))
}

func relatedDepth(f *fixture) {
	id := graph(f, "a b c d", "a>b b>c c>d")
	for depth, want := range map[int]int{1: 1, 2: 2, 3: 3, 10: 3} {
		f.equal(fmt.Sprint("reached over ", depth), len(walk(f, id, "a", depth)), want)
	}
	for _, depth := range []int{-1, 0, 11} {
		_, err := f.reader.RelatedMemories(f.ctx, id["a"], depth)
		f.failsAt("RelatedMemories", err, souvenir.ErrInvalid, "depth", fmt.Sprint(depth), "1 to 10")
	}
}

func relatedCycle(f *fixture) {
	id := graph(f, "a b c", "a>b b>c c>a b>a")
	f.same("from a", walk(f, id, "a", 10), "b 1 outgoing a>b", "c 1 incoming a>c")
	f.same("from c", walk(f, id, "c", 10), "a 1 outgoing c>a", "b 1 incoming c>b")
}

func relatedInvisible(f *fixture) {
	id := graph(f, "a b c d e", "a>b b>c a>d d>e")
	for name, project := range map[string]string{"a": "p", "b": "hidden", "c": "p", "d": "p", "e": "p"} {
		f.patch(id[name], map[string]any{"project_id": project})
	}
	limited := f.as(souvenir.Access{Projects: []string{"p"}})
	f.same("through a limited view", walk(limited, id, "a", 10), "d 1 outgoing a>d", "e 2 outgoing a>d>e")
	f.equal("links as the view shows them", limited.get(id["a"]).Related, []string{id["d"]})
	_, err := limited.reader.RelatedMemories(f.ctx, id["b"], 1)
	f.failsAt("RelatedMemories of a hidden one", err, souvenir.ErrNotFound, "id")
	f.equal("through the whole view", len(walk(f, id, "a", 10)), 4)
}

func relatedOrder(f *fixture) {
	targets := f.addTexts("1", "2", "3")
	order := []string{targets[2], targets[0], targets[2], targets[1]}
	want := []string{targets[2], targets[0], targets[1]}
	m := f.add(souvenir.NewMemory{Content: "x", Related: order})
	f.equal("stored", m.Related, want)
	f.equal("read", f.get(m.ID).Related, want)
	f.patch(m.ID, map[string]any{"related_memory_ids": []string{targets[1], targets[2]}})
	f.equal("patched", f.get(m.ID).Related, []string{targets[1], targets[2]})
	f.equal("found by a link", f.search(souvenir.Query{Filter: souvenir.Filter{"related_memory_ids": targets[1]}}).Total,
		1)
	f.equal("found by a former link",
		f.search(souvenir.Query{Filter: souvenir.Filter{"related_memory_ids": targets[0]}}).Total, 0)
}

func relatedHiddenLinks(f *fixture) {
	hidden := f.add(souvenir.NewMemory{Content: "hidden"}).ID
	listed := f.add(souvenir.NewMemory{Content: "shown", ProjectID: "p"}).ID
	m := f.add(souvenir.NewMemory{Content: "x", ProjectID: "p", Related: []string{hidden, listed}})
	limited := f.as(souvenir.Access{Projects: []string{"p"}})
	f.equal("in the limited view", limited.get(m.ID).Related, []string{listed})
	for _, r := range limited.revisions(m.ID) {
		f.sameJSON("in its history", r.Metadata["related_memory_ids"], []string{listed})
	}
	limited.patch(m.ID, map[string]any{"related_memory_ids": nil})
	f.equal("after the limited view removed what it sees", f.get(m.ID).Related, []string{hidden})
	_, err := limited.store.UpdateMemory(f.ctx, m.ID,
		souvenir.MemoryUpdate{ShownMetadata: map[string]any{"related_memory_ids": []string{hidden}}})
	f.failsAt("a link to what the view does not show", err, souvenir.ErrNotFound, "related_memory_ids")
	f.rewrite(m.ID, "y")
	for _, r := range limited.revisions(m.ID) {
		if toJSON(r.Metadata) != "" && strings.Contains(toJSON(r.Metadata), hidden) {
			f.Errorf("revision %d shows the limited view a hidden link: %s, want no %q in it", r.Number, toJSON(r.Metadata),
				hidden)
		}
	}
}
