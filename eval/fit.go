package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/souvenir-ai/souvenir/internal/retrieval/calibrate"
)

// refused is the share of the questions without an answer that the fit refuses: none of their hits reaches 0.5.
const refused = 0.87

// ownShare is the weight of the project's own questions in the fit. Each other set has 1.
const ownShare = 2

// fitCommand fits the calibration on the development halves of the sets, and prints its figures on the others.
func fitCommand(ctx context.Context, args []string, w io.Writer) error {
	if len(args) == 0 {
		return errors.New("no set is named; give the path of one or more")
	}
	var all []judged
	for _, path := range args {
		questions, err := judge(ctx, path)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		all = append(all, questions...)
	}
	dev := slices.DeleteFunc(slices.Clone(all), func(j judged) bool { return j.half != "dev" })
	test := slices.DeleteFunc(slices.Clone(all), func(j judged) bool { return j.half == "dev" })
	weights := fitWeights(dev)
	fmt.Fprintf(w, "fitted: %+.3v\n", weights)
	fmt.Fprintf(w, "in use: %+.3v\n", calibrate.Default)
	printThresholds(w, "the other half, by the fitted weights", test, weights.of)
	byScore := func(h judgedHit) float64 { return h.score }
	printThresholds(w, "the other half, by the weights in use", test, defaultWeights.of)
	printThresholds(w, "the other half, by the score of the search", test, byScore)
	return nil
}

// regression is the weights of a logistic regression over the evidence of a hit.
type regression calibrate.Weights

var defaultWeights = regression(calibrate.Default)

func (r regression) of(h judgedHit) float64 { return calibrate.Weights(r).Probability(h.Evidence) }

// vector has a place for each weight.
type vector = [5]float64

// example is a hit with its label.
type example struct {
	evidence vector // 1, then the evidence in the order of the weights
	answers  float64
	weight   float64
}

// fitWeights compares answers with the top three hits of unanswerable questions; both have the same total weight within
// a set. Other hits of answerable questions are skipped: they may be relevant. The bias is then set so that for the
// wanted share of the project's own unanswerable questions no hit reaches 0.5.
func fitWeights(dev []judged) regression {
	groups := map[string][]judged{}
	for _, j := range dev {
		groups[family(j.set)] = append(groups[family(j.set)], j)
	}
	var examples []example
	for _, name := range slices.Sorted(maps.Keys(groups)) { // in order, so that sums round alike
		share := 1.0
		if name == own {
			share = ownShare
		}
		examples = append(examples, balanced(groups[name], share)...)
	}
	b := logistic(examples)
	r := regression{Bias: b[0], Words: b[1], Meaning: b[2], Exact: b[3], Around: b[4]}
	judgedBy := groups[own]
	if judgedBy == nil {
		judgedBy = dev
	}
	var best []float64
	for _, j := range judgedBy {
		if j.unanswerable {
			best = append(best, j.best(r.of))
		}
	}
	slices.Sort(best)
	if len(best) > 0 {
		p := best[min(len(best)-1, int(math.Ceil(refused*float64(len(best)))))]
		r.Bias -= math.Log(p / (1 - p))
	}
	return r
}

// family is the name of a set without its size.
func family(set string) string {
	if strings.HasPrefix(set, own) {
		return own
	}
	return set
}

// balanced returns the hits of questions as examples. Answers and other hits have the same total weight.
func balanced(questions []judged, share float64) []example {
	const most, total = 3, 200
	var found [2][]example
	for _, j := range questions {
		for i, h := range j.hits {
			e := example{evidence: vector{1, h.Words, h.Meaning, 0, h.Around}, weight: 1}
			if h.Exact {
				e.evidence[3] = 1
			}
			switch {
			case j.unanswerable && i < most:
				found[0] = append(found[0], e)
			case !j.unanswerable && h.answers:
				e.answers = 1
				found[1] = append(found[1], e)
			}
		}
	}
	var all []example
	for _, examples := range found {
		for _, e := range examples {
			e.weight = share * total / float64(len(examples))
			all = append(all, e)
		}
	}
	return all
}

// logistic fits a logistic regression with a small penalty on its weights, by Newton's method.
func logistic(examples []example) (b vector) {
	for range 50 {
		var gradient vector
		var hessian [len(b)]vector
		for i := 1; i < len(b); i++ {
			gradient[i], hessian[i][i] = b[i], 1
		}
		for _, e := range examples {
			sum := 0.0
			for i, x := range e.evidence {
				sum += b[i] * x
			}
			p := 1 / (1 + math.Exp(-sum))
			for i, x := range e.evidence {
				gradient[i] += e.weight * (p - e.answers) * x
				for k, y := range e.evidence {
					hessian[i][k] += e.weight * p * (1 - p) * x * y
				}
			}
		}
		for i, step := range solve(hessian, gradient) {
			b[i] -= step
		}
	}
	return b
}

// solve solves a system of linear equations whose matrix is positive definite.
func solve(a [len(vector{})]vector, y vector) (x vector) {
	for i := range a {
		for k := i + 1; k < len(a); k++ {
			f := a[k][i] / a[i][i]
			for c := i; c < len(a); c++ {
				a[k][c] -= f * a[i][c]
			}
			y[k] -= f * y[i]
		}
	}
	for i := len(a) - 1; i >= 0; i-- {
		x[i] = y[i]
		for c := i + 1; c < len(a); c++ {
			x[i] -= a[i][c] * x[c]
		}
		x[i] /= a[i][i]
	}
	return x
}

// best returns the highest value among the hits of a question, 0 if it has none.
func (j judged) best(of func(judgedHit) float64) (best float64) {
	for _, h := range j.hits {
		best = max(best, of(h))
	}
	return best
}

// printThresholds prints, for several thresholds, how many of the hits that reach one are right.
func printThresholds(w io.Writer, title string, questions []judged, of func(judgedHit) float64) {
	fmt.Fprintf(w, "\n### %s\n\n| set | language | threshold | nothing offered, nothing answers | answer offered | "+
		"of those found | offered and right |\n|---|---|---|---|---|---|---|\n", title)
	for _, key := range []func(judged) (string, string){
		func(j judged) (string, string) { return j.set, "all" },
		func(j judged) (string, string) { return family(j.set), j.language },
	} {
		groups := map[[2]string][]judged{}
		var names [][2]string
		for _, j := range questions {
			set, language := key(j)
			name := [2]string{set, language}
			if language == "" {
				continue
			}
			if groups[name] == nil {
				names = append(names, name)
			}
			groups[name] = append(groups[name], j)
		}
		for _, name := range names {
			for _, threshold := range []float64{0.3, 0.5, 0.7} {
				printOffered(w, name, groups[name], threshold, of)
			}
		}
	}
}

func printOffered(w io.Writer, name [2]string, questions []judged, threshold float64, of func(judgedHit) float64) {
	var without, silent, with, found, offered, right, all int
	for _, j := range questions {
		hit, reached := false, false
		for _, h := range j.hits {
			hit = hit || h.answers
			if of(h) < threshold {
				continue
			}
			all++
			if h.answers {
				right++
				reached = true
			}
		}
		if j.unanswerable {
			without++
			if j.best(of) < threshold {
				silent++
			}
			continue
		}
		with++
		if hit {
			found++
		}
		if reached {
			offered++
		}
	}
	percent := func(part, whole int) float64 { return 100 * float64(part) / float64(max(1, whole)) }
	fmt.Fprintf(w, "| %s | %s | %.1f | %.0f | %.0f | %.0f | %.0f |\n", name[0], name[1], threshold,
		percent(silent, without),
		percent(offered, with), percent(offered, found), percent(right, all))
}
