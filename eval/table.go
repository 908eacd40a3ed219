package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// apart is the category of questions about something that the other speaker said. It has a row of its own, and does
// not count in the row "all".
const apart = "adversarial"

// mostRows is the maximum number of categories with a row each.
const mostRows = 12

// part is a row of a table.
type part struct {
	name    string
	answers []answer
}

// parts splits answers into the rows of a table: each category, each language, all, and those apart. Unanswerable
// questions are left out.
func parts(answers []answer) []part {
	var main, adversarial []answer
	for _, a := range answers {
		switch {
		case len(a.Ranks) == 0:
		case a.Category == apart:
			adversarial = append(adversarial, a)
		default:
			main = append(main, a)
		}
	}
	var rows []part
	for _, key := range []func(answer) string{
		func(a answer) string { return a.Category }, func(a answer) string { return a.Language },
	} {
		groups := groupBy(main, key)
		if len(groups) < 2 || len(groups) > mostRows {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(groups)) {
			rows = append(rows, part{name, groups[name]})
		}
	}
	rows = append(rows, part{"all", main})
	if len(adversarial) > 0 {
		rows = append(rows, part{apart, adversarial})
	}
	return rows
}

// printTable prints the figures of one set and setting, in per cent.
func printTable(w io.Writer, answers []answer) {
	if len(answers) == 0 {
		return
	}
	fmt.Fprintf(w, "\n### %s, %s\n\n", answers[0].Set, answers[0].Setting)
	fmt.Fprint(w, "| category | n |")
	for _, m := range metrics {
		fmt.Fprintf(w, " %s |", m.name)
	}
	fmt.Fprintf(w, " 95 %% of %s |\n|---|---|%s---|\n", recall10.name, strings.Repeat("---|", len(metrics)))
	for _, p := range parts(answers) {
		fmt.Fprintf(w, "| %s | %d |", p.name, len(p.answers))
		for _, m := range metrics {
			fmt.Fprintf(w, " %.2f |", 100*mean(m.values(p.answers)))
		}
		e := bootstrap(recall10.values(p.answers))
		fmt.Fprintf(w, " %.1f to %.1f |\n", 100*e.low, 100*e.high)
	}
	printUnanswered(w, answers)
}

// printUnanswered compares the best scores of unanswerable questions with those of the others.
func printUnanswered(w io.Writer, answers []answer) {
	var answered, unanswered []float64
	for _, a := range answers {
		if len(a.Ranks) == 0 {
			unanswered = append(unanswered, a.Score)
		} else {
			answered = append(answered, a.Score)
		}
	}
	if len(unanswered) == 0 {
		return
	}
	fmt.Fprintf(w, "\nBest scores, deciles: answered %s; nothing answers %s\n", deciles(answered), deciles(unanswered))
}

func deciles(values []float64) string {
	values = slices.Sorted(slices.Values(values))
	var b strings.Builder
	for _, tenth := range []int{1, 3, 5, 7, 9} {
		fmt.Fprintf(&b, " %.2f", values[len(values)*tenth/10])
	}
	return b.String()[1:]
}
