package weights

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

func fixture(t testing.TB, name string) []byte {
	t.Helper()
	file, err := os.Open(filepath.Join("..", "..", "testdata", name+".gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	unpacked, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(unpacked)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func tensors(header string, numbers ...byte) []byte {
	file := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(file, header...), numbers...)
}

func parse(data []byte) (Source, error) {
	return ReadSafetensors("m.safetensors", bytes.NewReader(data), int64(len(data)))
}

// TestNumbersOfAllTypesAreRead has 1, -2 and a subnormal number in each type that has them.
func TestNumbersOfAllTypesAreRead(t *testing.T) {
	for kind, c := range map[string]struct {
		bytes []byte
		want  []float32
	}{
		"F32":  {[]byte{0, 0, 0x80, 0x3F, 0, 0, 0, 0xC0}, []float32{1, -2}},
		"F16":  {[]byte{0, 0x3C, 0, 0xC0, 1, 0, 0, 0x80, 0xFF, 0x7B}, []float32{1, -2, 5.9604645e-08, 0, 65504}},
		"BF16": {[]byte{0x80, 0x3F, 0, 0xC0}, []float32{1, -2}},
		"F64":  {[]byte{0, 0, 0, 0, 0, 0, 0xF0, 0x3F}, []float32{1}},
		"I8":   {[]byte{1, 0xFE}, []float32{1, -2}},
		"U8":   {[]byte{1, 0xFE}, []float32{1, 254}},
	} {
		header := fmt.Sprintf(`{"__metadata__":{"a":"b"},"x":{"dtype":%q,"shape":[%d],"data_offsets":[0,%d]}}`, kind,
			len(c.want), len(c.bytes))
		s, err := parse(tensors(header, c.bytes...))
		if err != nil {
			t.Errorf("%s: %v", kind, err)
			continue
		}
		got, err := s.Read("x")
		if err != nil {
			t.Errorf("%s: %v", kind, err)
			continue
		}
		for i, v := range got.Floats() {
			if v != c.want[i] {
				t.Errorf("%s: number %d is %v, want %v", kind, i, v, c.want[i])
			}
		}
	}
}

// TestBadSafetensorsAreErrors checks what each error names. A size that a file only claims must not allocate memory.
func TestBadSafetensorsAreErrors(t *testing.T) {
	for name, c := range map[string]struct {
		data []byte
		want string
	}{
		"empty": {nil, "has 0 bytes"},
		"a huge header": {binary.LittleEndian.AppendUint64(nil, 1<<62),
			"says that its header has 4611686018427387904 bytes"},
		"a header cut off": {tensors(`{"x":{}}`)[:12], "at most 4 are possible"},
		"no JSON":          {tensors(`hello`), "is not the JSON"},
		"nested JSON":      {tensors(strings.Repeat(`{"x":`, 20_000) + strings.Repeat("}", 20_000)), "is not the JSON"},
		"no offsets":       {tensors(`{"x":{"dtype":"F32","shape":[1]}}`), `tensor "x": shape [1] and data_offsets []`},
		"past the end": {tensors(`{"x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}`, 0, 0, 0, 0),
			"bytes 0 to 8; the file has 4"},
		"negative offsets": {tensors(`{"x":{"dtype":"F32","shape":[2],"data_offsets":[-8,0]}}`), "bytes -8 to 0"},
		"another size": {tensors(`{"x":{"dtype":"F32","shape":[3],"data_offsets":[0,4]}}`, 0, 0, 0, 0),
			"takes 12 bytes; data_offsets give it 4"},
		"a huge shape": {tensors(`{"x":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}}`),
			"shape [4294967296 4294967296]"},
		"a negative shape": {tensors(`{"x":{"dtype":"F32","shape":[-1],"data_offsets":[0,0]}}`), "shape [-1]"},
		"too many sizes": {tensors(`{"x":{"dtype":"F32","shape":[1,1,1,1,1,1,1,1,1],"data_offsets":[0,4]}}`, 0, 0,
			0, 0), "at most 8 sizes"},
		"a shape of strings": {tensors(`{"x":{"dtype":"F32","shape":["a"],"data_offsets":[0,0]}}`), `tensor "x"`},
	} {
		_, err := parse(c.data)
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "m.safetensors") {
			t.Errorf(`%s: the error is %v; %q is expected in it, want an error, it in the error and "m.safetensors" in the `+
				"error", name, err, c.want)
		}
	}
	s, err := parse(tensors(`{"x":{"dtype":"F8_E4M3","shape":[1],"data_offsets":[0,1]}}`, 0))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Read("x"); err == nil || !strings.Contains(err.Error(), "type that is not supported") {
		t.Errorf(`an unknown type: %v, want an error and "type that is not supported" in the error`, err)
	}
	if _, err := Matrix(s, "y", 1); err == nil || !strings.Contains(err.Error(), `no tensor "y"`) {
		t.Errorf(`a missing tensor: %v, want an error and no tensor "y" in the error`, err)
	}
	if _, err := Matrix(s, "x", 2, 3); err == nil || !strings.Contains(err.Error(),
		"has shape [1]; config.json requires [2 3]") {
		t.Errorf(`another shape: %v, want an error and "has shape [1]; config.json requires [2 3]" in the error`, err)
	}
}

// TestONNXFilesCutOffAreErrors cuts a file at any byte. It gives an error, or weights whose reading may fail.
func TestONNXFilesCutOffAreErrors(t *testing.T) {
	data := fixture(t, "onnx/model_quantized.onnx")
	for cut := 0; cut < len(data); cut += 997 {
		if _, err := ReadONNX("m.onnx", data[:cut]); err == nil {
			t.Errorf("cut off after %d of %d bytes, it is read, want an error", cut, len(data))
		}
	}
}

// message is a field of bytes.
func message(number int, parts ...[]byte) []byte {
	body := bytes.Join(parts, nil)
	out := binary.AppendUvarint(nil, uint64(number<<3|2))
	return append(binary.AppendUvarint(out, uint64(len(body))), body...)
}

func onnxOf(parts ...[]byte) []byte { return message(7, parts...) }

func operation(kind, output string, inputs ...string) []byte {
	parts := [][]byte{message(2, []byte(output)), message(4, []byte(kind))}
	for _, input := range inputs {
		parts = append(parts, message(1, []byte(input)))
	}
	return message(1, parts...)
}

// TestOddGraphsAreNoTrouble has nodes with too few inputs, with many, and in cycles.
func TestOddGraphsAreNoTrouble(t *testing.T) {
	bias := message(5, []byte{0x08, 1, 0x10, 1}, message(8, []byte("a.bias")), message(9, []byte{0, 0, 0, 0}))
	many := slices.Repeat([]string{"m"}, 200)
	for name, data := range map[string][]byte{
		"one input": onnxOf(bias, operation("Add", "x", "a.bias"), operation("Gemm", "y", "a.bias")),
		"no input": onnxOf(bias, operation("MatMul", "m"), operation("Transpose", "t"), operation("Add", "x", "m",
			"a.bias")),
		"a circle":    onnxOf(bias, operation("Mul", "m", "m", "m"), operation("Add", "x", "a.bias", "m")),
		"many inputs": onnxOf(bias, operation("Mul", "m", many...), operation("Add", "x", append(many, "a.bias")...)),
		"identities":  onnxOf(bias, operation("Identity", "i", "i"), operation("Add", "x", "i", "a.bias")),
	} {
		s, err := ReadONNX("m.onnx", data)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if s.Has("a.weight") || !s.Has("a.bias") {
			t.Errorf("%s: got tensors %v, want a.bias and not a.weight", name, s.Names())
		}
	}
	if _, err := ReadONNX("m.onnx", nil); err == nil || !strings.Contains(err.Error(), "m.onnx holds 0 graphs") {
		t.Errorf(`no graph: %v, want an error and "m.onnx holds 0 graphs" in the error`, err)
	}
}

// readAll reads all tensors of a source that could be opened.
func readAll(t testing.TB, s Source, err error, size int) {
	t.Helper()
	if err != nil {
		return
	}
	read := 0
	for _, name := range s.Names() {
		tensor, err := s.Read(name)
		if err != nil {
			continue
		}
		// Several names may share numbers, so limit the reading.
		if read += len(tensor.Data); read > 64*size+1<<20 {
			break
		}
		tensor.Floats()
		if shape := s.Shape(name); len(shape) > maxDimensions {
			t.Errorf("%q has the shape %v, want at most a length of %v", name, shape, maxDimensions)
		}
	}
}

func FuzzSafetensors(f *testing.F) {
	f.Add(tensors(`{"x":{"dtype":"F16","shape":[2],"data_offsets":[0,4]}}`, 1, 2, 3, 4))
	f.Add(fixture(f, "xlmr/model.safetensors")[:4000])
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := parse(data)
		readAll(t, s, err, len(data))
	})
}

func FuzzONNX(f *testing.F) {
	f.Add(fixture(f, "onnx/model_quantized.onnx"))
	f.Add([]byte{0x3A, 0x02, 0x2A, 0x00})
	f.Add(onnxOf(operation("Mul", "m", "m", "m"), operation("Add", "x", "a.bias", "m")))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := ReadONNX("m.onnx", data)
		readAll(t, s, err, len(data))
	})
}

// TestReadingTakesMemoryOfTheFilesSize opens files that claim large sizes.
func TestReadingTakesMemoryOfTheFilesSize(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, _ = parse(tensors(`{"x":{"dtype":"F32","shape":[1099511627776],"data_offsets":[0,4398046511104]}}`))
	_, _ = ReadONNX("m.onnx", []byte{0x3A, 0x08, 0x2A, 0x06, 0x08, 0xFF, 0xFF, 0xFF, 0xFF, 0x0F})
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > 1<<20 {
		t.Errorf("%d bytes were taken for files of less than 100, want at most %v", took, 1<<20)
	}
}
