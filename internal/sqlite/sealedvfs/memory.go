//go:build !souvenir_cgo

package sealedvfs

import "io"

// memory is a file in memory.
type memory struct{ content []byte }

func (m *memory) ReadAt(p []byte, at int64) (n int, err error) {
	if at < int64(len(m.content)) {
		n = copy(p, m.content[at:])
	}
	if n < len(p) {
		clear(p[n:])
		err = io.EOF
	}
	return n, err
}

func (m *memory) WriteAt(p []byte, at int64) (int, error) {
	if missing := at + int64(len(p)) - int64(len(m.content)); missing > 0 {
		m.content = append(m.content, make([]byte, missing)...)
	}
	return copy(m.content[at:], p), nil
}

// Truncate cuts the file.
func (m *memory) Truncate(size int64) error {
	m.content = m.content[:min(size, int64(len(m.content)))]
	return nil
}
