package web

import (
	"bytes"
	"strings"
	"testing"
)

// A page without a file would otherwise be the frame around nothing.
func TestAPageWithoutAFileIsAnError(t *testing.T) {
	all, err := templates()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := all.execute(&out, "typo", "frame.html", frame{}); err == nil || !strings.Contains(err.Error(), `"typo"`) {
		t.Errorf("got %v and %q, want an error that names the page", err, out.String())
	}
}
