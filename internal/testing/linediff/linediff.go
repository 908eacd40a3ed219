// Package linediff shows where two texts differ, for tests.
package linediff

import (
	"fmt"
	"strings"
)

// First describes the first line that differs.
func First[T string | []byte](got, want T) string {
	a, b := strings.Split(string(got), "\n"), strings.Split(string(want), "\n")
	for i := range max(len(a), len(b)) {
		if x, y := at(a, i), at(b, i); x != y {
			return fmt.Sprintf("line %d:\n got %.600s\nwant %.600s", i+1, x, y)
		}
	}
	return "equal"
}

func at(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return "(no line)"
}
