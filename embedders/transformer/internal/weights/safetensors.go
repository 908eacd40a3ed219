package weights

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
)

// maxHeader bounds the JSON header of a safetensors file; the format itself allows 100 MB.
const maxHeader = 32 << 20

// safetensors is a file in the safetensors format: the length of a JSON header (uint64, little-endian), the header,
// which gives each tensor's type, shape and place, and the numbers.
type safetensors struct {
	path    string
	file    io.ReaderAt
	close   func() error
	start   int64 // of the numbers
	tensors map[string]place
}

// place is where a tensor's numbers are, counted from the start of the numbers.
type place struct {
	kind       Type
	shape      []int
	begin, end int64
}

// OpenSafetensors opens a safetensors file and checks its header.
func OpenSafetensors(path string) (Source, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	s, err := statSafetensors(path, file)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	s.close = file.Close
	return s, nil
}

func statSafetensors(path string, file *os.File) (*safetensors, error) {
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	return readSafetensors(path, file, info.Size())
}

// ReadSafetensors reads the header of a safetensors file of a given size. Path is for errors.
func ReadSafetensors(path string, file io.ReaderAt, size int64) (Source, error) {
	s, err := readSafetensors(path, file, size)
	if err != nil {
		return nil, err
	}
	return s, nil
}

func readSafetensors(path string, file io.ReaderAt, size int64) (*safetensors, error) {
	var length [8]byte
	if size < 8 {
		return nil, fmt.Errorf("%s has %d bytes; a safetensors file has at least 8", path, size)
	}
	if _, err := file.ReadAt(length[:], 0); err != nil {
		return nil, fmt.Errorf("%s: reading the header's length: %w", path, err)
	}
	n := binary.LittleEndian.Uint64(length[:])
	if n > maxHeader || int64(n) > size-8 {
		return nil, fmt.Errorf("%s says that its header has %d bytes; at most %d are possible: it is damaged, or not a "+
			"safetensors file",
			path, n, min(size-8, maxHeader))
	}
	header := make([]byte, n)
	if n, err := file.ReadAt(header, 8); n < len(header) {
		return nil, fmt.Errorf("%s: reading the header: %w", path, err)
	}
	var entries map[string]json.RawMessage
	if err := json.Unmarshal(header, &entries); err != nil {
		return nil, fmt.Errorf("%s: the header is not the JSON of a safetensors file: %w", path, err)
	}
	s := &safetensors{path: path, file: file, start: 8 + int64(n), tensors: make(map[string]place, len(entries)),
		close: func() error { return nil }}
	for name, entry := range entries {
		if name == "__metadata__" {
			continue
		}
		p, err := readPlace(entry, size-s.start)
		if err != nil {
			return nil, fmt.Errorf("%s: tensor %.80q: %w", path, name, err)
		}
		s.tensors[name] = p
	}
	return s, nil
}

// readPlace reads a tensor's entry in the header. Room is the number of bytes for all numbers.
func readPlace(entry []byte, room int64) (place, error) {
	var e struct {
		Type    string  `json:"dtype"`
		Shape   []int64 `json:"shape"`
		Offsets []int64 `json:"data_offsets"`
	}
	if err := json.Unmarshal(entry, &e); err != nil {
		return place{}, err
	}
	types := map[string]Type{"F32": F32, "F16": F16, "BF16": BF16, "F64": F64, "I8": I8, "U8": U8, "I32": I32,
		"I64": I64}
	p := place{kind: types[e.Type], shape: make([]int, 0, min(len(e.Shape), maxDimensions))}
	if p.kind == 0 {
		// A type that models do not use. The tensor counts as present, and fails when it is read.
		p.kind = -1
	}
	n, ok := elements(e.Shape)
	if !ok || len(e.Offsets) != 2 {
		return place{}, fmt.Errorf("shape %v and data_offsets %v; expected a shape of at most %d sizes and two offsets",
			short(e.Shape), short(e.Offsets), maxDimensions)
	}
	p.begin, p.end = e.Offsets[0], e.Offsets[1]
	if p.begin < 0 || p.end < p.begin || p.end > room {
		return place{}, fmt.Errorf("its numbers are said to be bytes %d to %d; the file has %d bytes of numbers", p.begin,
			p.end, room)
	}
	if p.kind > 0 && n*int64(p.kind.Size()) != p.end-p.begin {
		return place{}, fmt.Errorf("shape %v of %s numbers takes %d bytes; data_offsets give it %d", e.Shape, e.Type,
			n*int64(p.kind.Size()), p.end-p.begin)
	}
	for _, size := range e.Shape {
		p.shape = append(p.shape, int(size))
	}
	return p, nil
}

func short(sizes []int64) []int64 { return sizes[:min(len(sizes), 10)] }

func (s *safetensors) Path() string { return s.path }
func (s *safetensors) Close() error { return s.close() }

func (s *safetensors) Has(name string) bool {
	_, ok := s.tensors[name]
	return ok
}

func (s *safetensors) Shape(name string) []int {
	p, ok := s.tensors[name]
	if !ok {
		return nil
	}
	return append([]int{}, p.shape...)
}

func (s *safetensors) Names() []string { return slices.Sorted(maps.Keys(s.tensors)) }

func (s *safetensors) Read(name string) (Tensor, error) {
	p, ok := s.tensors[name]
	if !ok {
		return Tensor{}, fmt.Errorf("%s has no tensor %.80q", s.path, name)
	}
	if p.kind < 0 {
		return Tensor{}, fmt.Errorf("%s: tensor %.80q has a type that is not supported; expected F32, F16 or BF16",
			s.path,
			name)
	}
	data := make([]byte, p.end-p.begin)
	if n, err := s.file.ReadAt(data, s.start+p.begin); n < len(data) {
		return Tensor{}, fmt.Errorf("%s: reading tensor %.80q: %w", s.path, name, err)
	}
	return Tensor{Type: p.kind, Shape: p.shape, Data: data}, nil
}
