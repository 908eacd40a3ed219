package documents_test

import (
	"bytes"
	"fmt"

	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

// manyPages returns a PDF file with pages in one flat list, each with a number in its text. Each page has its own
// resources, or the list has them.
func manyPages(pages int, own bool) []byte {
	var b bytes.Buffer
	var offsets []int
	add := func(object string) {
		offsets = append(offsets, b.Len())
		fmt.Fprintf(&b, "%d 0 obj\n%s\nendobj\n", len(offsets), object)
	}
	const resources = "/Resources<</Font<</F 3 0 R>>>>"
	ofList, ofPage := resources, ""
	if own {
		ofList, ofPage = "", resources
	}
	var kids strings.Builder
	for i := range pages {
		fmt.Fprintf(&kids, "%d 0 R ", 4+2*i)
	}
	b.WriteString("%PDF-1.4\n")
	add("<</Type/Catalog/Pages 2 0 R>>")
	add(fmt.Sprintf("<</Type/Pages/Kids[%s]/Count %d%s>>", kids.String(), pages, ofList))
	add("<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>")
	for i := range pages {
		text := fmt.Sprintf("BT /F 12 Tf (Leaf %d) Tj ET", i+1)
		add(fmt.Sprintf("<</Type/Page/Parent 2 0 R/Contents %d 0 R%s>>", 5+2*i, ofPage))
		add(fmt.Sprintf("<</Length %d>>\nstream\n%s\nendstream", len(text), text))
	}
	start := b.Len()
	fmt.Fprintf(&b, "xref\n0 %d\n0000000000 65535 f \n", len(offsets)+1)
	for _, at := range offsets {
		fmt.Fprintf(&b, "%010d 00000 n \n", at)
	}
	fmt.Fprintf(&b, "trailer<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n", len(offsets)+1, start)
	return b.Bytes()
}

func TestEveryPageOfALongPDFIsRead(t *testing.T) {
	pages := 300
	if longtest.On() {
		pages = 5000
	}
	for _, own := range []bool{true, false} {
		content := manyPages(pages, own)
		got, err := trusting.ReadDocument(t.Context(), souvenir.Document{Filename: "long.pdf", MIMEType: "application/pdf",
			Size: int64(len(content)), Content: bytes.NewReader(content)})
		if err != nil || got.Reason != "" || got.Truncated || !strings.Contains(got.Text, fmt.Sprint("Leaf ", pages)) {
			t.Errorf("own resources %v: got %d characters, %q, truncated %v, %v; want the text of all %d pages", own,
				len(got.Text), got.Reason, got.Truncated, err, pages)
		}
	}
}
