package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
)

// change is one question in two runs.
type change struct{ before, after answer }

// by returns how much a metric rose.
func (c change) by(m metric) float64 { return m.of(c.after) - m.of(c.before) }

// pair matches the answers of two runs by question.
func pair(before, after []answer) []change {
	byID := map[string]answer{}
	for _, a := range after {
		byID[a.QID] = a
	}
	var changes []change
	for _, b := range before {
		if a, ok := byID[b.QID]; ok && len(b.Ranks) == len(a.Ranks) {
			changes = append(changes, change{b, a})
		}
	}
	return changes
}

// printComparison prints the changes from one run of a set to another, and the questions that changed most.
func printComparison(w io.Writer, before, after []answer, most int) {
	changes := pair(before, after)
	if len(changes) == 0 {
		fmt.Fprintln(w, "no question is in both runs")
		return
	}
	first := changes[0]
	fmt.Fprintf(w, "\n### %s: %s against %s\n\n", first.before.Set, first.after.Setting, first.before.Setting)
	if lost := max(len(before), len(after)) - len(changes); lost > 0 {
		fmt.Fprintf(w, "%d questions are in one run only, and left out.\n\n", lost)
	}
	fmt.Fprint(w, "| category | metric | before | after | difference | 95 % | won | lost | tied |\n"+
		"|---|---|---|---|---|---|---|---|---|\n")
	byID := map[string]change{}
	for _, c := range changes {
		byID[c.before.QID] = c
	}
	var baseline []answer
	for _, c := range changes {
		baseline = append(baseline, c.before)
	}
	for _, p := range parts(baseline) {
		paired := make([]change, len(p.answers))
		for i, a := range p.answers {
			paired[i] = byID[a.QID]
		}
		for _, m := range metrics {
			if p.name == "all" || p.name == apart || m.name == recall10.name {
				printDifference(w, p, m, paired)
			}
		}
	}
	printChanged(w, changes, most)
}

func printDifference(w io.Writer, p part, m metric, paired []change) {
	var won, lost, tied int
	differences := make([]float64, len(paired))
	var was []float64
	for i, c := range paired {
		differences[i] = c.by(m)
		was = append(was, m.of(c.before))
		switch d := differences[i]; {
		case d > 0:
			won++
		case d < 0:
			lost++
		default:
			tied++
		}
	}
	e := bootstrap(differences)
	fmt.Fprintf(w, "| %s | %s | %.2f | %.2f | %+.2f | %+.1f to %+.1f | %d | %d | %d |\n", p.name, m.name, 100*mean(was),
		100*(mean(was)+e.mean), 100*e.mean, 100*e.low, 100*e.high, won, lost, tied)
}

// printChanged prints the questions that changed most, by recall@10 and then by the rank of the first answer.
func printChanged(w io.Writer, changes []change, most int) {
	changes = slices.DeleteFunc(changes, func(c change) bool {
		return len(c.before.Ranks) == 0 || slices.Equal(c.before.Ranks, c.after.Ranks)
	})
	size := func(c change) float64 {
		return math.Abs(c.by(recall10)) + 0.01*math.Abs(c.after.reciprocalRank()-c.before.reciprocalRank())
	}
	slices.SortStableFunc(changes, func(a, b change) int { return cmp.Compare(size(b), size(a)) })
	if most = min(most, len(changes)); most == 0 {
		return
	}
	fmt.Fprintf(w, "\nChanged most, of %d that changed (ranks of what answers; 0: not among the best %d):\n\n",
		len(changes), depth)
	for _, c := range changes[:most] {
		fmt.Fprintf(w, "- %s (%s) %v, before %v: %s\n", c.before.QID, c.before.Category, c.after.Ranks, c.before.Ranks,
			c.before.Question)
	}
}

func writeRecord(path string, answers []answer) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	buffered := bufio.NewWriter(file)
	lines := json.NewEncoder(buffered)
	lines.SetEscapeHTML(false)
	for _, a := range answers {
		if err := lines.Encode(a); err != nil {
			return errors.Join(err, file.Close())
		}
	}
	if err := buffered.Flush(); err != nil {
		return errors.Join(err, file.Close())
	}
	return file.Close()
}

func readRecord(path string) ([]answer, error) {
	file, err := open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var answers []answer
	for lines := json.NewDecoder(file); ; {
		var a answer
		switch err := lines.Decode(&a); err {
		case nil:
			answers = append(answers, a)
		case io.EOF:
			return answers, nil
		default:
			return nil, fmt.Errorf("%s, answer %d: %w", path, len(answers)+1, err)
		}
	}
}
