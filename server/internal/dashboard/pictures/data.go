package pictures

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/shorten"
	"github.com/souvenir-ai/souvenir/server/internal/web"
)

// drawing is the data from which a script draws: memory i is entry i of each list. Lists of numbers are compact, which
// matters for thousands of memories.
type drawing struct {
	IDs         []string `json:"ids"`
	Labels      []string `json:"labels"`
	X           []int    `json:"x"` // coordinates span at most 10,000
	Y           []int    `json:"y"`
	Project     []int    `json:"project"` // indexes into Projects, and so on
	Type        []int    `json:"type"`
	Collection  []int    `json:"collection"`
	Important   []int    `json:"important"` // 0: unset or low, to 3: critical
	Projects    []string `json:"projects"`
	Types       []string `json:"types"`
	Collections []string `json:"collections"`

	// Edges has three numbers for each edge: from, to, and the similarity in hundredths; 0: a link from the first to
	// the second.
	Edges []int `json:"edges"`

	// Shared has two numbers for each edge: the words that both memories have, as indexes into Words; -1: none.
	Shared []int    `json:"shared"`
	Words  []string `json:"words"`

	Cluster  []int    `json:"cluster"`  // index into Clusters; -1: none
	Clusters []string `json:"clusters"` // names, the largest cluster first
	Folded   []int    `json:"folded"`   // memories without edges, which are not drawn
	Day      []int    `json:"day"`      // days since 1970 in UTC, on which they were stored

	Arranging bool `json:"arranging"` // the places are still being computed: ask again

	Total     int        `json:"total"`     // matches, drawn or not
	Unplaced  int        `json:"unplaced"`  // memories that are not drawn yet, for lack of vectors
	Explained [2]float64 `json:"explained"` // of a map
	Warnings  []string   `json:"warnings"`
}

// labelled is the length of a memory's label in characters, from its first line.
const labelled = 90

// plain is the label of a memory without the marks of Markdown. Most have none, and take no time.
func plain(label string) string {
	if !strings.ContainsAny(label, "#*_`[<~>\\|") {
		return label
	}
	return strings.TrimSpace(web.Plain(label))
}

// draw converts nodes and their positions for scripts.
func draw(nodes []souvenir.Node, places []float32, projects map[string]string) drawing {
	n := len(nodes)
	d := drawing{IDs: make([]string, n), Labels: make([]string, n), X: make([]int, n), Y: make([]int, n),
		Important: make([]int, n),
		Cluster:   slices.Repeat([]int{-1}, n), Day: make([]int, n), Clusters: []string{}, Folded: []int{}, Shared: []int{},
		Words:    []string{},
		Projects: []string{}, Types: []string{}, Collections: []string{}, Edges: []int{}, Warnings: []string{}}
	project, kind, collection := numbering{names: &d.Projects}, numbering{names: &d.Types},
		numbering{names: &d.Collections}
	most := float32(0)
	for _, at := range places {
		most = max(most, at, -at)
	}
	if most == 0 {
		most = 1
	}
	for i, node := range nodes {
		d.IDs[i], d.Labels[i] = node.ID, shorten.After(plain(node.Label), labelled)
		d.Day[i] = int(node.CreatedAt.Unix() / (24 * 60 * 60))
		d.X[i], d.Y[i] = int(math.Round(float64(places[2*i]/most)*10_000)),
			int(math.Round(float64(places[2*i+1]/most)*10_000))
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
	words := numbering{names: &d.Words}
	for _, edge := range edges {
		similar := 0
		if edge.Kind == souvenir.EdgeSimilar {
			similar = max(int(100*edge.Score), 1)
		}
		d.Edges = append(d.Edges, edge.From, edge.To, similar)
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

// answerPacked writes JSON, compressed if the client accepts that. The JSON must not combine secrets with text of
// other users: the compressed length would leak both (BREACH).
func (s *Service) answerPacked(w http.ResponseWriter, r *http.Request, value any) error {
	var body bytes.Buffer
	h := w.Header()
	h.Add("Vary", "Accept-Encoding")
	if web.AcceptsGzip(r.Header.Get("Accept-Encoding")) {
		packer, err := gzip.NewWriterLevel(&body, gzip.BestSpeed)
		if err != nil {
			return err
		}
		encoder := json.NewEncoder(packer)
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(value); err != nil {
			return err
		}
		if err := packer.Close(); err != nil {
			return err
		}
		h.Set("Content-Encoding", "gzip")
	} else if err := json.NewEncoder(&body).Encode(value); err != nil {
		return err
	}
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(body.Len()))
	w.WriteHeader(http.StatusOK)
	w.Write(body.Bytes()) //nolint:errcheck // the client is gone, and the log has the count
	return nil
}
