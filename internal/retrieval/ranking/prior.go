package ranking

// Prior is the evidence for a memory that does not depend on the query: 0 to 1 each.
type Prior struct{ Recency, Importance, State float32 }

// Priors are optional evidence that does not depend on the query. It counts among the memories ranked by all evidence;
// the others keep their order behind them. The zero value has no effect.
type Priors struct {
	Weights Prior // relative to 1 for all other evidence; 0 or more

	// Of returns the priors of some memories, by row.
	Of func(rows []int64) (map[int64]Prior, error)
}

// scale keeps scores between 0 and 1.
func (p *Priors) scale() float32 {
	return 1 + p.Weights.Recency + p.Weights.Importance + p.Weights.State
}

// addPriors adds the priors to the scores of all memories so far.
func (t *task) addPriors() {
	scale := t.Priors.scale()
	if scale == 1 || len(t.all) == 0 {
		return
	}
	rows := make([]int64, len(t.all))
	for i := range t.all {
		rows[i] = t.all[i].hit.Row
	}
	var priors map[int64]Prior
	if priors, t.Failed = t.Priors.Of(rows); t.Failed != nil {
		return
	}
	w := t.Priors.Weights
	for i := range t.all {
		p := priors[rows[i]]
		gain := float32(w.Recency*p.Recency) + float32(w.Importance*p.Importance) + float32(w.State*p.State)
		t.all[i].score = (t.all[i].score + gain) / scale
		if e := t.Explanations[rows[i]]; e != nil {
			factor := tierFactor(t.found.Exact > 0) / scale
			e.Recency = Part{p.Recency, factor * w.Recency * p.Recency}
			e.Importance = Part{p.Importance, factor * w.Importance * p.Importance}
			e.State = Part{p.State, factor * w.State * p.State}
		}
	}
}
