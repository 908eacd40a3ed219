package systemtest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/recovery"
	"github.com/souvenir-ai/souvenir/internal/recovery/salvage"
	"github.com/souvenir-ai/souvenir/internal/storefile"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

// damagedStore is a store with all kinds of rows, to be damaged, and its contents.
type damagedStore struct {
	content []byte
	rows    map[string]map[string]storedRow
	older   map[string]map[string]storedRow // before the last changes; nil if no damage restores them
	reader  *recovery.Recovery
	tables  map[string][]uint32 // table -> its pages
	ids     map[string]map[int64][]uint32
	hashes  map[[2]int64][]uint32 // kind and key of a hash -> the pages of the hash
}

// storedRow is a row and its pages.
type storedRow struct {
	values []any
	pages  []uint32
}

const damagedPage = 4096

func newDamagedStore(t *testing.T) *damagedStore {
	t.Helper()
	s, in := fillFile(t)
	many := make([]NewMemory, 500)
	for i := range many {
		many[i] = NewMemory{Content: fmt.Sprintf("memory %d of the kettle %s", i,
			strings.Repeat(fmt.Sprintf("w%d ", i), 40+i%200)), Tags: []string{fmt.Sprint("t", i%7), fmt.Sprint("u", i%3)},
			ProjectName: fmt.Sprint("p", i%4), ShownMetadata: map[string]any{"number": i}}
		if i%25 == 0 {
			many[i].Content += strings.Repeat(fmt.Sprintf("long %d ", i), 1500)
		}
	}
	added, err := s.AddMemories(t.Context(), many, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(added); i += 3 {
		if _, err := s.UpdateMemory(t.Context(), added[i].ID,
			MemoryUpdate{Content: new(fmt.Sprintf("memory %d again, %s", i, strings.Repeat("x", i)))}); err != nil {
			t.Fatal(err)
		}
	}
	mustAddFile(t, s, NewFile{Filename: "noise.bin", MemoryID: added[5].ID}, noisy(kernel.ChunkSize+5))
	if err := s.DeleteMemory(t.Context(), added[7].ID, nil); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	d := &damagedStore{content: readFile(t, in.path),
		tables: map[string][]uint32{}, ids: map[string]map[int64][]uint32{},
		hashes: map[[2]int64][]uint32{}}
	d.rows = d.read(t, in.path, true)
	return d
}

// read reads a sound file and returns the rows of each table that Recover restores, with their pages.
func (d *damagedStore) read(t *testing.T, path string, note bool) map[string]map[string]storedRow {
	t.Helper()
	f, err := salvage.Open(path, MasterKey{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	d.reader = recovery.New(f, migrations(t), storefile.Config("", time.Now), func(string, int, int) {})
	if err := d.reader.Read(t.Context()); err != nil || len(f.Problems) > 0 || len(d.reader.Notes) > 0 {
		t.Fatalf("got %v, %v, %v, want no error, no problems and no notes", err, f.Problems, d.reader.Notes)
	}
	content := readFile(t, path)
	all := map[string]map[string]storedRow{}
	for _, table := range d.reader.Tables {
		if slices.Contains(recovery.NotRecovered, table.Name) && table.Name != "row_hash" || table.Name == "passage" ||
			table.Name == "activity" {
			continue
		}
		all[table.Name] = map[string]storedRow{}
		found := &salvage.Found{Pages: map[uint32]bool{}}
		seen := map[uint32]bool{}
		if err := f.Walk(d.reader.Roots[table.Name], found, func(row salvage.Row) error {
			pages := []uint32{row.Page}
			for n := range found.Pages {
				if !seen[n] {
					seen[n] = true
					if kind := content[(n-1)*damagedPage]; kind != 2 && kind != 5 && kind != 13 && kind != 10 {
						pages = append(pages, n)
					}
				}
			}
			values, ok := table.Values(row)
			if !ok || row.Cut {
				t.Errorf("%s: the row %v cannot be read whole, want it readable", table.Name, row.Values)
			}
			all[table.Name][rowText(table, values)] = storedRow{values, pages}
			if note && table.Name == "row_hash" {
				d.hashes[[2]int64{values[0].(int64), values[1].(int64)}] = pages
			}
			if note && table.RowID >= 0 {
				if d.ids[table.Name] == nil {
					d.ids[table.Name] = map[int64][]uint32{}
				}
				d.ids[table.Name][row.ID] = pages
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if note {
			for n := range found.Pages {
				d.tables[table.Name] = append(d.tables[table.Name], n)
			}
			slices.Sort(d.tables[table.Name])
		}
		if found.Problems > 0 {
			t.Errorf("%s: %d problems in a sound file, want none", table.Name, found.Problems)
		}
	}
	return all
}

// rowText returns a row as text, without the values that upkeep changes.
func rowText(t *recovery.Table, values []any) string {
	values = slices.Clone(values)
	for i, c := range t.Columns {
		if (t.Name == "partition" || t.Name == "trash") && slices.Contains(t.Hash.Except, c.Name) {
			values[i] = nil
		}
	}
	return fmt.Sprintf("%#v", values)
}

// pagesOfKind returns the pages of a table whose first byte is kind.
func (d *damagedStore) pagesOfKind(table string, kind byte) (pages []uint32) {
	for _, n := range d.tables[table] {
		if d.content[(n-1)*damagedPage] == kind {
			pages = append(pages, n)
		}
	}
	return pages
}

// damageCase is a damage and its pages.
type damageCase struct {
	name  string
	pages []uint32
	do    func(content []byte) []byte
}

func (d *damagedStore) cases(t *testing.T) (cases []damageCase) {
	t.Helper()
	seed := rand.New(rand.NewPCG(12, 9)) //nolint:gosec // the same damages each time
	pick := func(pages []uint32) uint32 {
		t.Helper()
		if len(pages) == 0 {
			t.Fatalf("there is no such page: got %v, want some pages", len(pages))
		}
		return pages[seed.IntN(len(pages))]
	}
	zero := func(name string, pages ...uint32) {
		cases = append(cases, damageCase{name, pages, func(content []byte) []byte {
			for _, n := range pages {
				clear(content[(n-1)*damagedPage : n*damagedPage])
			}
			return content
		}})
	}
	flip := func(name string, n uint32, count int) {
		at := make([]int, count)
		for i := range at {
			at[i] = int(n-1)*damagedPage + seed.IntN(damagedPage)
		}
		cases = append(cases, damageCase{name, []uint32{n}, func(content []byte) []byte {
			for _, i := range at {
				content[i] ^= 0x5a
			}
			return content
		}})
	}
	leaf, inner := d.pagesOfKind("memory", 13), d.pagesOfKind("memory", 5)
	for i := range 3 {
		zero(fmt.Sprint("a leaf of memories is zero, ", i), pick(leaf))
		flip(fmt.Sprint("bytes in a leaf of memories are flipped, ", i), pick(leaf), 8)
	}
	zero("an interior page of memories is zero", pick(inner))
	zero("the interior pages of memories are zero", inner...)
	flip("bytes in an interior page of memories are flipped", pick(inner), 40)
	zero("three leaves of memories are zero", pick(leaf), pick(leaf), pick(leaf))
	zero("a page of overflow is zero", pick(d.pagesOfKind("memory", 0)))
	zero("a leaf of tags is zero", pick(d.pagesOfKind("memory_tag", 10)))
	zero("the interior page of tags is zero", pick(d.pagesOfKind("memory_tag", 2)))
	zero("a leaf of former states is zero", pick(d.pagesOfKind("memory_revision", 13)))
	zero("the interior pages of former states are zero", d.pagesOfKind("memory_revision", 5)...)
	zero("a leaf of hashes is zero", pick(d.pagesOfKind("row_hash", 10)))
	zero("the first page is zero", 1)
	flip("bytes in the first page are flipped", 1, 60)
	zero("users, projects, collections and places are zero", d.tables["users"][0], d.tables["project"][0],
		d.tables["collection"][0], d.tables["partition"][0])
	zero("a piece of a file is zero", pick(d.pagesOfKind("file_chunk", 0)))
	cases = append(cases, damageCase{"the header is damaged", []uint32{1}, func(content []byte) []byte {
		copy(content, bytes.Repeat([]byte{0xee}, 100))
		return content
	}})
	pages := uint32(len(d.content) / damagedPage)
	var gone []uint32
	for n := pages * 3 / 4; n <= pages; n++ {
		gone = append(gone, n)
	}
	cases = append(cases, damageCase{"a quarter of the file is cut off", gone,
		func(content []byte) []byte { return content[:int(pages*3/4-1)*damagedPage+100] }})
	return cases
}

func TestRecoverYieldsEveryRowThatIsNotOnADamagedPage(t *testing.T) {
	longtest.Only(t)
	d := newDamagedStore(t)
	for i, c := range d.cases(t) {
		if !longtest.Part(i, 4, 40) {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			in, out := filepath.Join(t.TempDir(), "in.db"), filepath.Join(t.TempDir(), "out.db")
			damaged := c.do(bytes.Clone(d.content))
			writeFile(t, in, damaged)
			report, err := Recover(t.Context(), in, out, &RecoveryOptions{Embedder: wordEmbedder("words-1")})
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(readFile(t, in), damaged) {
				t.Errorf("the damaged file was changed, want %.200q", damaged)
			}
			for _, path := range []string{in, out} {
				if there := filesIn(t, filepath.Dir(path)); len(there) != 1 {
					t.Errorf("got the files %v, want one", there)
				}
			}
			d.compare(t, c, out, report)
		})
	}
}

// compare compares the recovered store with the damaged one.
func (d *damagedStore) compare(t *testing.T, c damageCase, out string, report RecoveryReport) {
	t.Helper()
	lies := func(pages []uint32) bool {
		return slices.ContainsFunc(pages, func(n uint32) bool { return slices.Contains(c.pages, n) })
	}
	recovered := d.read(t, out, false)
	total, there, missing := 0, 0, 0
	for name, rows := range d.rows {
		if name == "row_hash" {
			continue
		}
		for text, row := range rows {
			total++
			if _, ok := recovered[name][text]; ok {
				there++
				continue
			}
			missing++
			if !lies(row.pages) && !d.hangsOnLost(name, row, lies) {
				t.Errorf("%s: the row %.300s is on no damaged page, and is not there", name, text)
			}
		}
	}
	wrong := 0
	for name, rows := range recovered {
		table := d.reader.Table(name)
		if table.Hash == nil || table.Hash.Set {
			continue
		}
		for text := range rows {
			_, ok := d.rows[name][text]
			_, was := d.older[name][text] // with the hash of that time
			if !ok && !was {
				wrong++
			}
		}
	}
	// Everything that is left may be of an earlier time, with its hashes. Nothing in the file can reveal that.
	earlier := d.older != nil
	for name, rows := range d.older {
		for text := range rows {
			_, there := recovered[name][text]
			earlier = earlier && there
		}
	}
	if reported := len(report.Check.Damaged) + report.Check.Unverified; reported < wrong ||
		missing > 0 && report.OK && !earlier {
		t.Errorf("%d rows are missing, %d others than were stored; OK is %v, %d are damaged, %d not verified; want all "+
			"reported", missing, wrong,
			report.OK, len(report.Check.Damaged), report.Check.Unverified)
	}
	t.Logf("of %d rows %d are there, %d of %d memories; %d are damaged or lost, %d not verified; %v", total, there,
		report.Tables["memory"].Rows, len(d.rows["memory"]), len(report.Check.Damaged), report.Check.Unverified, report.Notes)
}

// hangsOnLost reports whether a row refers to a row on a damaged page, or is a chunk of such a file. It also reports a
// row whose hash was on a damaged page, if no page leads to the row's own: without the hash, the row may have been
// deleted. If the hash is of an earlier time, so is the row.
func (d *damagedStore) hangsOnLost(name string, row storedRow, lies func([]uint32) bool) bool {
	table := d.reader.Table(name)
	for i, c := range table.Columns {
		id, ok := row.values[i].(int64)
		stray := table.Hash != nil && c.Name == table.Hash.Key && (d.older != nil || lies(d.pagesOfKind(name, 5)))
		if stray && lies(d.hashes[[2]int64{int64(table.Hash.Kind), id}]) {
			return true
		}
		chunk := name == "file_chunk" && i == table.RowID && lies(d.ids["file"][id/kernel.ChunksOfFile])
		if chunk || ok && c.Parent != "" && lies(d.ids[c.Parent][id]) {
			return true
		}
	}
	return false
}
