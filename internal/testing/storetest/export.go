package storetest

import (
	"bytes"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir"
)

func exports() concept {
	return concept{"Export", []promise{
		{"a store that imports an export answers like the one that wrote it", exportCopies},
		{"a second import of the same changes nothing and says so", exportAgain},
		{"memories written by hand are imported", exportByHand},
		{"an export cut off is refused before anything is written", exportCutOff},
		{"a file that is not an export is refused by name", exportForeign},
		{"a view exports what its user owns, and imports nothing", exportView},
	}}
}

// exported writes the store's export.
func (f *fixture) exported() []byte {
	f.Helper()
	var out bytes.Buffer
	summary, err := f.reader.Upkeep().Export(f.ctx, &out, nil)
	f.check("Export", err)
	f.equal("bytes of the summary", summary.Bytes, int64(out.Len()))
	return out.Bytes()
}

func (f *fixture) imported(export []byte) souvenir.ImportReport {
	f.Helper()
	report, err := f.store.Upkeep().Import(f.ctx, bytes.NewReader(export), nil)
	f.check("Import", err)
	return report
}

// inAnother runs a test with another store, empty.
func (f *fixture) inAnother(test func(other *fixture)) {
	f.Helper()
	f.Run("another", func(t *testing.T) { test(newFixture(t, f.open, f.reader != f.store)) })
}

// furnish stores memories of two users, with all fields.
func furnish(f *fixture) (first souvenir.StoredMemory) {
	f.Helper()
	f.addCollection(souvenir.NewCollection{Name: "garden", Description: "what grows"})
	first = f.add(souvenir.NewMemory{Collection: "garden", Content: "the rose is red", ProjectName: "Beds",
		Tags: []string{"z", "a"}, ShownMetadata: map[string]any{"n": 1.5, "deep": map[string]any{"list": []any{nil, true}}}})
	f.patch(first.ID, map[string]any{"state": "archived"})
	f.as(souvenir.Access{User: "ann"}).add(souvenir.NewMemory{Content: "the violet is blue",
		Importance: souvenir.ImportanceHigh})
	second := f.add(souvenir.NewMemory{Content: "roses need water", Related: []string{first.ID}})
	f.patch(first.ID, map[string]any{"related_memory_ids": []any{second.ID}})
	return first
}

func exportCopies(f *fixture) {
	first := furnish(f)
	export := f.exported()
	f.inAnother(func(other *fixture) {
		other.imported(export)
		other.equal("texts embedded by the import", len(other.embedder.Texts()), 0)
		for _, user := range []string{"", "ann"} {
			here, there := f.as(souvenir.Access{User: user}), other.as(souvenir.Access{User: user})
			other.sameJSON("memories", there.list(souvenir.MemoryList{}), here.list(souvenir.MemoryList{}))
			other.sameJSON("hits", there.search(souvenir.Query{Text: "red rose"}).Hits,
				here.search(souvenir.Query{Text: "red rose"}).Hits)
		}
		other.sameJSON("revisions", other.revisions(first.ID), f.revisions(first.ID))
		other.sameJSON("collection", other.collection("garden"), f.collection("garden"))
	})
}

func exportAgain(f *fixture) {
	furnish(f)
	export := f.exported()
	report := f.imported(export)
	for kind, n := range report.Counts {
		f.equal("import of "+kind+" into the store it comes from", souvenir.ImportCount{Unchanged: n.Unchanged}, n)
	}
	f.equal("memories unchanged", report.Counts["memory"].Unchanged, 3)
}

func exportByHand(f *fixture) {
	lines := `{"souvenir":"export","version":1}
{"type":"memory","content":"carried over from elsewhere"}
{"type":"memory","content":"with tags","tags":["old"],"created_at":"2019-05-01T10:00:00Z"}
`
	f.equal("added", f.imported([]byte(lines)).Counts["memory"].Added, 2)
	f.equal("unchanged", f.imported([]byte(lines)).Counts["memory"].Unchanged, 2)
	f.same("found", f.find("carried elsewhere"), "carried over from elsewhere")
	f.same("contents", texts(f.list(souvenir.MemoryList{Tags: []string{"old"}})), "with tags")
}

func exportCutOff(f *fixture) {
	furnish(f)
	export := f.exported()
	f.inAnother(func(other *fixture) {
		_, err := other.store.Upkeep().Import(f.ctx, bytes.NewReader(export[:len(export)*2/3]), nil)
		other.fails("Import of two thirds", err, souvenir.ErrInvalid)
		other.equal("memories", len(other.list(souvenir.MemoryList{})), 0)
	})
}

func exportForeign(f *fixture) {
	for name, data := range map[string]string{"nothing": "", "CSV": "a,b\n1,2\n", "JSON": "[]"} {
		_, err := f.store.Upkeep().Import(f.ctx, strings.NewReader(data), nil)
		f.fails(name, err, souvenir.ErrForeign)
	}
	_, err := f.store.Upkeep().Import(f.ctx, strings.NewReader(`{"souvenir":"export","version":99}`), nil)
	f.fails("a newer version", err, souvenir.ErrNewer, "99")
}

func exportView(f *fixture) {
	ann, ben := f.as(souvenir.Access{User: "ann"}), f.as(souvenir.Access{User: "ben"})
	ann.addTexts("Ann likes tea.")
	ben.addTexts("Ben likes coffee.")
	export := ann.exported()
	f.equal("what it has", []bool{bytes.Contains(export, []byte("Ann likes tea.")), bytes.Contains(export, []byte("Ben"))},
		[]bool{true, false})
	f.inAnother(func(other *fixture) {
		other.imported(export)
		brought := other.as(souvenir.Access{User: "ann"}).list(souvenir.MemoryList{})
		other.equal("brought in", []any{len(brought), brought[0].Content}, []any{1, "Ann likes tea."})
	})
	_, err := ann.store.Upkeep().Export(f.ctx, &bytes.Buffer{}, &souvenir.ExportOptions{Credentials: true})
	f.fails("Export with credentials", err, souvenir.ErrForbidden)
	_, err = ann.store.As(souvenir.Access{User: "ann", Projects: []string{}}).Upkeep().Export(f.ctx, &bytes.Buffer{}, nil)
	f.fails("Export limited to projects", err, souvenir.ErrForbidden)
	_, err = ann.store.Upkeep().Import(f.ctx, strings.NewReader(""), nil)
	f.fails("Import", err, souvenir.ErrForbidden)
}
