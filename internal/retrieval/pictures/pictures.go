// Package pictures reads the memories that are shown together as a graph or a map, and what these are drawn from:
// links, directions and near duplicates.
package pictures

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/retrieval"
	"github.com/souvenir-ai/souvenir/internal/retrieval/index"
)

// Source is what pictures need of a store.
type Source struct {
	Ready      func(tx db.Tx) (bool, error) // whether vectors can be compared for now
	Comparison *retrieval.Comparison
	Scores     *retrieval.PairScores
	Lists      *retrieval.Derived // keeps which memories pictures show
	Dimensions int                // of the embedder's vectors
	Sealed     bool               // texts are sealed, so nothing of them is kept
}

// Picture is a set of memories to show together.
type Picture struct {
	Source
	Order    retrieval.Order
	Nodes    []Node
	Total    int  // of the selected memories, including any beyond the limit
	Changing bool // vectors cannot be compared for now
	Warnings []string

	selection retrieval.Selection
	ours      map[int64]bool // partitions whose vectors the store makes
}

// New returns a picture of the memories of a selection, which [Picture.Load] reads.
func New(from Source, sel retrieval.Selection, order retrieval.Order, warnings []string) *Picture {
	p := &Picture{Source: from, selection: sel, Order: order, ours: map[int64]bool{}, Warnings: warnings}
	for _, each := range sel.Partitions {
		p.ours[each.ID] = each.OwnSize == 0
	}
	return p
}

// About how many bytes of memory a part of a kept picture needs.
const (
	NodeBytes = 400
	EdgeBytes = 72

	supersededBytes = 40
)

// Kept returns a picture that was made since the last change of a memory. Pictures of sealed texts are not kept.
func Kept[V any](tx db.Tx, p *Picture, kept *retrieval.Derived, about string) (picture V, known bool,
	m retrieval.Making, err error) {
	if ready, err := p.Ready(tx); err != nil || !ready || p.Sealed {
		return picture, false, m, err
	}
	made, known, m, err := kept.Of(tx, p.selection, about)
	picture, _ = made.(V)
	return picture, known, m, err
}

// shown is what a picture shows of a selection.
type shown struct {
	nodes []Node
	total int
	share string // of the sample; empty: it is none

	superseded map[int64]int64 // memories by the row that supersedes them; nil: not needed, or too many
}

// Load reads the selected memories, up to a limit: the first ones, or a sample. After few changes it reads only the
// changed ones.
func (p *Picture) Load(tx db.Tx, limit int, sample bool) error {
	now, known, making, err := Kept[shown](tx, p, p.Lists, fmt.Sprint(limit, sample, p.Order))
	if err == nil && !known {
		now, err = p.read(tx, now, making, limit, sample)
	}
	if err != nil {
		return err
	}
	if p.Nodes, p.Total = now.nodes, now.total; !known {
		bytes := supersededBytes * len(now.superseded)
		for _, node := range p.Nodes {
			bytes += NodeBytes + len(node.Begins)
		}
		p.Lists.Keep(making, now, bytes)
	}
	return nil
}

// read reads what has changed since an earlier state was kept, or everything.
func (p *Picture) read(tx db.Tx, before shown, making retrieval.Making, limit int, sample bool) (now shown, err error) {
	if now.total, err = p.selection.Count(tx); err != nil {
		return now, err
	}
	sel := p.selection
	if sample && now.total > limit {
		now.share = retrieval.Share(limit, now.total)
		sel.Sample(now.share)
	}
	changed, few, err := making.Changed(tx)
	supersede := strings.Contains(sel.Current, kernel.Successor)
	if few = few && (!supersede || before.superseded != nil); few && supersede {
		changed, now.superseded, err = concerned(tx, changed, before.superseded)
	}
	if err != nil {
		return now, err
	}
	if few && before.share == now.share {
		now.nodes, err = p.changed(tx, sel, before.nodes, changed, limit)
		if err != nil || len(now.nodes) == limit || len(before.nodes) < limit { // else others move up
			return now, err
		}
	}
	if _, err := sel.Count(tx); err != nil {
		return now, err
	}
	rows, err := sel.Page(tx, p.Order, limit, 0)
	if err == nil && supersede {
		now.superseded, err = superseded(tx, `s.partition_id IN `+db.Integers, p.selection.PartitionList())
	}
	if err == nil {
		now.nodes, err = load(tx, rows)
	}
	return now, err
}

const mostSuperseded = 10_000

// superseded returns the memories that others supersede, by the rows of these; nil: too many to keep.
func superseded(tx db.Tx, condition, list string) (map[int64]int64, error) {
	all := map[int64]int64{}
	err := tx.Each(func(row db.Rows) error {
		var by, memory int64
		err := row.Scan(&by, &memory)
		all[by] = memory
		return err
	}, `SELECT s.id, m.id FROM memory s JOIN memory m ON `+kernel.Successor+` WHERE s.supersedes IS NOT NULL AND `+
		condition+` LIMIT ?`, list, mostSuperseded+1)
	if len(all) > mostSuperseded {
		return nil, err
	}
	return all, err
}

// concerned returns changed memories, and the ones that they supersede or did before: such a memory is hidden, or shown
// again, without a change of its own. It also returns which memories are superseded now.
func concerned(tx db.Tx, changed []int64, before map[int64]int64) ([]int64, map[int64]int64, error) {
	by, err := superseded(tx, `s.id IN `+db.Integers, db.List(changed))
	if err != nil {
		return nil, nil, err
	}
	of, err := superseded(tx, `m.id IN `+db.Integers, db.List(changed))
	if err != nil {
		return nil, nil, err
	}
	all, now := slices.Clone(changed), maps.Clone(before)
	for _, row := range changed {
		if memory, known := before[row]; known {
			all = append(all, memory)
			delete(now, row)
		}
	}
	for row, memory := range by {
		all, now[row] = append(all, memory), memory
	}
	if maps.Copy(now, of); len(now) > mostSuperseded {
		now = nil
	}
	slices.Sort(all)
	return slices.Compact(all), now, nil
}

// changed returns the first nodes of a selection after some memories changed.
func (p *Picture) changed(tx db.Tx, sel retrieval.Selection, before []Node, changed []int64, limit int) ([]Node,
	error) {
	rows, err := sel.Among(tx, changed)
	if err != nil {
		return nil, err
	}
	compare := comparing(p.Order)
	fresh, err := load(tx, rows)
	if len(before) == limit { // others, which are unknown, come after the last one
		fresh = slices.DeleteFunc(fresh, func(n Node) bool { return compare(n, before[limit-1]) > 0 })
	}
	for _, node := range before {
		if !slices.Contains(changed, node.Row) {
			fresh = append(fresh, node)
		}
	}
	slices.SortFunc(fresh, compare)
	return fresh[:min(limit, len(fresh))], err
}

// Directions returns the directions of those nodes that have one.
func (p *Picture) Directions(tx db.Tx, nodes []Node) (retrieval.Directions, error) {
	ready, err := p.Ready(tx)
	if err != nil {
		return retrieval.Directions{}, err
	}
	if p.Changing = !ready; p.Changing {
		p.Warnings = append(p.Warnings,
			"the store is changing its embedding model; memories cannot be compared until that is done")
		return retrieval.Directions{Size: p.Dimensions}, nil
	}
	list := make([]retrieval.Located, len(nodes))
	for i, n := range nodes {
		list[i] = retrieval.Located{Row: n.Row, Partition: n.Partition}
	}
	return p.Comparison.Directions(tx, p.Dimensions, list, p.partitions())
}

// Duplicates keeps the pairs of memories that say the same, and replaces the cosine with that probability. places are
// the positions of the memories among the nodes.
func (p *Picture) Duplicates(tx db.Tx, places []int, pairs []index.Pair, least float64) ([]index.Pair, error) {
	rows, cosines := make([]retrieval.Pair, len(pairs)), make(map[retrieval.Pair]float64, len(pairs))
	for i, pair := range pairs {
		a, b := p.Nodes[places[pair.A]].Row, p.Nodes[places[pair.B]].Row
		rows[i] = retrieval.Pair{min(a, b), max(a, b)}
		cosines[rows[i]] = float64(pair.Cosine)
	}
	scores, err := p.Scores.Of(tx, fmt.Sprint(least, p.partitions()), rows,
		func(pairs []retrieval.Pair) ([]float64, error) {
			return p.Comparison.Scores(tx, pairs, cosines, least)
		})
	var same []index.Pair
	for i, score := range scores {
		if score >= least {
			pairs[i].Cosine = float32(score)
			same = append(same, pairs[i])
		}
	}
	return same, err
}

// partitions returns the partitions of nodes whose vectors may be compared.
func (p *Picture) partitions() []int64 {
	some := map[int64]bool{}
	for _, n := range p.Nodes {
		if p.ours[n.Partition] {
			some[n.Partition] = true
		}
	}
	return slices.Sorted(maps.Keys(some))
}

// Links returns the links between the nodes, from one place to another, in the order of the nodes.
func (p *Picture) Links(tx db.Tx) ([][2]int, error) {
	rows := make([]int64, len(p.Nodes))
	for i, n := range p.Nodes {
		rows[i] = n.Row
	}
	return kernel.LinksAmong(tx, rows)
}
