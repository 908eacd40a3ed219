package souvenir

import (
	"testing"

	"github.com/souvenir-ai/souvenir/internal/index"
)

// TestPassageOfAnotherContentIsTheWhole covers an index that is ahead of the snapshot in which a memory is read.
func TestPassageOfAnotherContentIsTheWhole(t *testing.T) {
	const content = "näher"
	for span, want := range map[index.Span][2]int{
		{Start: 0, End: 6}: {0, 6},
		{Start: 1, End: 3}: {1, 3}, // the ä
		{Start: 3, End: 3}: {3, 3},
		{Start: 0, End: 7}: {0, 6}, // too long
		{Start: 9, End: 9}: {0, 6}, // behind it
		{Start: 2, End: 6}: {0, 6}, // begins within the ä
		{Start: 0, End: 2}: {0, 6}, // ends within the ä
		{Start: 4, End: 3}: {0, 6},
	} {
		if start, end := passageOf(content, span); [2]int{start, end} != want {
			t.Errorf("%v is %d to %d of %q, want %v", span, start, end, content, want)
		}
	}
}
