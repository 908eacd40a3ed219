package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/simd"
)

// exact is the correct result of a search by vector: all memories at least as near as the tenth.
type exact struct {
	vectors [][]float32 // of the questions, of length 1
	tenth   []float32   // cosines
}

// nearestByHand compares each question with each text.
func nearestByHand(ctx context.Context, texts, questions []string) (e exact, err error) {
	if e.vectors, err = embed(ctx, souvenir.ForQuery, questions); err != nil {
		return e, err
	}
	for i, v := range e.vectors {
		e.vectors[i] = unit(v)
	}
	best := make([][]float32, len(questions)) // in ascending order
	for batch := range slices.Chunk(texts, 10_000) {
		vectors, err := embed(ctx, souvenir.ForDocument, batch)
		if err != nil {
			return e, err
		}
		for _, v := range vectors {
			v = unit(v)
			for i, q := range e.vectors {
				cosine := simd.DotFloats(q, v)
				if len(best[i]) == results && cosine <= best[i][0] {
					continue
				}
				at, _ := slices.BinarySearch(best[i], cosine)
				best[i] = slices.Insert(best[i], at, cosine)
				best[i] = best[i][max(0, len(best[i])-results):]
			}
		}
	}
	for _, cosines := range best {
		e.tenth = append(e.tenth, cosines[0])
	}
	return e, nil
}

// unit returns a vector of length 1, or the vector of zeros.
func unit(v []float32) []float32 {
	square := simd.DotFloats(v, v)
	if square == 0 {
		return v
	}
	scaled, factor := make([]float32, len(v)), 1/float32(math.Sqrt(float64(square)))
	for i, x := range v {
		scaled[i] = factor * x
	}
	return scaled
}

// judge sets the recall of the searches by vector.
func (r *result) judge(ctx context.Context, e exact, texts []string) error {
	if len(r.Found) == 0 {
		return nil
	}
	if len(r.Found) != len(e.vectors) {
		return fmt.Errorf("%s answered %d questions instead of %d: use the same -questions", r.Peer, len(r.Found),
			len(e.vectors))
	}
	const rounding = 1e-4 // of peers that compute differently
	right := 0
	for i, numbers := range r.Found {
		slices.Sort(numbers)
		for _, n := range slices.Compact(numbers) {
			vectors, err := embed(ctx, souvenir.ForDocument, texts[n:n+1])
			if err != nil {
				return err
			}
			if simd.DotFloats(e.vectors[i], unit(vectors[0])) >= e.tenth[i]-rounding {
				right++
			}
		}
	}
	r.Recall = float64(right) / float64(results*len(r.Found))
	r.Found = nil
	return nil
}

// export writes texts, questions and the vectors of both (float32 in little endian) for programs in other languages.
func export(ctx context.Context, folder string, texts, questions []string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	return errors.Join(
		exportOne(ctx, filepath.Join(folder, "texts"), souvenir.ForDocument, texts),
		exportOne(ctx, filepath.Join(folder, "questions"), souvenir.ForQuery, questions))
}

func exportOne(ctx context.Context, path string, purpose souvenir.Purpose, texts []string) (err error) {
	if err := writeLines(path, texts); err != nil {
		return err
	}
	file, err := os.Create(path + ".f32")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	for batch := range slices.Chunk(texts, 10_000) {
		vectors, err := embed(ctx, purpose, batch)
		if err != nil {
			return err
		}
		var data []byte
		for _, v := range vectors {
			for _, x := range unit(v) {
				data = binary.LittleEndian.AppendUint32(data, math.Float32bits(x))
			}
		}
		if _, err := file.Write(data); err != nil {
			return err
		}
	}
	return nil
}
