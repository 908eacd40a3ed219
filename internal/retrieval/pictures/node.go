package pictures

import (
	"cmp"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/retrieval"
	"github.com/souvenir-ai/souvenir/internal/sealing/sealedrows"
	"github.com/souvenir-ai/souvenir/internal/shorten"
)

// Node is a memory as a picture shows it. Empty texts are missing ones.
type Node struct {
	Row, Partition int64

	ID                                           string
	Begins, Label                                string // the beginning of its content, and of its first line
	Collection, Owner                            string
	ProjectID, ProjectOwner                      string
	EventType, State, Importance, Classification string
	CreatedAt, UpdatedAt                         time.Time
}

// load reads memories that the caller may see, in the order of the rows.
func load(tx db.Tx, rows []int64) (nodes []Node, err error) {
	const begins = 600 // characters
	nodes = make([]Node, 0, len(rows))
	err = tx.Each(func(row db.Rows) error {
		var n Node
		var content string
		var created, updated int64
		err := row.Scan(&n.Row, &n.Partition, &n.ID, &content, &n.Collection, &n.Owner, &n.ProjectID, &n.ProjectOwner,
			&n.EventType, &n.State, &n.Importance, &n.Classification, &created, &updated)
		n.Begins = strings.Clone(shorten.Characters(content, begins)) // kept for longer than the content
		n.Label = shorten.FirstLine(n.Begins)
		n.CreatedAt, n.UpdatedAt = kernel.ToTime(created), kernel.ToTime(updated)
		nodes = append(nodes, n)
		return err
	}, `SELECT m.id, m.partition_id, m.uid, substr(m.content, 1, ?), c.name, u.uid, coalesce(j.uid, ''), coalesce(v.uid,
		''), coalesce(m.event_type, ''), coalesce(m.state, ''),
			coalesce(m.importance, ''), coalesce(m.classification, ''), m.created_at, m.updated_at
		FROM `+db.Numbered+` r `+db.InOrder+
		` memory m ON m.id = r.value JOIN partition p ON p.id = m.partition_id JOIN collection c ON c.id = p.collection_id
		JOIN users u ON u.id = c.owner_id LEFT JOIN project j ON j.id = p.project_id LEFT JOIN users v ON v.id = j.owner_id
		ORDER BY r.key`, sealedrows.Characters(tx, begins), db.List(rows))
	return nodes, err
}

// comparing returns a function that compares nodes as an order by a time does.
func comparing(order retrieval.Order) func(a, b Node) int {
	return func(a, b Node) int {
		x, y := a.UpdatedAt, b.UpdatedAt
		if order.Created {
			x, y = a.CreatedAt, b.CreatedAt
		}
		if !order.Ascending {
			x, y = y, x
		}
		return cmp.Or(x.Compare(y), cmp.Compare(a.ID, b.ID))
	}
}

// Begins returns how the contents of nodes begin.
func Begins(nodes []Node) []string {
	texts := make([]string, len(nodes))
	for i, node := range nodes {
		texts[i] = node.Begins
	}
	return texts
}
