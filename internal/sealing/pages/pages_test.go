package pages

import (
	"testing"

	"github.com/souvenir-ai/souvenir/internal/sealing"
)

// Pages have their own places, none where SQLite locks, and sizes map back, also above a gigabyte.
func TestPlacesAndSizes(t *testing.T) {
	const around = lockAt / Size
	for _, pages := range []int64{0, 1, 2, around - 2, around - 1, around, around + 1, 3 * around} {
		if got := PlainSize(SizeOf(pages * Size)); got != pages*Size {
			t.Errorf("%d pages: got %d bytes, want %d", pages, got, pages*Size)
		}
		at, next := At(pages), At(pages+1)
		if at < sealing.HeaderSize || next < at+Size || at <= lockAt && lockAt < at+Size {
			t.Errorf("page %d: got the place %d, and %d for the next, want them apart and not at %d", pages, at, next, lockAt)
		}
	}
	for _, frames := range []int64{0, 1, 1000, 1 << 20} {
		plain := logHead + frames*frame
		if got := PlainLogSize(LogSizeOf(plain)); got != plain {
			t.Errorf("%d frames: got %d bytes, want %d", frames, got, plain)
		}
	}
}
