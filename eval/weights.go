package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	"github.com/souvenir-ai/souvenir/internal/retrieval/ranking"
)

// The search for weights: each is multiplied and divided by 1 + firstStep, then by steps half as large, to lastStep. A
// change is kept if it raises the fitted score by leastGain points: smaller gains are noise.
const (
	firstStep, lastStep = 0.4, 0.1
	leastGain           = 0.03
)

// weightsCommand fits weights of the ranking. It prints their score on the questions they were fitted on, and on the
// others: each part of the conversations is left out once.
func weightsCommand(ctx context.Context, args []string, w io.Writer) error {
	flags := flag.NewFlagSet("eval weights", flag.ContinueOnError)
	from := settingList{defaultSetting()}
	flags.Var(&from, "from", "the setting to start from (default hybrid)")
	of := flags.String("of", strings.Join(weightNames(), ","), "the weights to fit, with commas between them")
	folds := flags.Int("folds", 3, "into how many parts to divide the conversations")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() == 0 {
		return errors.New("no set is named; give the path of one or more")
	}
	if *folds < 2 {
		return fmt.Errorf("-folds=%d; give 2 or more", *folds)
	}
	f := fit{start: from[len(from)-1], folds: *folds}
	for name := range strings.SplitSeq(*of, ",") {
		i := slices.Index(weightNames(), name)
		if i < 0 {
			return fmt.Errorf("%q is no weight; these are: %s", name, strings.Join(weightNames(), ", "))
		}
		f.fields = append(f.fields, i)
	}
	defer f.close()
	for _, path := range flags.Args() {
		if err := f.load(ctx, path); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	if len(f.questions) == 0 {
		return errors.New("the sets have no question to fit on; each needs one with an answer outside the half test")
	}
	asked := map[ranking.Weights][]float64{}
	f.values = func(weights ranking.Weights) ([]float64, error) {
		values, err := asked[weights], error(nil)
		if values == nil {
			values, err = f.ask(ctx, weights)
			asked[weights] = values
		}
		return values, err
	}
	if err := f.run(w); err != nil {
		return err
	}
	fmt.Fprintf(w, "%d settings were tried.\n", len(asked))
	return nil
}

// fit looks for weights, one after the other (coordinate ascent: Metzler & Croft 2007).
type fit struct {
	start     setting
	fields    []int // of ranking.Weights
	folds     int
	sets      []set
	loaded    []*loadedSet
	questions []fitted
	values    func(ranking.Weights) ([]float64, error) // of the questions, in per cent
}

// fitted is a question that weights are fitted on.
type fitted struct {
	group string // its set; questions apart are a group of their own, and all groups count the same
	fold  int
}

func (f *fit) close() {
	for _, l := range f.loaded {
		_ = l.store.Close() // in memory, so nothing is lost
	}
}

// load stores a set and its questions to fit on, those with evidence outside of the half "test".
func (f *fit) load(ctx context.Context, path string) error {
	s, err := readSet(path)
	if err != nil {
		return err
	}
	s.questions = slices.DeleteFunc(s.questions, func(q row) bool { return len(q.Evidence) == 0 || q.Half == "test" })
	l, err := load(ctx, s, f.start.storing)
	if err != nil {
		return err
	}
	f.sets, f.loaded = append(f.sets, s), append(f.loaded, l)
	for i, q := range s.questions {
		one := fitted{group: s.name, fold: i % f.folds}
		if len(s.convs) >= f.folds {
			one.fold = slices.Index(s.convs, q.Conv) % f.folds
		}
		if q.Category == apart {
			one.group += ", " + apart
		}
		f.questions = append(f.questions, one)
	}
	return nil
}

// ask returns the mean of recall@5, @10 and @20 of each question, in per cent.
func (f *fit) ask(ctx context.Context, weights ranking.Weights) ([]float64, error) {
	how := f.start
	how.weights = weights
	var values []float64
	for i, s := range f.sets {
		answers, err := f.loaded[i].ask(ctx, s, how)
		if err != nil {
			return nil, err
		}
		for _, a := range answers {
			values = append(values, 100*(a.recall(5)+a.recall(10)+a.recall(20))/3)
		}
	}
	return values, nil
}

// choice reports whether a question counts.
type choice func(fitted) bool

// mean returns the mean of a group's questions.
func (f *fit) mean(values []float64, group string, counts choice) float64 {
	var of []float64
	for i, q := range f.questions {
		if q.group == group && counts(q) {
			of = append(of, values[i])
		}
	}
	if len(of) == 0 {
		return 0
	}
	return mean(of)
}

func (f *fit) groups() (groups []string) {
	for _, q := range f.questions {
		if !slices.Contains(groups, q.group) {
			groups = append(groups, q.group)
		}
	}
	return groups
}

// score returns the mean of all groups.
func (f *fit) score(weights ranking.Weights, counts choice) (float64, error) {
	values, err := f.values(weights)
	if err != nil {
		return 0, err
	}
	var means []float64
	for _, group := range f.groups() {
		means = append(means, f.mean(values, group, counts))
	}
	return mean(means), nil
}

// climb returns the best weights for the questions that count, starting from the given ones.
func (f *fit) climb(counts choice) (ranking.Weights, error) {
	weights := f.start.weights
	best, err := f.score(weights, counts)
	for step := float32(firstStep); step >= lastStep && err == nil; {
		improved := false
		for _, field := range f.fields {
			for _, factor := range [...]float32{1 + step, 1 / (1 + step)} {
				next := weights
				v := reflect.ValueOf(&next).Elem().Field(field)
				v.SetFloat(float64(factor) * v.Float())
				var score float64
				if score, err = f.score(next, counts); err != nil {
					return weights, err
				}
				if score >= best+leastGain {
					best, weights, improved = score, next, true
					break
				}
			}
		}
		if !improved {
			step /= 2
		}
	}
	return weights, err
}

func (f *fit) run(w io.Writer) error {
	all := func(fitted) bool { return true }
	before, err := f.values(f.start.weights)
	if err != nil {
		return err
	}
	without := make([]float64, len(f.questions)) // by weights that were fitted without the question
	for fold := range f.folds {
		weights, err := f.climb(func(q fitted) bool { return q.fold != fold })
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "without part %d: %s\n", fold+1, f.changes(weights))
		values, err := f.values(weights)
		if err != nil {
			return err
		}
		for i, q := range f.questions {
			if q.fold == fold {
				without[i] = values[i]
			}
		}
	}
	weights, err := f.climb(all)
	if err != nil {
		return err
	}
	after, err := f.values(weights)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "of all: %s\n\n| mean of recall@5, @10 and @20 | start | fitted, on what it was fitted on | "+
		"left out |\n|---|---|---|---|\n", f.changes(weights))
	for _, group := range f.groups() {
		fmt.Fprintf(w, "| %s | %.2f | %.2f | %.2f |\n", group, f.mean(before, group, all), f.mean(after, group, all),
			f.mean(without, group, all))
	}
	return nil
}

// changes prints the weights that differ from those of the start, in the form of a setting.
func (f *fit) changes(weights ranking.Weights) string {
	var words []string
	before, after := reflect.ValueOf(f.start.weights), reflect.ValueOf(weights)
	for i, name := range weightNames() {
		if before.Field(i).Float() != after.Field(i).Float() {
			words = append(words, fmt.Sprintf("%s=%.3g", name, after.Field(i).Float()))
		}
	}
	if len(words) == 0 {
		return "no change"
	}
	return strings.Join(words, ",")
}
