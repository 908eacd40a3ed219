package ranking

import "github.com/souvenir-ai/souvenir/internal/retrieval/index"

// tiered maps a score to the upper part of the scale if the memory has an exact term, and to the lower part if the
// query has exact terms and the memory has none.
func tiered(score float32, anyExact, exact bool) float32 {
	switch {
	case !anyExact:
		return score
	case exact:
		return exactShare + (1-exactShare)*score
	}
	return (1 - exactShare) * score
}

// tierFactor multiplies all evidence except that of exact terms.
func tierFactor(anyExact bool) float32 {
	if anyExact {
		return 1 - exactShare
	}
	return 1
}

// inTiers returns the hits in their order, those with an exact term before the others. Scores start at 1 or less and
// never rise.
func inTiers(all []ranked) []index.Hit {
	hits := make([]index.Hit, 0, len(all))
	for _, exact := range []bool{true, false} {
		for i := range all {
			if all[i].exact == exact {
				hits = append(hits, *all[i].hit)
				hit := &hits[len(hits)-1]
				hit.Score, hit.Confidence = all[i].score, all[i].confidence
			}
		}
	}
	least := float32(1)
	for i := range hits {
		least = min(least, hits[i].Score)
		hits[i].Score = least
	}
	return hits
}
