// Package portions makes sequences whose values are read in portions.
package portions

import (
	"iter"
	"slices"
)

// Each iterates over what read returns, one portion after the other: each begins where the one before it ended. The
// sequence ends after the last portion, or after the first error.
func Each[T, From any](first From, read func(From) (some []T, next From, more bool, err error)) iter.Seq2[T,
	error] {
	return func(yield func(T, error) bool) {
		for from, more := first, true; more; {
			var some []T
			var err error
			if some, from, more, err = read(from); !pass(some, err, yield) {
				return
			}
		}
	}
}

// ByRow iterates over what read returns for rows that are found when the loop begins, a portion at a time. The sequence
// ends after the first error.
func ByRow[T, Row any](portion int, find func() ([]Row, error), read func([]Row) ([]T, error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		rows, err := find()
		if !pass(nil, err, yield) {
			return
		}
		for some := range slices.Chunk(rows, portion) {
			if found, err := read(some); !pass(found, err, yield) {
				return
			}
		}
	}
}

// pass passes a portion on, or the error instead of it. It reports whether another portion is wanted.
func pass[T any](some []T, err error, yield func(T, error) bool) bool {
	if err != nil {
		var none T
		yield(none, err)
		return false
	}
	for _, one := range some {
		if !yield(one, nil) {
			return false
		}
	}
	return true
}
