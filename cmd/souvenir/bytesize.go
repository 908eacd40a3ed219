package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// byteSize is a flag for a number of bytes: 1048576, 1MiB, 1M. Units are powers of 1024.
type byteSize int64

var byteUnits = []struct {
	name  string
	bytes int64
}{{"T", 1 << 40}, {"G", 1 << 30}, {"M", 1 << 20}, {"K", 1 << 10}}

// Set parses a size.
func (b *byteSize) Set(text string) error {
	number, unit := strings.ToUpper(strings.TrimSpace(text)), int64(1)
	number = strings.TrimSuffix(strings.TrimSuffix(number, "B"), "I")
	for _, u := range byteUnits {
		if rest, ok := strings.CutSuffix(number, u.name); ok {
			number, unit = rest, u.bytes
			break
		}
	}
	n, err := strconv.ParseInt(strings.TrimSpace(number), 10, 64)
	if err != nil || n < 0 || n > (1<<63-1)/unit {
		return errors.New("not a number of bytes")
	}
	*b = byteSize(n * unit)
	return nil
}

// String formats a size in the largest unit that divides it.
func (b *byteSize) String() string {
	for _, u := range byteUnits {
		if n := int64(*b); n > 0 && n%u.bytes == 0 {
			return fmt.Sprintf("%d%siB", n/u.bytes, u.name)
		}
	}
	return strconv.FormatInt(int64(*b), 10)
}

// Type names the kind of value.
func (b *byteSize) Type() string { return "bytes" }

// limit returns the size as an option of the library, where 0 means the default and a negative number no limit.
func (b byteSize) limit() int64 {
	if b == 0 {
		return -1
	}
	return int64(b)
}
