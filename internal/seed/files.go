package seed

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"strings"

	"github.com/souvenir-ai/souvenir"
)

// files stores files of several types: some linked to memories, some not, at most a few hundred.
func (f *filler) files(memories int) error {
	picture, err := f.picture()
	if err != nil {
		return err
	}
	kinds := []struct{ name, content, category string }{
		{"map.png", picture, "picture"},
		{"notes.md", "# Notes\n\n- one\n- two\n\n`code`\n", "document"},
		{"tiles.csv", "zoom,x,y\n12,2200,1343\n13,4400,2686\n", "data"},
		{"settings.json", `{"zoom": 12, "offline": true}`, "data"},
		{"letter.txt", "Dear team,\nthe coast is done.\n", "document"},
		{"plan.pdf", "%PDF-1.4\n%\xe2\xe3\xcf\xd3\n1 0 obj\n<< /Type /Catalog >>\nendobj\ntrailer\n<< /Root 1 0 R " +
			">>\n%%EOF\n", "document"},
		{"drawing.svg", `<svg xmlns="http://www.w3.org/2000/svg" width="8" height="8"><circle cx="4" cy="4" r="3"/></svg>`,
			"picture"},
		{"page.html", "<!doctype html><title>Page</title><p>kept as it was", "document"},
	}
	for i := range len(kinds) + min(memories/50, 300) {
		kind := kinds[i%len(kinds)]
		n := souvenir.NewFile{Filename: kind.name, Category: kind.category, Tags: []string{"coast"}, Description: "A " +
			kind.category + " for the atlas"}
		if i >= len(kinds) {
			n.Filename = fmt.Sprintf("%d-%s", i, kind.name)
		}
		if i < 3 {
			n.MemoryID = f.Memory
		} else if about := f.ids[pick(f.writer, f.topics).name]; f.once(2) && len(about) > 0 {
			n.MemoryID = pick(f.writer, about)
		} else if f.once(2) {
			n.ProjectID = "ledger"
		}
		file, err := f.view.AddFile(f.ctx, n, strings.NewReader(kind.content))
		if err != nil {
			return err
		}
		if i == 0 {
			f.File = file.ID
		}
	}
	return nil
}

// picture draws a small PNG.
func (f *filler) picture() (string, error) {
	drawn := image.NewRGBA(image.Rect(0, 0, 240, 160))
	for y := range 160 {
		for x := range 240 {
			drawn.Set(x, y, color.RGBA{uint8(x), uint8(y), uint8(60 + (x*y)%97), 255})
		}
	}
	var encoded bytes.Buffer
	err := png.Encode(&encoded, drawn)
	return encoded.String(), err
}
