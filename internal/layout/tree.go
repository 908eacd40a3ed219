package layout

import "math"

// tree divides the plane into quarters of quarters, so that distant nodes count as one (J. Barnes, P. Hut, A
// hierarchical O(N log N) force-calculation algorithm, 1986).
type tree struct {
	cells  []cell
	places []float32
	mass   []float32
}

// cell is a square. Its center of mass is x/mass and y/mass until build has ended, x and y afterwards.
type cell struct {
	x, y, mass float32
	width      float32
	quarters   [4]int32 // numbers of cells; 0: none
	node       int32    // the only one in it; -1: several
}

const deepest = 20 // how often a square is divided; closer nodes count as one

func (t *tree) build(places, mass []float32) {
	t.places, t.mass = places, mass
	low, high := [2]float32{places[0], places[1]}, [2]float32{places[0], places[1]}
	for i, v := range places {
		low[i%2], high[i%2] = min(low[i%2], v), max(high[i%2], v)
	}
	width := max(high[0]-low[0], high[1]-low[1], 1e-3) * 1.0001
	t.cells = append(t.cells[:0], cell{width: width, node: -1})
	for i := range mass {
		t.insert(int32(i), low[0], low[1])
	}
	for i := range t.cells {
		c := &t.cells[i]
		c.x, c.y = c.x/c.mass, c.y/c.mass
	}
}

// insert adds a node to the tree, whose root begins at a corner.
func (t *tree) insert(node int32, left, bottom float32) {
	x, y, mass := t.places[2*node], t.places[2*node+1], t.mass[node]
	at := int32(0)
	for depth := 0; ; depth++ {
		c := &t.cells[at]
		c.x, c.y, c.mass = c.x+x*mass, c.y+y*mass, c.mass+mass
		if depth == deepest {
			c.node = -1
			return
		}
		half := c.width / 2
		if resident := c.node; resident >= 0 { // it moves one down
			c.node = -1
			rx, ry, rm := t.places[2*resident], t.places[2*resident+1], t.mass[resident]
			q := quarter(rx, ry, left+half, bottom+half)
			c.quarters[q] = int32(len(t.cells))
			t.cells = append(t.cells, cell{x: rx * rm, y: ry * rm, mass: rm, width: half, node: resident})
			c = &t.cells[at]
		}
		q := quarter(x, y, left+half, bottom+half)
		if q&1 != 0 {
			left += half
		}
		if q&2 != 0 {
			bottom += half
		}
		next := c.quarters[q]
		if next == 0 {
			c.quarters[q] = int32(len(t.cells))
			t.cells = append(t.cells, cell{x: x * mass, y: y * mass, mass: mass, width: half, node: node})
			return
		}
		at = next
	}
}

func quarter(x, y, middleX, middleY float32) int {
	q := 0
	if x >= middleX {
		q = 1
	}
	if y >= middleY {
		q += 2
	}
	return q
}

// walk returns the numbers of the cells that make up all other nodes as seen from a node: a square counts as one if its
// width is less than far times its distance. It overwrites list, and may return a longer one.
func (t *tree) walk(node int32, far float32, list []int32) []int32 {
	list = list[:0]
	x, y := t.places[2*node], t.places[2*node+1]
	var stack [4 * (deepest + 1)]int32
	for depth := 1; depth > 0; {
		depth--
		at := stack[depth]
		c := &t.cells[at]
		if c.node == node {
			continue
		}
		dx, dy := x-c.x, y-c.y
		if c.node < 0 && c.width*c.width >= far*far*(dx*dx+dy*dy) {
			leaf := true
			for _, next := range c.quarters {
				if next != 0 {
					stack[depth] = next
					depth++
					leaf = false
				}
			}
			if !leaf {
				continue
			}
		}
		list = append(list, at)
	}
	return list
}

// push returns the force by which the cells of a walk push a node away.
func (t *tree) push(node int32, cells []int32) (x, y float32) {
	px, py := t.places[2*node], t.places[2*node+1]
	for _, at := range cells {
		c := &t.cells[at]
		dx, dy := px-c.x, py-c.y
		d := dx*dx + dy*dy
		if d < 1e-6 { // on top of each other: any direction, but not the same for both
			sin, cos := math.Sincos(float64(node))
			dx, dy, d = 1e-3*float32(cos), 1e-3*float32(sin), 1e-6
		}
		f := strength * c.mass / d
		x, y = x+dx*f, y+dy*f
	}
	return x, y
}
