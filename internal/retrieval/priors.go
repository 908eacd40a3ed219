package retrieval

import (
	"math"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/retrieval/ranking"
)

// importances are the evidence of each importance.
var importances = map[string]float32{"low": 0, "": 1. / 3, "medium": 1. / 3, "high": 2. / 3, "critical": 1}

// PriorsIn returns a function that reads the priors of memories: their recency at a time, which halves with each
// half-life, both in microseconds; their importance; and the evidence of their state.
func PriorsIn(tx db.Tx, at int64, halfLife float64, states map[string]float64) func([]int64) (map[int64]ranking.Prior,
	error) {
	return func(rows []int64) (map[int64]ranking.Prior, error) {
		priors := make(map[int64]ranking.Prior, len(rows))
		err := tx.Each(func(row db.Rows) error {
			var id, changed int64
			var importance, state string
			err := row.Scan(&id, &changed, &importance, &state)
			priors[id] = ranking.Prior{Recency: float32(math.Exp2(-float64(max(0, at-changed)) / halfLife)),
				Importance: importances[importance], State: float32(states[state])}
			return err
		}, `SELECT id, updated_at, coalesce(importance, ''), coalesce(state, '') FROM memory WHERE id IN `+db.Integers,
			db.List(rows))
		return priors, err
	}
}
