package doctor

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/souvenir-ai/souvenir"
)

// Embedder asks an embedder for the vectors of two texts and of a question about the first one.
func Embedder(ctx context.Context, e souvenir.Embedder) Finding {
	const check = "embedder"
	began := time.Now()
	documents, err := e.Embed(ctx, souvenir.ForDocument, []string{"Anna is allergic to peanuts.",
		"The train to Bergen leaves at eight."})
	var queries [][]float32
	if err == nil {
		queries, err = e.Embed(ctx, souvenir.ForQuery, []string{"Which food is Anna allergic to?"})
	}
	if err != nil {
		return Finding{check, Problem, fmt.Sprintf("%s failed: %v", e.Model(), err),
			"Check --embedder-url, --embedder-model, the key, and that the service is running."}
	}
	if len(documents) != 2 || len(queries) != 1 || len(documents[0]) != e.Dimensions() {
		return Finding{check, Problem, fmt.Sprintf("%s returned %d and %d vectors for 2 and 1 texts", e.Model(),
			len(documents), len(queries)), "Check --embedder-model and --embedder-dimensions."}
	}
	right, wrong := cosine(queries[0], documents[0]), cosine(queries[0], documents[1])
	if !(right > wrong) { // also for NaN
		return Finding{check, Warning, fmt.Sprintf("%s puts a question closer to another text (%.2f) than to its answer "+
			"(%.2f)", e.Model(), wrong, right), "Choose a model for retrieval."}
	}
	return Finding{check, OK, fmt.Sprintf("%s returns vectors with %d dimensions; two requests took %s", e.Model(),
		e.Dimensions(), time.Since(began).Round(time.Millisecond)), ""}
}

// cosine returns the cosine of the angle between two vectors.
func cosine(a, b []float32) float64 {
	var dot, aa, bb float64
	for i := range min(len(a), len(b)) {
		x, y := float64(a[i]), float64(b[i])
		dot, aa, bb = dot+x*y, aa+x*x, bb+y*y
	}
	return dot / math.Sqrt(aa*bb)
}
