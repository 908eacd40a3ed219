package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir"
)

// bar shows on a terminal how far a long task has come. Only the goroutine that does the work may use it.
type bar struct {
	out   *os.File
	paint func(paint, string) string
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
	b := &bar{out: c.stderr, paint: func(_ paint, text string) string { return text }}
	if c.paints(c.stderr) {
		b.paint = painted
	}
	return b.step, b.clear
}

// busy shows a task and its duration on a terminal, for work that does not report its progress. The function that
// it returns ends it.
func (c *cli) busy(doing string) (end func()) {
	if !isTerminal(c.stderr) {
		return func() {}
	}
	b := &bar{out: c.stderr}
	b.draw(doing+" …", "")
	return b.tick(doing)
}

// openingKey is the key of the context's function that shows on a terminal that a store is being opened.
type openingKey struct{}

// showsOpening returns a context with which the opening of a store is shown on a terminal once it takes a second: a
// file of an older version is upgraded, which reads all of a large one.
func (c *cli) showsOpening(ctx context.Context) context.Context {
	if !isTerminal(c.stderr) {
		return ctx
	}
	return context.WithValue(ctx, openingKey{}, func() (end func()) {
		return (&bar{out: c.stderr}).tick("opening the store (an older one is upgraded)")
	})
}

// showOpening shows the opening of a store, until the function that it returns is called.
func showOpening(ctx context.Context) (end func()) {
	if show, is := ctx.Value(openingKey{}).(func() func()); is {
		return show()
	}
	return func() {}
}

// tick draws, every second, how long a task has been running.
func (b *bar) tick(doing string) (end func()) {
	began := time.Now()
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		seconds := time.NewTicker(time.Second)
		defer seconds.Stop()
		for {
			select {
			case <-seconds.C:
				b.draw(fmt.Sprintf("%s … %s", doing, time.Since(began).Round(time.Second)), "")
			case <-done:
				return
			}
		}
	}()
	return func() {
		close(done)
		<-ended
		b.clear()
	}
}

// step draws the bar, unless it was drawn just now.
func (b *bar) step(stage string, done, total int) {
	now := time.Now()
	if stage == b.stage && now.Sub(b.drawn) < barEvery {
		return
	}
	b.stage, b.drawn = stage, now
	line, full := barLine(stage, done, total)
	b.draw(line, full)
}

// draw draws a line, and paints the bar within it.
func (b *bar) draw(line, full string) {
	if columns := terminalWidth(b.out); columns > 0 {
		line = shorten(line, columns-1) // a longer one would begin another
	}
	width := len([]rune(line))
	if full != "" {
		line = strings.Replace(line, full, b.paint(cyan, full), 1)
	}
	fmt.Fprintf(b.out, "\r%s%s", line, strings.Repeat(" ", max(0, b.width-width)))
	b.width = width
}

// clear erases the bar, so that the next output takes its place.
func (b *bar) clear() {
	if b.width > 0 {
		b.draw("", "")
		fmt.Fprint(b.out, "\r")
		b.width = 0
	}
}

// barLine formats the bar of a stage of work; a total of 0 is unknown. It returns the part that is done, too.
func barLine(stage string, done, total int) (line, filled string) {
	if total <= 0 {
		return fmt.Sprintf("%-12s %d", stage, done), ""
	}
	part := min(1, max(0, float64(done)/float64(total)))
	full := int(part * barWidth)
	filled = strings.Repeat("█", full)
	return fmt.Sprintf("%-12s %s%s %3.0f %%  %d of %d", stage, filled, strings.Repeat("░", barWidth-full), part*100, done,
		total), filled
}
