package dashboard_test

import (
	"compress/gzip"
	"encoding/base64"
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
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
	"github.com/souvenir-ai/souvenir/server"
	"github.com/souvenir-ai/souvenir/server/internal/servertest"
)

// drawnPicture is the data that a script draws, with its compact lists as plain ones.
type drawnPicture struct {
	Memories                               int
	Version, Places                        string
	IDs, Labels                            []string
	X, Y                                   []int `json:"-"` // 0 to 4,095
	Project, Type, Collection, Important   characters
	From, To, Similar                      []int
	Edges                                  []int `json:"-"` // from, to and similarity of each
	Projects, Types, Collections, Warnings []string
	Total, Unplaced, Chosen                int
	Explained                              []float64

	Cluster             characters
	Shared, Folded, Day []int
	Words, Clusters     []string
	Arranging           bool
}

// characters are numbers that come as a text.
type characters []int

func (c *characters) UnmarshalText(text []byte) error {
	for _, one := range string(text) {
		*c = append(*c, int(one)-'@')
	}
	return nil
}

func picture(b *servertest.Browser, path string) drawnPicture {
	b.W.T.Helper()
	p := b.Get(path)
	var d drawnPicture
	if err := json.Unmarshal([]byte(p.Body), &d); err != nil || p.Status != http.StatusOK ||
		p.Header.Get("Content-Type") != "application/json" {
		b.W.T.Fatalf(`%s: got %d %v %.300s, want no error, status %v and Content-Type "application/json"`, path, p.Status,
			err, p.Body, http.StatusOK)
	}
	places, err := base64.StdEncoding.DecodeString(d.Places)
	if err != nil || len(places) != 3*d.Memories {
		b.W.T.Fatalf("%s: %d bytes of places, %v, want three for each of %d memories", path, len(places), err, d.Memories)
	}
	for at := range slices.Chunk(places, 3) {
		d.X, d.Y = append(d.X, int(at[0])<<4|int(at[1])>>4), append(d.Y, int(at[1]&15)<<8|int(at[2]))
	}
	for name, list := range map[string]int{"ids": len(d.IDs), "labels": len(d.Labels), "cluster": len(d.Cluster),
		"day": len(d.Day), "project": len(d.Project), "type": len(d.Type), "collection": len(d.Collection),
		"important": len(d.Important)} {
		if list != d.Memories {
			b.W.T.Errorf("%s: %d memories, but %d of %s, want the same", path, d.Memories, list, name)
		}
	}
	for i := range d.Memories {
		if d.Project[i] >= len(d.Projects) || d.Type[i] >= len(d.Types) || d.Collection[i] >= len(d.Collections) ||
			d.Cluster[i] < -1 || d.Cluster[i] >= len(d.Clusters) {
			b.W.T.Errorf("%s: memory %d: got %+v, want a project, type, collection and cluster that the lists have", path, i, d)
		}
	}
	if len(d.To) != len(d.From) || len(d.Similar) != len(d.From) || len(d.Shared) != 2*len(d.From) {
		b.W.T.Fatalf("%s: edges %v, %v, %v with %v, want as many of each", path, d.From, d.To, d.Similar, d.Shared)
	}
	from := 0
	for i := range d.From {
		from += d.From[i]
		to := from + d.To[i]
		if from < 0 || to < 0 || from >= d.Memories || to >= d.Memories || from == to || d.Similar[i] < 0 ||
			d.Similar[i] > 100 {
			b.W.T.Errorf("%s: edge from %d to %d of %d, want two memories, and a likeness up to 100", path, from, to,
				d.Similar[i])
		}
		d.Edges = append(d.Edges, from, to, d.Similar[i])
	}
	return d
}

// fillPictures adds memories of two subjects, in two projects. The first links to the others of its subject.
func fillPictures(w *servertest.World, user string) (ids []string) {
	w.T.Helper()
	steps := servertest.FirstError{}
	view := w.Store.As(souvenir.Access{User: w.Users[user]})
	for _, project := range []string{"boats", "bread"} {
		_, err := view.AddProject(w.T.Context(), souvenir.NewProject{ID: project, Name: "About " + project})
		steps.Note(err)
	}
	_, err := view.AddCollection(w.T.Context(), souvenir.NewCollection{Name: "kitchen"})
	steps.Note(err)
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
		stored, err := view.AddMemory(w.T.Context(), m)
		steps.Note(err)
		ids = append(ids, stored.ID)
	}
	steps.Note(w.Store.Upkeep().WaitEmbedded(w.T.Context()))
	if steps.Err != nil {
		w.T.Fatalf("got %v, want nil", steps.Err)
	}
	return ids
}

func TestGraphShowsWhatIsConnected(t *testing.T) {
	w := servertest.New(t, server.Options{})
	ids := fillPictures(w, servertest.Stranger)
	sam := w.SignedIn(servertest.Stranger)
	d := picture(sam, "/graph/data")
	if len(d.IDs) != 20 || d.Total != 20 ||
		!slices.Equal(slices.Sorted(slices.Values(d.Projects)), []string{"About boats", "About bread"}) ||
		!slices.Equal(slices.Sorted(slices.Values(d.Types)), []string{"no type", "note"}) ||
		!slices.Equal(slices.Sorted(slices.Values(d.Collections)), []string{"default", "kitchen"}) {
		t.Fatalf("got %+v, want 20 nodes with their projects, types and collections", d)
	}
	links, similar := 0, 0
	for i := 0; i < len(d.Edges); i += 3 {
		from, to := d.Edges[i], d.Edges[i+1]
		if d.Edges[i+2] == 0 {
			links++
			if d.IDs[to] != ids[0] || d.Important[from] != 3 {
				t.Errorf("got a link from %q of importance %d to %q, want importance 3 and memory %v", d.Labels[from],
					d.Important[from], d.Labels[to], ids[0])
			}
		} else {
			similar++
			if d.Project[from] != d.Project[to] {
				t.Errorf("%q and %q are similar: got projects %v and %v, want one", d.Labels[from], d.Labels[to], d.Project[from],
					d.Project[to])
			}
		}
	}
	if links != 2 || similar < 20 {
		t.Errorf("%d links and %d similar pairs, want 2 and at least 20", links, similar)
	}
	// Memories of one subject are close together.
	within, between := 0.0, 0.0
	for i := range d.IDs {
		for j := range i {
			distance := math.Hypot(float64(d.X[i]-d.X[j]), float64(d.Y[i]-d.Y[j]))
			if distance == 0 {
				t.Errorf("%q and %q: got the distance %v, want them apart", d.Labels[i], d.Labels[j], distance)
			}
			if d.Project[i] == d.Project[j] {
				within += distance / 90
			} else {
				between += distance / 100
			}
		}
	}
	if within*1.5 > between {
		t.Errorf("memories of one subject are %.0f apart, want at most two thirds of the %.0f of others", within, between)
	}
	if again := picture(sam, "/graph/data"); !slices.Equal(d.X, again.X) || !slices.Equal(d.IDs, again.IDs) {
		t.Errorf("the same memories have other positions: got %v, %v, want x %v and IDs %v", d.X, d.IDs, again.X, again.IDs)
	}
	for query, edges := range map[string]int{"neighbours=0": 2, "similar=1&neighbours=0": 2} {
		if got := len(picture(sam, "/graph/data?"+query).Edges) / 3; got != edges {
			t.Errorf("%s: %d edges, want %v", query, got, edges)
		}
	}
	if some, all := len(picture(sam, "/graph/data?neighbours=1").Edges),
		len(picture(sam, "/graph/data?neighbours=10&similar=0").Edges); some >= len(d.Edges) || all <= len(d.Edges) {
		t.Errorf("%d, %d and %d edges, want the first less than %v and the last more than %v", some/3, len(d.Edges)/3, all/3,
			len(d.Edges), len(d.Edges))
	}
}

func TestPicturesCanBeFiltered(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{})
	fillPictures(w, servertest.Stranger)
	sam := w.SignedIn(servertest.Stranger)
	for query, want := range map[string][2]int{
		"": {20, 20}, "project=boats": {10, 10}, "collection=kitchen": {10, 10}, "event_type=note": {10, 10},
		"tag=food": {10, 10}, "tag=food&project=boats": {0, 0},
		"limit=7": {7, 20}, "tag=water&limit=3": {3, 10}, "project=nothing": {0, 0}, "tag=" +
			url.QueryEscape(servertest.Hostile): {0, 0},
	} {
		for _, kind := range []string{"graph", "map"} {
			d := picture(sam, "/"+kind+"/data?"+query)
			if len(d.IDs) != want[0] || d.Total != want[1] {
				t.Errorf("%s of %q: %d of %d, want %v IDs and total %v", kind, query, len(d.IDs), d.Total, want[0], want[1])
			}
			page := sam.Get("/" + kind + "?show=list&" + query).Expect(http.StatusOK)
			servertest.CheckPage(w, page)
			if want[0] == 0 && !strings.Contains(page.Body, "No memories match") || want[0] == 3 &&
				!strings.Contains(page.Body, "3 memories of 10, the newest") {
				t.Errorf("%s of %q in words: %.3000s, want how many match", kind, query, page.Body)
			}
		}
	}
	for _, kind := range []string{"graph", "map"} {
		d := picture(sam, "/"+kind+"/data?project=boats")
		found := sam.Get("/" + kind + "/found?q=rudder+of+a+sailing+boat&project=boats&version=" + d.Version)
		if found.Status != http.StatusOK || strings.Count(found.Body, ",") < 5 {
			t.Errorf("%s: found is %s, want most of ten numbers", kind, found.Body)
		}
		if found := sam.Get("/" + kind + "/found?q="); found.Body != "{\"at\":[]}\n" {
			t.Errorf("nothing is searched for, and found is %s, want no numbers", found.Body)
		}
	}
	chosen := sam.Get("/graph?project=boats&limit=500&colour=type&similar=0.55&event_type=%22x").Expect(http.StatusOK,
		`/boats" selected>`, `<option value="500" selected>`, `<option value="type" selected>`,
		`<option value="0.55" selected>`, `value="&#34;x"`, "Show all")
	servertest.CheckPage(w, chosen)
}

func TestMapShowsMemoriesByMeaning(t *testing.T) {
	w := servertest.New(t, server.Options{})
	fillPictures(w, servertest.Stranger)
	sam := w.SignedIn(servertest.Stranger)
	d := arranged(sam, "/map/data")
	if len(d.IDs) != 20 || d.Total != 20 || len(d.Edges) != 0 || len(d.Clusters) < 2 {
		t.Fatalf("got %+v, want 20 memories in at least two clusters", d)
	}
	// The nearest memories of each one, and its cluster, are about its subject.
	for i := range d.IDs {
		nearest := -1
		for j := range d.IDs {
			if i != j && (nearest < 0 || apart(d, i, j) < apart(d, i, nearest)) {
				nearest = j
			}
			if d.Cluster[i] == d.Cluster[j] && d.Project[i] != d.Project[j] {
				t.Errorf("%q and %q are in one cluster, want one for each subject", d.Labels[i], d.Labels[j])
			}
		}
		if d.Project[nearest] != d.Project[i] {
			t.Errorf("%q: got %q next to it, want one of its subject", d.Labels[i], d.Labels[nearest])
		}
	}
	if names := strings.Join(d.Clusters, " "); !strings.Contains(names, "bread") && !strings.Contains(names, "flour") &&
		!strings.Contains(names, "oven") && !strings.Contains(names, "yeast") && !strings.Contains(names, "salt") &&
		!strings.Contains(names, "needs") {
		t.Errorf("the clusters are named %q, want words of their memories", d.Clusters)
	}
	sam.Get("/map?show=list").Expect(http.StatusOK, "Clusters", d.Clusters[0], "20 memories.")
	// New memories join, and the others stay near their positions.
	view := w.Store.As(souvenir.Access{User: w.Users[servertest.Stranger]})
	later, err := view.AddMemory(t.Context(), souvenir.NewMemory{Content: "Bread needs a hot oven, flour and salt."})
	if err != nil {
		t.Fatal(err)
	}
	after := arranged(sam, "/map/data")
	at := slices.Index(after.IDs, later.ID)
	if len(after.IDs) != 21 || at < 0 {
		t.Fatalf("got %d memories, want 21 with the one that was stored later", len(after.IDs))
	}
}

// The table of a map comes at once, says that its clusters are being computed, and asks for them.
func TestTableOfAMapAsksForItsClusters(t *testing.T) {
	w := servertest.New(t, server.Options{})
	view := w.Store.As(souvenir.Access{User: w.Users[servertest.Stranger]})
	many := make([]souvenir.NewMemory, 300) // their map takes far longer than the page waits
	for i := range many {
		many[i].Content = fmt.Sprintf("Boat %d has %d masts and a %s.", i, i%7, []string{"crew", "cook", "flag"}[i%3])
	}
	if _, err := view.AddMemories(t.Context(), many, nil); err != nil {
		t.Fatal(err)
	}
	sam := w.SignedIn(servertest.Stranger)
	const table, asks = "/map?show=list", `hx-get="/map?show=list&amp;tries=1"`
	first := sam.Get(table).Expect(http.StatusOK, "The clusters of 300 memories are still being computed", asks,
		`<a href="/map?show=list">Reload</a>`, "htmx.min.js")
	servertest.CheckPage(w, first)
	if last := sam.Get(table + "&tries=20"); strings.Contains(last.Body, "hx-get") {
		t.Errorf("got %.500s, want a page that no longer asks again", last.Body)
	}
	sam.Get(table+"&project=none").Expect(http.StatusOK, "No memories match")
	sam.Get(table+"&limit=0").Expect(http.StatusBadRequest, "Limit is 0")
	whole := sam.Get(table)
	for range 1200 {
		if !strings.Contains(whole.Body, "still being computed") {
			break
		}
		time.Sleep(50 * time.Millisecond)
		whole = sam.Get(table)
	}
	whole.Expect(http.StatusOK, "<h2>Clusters</h2>", "300 memories.")
	if strings.Contains(whole.Body, "hx-get") || strings.Contains(whole.Body, "htmx.min.js") {
		t.Errorf("got %.500s, want a page that does not ask again", whole.Body)
	}
	again := w.Request(servertest.Guest, http.MethodGet, table, nil)
	again.Header.Set("HX-Request", "true")
	part := sam.Send(again).Expect(http.StatusOK, "<h2>Clusters</h2>")
	if strings.Contains(part.Body, "<html") || strings.Contains(part.Body, "picture-filters") {
		t.Errorf("got %.500s for a script, want the table alone", part.Body)
	}
}

// arranged returns a map once its positions are computed.
func arranged(b *servertest.Browser, path string) drawnPicture {
	for range 100 {
		if d := picture(b, path); !d.Arranging {
			return d
		}
	}
	b.W.T.Fatalf("%s is still being computed, want it done after 70 s", path)
	return drawnPicture{}
}

func apart(d drawnPicture, i, j int) float64 {
	return math.Hypot(float64(d.X[i]-d.X[j]), float64(d.Y[i]-d.Y[j]))
}

// Edges say why they exist. An edge without a reason is drawn only within a cluster.
func TestGraphSaysWhy(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{})
	fillPictures(w, servertest.Stranger)
	view := w.Store.As(souvenir.Access{User: w.Users[servertest.Stranger]})
	alone, err := view.AddMemory(t.Context(), souvenir.NewMemory{Content: "## Harbour fees are due in *March*."})
	if err != nil {
		t.Fatal(err)
	}
	sam := w.SignedIn(servertest.Stranger)
	d := picture(sam, "/graph/data")
	if at := slices.Index(d.IDs, alone.ID); len(d.Folded) != 1 || d.Folded[0] != at || d.Cluster[at] < 0 {
		t.Errorf("got the folded memories %v and the clusters %v, want memory %d folded into a cluster", d.Folded, d.Cluster,
			at)
	}
	named := false
	for i := 0; i < len(d.Edges); i += 3 {
		if first := d.Shared[2*i/3]; first < 0 {
			t.Errorf("%q and %q: no shared words, want some", d.Labels[d.Edges[i]], d.Labels[d.Edges[i+1]])
		} else if named = true; !strings.Contains(strings.ToLower(d.Labels[d.Edges[i]]), strings.ToLower(d.Words[first])) {
			t.Errorf("%q: got the shared word %q, want one that it has", d.Labels[d.Edges[i]], d.Words[first])
		}
	}
	if !named || len(d.Clusters) < 2 {
		t.Errorf("got the words %q and the clusters %q, want both", d.Words, d.Clusters)
	}
	sam.Get("/graph?show=list").Expect(http.StatusOK, "Clusters", "1 without connections", "Harbour fees").
		Without("## Harbour")
}

// A picture of many memories comes without their ids and labels: a script asks for what it shows.
func TestNamesOfManyMemoriesAreAskedFor(t *testing.T) {
	w := servertest.New(t, server.Options{})
	view := w.Store.As(souvenir.Access{User: w.Users[servertest.Stranger]})
	many := make([]souvenir.NewMemory, 251)
	for i := range many {
		many[i].Content = fmt.Sprintf("# Boat *%d*\n\nIt has a mast.", i)
	}
	stored, err := view.AddMemories(t.Context(), many, nil)
	if err != nil {
		t.Fatal(err)
	}
	sam := w.SignedIn(servertest.Stranger)
	var d drawnPicture
	page := "?neighbours=0&memory=" + stored[5].ID
	if p := sam.Get("/graph/data" + page); json.Unmarshal([]byte(p.Body), &d) != nil || d.Memories != 251 ||
		len(d.IDs)+len(d.Labels) != 0 || d.Chosen < 0 {
		t.Fatalf("got %.300s, want 251 memories without ids and labels, of which one is chosen", p.Body)
	}
	names := func(r, want string) {
		t.Helper()
		p := sam.Get("/graph/names" + page + "&version=" + d.Version + r).Expect(http.StatusOK)
		if p.Body != want+"\n" {
			t.Errorf("%s: got %s, want %s", r, p.Body, want)
		}
	}
	chosen := fmt.Sprintf("&at=%d", d.Chosen)
	names(chosen, `{"ids":["`+stored[5].ID+`"],"labels":["Boat 5"]}`)
	if err := view.DeleteMemory(t.Context(), stored[5].ID, nil); err != nil {
		t.Fatal(err)
	}
	names(chosen, `{"ids":["`+stored[5].ID+`"],"labels":[null]}`)
	names(chosen+"&ids=1", `{"ids":["`+stored[5].ID+`"]}`)
	sam.Get("/graph/names"+page+"&version="+d.Version+"&at=251").Expect(http.StatusBadRequest, "less than 251")
	sam.Get("/graph/names"+page+"&version=another&at=1").Expect(http.StatusConflict, "load the page again")
}

// A picture contains what its reader may see, and nothing else.
func TestPicturesHideOtherUsersMemories(t *testing.T) {
	w := servertest.New(t, server.Options{})
	olivias := picture(w.SignedIn(servertest.Owner), "/graph/data").Version
	for caller, want := range map[string][]string{servertest.Owner: {w.Memory, w.Private}, servertest.Reader: {w.Memory},
		servertest.Writer:   {w.Memory},
		servertest.Stranger: nil, servertest.Admin: nil} {
		b := w.SignedIn(caller)
		for _, kind := range []string{"graph", "map"} {
			d := picture(b, "/"+kind+"/data?similar=0&neighbours=10")
			if !slices.Equal(slices.Sorted(slices.Values(d.IDs)), slices.Sorted(slices.Values(want))) || d.Total != len(want) {
				t.Errorf("%s sees %v on the %s, want all that the caller sees", caller, d.Labels, kind)
			}
			for _, path := range []string{"/" + kind, "/" + kind + "?show=list", "/" + kind + "/data"} {
				if p := b.Get(path).Expect(http.StatusOK); caller != servertest.Owner && strings.Contains(p.Body,
					servertest.Secret) {
					t.Errorf("%s sees in %s data of Olivia alone, want none", caller, path)
				}
			}
		}
		status := http.StatusNotFound
		if caller == servertest.Owner {
			status = http.StatusOK
		}
		b.Get("/graph/memories/" + w.Private).Expect(status)
		if caller != servertest.Owner {
			for _, path := range []string{"/graph/names?at=0", "/map/names?at=0&ids=1", "/graph/found?q=x"} {
				b.Get(path + "&version=" + olivias).Expect(http.StatusConflict)
			}
		}
	}
	if d := picture(w.SignedIn(servertest.Reader), "/graph/data"); !slices.Equal(d.Projects,
		[]string{"The shop of olivia"}) {
		t.Errorf("Rita sees the projects %v, want %v", d.Projects, []string{"The shop of olivia"})
	}
	p := w.Browser().Get("/graph/data")
	if p.Status != http.StatusSeeOther || !strings.HasPrefix(p.Header.Get("Location"), "/login") {
		t.Errorf(`without a session: got %d %s, want status %v and "/login" at the beginning of the Location`, p.Status,
			p.Body, http.StatusSeeOther)
	}
}

func TestWrongFiltersOfPicturesAreNamed(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{})
	fillPictures(w, servertest.Stranger)
	sam := w.SignedIn(servertest.Stranger)
	for query, says := range map[string]string{
		"limit=5001": "limit is 5001; expected 1 to 5000", "limit=-1": "limit is -1",
		"limit=0":       "limit is 0; expected a number from 1 to 5,000",
		"limit=many":    "limit is &#34;many&#34;; expected a number from 1 to 5,000",
		"neighbours=11": "neighbours is 11; expected", "neighbours=-1": "neighbours is -1; expected a number from 0 to 10",
		"neighbours=x": "neighbours is &#34;x&#34;; expected a number from 0 to 10",
		"similar=2":    "similar is 2; expected",
		"similar=NaN":  "similar is NaN", "similar=a": "similar is &#34;a&#34;; expected a number from 0 to 1", "limit=" +
			url.QueryEscape(servertest.Hostile): "limit is &#34;&lt;script&gt;",
	} {
		for _, kind := range []string{"graph", "map"} {
			if kind == "map" && !strings.HasPrefix(query, "limit") {
				continue
			}
			says := strings.ToUpper(says[:1]) + says[1:]
			p := sam.Get("/"+kind+"?show=list&"+query).Expect(http.StatusBadRequest, says)
			servertest.CheckPage(w, p)
			sam.Get("/"+kind+"/data?"+query).Expect(http.StatusBadRequest, says)
			servertest.CheckPage(w, sam.Get("/"+kind+"?"+query).Expect(http.StatusOK)) // whose script gets the same
		}
	}
}

func TestEmptyPicturesSayWhatToDo(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{})
	sam := w.SignedIn(servertest.Stranger)
	for _, path := range []string{"/graph", "/map", "/graph?show=list", "/map?show=list"} {
		p := sam.Get(path).Expect(http.StatusOK, "Nothing here yet").Without("<canvas", "sigma")
		servertest.CheckPage(w, p)
	}
	if d := picture(sam, "/graph/data"); len(d.IDs) != 0 || d.IDs == nil || d.From == nil || d.Projects == nil {
		t.Errorf("got %+v, want empty lists that are not null", d)
	}
}

func TestDataOfPicturesIsCompressed(t *testing.T) {
	w := servertest.New(t, server.Options{})
	fillPictures(w, servertest.Stranger)
	sam := w.SignedIn(servertest.Stranger)
	for _, path := range []string{"/graph/data", "/map/data"} {
		r := w.Request(servertest.Guest, http.MethodGet, path, nil)
		r.Header.Set("Accept-Encoding", "gzip")
		p := sam.Send(r)
		if p.Header.Get("Content-Encoding") != "gzip" ||
			!strings.Contains(strings.Join(p.Header.Values("Vary"), ","), "Accept-Encoding") ||
			p.Header.Get("Cache-Control") != "no-store" {
			t.Fatalf(`%s: got %v, want Content-Encoding "gzip", "Accept-Encoding" in it and Cache-Control "no-store"`, path,
				p.Header)
		}
		decompressed, err := gzip.NewReader(strings.NewReader(p.Body))
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(decompressed)
		if plain := sam.Get(path).Body; err != nil || string(body) != plain || len(p.Body) > len(plain)/2 {
			t.Errorf("%s: got %v and %d bytes for %d, want no error, the same content and at most %d bytes", path, err,
				len(p.Body), len(plain), len(plain)/2)
		}
	}
}

// A memory beside the picture is shown as text. For a script, it comes without the frame.
func TestMemoryBesideThePicture(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{})
	sam, view := w.SignedIn(servertest.Stranger), w.Store.As(souvenir.Access{User: w.Users[servertest.Stranger]})
	long, err := view.AddMemory(t.Context(),
		souvenir.NewMemory{Content: servertest.Hostile + strings.Repeat(" more", 500), Tags: []string{"<u>"}})
	if err != nil {
		t.Fatal(err)
	}
	path := "/graph/memories/" + long.ID
	servertest.CheckPage(w, sam.Get(path).Expect(http.StatusOK, "Only the beginning is shown", "/memories/"+long.ID))
	r := w.Request(servertest.Guest, http.MethodGet, path, nil)
	r.Header.Set("HX-Request", "true")
	part := sam.Send(r).Expect(http.StatusOK, "&lt;script&gt;", "&lt;u&gt;").Without("<script", "<html", "<u>")
	if len(part.Body) > 4000 {
		t.Errorf("the part has %d bytes, want at most 4000", len(part.Body))
	}
	if d := picture(sam, "/graph/data"); len([]rune(d.Labels[0])) > 91 {
		t.Errorf("the label %q is long, got %v, want at most 91", d.Labels[0], len([]rune(d.Labels[0])))
	}
	sam.Get("/graph/memories/nothing").Expect(http.StatusNotFound)
}

// The drawing libraries are unchanged since their licences were recorded.
func TestDrawingLibraries(t *testing.T) {
	licences, err := os.ReadFile("../web/static/vendor/LICENSES.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"sigma 3.0.3", "graphology 0.26.0", "Guillaume Plique",
		"Alexis Jacomy"} {
		if !strings.Contains(string(licences), name) &&
			!strings.Contains(strings.Join(strings.Fields(string(licences)), " "), strings.Join(strings.Fields(name), " ")) {
			t.Errorf("LICENSES.txt lacks %q, want it there", name)
		}
	}
	script, err := os.ReadFile("../web/static/vendor/sigma.js")
	if err != nil {
		t.Fatal(err)
	}
	for _, forbidden := range []string{"eval(", "new Function", "new Worker", "importScripts",
		"document.write"} { // which the policy of the pages forbids
		if strings.Contains(string(script), forbidden) {
			t.Errorf("sigma.js has %s, want it not in the script", forbidden)
		}
	}
}
