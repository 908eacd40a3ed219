package main

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"math"
)

// Sizes of the chart, in pixels.
const (
	chartWidth = 760
	chartLeft  = 290 // where the scale begins
	chartRight = 60
	rowHeight  = 26
)

// chartStyle follows the reader's colour scheme.
const chartStyle = `<style>
    .ground { fill: #fff } .text { fill: #1f2328 } .dim { fill: #59636e } .grid { stroke: #d1d9e0 }
    .dot { fill: #2f5fb3 } .bar { stroke: #2f5fb3; stroke-width: 2 } .base { stroke: #59636e; stroke-dasharray: 3 3 }
    @media (prefers-color-scheme: dark) {
      .ground { fill: #0d1117 } .text { fill: #e6edf3 } .dim { fill: #9198a1 } .grid { stroke: #30363d }
      .dot { fill: #79b0ff } .bar { stroke: #79b0ff } .base { stroke: #9198a1 }
    }
  </style>`

// drawChart draws recall@10 of each set and setting with its 95 % interval; a dashed line is the first setting.
func drawChart(answers []answer) []byte {
	sets := groupBy(answers, func(a answer) string { return a.Set })
	names := order(answers, func(a answer) string { return a.Set })
	rows := 0
	for _, name := range names {
		rows += 2 + len(chartRows(sets[name]))
	}
	height := rowHeight * rows
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d"`+
		` font-family="ui-sans-serif, system-ui, sans-serif" font-size="13" role="img">
  <title>recall@10 by setting, with 95 %% intervals</title>
  %s
  <rect class="ground" width="%d" height="%d"/>
`, chartWidth, height, chartStyle, chartWidth, height)
	y := rowHeight
	for _, name := range names {
		y = drawSet(&b, name, chartRows(sets[name]), y)
	}
	b.WriteString("</svg>\n")
	return b.Bytes()
}

// chartRow is one line of a chart.
type chartRow struct {
	name string
	estimate
}

// chartRows are the settings of a set, in their order. Adversarial questions have rows of their own.
func chartRows(answers []answer) []chartRow {
	var rows, last []chartRow
	bySetting := groupBy(answers, func(a answer) string { return a.Setting })
	for _, name := range order(answers, func(a answer) string { return a.Setting }) {
		for _, p := range parts(bySetting[name]) {
			switch p.name {
			case "all":
				rows = append(rows, chartRow{name, bootstrap(recall10.values(p.answers))})
			case apart:
				last = append(last, chartRow{name + ", " + apart, bootstrap(recall10.values(p.answers))})
			}
		}
	}
	return append(rows, last...)
}

// drawSet draws the rows of one set from y on, and returns where the next set begins.
func drawSet(b *bytes.Buffer, name string, rows []chartRow, y int) int {
	low, high := 1.0, 0.0
	for _, r := range rows {
		low, high = min(low, r.low), max(high, r.high)
	}
	low, high = math.Floor(low*10)/10, math.Ceil(high*10)/10
	if high <= low {
		high = low + 0.1
	}
	x := func(value float64) float64 {
		return chartLeft + (chartWidth-chartLeft-chartRight)*(value-low)/(high-low)
	}
	bottom := y + rowHeight*len(rows)
	fmt.Fprintf(b, "  <text class=\"text\" x=\"16\" y=\"%d\" font-weight=\"600\">%s</text>\n", y, escape(name))
	for tenth := math.Round(low * 10); tenth <= math.Round(high*10); tenth++ {
		at := x(tenth / 10)
		fmt.Fprintf(b, "  <line class=\"grid\" x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%d\"/>"+
			"<text class=\"dim\" x=\"%.1f\" y=\"%d\" font-size=\"11\" text-anchor=\"middle\">%.0f</text>\n",
			at, y+8, at, bottom+8, at, y, tenth*10)
	}
	fmt.Fprintf(b, "  <line class=\"base\" x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%d\"/>\n",
		x(rows[0].mean), y+8, x(rows[0].mean), bottom+8)
	for i, r := range rows {
		at := y + rowHeight*(i+1) - 6
		fmt.Fprintf(b, "  <text class=\"text\" x=\"16\" y=\"%d\">%s</text>"+
			"<line class=\"bar\" x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%d\"/>"+
			"<circle class=\"dot\" cx=\"%.1f\" cy=\"%d\" r=\"5\"/>"+
			"<text class=\"text\" x=\"%d\" y=\"%d\" text-anchor=\"end\">%.1f</text>\n",
			at+4, escape(r.name), x(r.low), at, x(r.high), at, x(r.mean), at, chartWidth-16, at+4, 100*r.mean)
	}
	return bottom + 2*rowHeight
}

func escape(s string) string {
	var b bytes.Buffer
	_ = xml.EscapeText(&b, []byte(s)) // a buffer never fails
	return b.String()
}
