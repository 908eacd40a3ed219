package layout

import (
	"math"
	"testing"
)

// New points are placed among their neighbours, also through other new ones; known points stay.
func TestNewPointsAreBesideTheirNeighbours(t *testing.T) {
	known := []*Place{{0, 0}, {1, 0}, nil, nil, nil}
	got := PlaceNew(known, []Edge{{0, 2, 1}, {2, 1, 3}, {2, 3, 1}})
	for i, want := range []*Place{{0, 0}, {1, 0}, {0.75, 0}, {0.75, 0}} {
		least, most := 0.0, 0.0
		if known[i] == nil {
			least, most = 1e-9, 0.025
		}
		if apart := math.Hypot(got[i].X-want.X, got[i].Y-want.Y); apart < least || apart > most {
			t.Errorf("point %d is at %v, %v away from %v, want %v to %v", i, *got[i], apart, *want, least, most)
		}
	}
	if got[4] != nil || known[2] != nil {
		t.Errorf("a point without neighbours is at %v, want none; and the given places unchanged", got[4])
	}
}
