package systemtest

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/testing/linediff"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

// Damage to files by disks, cables and programs.

const damagedSector = 512

// damageSeeds is how many damages of each kind to try: 5 in the long form, or a share of the number in SOUVENIR_FAULTS.
func damageSeeds(t *testing.T) uint64 {
	t.Helper()
	said := os.Getenv("SOUVENIR_FAULTS")
	if said == "" {
		return uint64(longtest.Size(5, 1))
	}
	n, err := strconv.ParseUint(said, 10, 32)
	if err != nil {
		t.Fatalf("SOUVENIR_FAULTS is %q, want a number", said)
	}
	return n/uint64(len(damageKinds)) + 1
}

// damageKindsToTry returns all kinds, or some of them in a plain run.
func damageKindsToTry() []string {
	if os.Getenv("SOUVENIR_FAULTS") != "" {
		return slices.Sorted(maps.Keys(damageKinds))
	}
	return longtest.Keys(damageKinds, 1, 4)
}

// damageKinds damage a sound file. older is the same file before its last changes. They return nil if there is nothing
// to damage.
var damageKinds = map[string]func(r *rand.Rand, file, older []byte) []byte{
	"a bit flipped": func(r *rand.Rand, file, _ []byte) []byte {
		file[r.IntN(len(file))] ^= 1 << r.IntN(8)
		return file
	},
	"a bit flipped in a page that is in use": func(r *rand.Rand, file, _ []byte) []byte {
		at := r.IntN(len(file))
		for file[at] == 0 {
			at = r.IntN(len(file))
		}
		file[at] ^= 1 << r.IntN(8)
		return file
	},
	"twenty bytes changed": func(r *rand.Rand, file, _ []byte) []byte {
		for range 20 {
			file[r.IntN(len(file))] = byte(r.Uint32())
		}
		return file
	},
	"a letter of a text changed": func(r *rand.Rand, file, _ []byte) []byte {
		return replaceOne(r, file, "memory ", "mamory ")
	},
	"a number of a text changed": func(r *rand.Rand, file, _ []byte) []byte {
		return replaceOne(r, file, " at 14:00", " at 15:00")
	},
	"two texts of one length swapped": func(r *rand.Rand, file, _ []byte) []byte {
		return replaceOne(r, replaceOne(r, file, "Tuesday", "Friday?"), "Sunday", "Monday")
	},
	"a page of zeros": func(r *rand.Rand, file, _ []byte) []byte {
		clear(randomPart(r, file, damagedPage))
		return file
	},
	"a page of ones": func(r *rand.Rand, file, _ []byte) []byte {
		page := randomPart(r, file, damagedPage)
		copy(page, bytes.Repeat([]byte{0xff}, len(page)))
		return file
	},
	"a page of noise": func(r *rand.Rand, file, _ []byte) []byte {
		noise(r, randomPart(r, file, damagedPage))
		return file
	},
	"a sector of zeros": func(r *rand.Rand, file, _ []byte) []byte {
		clear(randomPart(r, file, damagedSector))
		return file
	},
	"a sector of noise": func(r *rand.Rand, file, _ []byte) []byte {
		noise(r, randomPart(r, file, damagedSector))
		return file
	},
	"two pages swapped": func(r *rand.Rand, file, _ []byte) []byte {
		a, b := randomPart(r, file, damagedPage), randomPart(r, file, damagedPage)
		kept := bytes.Clone(a)
		copy(a, b)
		copy(b, kept)
		return file
	},
	"two sectors swapped": func(r *rand.Rand, file, _ []byte) []byte {
		a, b := randomPart(r, file, damagedSector), randomPart(r, file, damagedSector)
		kept := bytes.Clone(a)
		copy(a, b)
		copy(b, kept)
		return file
	},
	"a page over another": func(r *rand.Rand, file, _ []byte) []byte {
		copy(randomPart(r, file, damagedPage), randomPart(r, file, damagedPage))
		return file
	},
	"a write of a page lost": func(r *rand.Rand, file, older []byte) []byte {
		var changed []int
		for at := damagedPage; at < min(len(file), len(older)); at += damagedPage {
			if !bytes.Equal(file[at:at+damagedPage], older[at:at+damagedPage]) {
				changed = append(changed, at)
			}
		}
		at := changed[r.IntN(len(changed))]
		copy(file[at:at+damagedPage], older[at:])
		return file
	},
	"a write of half a page lost": func(r *rand.Rand, file, older []byte) []byte {
		for range 10_000 {
			at := damagedPage * (1 + r.IntN(min(len(file), len(older))/damagedPage-1))
			half := file[at : at+damagedPage/2]
			if !bytes.Equal(half, older[at:at+len(half)]) {
				copy(half, older[at:])
				return file
			}
		}
		return nil
	},
	"several writes lost": func(r *rand.Rand, file, older []byte) []byte {
		for at := damagedPage; at < min(len(file), len(older)); at += damagedPage {
			if r.IntN(4) == 0 {
				copy(file[at:at+damagedPage], older[at:])
			}
		}
		return file
	},
	"the last pages cut off": func(r *rand.Rand, file, _ []byte) []byte {
		return file[:len(file)-damagedPage*(1+r.IntN(5))]
	},
	"cut anywhere": func(r *rand.Rand, file, _ []byte) []byte { return file[:r.IntN(len(file))] },
	"a byte inserted": func(r *rand.Rand, file, _ []byte) []byte {
		return slices.Insert(file, r.IntN(len(file)), byte(r.Uint32()))
	},
	"a byte removed": func(r *rand.Rand, file, _ []byte) []byte {
		at := r.IntN(len(file))
		return slices.Delete(file, at, at+1)
	},
	"the header changed": func(r *rand.Rand, file, _ []byte) []byte {
		file[16+r.IntN(84)] ^= 1 << r.IntN(8)
		return file
	},
	"the first page of the older file": func(_ *rand.Rand, file, older []byte) []byte {
		copy(file, older[:damagedPage])
		return file
	},
	"the older file's end": func(r *rand.Rand, file, older []byte) []byte {
		at := damagedPage * (1 + r.IntN(len(older)/damagedPage-1))
		return append(file[:at], older[at:]...)
	},
}

func randomPart(r *rand.Rand, file []byte, size int) []byte {
	at := size * r.IntN(len(file)/size)
	return file[at : at+size]
}

func noise(r *rand.Rand, b []byte) {
	for i := range b {
		b[i] = byte(r.Uint32())
	}
}

// noisy returns content without repetition.
func noisy(size int) string {
	content := make([]byte, size)
	noise(rand.New(rand.NewPCG(1, 1)), content)
	return string(content)
}

// replaceOne replaces one occurrence of a text by another of the same length.
func replaceOne(r *rand.Rand, file []byte, old, by string) []byte {
	var places []int
	for at := 0; file != nil; {
		i := bytes.Index(file[at:], []byte(old))
		if i < 0 {
			break
		}
		places = append(places, at+i)
		at += i + 1
	}
	if len(places) == 0 {
		return nil
	}
	copy(file[places[r.IntN(len(places))]:], by)
	return file
}

// still is a clock that stands still, so that exports of equal stores are equal.
func still() time.Time { return time.Date(2026, 11, 21, 8, 0, 0, 123456000, time.UTC) }

// fillFile opens a new store in a file and adds memories of every kind, past versions, files and a trash.
func fillFile(t *testing.T) (*Store, file) {
	t.Helper()
	in := emptyInFile(t).(file)
	s := openWords(t, in, Options{Now: still, IndexMemory: -1})
	first := mustAdd(t, s, NewMemory{Content: "ä kettle w17 besides", Tags: []string{"t3", "kitchen things"},
		ProjectName: "p", Importance: ImportanceHigh})
	for _, c := range []string{"ä kettle w18 besides", "ä kettle w17 again"} {
		if _, err := s.UpdateMemory(t.Context(), first.ID,
			MemoryUpdate{Content: &c, ShownMetadata: map[string]any{"k": c}}); err != nil {
			t.Fatal(err)
		}
	}
	mustAdd(t, s, NewMemory{Content: "東京の天気 と kettle_size2 FooBar", ProjectName: "q", EventType: EventProjectRule,
		RuleType: RuleDo, Related: []string{first.ID}})
	mustAddFile(t, s, NewFile{Filename: "one.txt"}, "of one piece")
	gone := mustAdd(t, s, NewMemory{Content: "deleted kettle"})
	if err := s.DeleteMemory(t.Context(), gone.ID, nil); err != nil {
		t.Fatal(err)
	}
	mustAddCollection(t, s, NewCollection{Name: "own", OwnVectors: true, VectorSize: 3})
	mustAdd(t, s, NewMemory{Collection: "own", Content: "north kettle", Embedding: []float32{3, 0, 4}})
	mustAdd(t, s, NewMemory{Collection: "own", Content: "nowhere kettle"})
	mustAdd(t, s, NewMemory{Content: strings.Repeat("Of the kettle and the teapot much is said here.\n\n", 100)})
	return s, in
}

// filesToDamage returns a store's file, and the same file before its last changes.
func filesToDamage(t *testing.T) (content, older []byte) {
	t.Helper()
	s, in := fillFile(t)
	many := make([]NewMemory, 120)
	days := []string{"Monday", "Tuesday", "Sunday", "Friday?"}
	for i := range many {
		many[i] = NewMemory{Content: fmt.Sprintf("memory %d: on %s at 14:00 %s", i, days[i%4],
			strings.Repeat(fmt.Sprintf("w%d ", i), 5+i%90)), Tags: []string{fmt.Sprint("t", i%7)},
			ProjectName: fmt.Sprint("p", i%3), Key: fmt.Sprint("key ", i)}
	}
	added, err := s.AddMemories(t.Context(), many, nil)
	if err != nil {
		t.Fatal(err)
	}
	mustAddFile(t, s, NewFile{Filename: "noise.bin", MemoryID: added[5].ID}, noisy(20_000))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	older = readFile(t, in.path)
	s = openWords(t, in, Options{Now: still, IndexMemory: -1})
	for i := 0; i < len(added); i += 4 {
		if _, err := s.UpdateMemory(t.Context(), added[i].ID, MemoryUpdate{Content: new(
			fmt.Sprintf("memory %d again: on Sunday at 14:00 %s", i, strings.Repeat("x ", i)))}); err != nil {
			t.Fatal(err)
		}
	}
	for _, i := range []int{3, 7, 50} {
		if err := s.DeleteMemory(t.Context(), added[i].ID, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return readFile(t, in.path), older
}

// vectorsOfLine matches the vectors in a line of an export.
var vectorsOfLine = regexp.MustCompile(`"vector":"([A-Za-z0-9+/=]*)"`)

// whatIsIn returns everything that a store gives back: its export and the results of searches. Numbers of vectors are
// rounded: a check compares only their length, since hashing what the model can compute again would cost too much.
func whatIsIn(t *testing.T, s *Store) (string, error) {
	t.Helper()
	var export, out bytes.Buffer
	_, err := s.Upkeep().Export(t.Context(), &export, &ExportOptions{Credentials: true})
	lines := bytes.SplitAfter(export.Bytes(), []byte("\n"))
	if end := slices.IndexFunc(lines,
		func(line []byte) bool { return bytes.HasPrefix(line, []byte(`{"type":"end"`)) }); end > 0 {
		lines = lines[:end] // it holds a hash of the lines before
	}
	out.Write(vectorsOfLine.ReplaceAllFunc(bytes.Join(lines, nil), func(found []byte) []byte {
		encoded, wrong := base64.StdEncoding.DecodeString(string(vectorsOfLine.FindSubmatch(found)[1]))
		vector, undecodable := kernel.DecodeVector(encoded)
		err = errors.Join(err, wrong, undecodable)
		rounded := []byte("vector:")
		for _, v := range vector {
			rounded = fmt.Appendf(rounded, " %.0f", (v+0.0313)*10) // no frequent number is near a rounding boundary
		}
		return rounded
	}))
	for _, text := range []string{"memory", "kettle", "again", "w17"} {
		found, searched := s.Search(t.Context(), Query{Text: text, Limit: 100})
		err = errors.Join(err, searched)
		var ids []string
		for _, m := range found.Hits {
			ids = append(ids, m.ID)
		}
		slices.Sort(ids)
		fmt.Fprintln(&out, text, found.Total, ids)
	}
	return out.String(), err
}

// However a file is damaged: if a check or a repair calls it sound, everything is as it was stored.
func TestNoDamagedFileWithOtherContentIsCalledSound(t *testing.T) {
	longtest.Only(t)
	file, older := filesToDamage(t)
	path := filepath.Join(t.TempDir(), "damaged.db")
	o := Options{Now: still, IndexMemory: -1, Embedder: wordEmbedder("words-1")}
	outcomes, harmless := map[string]int{}, 0
	look := func(content []byte, repair bool) (sound bool, held string) {
		for _, end := range []string{"", "-wal", "-shm"} {
			_ = os.Remove(path + end)
		}
		writeFile(t, path, content)
		s, err := Open(t.Context(), path, &o)
		if err != nil {
			outcomes["not opened"]++
			return false, ""
		}
		defer s.Close()
		for range 2 {
			report, err := s.Upkeep().Check(t.Context(), &CheckOptions{Repair: repair})
			if sound = err == nil && report.OK; !sound {
				break
			}
		}
		if !sound {
			outcomes["not sound"]++
			return false, ""
		}
		err = s.Upkeep().WaitEmbedded(t.Context()) // computes the vectors that the repair could not verify
		if err == nil {
			held, err = whatIsIn(t, s)
		}
		if err != nil {
			held = err.Error()
		}
		return true, held
	}
	sound, want := look(bytes.Clone(file), false)
	if !sound || !strings.Contains(want, "memory 4 again") {
		t.Fatalf(`got sound %v and %.300s, want sound true and "memory 4 again" in it`, sound, want)
	}
	kinds, tried := damageKindsToTry(), 0
	for _, kind := range kinds {
		damage := damageKinds[kind]
		for seed := range damageSeeds(t) {
			damaged := damage(rand.New(rand.NewPCG(seed, uint64(len(kind)))), bytes.Clone(file), older)
			if damaged == nil || bytes.Equal(damaged, file) {
				continue
			}
			tried++
			for _, repair := range []bool{false, true} {
				sound, held := look(bytes.Clone(damaged), repair)
				switch {
				case !sound:
				case held != want:
					t.Errorf("%s, seed %d, repair %v: called sound, but %s", kind, seed, repair,
						linediff.First([]byte(held), []byte(want)))
				case repair:
					outcomes["repaired"]++
				default:
					harmless++
				}
			}
		}
	}
	t.Logf("%d damages of %d kinds, each checked and repaired: %v, and %d harmless", tried, len(kinds), outcomes, harmless)
	if outcomes["not sound"] < len(kinds)/2 || longtest.All() &&
		(outcomes["not sound"] < len(kinds) || outcomes["not opened"] == 0) {
		t.Errorf("the files come to %v: too few are damaged, want more", outcomes)
	}
}

// differing returns the pages in which two files differ.
func differing(damaged, file []byte) (pages []uint32) {
	for at := 0; at < len(file); at += damagedPage {
		end := min(at+damagedPage, len(file))
		if end > len(damaged) || !bytes.Equal(damaged[at:end], file[at:end]) {
			pages = append(pages, uint32(at/damagedPage+1))
		}
	}
	return pages
}

// However a file is damaged: Recover saves what is on undamaged pages, and reports the rest as missing or changed.
func TestRecoverOfAnyDamageYieldsTheRest(t *testing.T) {
	longtest.Only(t)
	file, older := filesToDamage(t)
	sound := filepath.Join(t.TempDir(), "sound.db")
	writeFile(t, sound, file)
	d := &damagedStore{content: file, tables: map[string][]uint32{}, ids: map[string]map[int64][]uint32{},
		hashes: map[[2]int64][]uint32{}}
	d.rows = d.read(t, sound, true)
	writeFile(t, sound, older)
	d.older = d.read(t, sound, false)
	recovered, refused := 0, 0
	for _, kind := range damageKindsToTry() {
		for seed := range damageSeeds(t) {
			damaged := damageKinds[kind](rand.New(rand.NewPCG(seed, uint64(len(kind)))), bytes.Clone(file), older)
			if damaged == nil || bytes.Equal(damaged, file) ||
				bytes.Equal(damaged[min(damagedPage, len(damaged)):], older[damagedPage:]) { // a sound file, but an older one
				continue
			}
			dir := t.TempDir()
			in, out := filepath.Join(dir, "in.db"), filepath.Join(dir, "out.db")
			writeFile(t, in, damaged)
			c := damageCase{name: fmt.Sprintf("%s, seed %d", kind, seed), pages: differing(damaged, file)}
			report, err := Recover(t.Context(), in, out, &RecoveryOptions{Embedder: wordEmbedder("words-1")})
			switch first := len(c.pages) > 0 && c.pages[0] == 1; {
			case err == nil:
				recovered++
				t.Run(c.name, func(t *testing.T) { d.compare(t, c, out, report) })
			case first && isAny(err, ErrForeign, ErrNewer, ErrInvalid):
				refused++ // by the header of the file, on its first page
			default:
				t.Errorf("%s: %v, want no error", c.name, err)
			}
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Logf("%d damaged files were recovered, %d refused", recovered, refused)
}
