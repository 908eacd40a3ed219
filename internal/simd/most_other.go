//go:build !amd64

package simd

func mostFast(table []float32, places []uint32, most []float32) { MostPlain(table, places, most) }
