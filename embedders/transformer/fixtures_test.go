package transformer

import (
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
	to, from := filepath.Join(t.TempDir(), model), filepath.Join("testdata", model)
	err := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil || d.IsDir() {
			return cmpErr(err, os.MkdirAll(filepath.Join(to, name), 0o755))
		}
		return os.WriteFile(filepath.Join(to, strings.TrimSuffix(name, ".gz")), unpack(t, path), 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
	return to
}

func cmpErr(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

// unpack reads a file of the fixtures, which may be compressed.
func unpack(t testing.TB, path string) []byte {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var from io.Reader = file
	if strings.HasSuffix(path, ".gz") {
		if from, err = gzip.NewReader(file); err != nil {
			t.Fatal(err)
		}
	}
	data, err := io.ReadAll(from)
	if err != nil {
		t.Fatal(err)
	}
	return data
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
