package simd

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"
)

// TestSiftAgreesWithTheFormula compares both ways on rows near the bounds.
func TestSiftAgreesWithTheFormula(t *testing.T) {
	if !Fast() {
		t.Skip("this machine cannot")
	}
	random := rand.New(rand.NewPCG(7, 8))
	marked, all := 0, 0
	for range 50 {
		s := Sieve{First: random.Uint64(), Second: random.Uint64() & random.Uint64(), Number: uint64(random.Uint32()),
			More: int64(random.IntN(5)), Count: int64(random.IntN(10))}
		for i := range s.Needs {
			s.Needs[i] = int32(random.IntN(64))
		}
		s.Needs[random.IntN(len(s.Needs))] = 1<<31 - 1
		rows := make([]byte, 24*8*(1+random.IntN(20)))
		for i := 0; i < len(rows); i += 24 {
			binary.LittleEndian.PutUint64(rows[i:], random.Uint64())
			binary.LittleEndian.PutUint64(rows[i+8:], random.Uint64())
			number := uint32(s.Number)
			if random.IntN(8) > 0 {
				number = random.Uint32()
			}
			binary.LittleEndian.PutUint32(rows[i+16:], number)
			binary.LittleEndian.PutUint16(rows[i+20:], uint16(random.IntN(512)))
			rows[i+22], rows[i+23] = byte(random.IntN(256)>>(random.IntN(8))), byte(random.IntN(2))
		}
		got, want := make([]byte, len(rows)/24/8), make([]byte, len(rows)/24/8)
		s.Sift(rows, got)
		s.SiftPlain(rows, want)
		if !bytes.Equal(got, want) {
			t.Fatalf("marks %08b, want %08b", got, want)
		}
		for i := range 8 * len(want) {
			marked += int(want[i/8] >> (i % 8) & 1)
		}
		all += 8 * len(want)
	}
	if marked == 0 || marked == all {
		t.Errorf("%d of %d rows were marked, want some", marked, all)
	}
}
