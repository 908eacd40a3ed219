package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir"
)

// bar shows on a terminal how far a long task has come. Only the goroutine that does the work may use it.
type bar struct {
	out   *os.File
	stage string
	drawn time.Time // when the line was last drawn
	width int       // characters of it
}

const (
	barWidth = 30
	barEvery = 100 * time.Millisecond
)

// progress returns a callback for a store's method, nil where output is not a terminal, and a function that ends
// the bar.
func (c *cli) progress() (souvenir.Progress, func()) {
	if !isTerminal(c.stderr) {
		return nil, func() {}
	}
	b := &bar{out: c.stderr}
	return b.step, b.clear
}

// step draws the bar, unless it was drawn just now.
func (b *bar) step(stage string, done, total int) {
	now := time.Now()
	if stage == b.stage && now.Sub(b.drawn) < barEvery {
		return
	}
	b.stage, b.drawn = stage, now
	b.draw(barLine(stage, done, total))
}

func (b *bar) draw(line string) {
	fmt.Fprintf(b.out, "\r%s%s", line, strings.Repeat(" ", max(0, b.width-len([]rune(line)))))
	b.width = len([]rune(line))
}

// clear erases the bar, so that the next output takes its place.
func (b *bar) clear() {
	if b.width > 0 {
		b.draw("")
		fmt.Fprint(b.out, "\r")
		b.width = 0
	}
}

// barLine formats the bar of a stage of work; a total of 0 is unknown.
func barLine(stage string, done, total int) string {
	if total <= 0 {
		return fmt.Sprintf("%-12s %d", stage, done)
	}
	part := min(1, max(0, float64(done)/float64(total)))
	full := int(part * barWidth)
	return fmt.Sprintf("%-12s %s%s %3.0f %%  %d of %d", stage, strings.Repeat("█", full),
		strings.Repeat("░", barWidth-full), part*100, done, total)
}
