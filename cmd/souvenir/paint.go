package main

import (
	"fmt"
	"io"
	"os"
	"strings"
)

// paint is how a text looks on a terminal: the parameters of an SGR sequence (ECMA-48, 8.3.117).
type paint string

const (
	bold   paint = "1"
	faint  paint = "2"
	red    paint = "1;31"
	green  paint = "32"
	yellow paint = "33"
	cyan   paint = "36"
)

// paints reports whether output to a file may have colours: it is a terminal that knows them, and the person
// has not turned them off (https://no-color.org).
func (c *cli) paints(file *os.File) bool {
	if off, _ := c.lookup("NO_COLOR"); off != "" {
		return false
	}
	if kind, _ := c.lookup("TERM"); kind == "dumb" {
		return false
	}
	return isTerminal(file) && enablePaint(file)
}

// painted returns a text with a paint. Spaces around it stay outside, so that columns keep their width.
func painted(p paint, text string) string {
	core := strings.TrimSpace(text)
	if core == "" {
		return text
	}
	before, after, _ := strings.Cut(text, core)
	return before + "\x1b[" + string(p) + "m" + core + "\x1b[0m" + after
}

// in returns a text with a paint where the output may have one, and else as it is.
func (o *output) in(p paint, text string) string {
	if !o.painted {
		return text
	}
	return painted(p, text)
}

// paintOf returns the function that paints output to w: it paints only on a terminal.
func paintOf(w io.Writer) func(paint, string) string {
	if o, ok := w.(*output); ok {
		return o.in
	}
	return func(_ paint, text string) string { return text }
}

// warn prints a line to standard error, with the program's name before it.
func (c *cli) warn(format string, args ...any) { c.complain(yellow, format, args...) }

// complain prints a line to standard error, with the program's name before it in a paint.
func (c *cli) complain(p paint, format string, args ...any) {
	name := "souvenir:"
	if c.paints(c.stderr) {
		name = painted(p, name)
	}
	fmt.Fprintf(c.stderr, name+" "+format+"\n", args...)
}
