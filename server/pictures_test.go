package server_test

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server"
)

// furnishPictures gives the pages something to show.
func (w *world) furnishPictures(paths map[string]string) {
	w.t.Helper()
	ada := w.store.As(souvenir.Access{User: w.users[admin]})
	first, err := ada.AddMemory(w.t.Context(),
		souvenir.NewMemory{Content: hostile + "\nsecond line",
			ShownMetadata: map[string]any{"event_type": "<i>", "importance": "high"}})
	if err == nil {
		_, err = ada.AddMemory(w.t.Context(),
			souvenir.NewMemory{Content: hostile, ProjectID: "p",
				ShownMetadata: map[string]any{"related_memory_ids": []string{first.ID}}})
	}
	if err != nil {
		w.t.Fatal(err)
	}
	for _, data := range []string{"/graph/data", "/map/data", "/graph/found"} {
		delete(paths, data)
	}
	paths["/graph/memories/{id}"] = "/graph/memories/" + first.ID
}

// drawnPicture is what a script draws.
type drawnPicture struct {
	IDs, Labels                            []string
	X, Y, Project, Type, Collection, Edges []int
	Important                              []int
	Projects, Types, Collections, Warnings []string
	Total, Unplaced                        int
	Explained                              []float64
}

func (b *browser) picture(path string) drawnPicture {
	b.w.t.Helper()
	p := b.get(path)
	var d drawnPicture
	if err := json.Unmarshal([]byte(p.body), &d); err != nil || p.status != http.StatusOK ||
		p.header.Get("Content-Type") != "application/json" {
		b.w.t.Fatalf("%s: %d %v %.300s", path, p.status, err, p.body)
	}
	n := len(d.IDs)
	for name, list := range map[string]int{"labels": len(d.Labels), "x": len(d.X), "y": len(d.Y),
		"project": len(d.Project), "type": len(d.Type), "collection": len(d.Collection), "important": len(d.Important)} {
		if list != n {
			b.w.t.Errorf("%s: %d memories, but %d of %s", path, n, list, name)
		}
	}
	for i := range n {
		if max(d.X[i], -d.X[i], d.Y[i], -d.Y[i]) > 10_000 || d.Project[i] >= len(d.Projects) || d.Type[i] >= len(d.Types) ||
			d.Collection[i] >= len(d.Collections) {
			b.w.t.Errorf("%s: memory %d: %+v", path, i, d)
		}
	}
	if len(d.Edges)%3 != 0 {
		b.w.t.Errorf("%s: %d numbers of edges, got %v, want 0", path, len(d.Edges), len(d.Edges)%3)
	}
	for i := 0; i+2 < len(d.Edges); i += 3 {
		if d.Edges[i] >= n || d.Edges[i+1] >= n || d.Edges[i] == d.Edges[i+1] || d.Edges[i+2] < 0 || d.Edges[i+2] > 100 {
			b.w.t.Errorf("%s: edge %v", path, d.Edges[i:i+3])
		}
	}
	return d
}

// fillPictures stores memories of two subjects, in two projects, the first of which links to the others of its subject.
func (w *world) fillPictures(user string) (ids []string) {
	w.t.Helper()
	steps := firstError{}
	view := w.store.As(souvenir.Access{User: w.users[user]})
	for _, project := range []string{"boats", "bread"} {
		_, err := view.AddProject(w.t.Context(), souvenir.NewProject{ID: project, Name: "About " + project})
		steps.note(err)
	}
	_, err := view.AddCollection(w.t.Context(), souvenir.NewCollection{Name: "kitchen"})
	steps.note(err)
	for i := range 20 {
		m := souvenir.NewMemory{Content: fmt.Sprintf("The sailing boat number %d has a mast, a sail and a rudder.", i),
			ProjectID: "boats", Tags: []string{"water"}, ShownMetadata: map[string]any{"event_type": "note"}}
		if i%2 == 1 {
			m = souvenir.NewMemory{Content: fmt.Sprintf("Bread number %d needs flour, yeast, salt and a hot oven.", i),
				ProjectID: "bread", Tags: []string{"food"}, Collection: "kitchen"}
		}
		if i == 2 || i == 4 {
			m.Related = ids[:1]
			m.Importance = souvenir.ImportanceCritical
		}
		stored, err := view.AddMemory(w.t.Context(), m)
		steps.note(err)
		ids = append(ids, stored.ID)
	}
	steps.note(w.store.Upkeep().WaitEmbedded(w.t.Context()))
	if steps.err != nil {
		w.t.Fatal(steps.err)
	}
	return ids
}

func TestGraphShowsWhatIsConnected(t *testing.T) {
	w := newWorld(t, server.Options{})
	ids := w.fillPictures(stranger)
	sam := w.signedIn(stranger)
	d := sam.picture("/graph/data")
	if len(d.IDs) != 20 || d.Total != 20 ||
		!slices.Equal(slices.Sorted(slices.Values(d.Projects)), []string{"About boats", "About bread"}) ||
		!slices.Equal(slices.Sorted(slices.Values(d.Types)), []string{"no type", "note"}) ||
		!slices.Equal(slices.Sorted(slices.Values(d.Collections)), []string{"default", "kitchen"}) {
		t.Fatalf("%+v", d)
	}
	links, similar := 0, 0
	for i := 0; i < len(d.Edges); i += 3 {
		from, to := d.Edges[i], d.Edges[i+1]
		if d.Edges[i+2] == 0 {
			links++
			if d.IDs[to] != ids[0] || d.Important[from] != 3 {
				t.Errorf("a link from %q to %q", d.Labels[from], d.Labels[to])
			}
		} else {
			similar++
			if d.Project[from] != d.Project[to] {
				t.Errorf("%q and %q are said to be similar, got %v, want %v", d.Labels[from], d.Labels[to], d.Project[from],
					d.Project[to])
			}
		}
	}
	if links != 2 || similar < 20 {
		t.Errorf("%d links and %d similar pairs", links, similar)
	}
	// What is of one subject lies together.
	within, between := 0.0, 0.0
	for i := range d.IDs {
		for j := range i {
			distance := math.Hypot(float64(d.X[i]-d.X[j]), float64(d.Y[i]-d.Y[j]))
			if distance == 0 {
				t.Errorf("%q lies on top of %q", d.Labels[i], d.Labels[j])
			}
			if d.Project[i] == d.Project[j] {
				within += distance / 90
			} else {
				between += distance / 100
			}
		}
	}
	if within*1.5 > between {
		t.Errorf("memories of one subject lie %.0f apart, others %.0f", within, between)
	}
	if again := sam.picture("/graph/data"); !slices.Equal(d.X, again.X) || !slices.Equal(d.IDs, again.IDs) {
		t.Error("the same memories lie elsewhere")
	}
	for query, edges := range map[string]int{"neighbours=0": 2, "similar=1&neighbours=0": 2} {
		if got := len(sam.picture("/graph/data?"+query).Edges) / 3; got != edges {
			t.Errorf("%s: %d edges, want %v", query, got, edges)
		}
	}
	if some, all := len(sam.picture("/graph/data?neighbours=1").Edges),
		len(sam.picture("/graph/data?neighbours=10&similar=0").Edges); some >= len(d.Edges) || all <= len(d.Edges) {
		t.Errorf("%d, %d and %d edges", some/3, len(d.Edges)/3, all/3)
	}
}

func TestPicturesCanBeFiltered(t *testing.T) {
	w := newWorld(t, server.Options{})
	w.fillPictures(stranger)
	sam := w.signedIn(stranger)
	for query, want := range map[string][2]int{
		"": {20, 20}, "project=boats": {10, 10}, "collection=kitchen": {10, 10}, "event_type=note": {10, 10},
		"tag=food": {10, 10}, "tag=food&project=boats": {0, 0},
		"limit=7": {7, 20}, "tag=water&limit=3": {3, 10}, "project=nothing": {0, 0}, "tag=" +
			url.QueryEscape(hostile): {0, 0},
	} {
		for _, kind := range []string{"graph", "map"} {
			d := sam.picture("/" + kind + "/data?" + query)
			if len(d.IDs) != want[0] || d.Total != want[1] {
				t.Errorf("%s of %q: %d of %d", kind, query, len(d.IDs), d.Total)
			}
			page := sam.get("/" + kind + "?show=list&" + query).expect(http.StatusOK)
			checkPage(w, page)
			if want[0] == 0 && !strings.Contains(page.body, "No memories match") || want[0] == 3 &&
				!strings.Contains(page.body, "3 memories of 10, the newest") {
				t.Errorf("%s of %q in words: %.3000s", kind, query, page.body)
			}
		}
	}
	if found := sam.get("/graph/found?q=rudder+of+a+sailing+boat&project=boats"); found.status != http.StatusOK ||
		strings.Count(found.body, "-") < 20 {
		t.Errorf("found: %d %s", found.status, found.body)
	}
	if found := sam.get("/graph/found?q="); found.body != "{\"ids\":[]}\n" {
		t.Errorf("nothing is searched for, and found is %s", found.body)
	}
	chosen := sam.get("/graph?project=boats&limit=500&colour=type&similar=0.55&event_type=%22x").expect(http.StatusOK,
		`<option value="boats" selected>`, `<option value="500" selected>`, `<option value="type" selected>`,
		`<option value="0.55" selected>`, `value="&#34;x"`, "Show all")
	checkPage(w, chosen)
}

func TestMapShowsMemoriesByMeaning(t *testing.T) {
	w := newWorld(t, server.Options{})
	w.fillPictures(stranger)
	sam := w.signedIn(stranger)
	d := sam.picture("/map/data")
	if len(d.IDs) != 20 || d.Total != 20 || len(d.Edges) != 0 || len(d.Explained) != 2 ||
		d.Explained[0] < d.Explained[1] || d.Explained[0] < 0.2 || d.Explained[0]+d.Explained[1] > 1 {
		t.Fatalf("%+v", d)
	}
	side := map[int]int{}
	for i := range d.IDs {
		if d.X[i] > 0 {
			side[d.Project[i]]++
		}
	}
	if !(side[0] == 0 && side[1] == 10 || side[0] == 10 && side[1] == 0) {
		t.Errorf("on the right of the map lie %v", side)
	}
	sam.get("/map?show=list").expect(http.StatusOK, "On the left", "At the bottom",
		fmt.Sprintf("%.0f%% from left to right", 100*d.Explained[0]))
}

// A picture has what its reader may see, and nothing else.
func TestPicturesHideOtherUsersMemories(t *testing.T) {
	w := newWorld(t, server.Options{})
	for caller, want := range map[string][]string{owner: {w.memory, w.private}, reader: {w.memory}, writer: {w.memory},
		stranger: nil, admin: nil} {
		b := w.signedIn(caller)
		for _, kind := range []string{"graph", "map"} {
			d := b.picture("/" + kind + "/data?similar=0&neighbours=10")
			if !slices.Equal(slices.Sorted(slices.Values(d.IDs)), slices.Sorted(slices.Values(want))) || d.Total != len(want) {
				t.Errorf("%s sees %v on the %s", caller, d.Labels, kind)
			}
			for _, path := range []string{"/" + kind, "/" + kind + "?show=list", "/" + kind + "/data"} {
				if p := b.get(path).expect(http.StatusOK); caller != owner && strings.Contains(p.body, secret) {
					t.Errorf("%s learns from %s what is Olivia's alone", caller, path)
				}
			}
		}
		status := http.StatusNotFound
		if caller == owner {
			status = http.StatusOK
		}
		b.get("/graph/memories/" + w.private).expect(status)
		if p := b.get("/graph/found?q=" + secret).expect(http.StatusOK); caller != owner &&
			strings.Contains(p.body, w.private) {
			t.Errorf("%s finds Olivia's memory", caller)
		}
	}
	if d := w.signedIn(reader).picture("/graph/data"); !slices.Equal(d.Projects, []string{"The shop of olivia"}) {
		t.Errorf("Rita sees the projects %v", d.Projects)
	}
	p := w.browser().get("/graph/data")
	if p.status != http.StatusSeeOther || !strings.HasPrefix(p.header.Get("Location"), "/login") {
		t.Errorf("without a session: got %d %s", p.status, p.body)
	}
}

func TestWrongFiltersOfPicturesAreNamed(t *testing.T) {
	w := newWorld(t, server.Options{})
	w.fillPictures(stranger)
	sam := w.signedIn(stranger)
	for query, says := range map[string]string{
		"limit=5001": "limit is 5001; 1 to 5000 are allowed", "limit=-1": "limit is -1",
		"limit=0": "limit is 0; a number from 1 to 5,000", "limit=many": "limit is &#34;many&#34;; a number from 1 to 5,000",
		"neighbours=11": "neighbours is 11; at most 10", "neighbours=-1": "neighbours is -1; a number from 0 to 10",
		"neighbours=x": "neighbours is &#34;x&#34;; a number from 0 to 10",
		"similar=2":    "similar is 2; a cosine similarity up to 1",
		"similar=NaN":  "similar is NaN", "similar=a": "similar is &#34;a&#34;; a number from 0 to 1", "limit=" +
			url.QueryEscape(hostile): "limit is &#34;&lt;script&gt;",
	} {
		for _, kind := range []string{"graph", "map"} {
			if kind == "map" && !strings.HasPrefix(query, "limit") {
				continue
			}
			says := strings.ToUpper(says[:1]) + says[1:]
			p := sam.get("/"+kind+"?show=list&"+query).expect(http.StatusBadRequest, says)
			checkPage(w, p)
			sam.get("/"+kind+"/data?"+query).expect(http.StatusBadRequest, says)
			checkPage(w, sam.get("/"+kind+"?"+query).expect(http.StatusOK)) // whose script gets the same
		}
	}
}

func TestEmptyPicturesSayWhatToDo(t *testing.T) {
	w := newWorld(t, server.Options{})
	sam := w.signedIn(stranger)
	for _, path := range []string{"/graph", "/map", "/graph?show=list", "/map?show=list"} {
		p := sam.get(path).expect(http.StatusOK, "Nothing here yet").without("<canvas", "sigma")
		checkPage(w, p)
	}
	if d := sam.picture("/graph/data"); len(d.IDs) != 0 || d.IDs == nil || d.Edges == nil || d.Projects == nil {
		t.Errorf("%+v", d)
	}
}

func TestDataOfPicturesIsPacked(t *testing.T) {
	w := newWorld(t, server.Options{})
	w.fillPictures(stranger)
	sam := w.signedIn(stranger)
	for _, path := range []string{"/graph/data", "/map/data"} {
		r := w.request(guest, http.MethodGet, path, nil)
		r.Header.Set("Accept-Encoding", "gzip")
		p := sam.send(r)
		if p.header.Get("Content-Encoding") != "gzip" ||
			!strings.Contains(strings.Join(p.header.Values("Vary"), ","), "Accept-Encoding") ||
			p.header.Get("Cache-Control") != "no-store" {
			t.Fatalf("%s: %v", path, p.header)
		}
		unpacked, err := gzip.NewReader(strings.NewReader(p.body))
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(unpacked)
		if plain := sam.get(path).body; err != nil || string(body) != plain || len(p.body) > len(plain)/2 {
			t.Errorf("%s: %v, %d and %d bytes", path, err, len(p.body), len(plain))
		}
	}
}

// A memory beside the picture is text, whatever it says; asked for by a script, it comes without the frame.
func TestMemoryBesideThePicture(t *testing.T) {
	w := newWorld(t, server.Options{})
	sam, view := w.signedIn(stranger), w.store.As(souvenir.Access{User: w.users[stranger]})
	long, err := view.AddMemory(t.Context(),
		souvenir.NewMemory{Content: hostile + strings.Repeat(" more", 500), Tags: []string{"<u>"}})
	if err != nil {
		t.Fatal(err)
	}
	path := "/graph/memories/" + long.ID
	checkPage(w, sam.get(path).expect(http.StatusOK, "Only the beginning is shown", "/memories/"+long.ID))
	r := w.request(guest, http.MethodGet, path, nil)
	r.Header.Set("HX-Request", "true")
	part := sam.send(r).expect(http.StatusOK, "&lt;script&gt;", "&lt;u&gt;").without("<script", "<html", "<u>")
	if len(part.body) > 4000 {
		t.Errorf("the part has %d bytes, want at most 4000", len(part.body))
	}
	if d := sam.picture("/graph/data"); len([]rune(d.Labels[0])) > 91 {
		t.Errorf("the label %q is long, got %v, want at most 91", d.Labels[0], len([]rune(d.Labels[0])))
	}
	sam.get("/graph/memories/nothing").expect(http.StatusNotFound)
}

// The libraries that draw are what they were when their licences were noted.
func TestLibrariesThatDraw(t *testing.T) {
	licences, err := os.ReadFile("internal/web/static/vendor/LICENSES.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"sigma.min.js      sigma 3.0.3", "graphology 0.26.0", "Guillaume Plique",
		"Alexis Jacomy"} {
		if !strings.Contains(string(licences), name) &&
			!strings.Contains(strings.Join(strings.Fields(string(licences)), " "), strings.Join(strings.Fields(name), " ")) {
			t.Errorf("LICENSES.txt lacks %q", name)
		}
	}
	for _, name := range []string{"sigma.min.js", "graphology.umd.min.js"} {
		script, err := os.ReadFile("internal/web/static/vendor/" + name)
		if err != nil {
			t.Fatal(err)
		}
		for _, forbidden := range []string{"eval(", "new Function", "new Worker", "importScripts",
			"document.write"} { // which the policy of the pages forbids
			if strings.Contains(string(script), forbidden) {
				t.Errorf("%s has %s", name, forbidden)
			}
		}
	}
}
