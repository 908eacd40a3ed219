package transformer

import (
	"cmp"
	"compress/gzip"
	"encoding/json"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// folder unpacks a model of the fixtures into a folder of the test.
func folder(t testing.TB, model string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), model)
	if err := unpackModel(to, model); err != nil {
		t.Fatal(err)
	}
	return to
}

func unpackModel(to, model string) error {
	from := filepath.Join("testdata", model)
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil || d.IsDir() {
			return cmp.Or(err, os.MkdirAll(filepath.Join(to, name), 0o755))
		}
		data, err := unpacked(path)
		return cmp.Or(err, os.WriteFile(filepath.Join(to, strings.TrimSuffix(name, ".gz")), data, 0o600))
	})
}

// unpack reads a file of the fixtures, which may be compressed.
func unpack(t testing.TB, path string) []byte {
	t.Helper()
	data, err := unpacked(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func unpacked(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var from io.Reader = file
	if strings.HasSuffix(path, ".gz") {
		if from, err = gzip.NewReader(file); err != nil {
			return nil, err
		}
	}
	return io.ReadAll(from)
}

// wanted is a text with its vector from the reference.
type wanted struct {
	Text   string    `json:"text"`
	IDs    []int32   `json:"ids"`
	Vector []float32 `json:"vector"`
}

func wantedVectors(t testing.TB, path string) []wanted {
	t.Helper()
	var all []wanted
	if err := json.Unmarshal(unpack(t, path), &all); err != nil {
		t.Fatal(err)
	}
	if len(all) < 10 {
		t.Fatalf("%s has %d texts, want at least 10", path, len(all))
	}
	return all
}

func textsOf(all []wanted) []string {
	texts := make([]string, len(all))
	for i, w := range all {
		texts[i] = w.Text
	}
	return texts
}

// farthest returns the largest difference of two numbers at the same position.
func farthest(a, b []float32) float64 {
	if len(a) != len(b) {
		return math.Inf(1)
	}
	most := 0.0
	for i := range a {
		most = max(most, math.Abs(float64(a[i]-b[i])))
	}
	return most
}

func cosine(a, b []float32) float64 {
	dot, aa, bb := 0.0, 0.0, 0.0
	for i := range a {
		dot += float64(a[i]) * float64(b[i])
		aa += float64(a[i]) * float64(a[i])
		bb += float64(b[i]) * float64(b[i])
	}
	return dot / math.Sqrt(aa*bb)
}
