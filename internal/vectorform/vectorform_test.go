package vectorform

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// random returns a unit vector; the larger the power, the more its largest number stands out.
func random(r *rand.Rand, n int, power float64) []float32 {
	v := make([]float32, n)
	var sum float64
	for i := range v {
		x := r.NormFloat64()
		v[i] = float32(math.Copysign(math.Pow(math.Abs(x), power), x))
		sum += float64(v[i]) * float64(v[i])
	}
	for i := range v {
		v[i] = float32(float64(v[i]) / math.Sqrt(sum))
	}
	return v
}

func cosine(a, b []float32) float64 {
	var ab, aa, bb float64
	for i := range a {
		ab += float64(a[i]) * float64(b[i])
		aa += float64(a[i]) * float64(a[i])
		bb += float64(b[i]) * float64(b[i])
	}
	return ab / math.Sqrt(aa*bb)
}

func decode(t *testing.T, blob []byte) []float32 {
	t.Helper()
	v, err := Decode(blob)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// A vector in the short form has length one, keeps its direction, and becomes the same bytes again, so that copies of
// copies (exports, the trash, rewritten passages) do not drift.
func TestTheShortFormKeepsTheDirection(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{64, 65, 256, 384, 4096} {
		for _, power := range []float64{1, 3, 9} {
			for range 20 {
				v, other := random(r, n, power), random(r, n, 1)
				blob := Short(v)
				if len(blob) != ShortLength(n) || Dimensions(blob) != n {
					t.Fatalf("%d bytes for %d dimensions, want %d for %d", len(blob), Dimensions(blob), ShortLength(n), n)
				}
				got := decode(t, blob)
				if !bytes.Equal(Short(got), blob) {
					t.Fatalf("%d dimensions: %x the second time, want %x", n, Short(got), blob)
				}
				if off := math.Abs(cosine(got, other) - cosine(v, other)); off > 5e-5 {
					t.Errorf("%d dimensions, power %v: the cosine is off by %g, want 5e-5 at most", n, power, off)
				}
				if length := math.Sqrt(cosine(got, got)); math.Abs(length-1) > 1e-6 {
					t.Errorf("%d dimensions: length %v, want 1", n, length)
				}
			}
		}
	}
}

func TestVectorsOfFewDimensionsAndOfNoneStayAsTheyAre(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, n := range []int{0, 1, 2, 3, 63} {
		v := random(r, n, 1)
		if blob := Short(v); !bytes.Equal(blob, Exact(v)) || !slices.Equal(decode(t, blob), v) {
			t.Errorf("%d dimensions: %x, want %x", n, blob, Exact(v))
		}
	}
	if Short(nil) != nil || Exact(nil) != nil || decode(t, nil) != nil {
		t.Errorf("no vector becomes %v, %v and %v, want nil", Short(nil), Exact(nil), decode(t, nil))
	}
	zeros := make([]float32, 256)
	if got := decode(t, Short(zeros)); !slices.Equal(got, zeros) {
		t.Errorf("a vector without a direction becomes %v, want zeros", got)
	}
}

func TestBytesOfNoFormAreRefused(t *testing.T) {
	short := Short(random(rand.New(rand.NewPCG(5, 6)), 64, 1))
	other := slices.Clone(short)
	other[0]++
	query, err := NewQuery(short)
	if err != nil {
		t.Fatal(err)
	}
	for _, blob := range [][]byte{{1}, {1, 2}, {1, 2, 3}, other, short[:127], append(slices.Clone(short), 0)} {
		if v, err := Decode(blob); !errors.Is(err, ErrForm) {
			t.Errorf("%d bytes: %v, %v, want ErrForm", len(blob), v, err)
		}
		if c, err := query.Cosine(blob); !errors.Is(err, ErrForm) {
			t.Errorf("comparing %d bytes: %v, %v, want ErrForm", len(blob), c, err)
		}
	}
	for _, blob := range [][]byte{{}, Exact(make([]float32, 65)), Short(make([]float32, 65))} {
		if c, err := query.Cosine(blob); !errors.Is(err, ErrForm) {
			t.Errorf("comparing %d bytes of other dimensions: %v, %v, want ErrForm", len(blob), c, err)
		}
	}
}

func TestAQueryComparesBothForms(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for _, n := range []int{64, 256, 1000} {
		v := random(r, n, 1)
		query, err := NewQuery(Exact(v))
		if err != nil {
			t.Fatal(err)
		}
		if exact, short := query.Lengths(); exact != len(Exact(v)) || short != len(Short(v)) {
			t.Fatalf("%d and %d bytes, want %d and %d", exact, short, len(Exact(v)), len(Short(v)))
		}
		for range 20 {
			other := random(r, n, 1)
			for form, blob := range map[string][]byte{"exact": Exact(other), "short": Short(other)} {
				got, err := query.Cosine(blob)
				if want := cosine(v, other); err != nil || math.Abs(got-want) > 4e-5 {
					t.Errorf("%d dimensions, %s: %v, %v, want %v", n, form, got, err, want)
				}
			}
		}
		for _, blob := range [][]byte{Exact(make([]float32, n)), Short(make([]float32, n))} {
			if got, err := query.Cosine(blob); err != nil || !math.IsNaN(got) {
				t.Errorf("a vector without a direction: %v, %v, want NaN", got, err)
			}
		}
	}
}

func BenchmarkCosine(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	query, err := NewQuery(Exact(random(r, 256, 1)))
	if err != nil {
		b.Fatal(err)
	}
	for form, blob := range map[string][]byte{"exact": Exact(random(r, 256, 1)), "short": Short(random(r, 256, 1))} {
		b.Run(form, func(b *testing.B) {
			for b.Loop() {
				if _, err := query.Cosine(blob); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
