package pictures

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"math"
	"net/http"
	"slices"
	"strings"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/shorten"
	"github.com/souvenir-ai/souvenir/server/internal/web"
)

// characters are small numbers, in JSON one character each, from @ for 0: that is shorter than with commas.
type characters []int

// MarshalText returns the characters.
func (c characters) MarshalText() ([]byte, error) {
	text := make([]rune, len(c))
	for i, n := range c {
		text[i] = rune('@' + n)
	}
	return []byte(string(text)), nil
}

// drawing is the data from which a script draws: memory i is entry i of each list. It is compact, as it may be about
// thousands of memories.
type drawing struct {
	Memories int    `json:"memories"`
	Version  string `json:"version"` // of the list of memories: see names

	IDs    []string `json:"ids"`    // empty for many memories: the script requests what it shows
	Labels []string `json:"labels"` // likewise

	// Places has three bytes for each memory, in base64: x and y, of 12 bits each.
	Places string `json:"places"`

	Project     characters `json:"project"` // indexes into Projects, and so on
	Type        characters `json:"type"`
	Collection  characters `json:"collection"`
	Important   characters `json:"important"` // 0: unset or low, to 3: critical
	Projects    []string   `json:"projects"`
	Types       []string   `json:"types"`
	Collections []string   `json:"collections"`

	// From, To and Similar are the edges: by how much the first memory's number is greater than that of the edge before,
	// by how much the second one's is greater than the first one's, and the similarity in hundredths; 0: a link from the
	// first to the second.
	From    []int `json:"from"`
	To      []int `json:"to"`
	Similar []int `json:"similar"`

	// Shared has two numbers for each edge: the words that both memories have, as indexes into Words; -1: none.
	Shared []int    `json:"shared"`
	Words  []string `json:"words"`

	Cluster  characters `json:"cluster"`  // index into Clusters; -1: none
	Clusters []string   `json:"clusters"` // names, the largest cluster first
	Folded   []int      `json:"folded"`   // memories without edges, which are not drawn
	Day      []int      `json:"day"`      // on which they were stored: days since 1970 in UTC, each less the one before

	Chosen int `json:"chosen"` // the memory that the address names; -1: none

	Arranging bool `json:"arranging"` // places or similarities are still being computed: ask again

	Total     int        `json:"total"`     // matches, drawn or not
	Unplaced  int        `json:"unplaced"`  // memories that are not drawn yet, for lack of vectors
	Explained [2]float64 `json:"explained"` // of a map
	Warnings  []string   `json:"warnings"`
}

const (
	labelled   = 90  // characters of a memory's label, from its first line
	mostNamed  = 250 // memories of a picture whose ids and labels come with it
	placeSteps = 1<<12 - 1
)

// plain is the label of a memory without the marks of Markdown. Most have none, and take no time.
func plain(label string) string {
	if strings.ContainsAny(label, "#*_`[<~>\\|") {
		label = strings.TrimSpace(web.Plain(label))
	}
	return shorten.After(label, labelled)
}

// draw converts nodes and their positions for scripts.
func draw(nodes []souvenir.Node, places []float32, projects map[string]string) drawing {
	n := len(nodes)
	d := drawing{Memories: n, IDs: []string{}, Labels: []string{}, Important: make(characters, n), Chosen: -1,
		Cluster: slices.Repeat([]int{-1}, n), Day: make([]int, n), Clusters: []string{}, Folded: []int{}, Shared: []int{},
		Words: []string{}, Projects: []string{}, Types: []string{}, Collections: []string{}, From: []int{}, To: []int{},
		Similar: []int{}, Warnings: []string{}}
	project, kind, collection := numbering{names: &d.Projects}, numbering{names: &d.Types},
		numbering{names: &d.Collections}
	most := float32(0)
	for _, at := range places {
		most = max(most, at, -at)
	}
	if most == 0 {
		most = 1
	}
	step := func(at float32) int { return int(math.Round(float64(at/most+1) / 2 * placeSteps)) }
	at, day := make([]byte, 0, 3*n), 0
	for i, node := range nodes {
		if n <= mostNamed {
			d.IDs, d.Labels = append(d.IDs, node.ID), append(d.Labels, plain(node.Label))
		}
		stored := int(node.CreatedAt.Unix() / (24 * 60 * 60))
		d.Day[i], day = stored-day, stored
		x, y := step(places[2*i]), step(places[2*i+1])
		at = append(at, byte(x>>4), byte(x<<4|y>>8), byte(y))
		d.Project = append(d.Project, project.of(node.ProjectOwner+"/"+node.ProjectID, projectOfNode(node, projects)))
		d.Type = append(d.Type, kind.of(node.EventType, cmp.Or(node.EventType, "no type")))
		d.Collection = append(d.Collection, collection.of(node.Owner+"/"+node.Collection, node.Collection))
		switch node.Importance {
		case souvenir.ImportanceMedium:
			d.Important[i] = 1
		case souvenir.ImportanceHigh:
			d.Important[i] = 2
		case souvenir.ImportanceCritical:
			d.Important[i] = 3
		}
	}
	d.Places = base64.StdEncoding.EncodeToString(at)
	return d
}

// addClusters adds which memories belong together.
func (d *drawing) addClusters(clusters []souvenir.Cluster) {
	for number, cluster := range clusters {
		d.Clusters = append(d.Clusters, cluster.Name)
		for _, i := range cluster.Nodes {
			d.Cluster[i] = number
		}
	}
}

// addEdges adds the connections, and the words that memories share.
func (d *drawing) addEdges(edges []souvenir.Edge) {
	words, before := numbering{names: &d.Words}, 0
	for _, edge := range edges {
		similar := 0
		if edge.Kind == souvenir.EdgeSimilar {
			similar = max(int(100*edge.Score), 1)
		}
		d.From, d.To, d.Similar = append(d.From, edge.From-before), append(d.To, edge.To-edge.From),
			append(d.Similar, similar)
		before = edge.From
		both := [2]int{-1, -1}
		if edge.Shared != "" {
			for i, word := range strings.SplitN(edge.Shared, ", ", 3)[:min(2, 1+strings.Count(edge.Shared, ", "))] {
				both[i] = words.of(word, word)
			}
		}
		d.Shared = append(d.Shared, both[:]...)
	}
}

// numbering numbers keys in order of appearance, and keeps their names.
type numbering struct {
	names   *[]string
	numbers map[string]int
}

func (n *numbering) of(key, name string) int {
	if number, known := n.numbers[key]; known {
		return number
	}
	if n.numbers == nil {
		n.numbers = map[string]int{}
	}
	n.numbers[key] = len(*n.names)
	*n.names = append(*n.names, name)
	return n.numbers[key]
}

// projectOfNode returns the name of a node's project.
func projectOfNode(node souvenir.Node, projects map[string]string) string {
	if node.ProjectID == "" {
		return "no project"
	}
	return cmp.Or(projects[node.ProjectOwner+"/"+node.ProjectID], node.ProjectID)
}

// answer sends a drawing to the script of a page, and keeps which memories it shows.
func (s *Service) answer(w http.ResponseWriter, r *http.Request, user string, nodes []souvenir.Node, d drawing) error {
	d.Version = s.shown.note(user, nodes)
	if id := r.URL.Query().Get("memory"); id != "" {
		d.Chosen = slices.IndexFunc(nodes, func(node souvenir.Node) bool { return node.ID == id })
	}
	return answerCompressed(w, r, d)
}

// answerCompressed sends JSON, compressed if possible.
func answerCompressed(w http.ResponseWriter, r *http.Request, value any) error {
	var body bytes.Buffer
	encoder := json.NewEncoder(&body)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	web.WriteCompressed(w, r, http.StatusOK, body.Bytes())
	return nil
}
