package main

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
)

// printTables prints a table in Markdown for each size.
func printTables(w io.Writer, all []result) {
	sizes := map[int]bool{}
	for _, r := range all {
		sizes[r.Size] = true
	}
	for _, size := range slices.Sorted(maps.Keys(sizes)) {
		fmt.Fprintf(w, "\n| %d texts | added/s | MB on disk | open to first answer | by vector, median; p99 | recall@10 "+
			"| by words, median; p99 | resident |\n|---|---|---|---|---|---|---|---|\n", size)
		for _, r := range all {
			if r.Size != size {
				continue
			}
			fmt.Fprintf(w, "| %s | %s | %s | %s | %s | %s | %s | %s |\n", r.Peer, number(r.PerSecond, "", 0),
				number(float64(r.Bytes)/1e6, "", 1), number(r.Open, " ms", 1), r.Vector, number(r.Recall, "", 3), r.Words,
				number(float64(r.Resident), " MiB", 0))
		}
	}
}

// String formats the times of a cell.
func (t times) String() string {
	if t.Median == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f; %.2f ms", t.Median, t.P99)
}

// number formats a number with its unit; 0 was not measured.
func number(n float64, unit string, digits int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%.*f%s", digits, n, unit)
}

// The chart's measures, in pixels.
const (
	width, height = 720, 420
	left, right   = 70, 210 // margins
	top, bottom   = 50, 50
)

var colours = []string{"#1f6feb", "#b35900", "#8250df", "#1a7f37", "#cf222e", "#57606a", "#9a6700"}

// draw returns a chart of the median searches by vector, both axes logarithmic.
func draw(all []result) []byte {
	lines := map[string][]result{}
	var names []string
	low, high, fewest, most := math.Inf(1), 0.0, math.Inf(1), 0.0
	for _, r := range all {
		if r.Vector.Median == 0 {
			continue
		}
		if lines[r.Peer] == nil {
			names = append(names, r.Peer)
		}
		lines[r.Peer] = append(lines[r.Peer], r)
		low, high = min(low, r.Vector.Median), max(high, r.Vector.Median)
		fewest, most = min(fewest, float64(r.Size)), max(most, float64(r.Size))
	}
	low, high = math.Pow(10, math.Floor(math.Log10(low))), math.Pow(10, math.Ceil(math.Log10(high)))
	x := func(size int) float64 {
		return left + (width-left-right)*math.Log(float64(size)/fewest)/max(math.Log(most/fewest), 1)
	}
	y := func(ms float64) float64 {
		return height - bottom - (height-top-bottom)*math.Log(ms/low)/math.Log(high/low)
	}

	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+
		"\n<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n"+
		`<text x="%d" y="24" font-size="15">The ten nearest vectors: milliseconds of a search, median</text>`+"\n",
		width, height, left)
	for ms := low; ms <= high*1.01; ms *= 10 {
		fmt.Fprintf(&b, `<path d="M%d %.1fH%d" stroke="#d0d7de"/><text x="%d" y="%.1f" text-anchor="end">%g</text>`+"\n",
			left, y(ms), width-right, left-8, y(ms)+4, ms)
	}
	last := func(name string) result { return lines[name][len(lines[name])-1] }
	labels := slices.SortedFunc(slices.Values(names), func(a, b string) int {
		return cmp.Compare(last(b).Vector.Median, last(a).Vector.Median)
	})
	for i, under := 0, 0.0; i < len(labels); i++ {
		r := last(labels[i])
		under = max(under+14, y(r.Vector.Median)+4) // a line below the label before
		fmt.Fprintf(&b, "<text x=\"%.1f\" y=\"%.1f\" fill=\"%s\">%s, recall %.2f</text>\n", x(r.Size)+8, under,
			colours[slices.Index(names, r.Peer)%len(colours)], r.Peer, r.Recall)
	}
	for i, name := range names {
		line, colour := lines[name], colours[i%len(colours)]
		fmt.Fprintf(&b, `<polyline fill="none" stroke="%s" stroke-width="2" points="`, colour)
		for _, r := range line {
			fmt.Fprintf(&b, "%.1f,%.1f ", x(r.Size), y(r.Vector.Median))
		}
		b.WriteString("\"/>\n")
		for _, r := range line {
			fmt.Fprintf(&b, `<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>`, x(r.Size), y(r.Vector.Median), colour)
			if i == 0 {
				fmt.Fprintf(&b, `<text x="%.1f" y="%d" text-anchor="middle">%d</text>`, x(r.Size), height-bottom+20, r.Size)
			}
		}
		b.WriteString("\n")
	}
	fmt.Fprintf(&b, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">texts</text>\n</svg>\n",
		(left+width-right)/2, height-8)
	return b.Bytes()
}
