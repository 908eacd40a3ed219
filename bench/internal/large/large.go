// Package large is shared by the measurements of large files: their content, and the output of each step.
package large

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"time"
)

// Content returns size bytes without repetition: consecutive 64-bit numbers, multiplied by a large prime.
func Content(size int64) io.Reader { return io.LimitReader(&numbers{}, size) }

type numbers struct{ next uint64 }

// Read makes the next numbers.
func (n *numbers) Read(p []byte) (int, error) {
	whole := len(p) &^ 7
	for i := 0; i < whole; i += 8 {
		n.next++
		binary.LittleEndian.PutUint64(p[i:], n.next*0x9e3779b97f4a7c15)
	}
	clear(p[whole:])
	return len(p), nil
}

// Step runs one step on a file of a size. It prints the speed and the process's peak memory.
func Step(what string, size int64, work func() error) error {
	began := time.Now()
	if err := work(); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	took := time.Since(began)
	fmt.Printf("%-11s %s  %.0f MiB/s (%v)\n", what, Memory(), MiB(size)/took.Seconds(), took.Round(time.Millisecond))
	return nil
}

// MiB is a number of bytes in MiB.
func MiB(bytes int64) float64 { return float64(bytes) / (1 << 20) }

// Memory returns the peak memory of the process as text. It is known on Linux only.
func Memory() string {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return "memory unknown"
	}
	var kib int64
	for line := range bytes.Lines(status) {
		if _, err := fmt.Sscanf(string(line), "VmHWM: %d kB", &kib); err == nil {
			break
		}
	}
	return fmt.Sprintf("%6.1f MiB resident at most", float64(kib)/1024)
}
