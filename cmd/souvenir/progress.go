package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir"
)

// bar shows on a terminal how far a long piece of work has come. It is for the goroutine that does the work.
type bar struct {
	out   *os.File
	stage string
	drawn time.Time // when the line was last drawn
	shown int       // characters of it
}

const (
	barWidth = 30
	barEvery = 100 * time.Millisecond
)

// progress returns what a store's method tells its progress, nil where nobody looks, and the end of it.
func (c *cli) progress() (souvenir.Progress, func()) {
	if !isTerminal(c.stderr) {
		return nil, func() {}
	}
	b := &bar{out: c.stderr}
	return b.step, b.clear
}

// step draws the bar, unless that was done just now.
func (b *bar) step(stage string, done, total int) {
	now := time.Now()
	if stage == b.stage && now.Sub(b.drawn) < barEvery {
		return
	}
	b.stage, b.drawn = stage, now
	b.draw(barLine(stage, done, total))
}

func (b *bar) draw(line string) {
	fmt.Fprintf(b.out, "\r%s%s", line, strings.Repeat(" ", max(0, b.shown-len([]rune(line)))))
	b.shown = len([]rune(line))
}

// clear takes the bar away: what is printed next stands in its place.
func (b *bar) clear() {
	if b.shown > 0 {
		b.draw("")
		fmt.Fprint(b.out, "\r")
		b.shown = 0
	}
}

// barLine is the bar of a stage of work; a total of 0 is not known.
func barLine(stage string, done, total int) string {
	if total <= 0 {
		return fmt.Sprintf("%-12s %d", stage, done)
	}
	part := min(1, max(0, float64(done)/float64(total)))
	full := int(part * barWidth)
	return fmt.Sprintf("%-12s %s%s %3.0f %%  %d of %d", stage, strings.Repeat("█", full),
		strings.Repeat("░", barWidth-full), part*100, done, total)
}
