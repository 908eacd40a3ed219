package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/souvenir-ai/souvenir"
)

// stsPair is a line of a set of sentence pairs that people have scored.
type stsPair struct {
	Split string  `json:"split"`
	A     string  `json:"a"`
	B     string  `json:"b"`
	Score float64 `json:"score"`
}

// stsCommand prints Spearman's correlation of cosines with scores for each split.
func stsCommand(ctx context.Context, args []string, w io.Writer) error {
	if len(args) != 1 {
		return fmt.Errorf("sts has %d files; expected one", len(args))
	}
	file, err := open(args[0])
	if err != nil {
		return err
	}
	defer file.Close()
	scores, cosines := map[string][]float64{}, map[string][]float64{}
	var splits []string
	embedder := souvenir.Builtin()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var p stsPair
		if err := json.Unmarshal(lines.Bytes(), &p); err != nil {
			return err
		}
		vectors, err := embedder.Embed(ctx, souvenir.ForDocument, []string{p.A, p.B})
		if err != nil {
			return err
		}
		cosine := 0.0
		for i := range vectors[0] {
			cosine += float64(vectors[0][i]) * float64(vectors[1][i])
		}
		if scores[p.Split] == nil {
			splits = append(splits, p.Split)
		}
		scores[p.Split], cosines[p.Split] = append(scores[p.Split], p.Score), append(cosines[p.Split], cosine)
	}
	slices.Sort(splits)
	fmt.Fprintf(w, "%s: Spearman x 100\n\n| split | pairs | correlation |\n|---|---|---|\n", embedder.Model())
	for _, split := range splits {
		fmt.Fprintf(w, "| %s | %d | %.1f |\n", split, len(scores[split]), 100*spearman(scores[split], cosines[split]))
	}
	return nil
}

// spearman is the correlation of ranks; equal values share the mean of theirs.
func spearman(a, b []float64) float64 {
	x, y := ranksOf(a), ranksOf(b)
	mx, my := mean(x), mean(y)
	var xy, xx, yy float64
	for i := range x {
		xy += (x[i] - mx) * (y[i] - my)
		xx += (x[i] - mx) * (x[i] - mx)
		yy += (y[i] - my) * (y[i] - my)
	}
	return xy / math.Sqrt(xx*yy)
}

func ranksOf(values []float64) []float64 {
	at := make([]int, len(values))
	for i := range at {
		at[i] = i
	}
	slices.SortFunc(at, func(i, j int) int { return cmp.Compare(values[i], values[j]) })
	ranks := make([]float64, len(values))
	for from := 0; from < len(at); {
		to := from + 1
		for to < len(at) && values[at[to]] == values[at[from]] {
			to++
		}
		for _, i := range at[from:to] {
			ranks[i] = float64(from+to-1) / 2
		}
		from = to
	}
	return ranks
}
