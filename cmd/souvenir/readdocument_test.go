package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestReadDocumentPrintsTheTextOfAPDFFileAsJSON(t *testing.T) {
	pdf, err := os.ReadFile(filepath.Join("..", "..", "documents", "testdata", "runbook.pdf"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ in, want, failed string }{
		{string(pdf), "standby machine in Utrecht", ""},
		{"no PDF", "", "it is not a PDF file, or a broken one"},
	} {
		// In its own process, because its memory is limited.
		out, err := call{dir: t.TempDir(), stdin: c.in}.command(t.Context(), readDocument).Output()
		var got struct{ Text, Error string }
		if err == nil {
			err = json.Unmarshal(out, &got)
		}
		if err != nil || !strings.Contains(got.Text, c.want) || got.Error != c.failed {
			t.Errorf("got %s and %v, want a text with %q and the error %q", out, err, c.want, c.failed)
		}
	}
}
