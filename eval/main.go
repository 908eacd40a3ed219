// Eval measures, in process, how well a store finds the memories that answer a question.
//
//	go run ./eval run [-setting SETTING]... [-record FILE] [-chart FILE] SET...
//	go run ./eval compare A.jsonl B.jsonl
//	go run ./eval chart -o FILE RECORD...
//	go run ./eval fit SET...
//	go run ./eval weights [-of WEIGHTS] [-from SETTING] [-folds N] SET...
//	go run ./eval print SET
//	go run ./eval sts FILE
//
// run loads each set into a store of its own, asks its questions, and prints recall@1/5/10/20, MRR and nDCG@10 for
// each category, with 95 % intervals from a seeded bootstrap over the questions. With several settings it compares
// each with the first one, question by question. -record keeps a line of JSON for each question and setting, which
// compare and chart read: compare pairs the runs of a set by setting, under any name if each record has one.
//
// A set is JSON Lines, gzipped if its name ends in .gz (set.go), or "own", the project's own questions with 1,500
// memories of each language, or "own:SIZE" (questions/README.md). A setting is a list of words, such as "hybrid" or
// "text,disk" or "hybrid,late=0" (setting.go).
//
// fit fits the calibration of internal/retrieval/calibrate on the development halves of the sets, and prints which hits
// it lets through on the other halves.
//
// weights fits the weights of the ranking to recall@5, @10 and @20, the same for each set, by coordinate ascent.
// Questions of the half "test" take no part. It also fits them once without each part of the conversations, and prints
// the recall of that part, which shows how much of the gain is real. -of names the weights to fit. Five weights on two
// sets take a few minutes, all weights half an hour. A weight of 0 stays 0.
//
// print prints a set as JSON Lines, so that other programs can be measured with the project's own questions.
//
// sts computes Spearman's correlation of the built-in model's cosines with the scores of labelled pairs.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/souvenir-ai/souvenir/internal/retrieval/ranking"
)

func main() {
	if err := command(context.Background(), os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "eval:", err)
		os.Exit(1)
	}
}

const usage = `usage:
  eval run [-setting SETTING]... [-record FILE] [-chart FILE] SET...
  eval compare A.jsonl B.jsonl
  eval chart -o FILE RECORD...
  eval fit SET...
  eval weights [-of WEIGHTS] [-from SETTING] [-folds N] SET...
  eval print SET
  eval sts FILE

Settings:
`

// command runs one subcommand.
func command(ctx context.Context, args []string, w io.Writer) error {
	if len(args) == 0 {
		return errors.New(usage + settingHelp())
	}
	name, args := args[0], args[1:]
	switch name {
	case "run":
		return runCommand(ctx, args, w)
	case "compare":
		return compareCommand(args, w)
	case "chart":
		return chartCommand(args, w)
	case "fit":
		return fitCommand(ctx, args, w)
	case "weights":
		return weightsCommand(ctx, args, w)
	case "print":
		return printSet(args, w)
	case "sts":
		return stsCommand(ctx, args, w)
	}
	return fmt.Errorf("%q is no command\n%s%s", name, usage, settingHelp())
}

// settingList is a flag that can be given several times.
type settingList []setting

func (l *settingList) String() string { return "" }

func (l *settingList) Set(value string) error {
	s, err := parseSetting(value)
	if err == nil {
		*l = append(*l, s)
	}
	return err
}

// defaultSetting is how searches rank by themselves.
func defaultSetting() setting { return setting{name: "hybrid", weights: ranking.Default} }

func runCommand(ctx context.Context, args []string, w io.Writer) error {
	flags := flag.NewFlagSet("eval run", flag.ContinueOnError)
	var settings settingList
	flags.Var(&settings, "setting", "what to measure; repeat it to compare several (default hybrid)")
	record := flags.String("record", "", "write a line for each question and setting to this file")
	chart := flags.String("chart", "", "draw recall@10 of all settings into this SVG file")
	most := flags.Int("changed", 10, "how many of the questions that changed most to print for each comparison")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() == 0 {
		return errors.New("no set is named; give the path of one or more")
	}
	if len(settings) == 0 {
		settings = settingList{defaultSetting()}
	}
	var all []answer
	for _, path := range flags.Args() {
		answers, err := measure(ctx, path, settings, w)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		all = append(all, answers...)
		bySetting := groupBy(answers, func(a answer) string { return a.Setting })
		for _, s := range settings {
			printTable(w, bySetting[s.name])
		}
		for _, s := range settings[1:] {
			printComparison(w, bySetting[settings[0].name], bySetting[s.name], *most)
		}
	}
	if *record != "" {
		if err := writeRecord(*record, all); err != nil {
			return err
		}
	}
	if *chart != "" {
		return os.WriteFile(*chart, drawChart(all), 0o644)
	}
	return nil
}

func compareCommand(args []string, w io.Writer) error {
	flags := flag.NewFlagSet("eval compare", flag.ContinueOnError)
	most := flags.Int("changed", 10, "how many of the questions that changed most to print")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() != 2 {
		return fmt.Errorf("compare has %d files; expected two", flags.NArg())
	}
	var runs [2][]answer
	for i := range runs {
		var err error
		if runs[i], err = readRecord(flags.Arg(i)); err != nil {
			return err
		}
	}
	after := groupBy(runs[1], setAndSetting)
	before := groupBy(runs[0], setAndSetting)
	compared := 0
	for _, key := range order(runs[0], setAndSetting) {
		other := after[key]
		if set := before[key][0].Set; other == nil && settingsOf(runs[0], set) == 1 && settingsOf(runs[1], set) == 1 {
			other = slices.DeleteFunc(slices.Clone(runs[1]), func(a answer) bool { return a.Set != set })
		}
		if other != nil {
			compared++
			printComparison(w, before[key], other, *most)
		}
	}
	if compared == 0 {
		return fmt.Errorf("%s and %s have no set with the same setting, or with one setting each", flags.Arg(0), flags.Arg(1))
	}
	return nil
}

func setAndSetting(a answer) string { return a.Set + "\x00" + a.Setting }

// settingsOf counts the settings with which a set was measured.
func settingsOf(answers []answer, set string) int {
	settings := map[string]bool{}
	for _, a := range answers {
		if a.Set == set {
			settings[a.Setting] = true
		}
	}
	return len(settings)
}

func chartCommand(args []string, _ io.Writer) error {
	flags := flag.NewFlagSet("eval chart", flag.ContinueOnError)
	out := flags.String("o", "", "the SVG file to write")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *out == "" || flags.NArg() == 0 {
		return errors.New("chart needs -o FILE and one or more records")
	}
	var all []answer
	for _, path := range flags.Args() {
		answers, err := readRecord(path)
		if err != nil {
			return err
		}
		all = append(all, answers...)
	}
	return os.WriteFile(*out, drawChart(all), 0o644)
}
