package souvenir

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

// kindsOf returns the kinds of a store's problems.
func kindsOf(t *testing.T, s *Store) (kinds []ProblemKind) {
	t.Helper()
	all, err := s.Upkeep().Problems(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		if p.Message == "" || !slices.Contains(ProblemKinds(), p.Kind) {
			t.Errorf("got %+v, want a known kind and a message", p)
		}
		kinds = append(kinds, p.Kind)
	}
	return kinds
}

func TestAnEmbedderThatIsDownIsAProblemUntilItWorks(t *testing.T) {
	broken := make(chan bool, 1)
	broken <- true
	embedder := EmbedderFunc("own-1", 2, func(_ context.Context, _ Purpose, texts []string) ([][]float32, error) {
		down := <-broken
		broken <- down
		if down {
			return nil, errors.New("connection refused")
		}
		return slices.Repeat([][]float32{{1, 0}}, len(texts)), nil
	})
	s, err := Open(t.Context(), ":memory:", &Options{Embedder: embedder})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	if got := kindsOf(t, s); len(got) != 0 {
		t.Fatalf("a new store has the problems %v, want none", got)
	}
	mustAdd(t, s, NewMemory{Content: "waits for its vector"})
	wait := func(want ...ProblemKind) {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
			got := kindsOf(t, s)
			if slices.Equal(got, want) {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("got the problems %v, want %v", got, want)
			}
		}
	}
	wait(ProblemEmbedder)
	<-broken
	broken <- false
	if err := s.Upkeep().WaitEmbedded(t.Context()); err != nil {
		t.Fatal(err)
	}
	wait()
}

func TestRuntimeCountsSearchesByWhereTheyRun(t *testing.T) {
	for _, c := range []struct {
		name             string
		memory           int64
		inMemory, inBase uint64
	}{{"with an index", 1 << 20, 1, 0}, {"without", -1, 0, 1}} {
		t.Run(c.name, func(t *testing.T) {
			s, err := Open(t.Context(), ":memory:", &Options{IndexMemory: c.memory})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = s.Close() })
			mustAdd(t, s, NewMemory{Content: "tea at four"})
			before, err := s.Upkeep().Runtime(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.Search(t.Context(), Query{Text: "when is tea?"}); err != nil {
				t.Fatal(err)
			}
			after, err := s.Upkeep().Runtime(t.Context())
			for ; err == nil && after.Writing > 0; after, err = s.Upkeep().Runtime(t.Context()) {
				time.Sleep(time.Millisecond) // the background worker may still be storing the memory's vector
			}
			if err != nil {
				t.Fatal(err)
			}
			if inMemory, inBase := after.SearchesInMemory-before.SearchesInMemory,
				after.SearchesInDatabase-before.SearchesInDatabase; inMemory != c.inMemory || inBase != c.inBase {
				t.Errorf("%d searches in memory and %d in the database were counted, want %d and %d", inMemory, inBase,
					c.inMemory, c.inBase)
			}
			if holds := after.IndexPartitions > 0 && after.IndexBytes > 0; holds != (c.memory > 0) {
				t.Errorf("got %+v, want a partition held: %v", after, c.memory > 0)
			}
			if after.IndexLimit != c.memory {
				t.Errorf("got the limit %d, want %d", after.IndexLimit, c.memory)
			}
		})
	}
}

// set changes a setting of a store.
func set(t *testing.T, s *Store, name SettingName, value int64) {
	t.Helper()
	if err := s.Upkeep().SetSetting(t.Context(), name, &value); err != nil {
		t.Fatal(err)
	}
}

// A changed setting overrides the option in every process that lets it be changed, and only there.
func TestChangedSettingsCount(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	now := time.Now()
	options := Options{Quota: Quota{Memories: 2}, Changeable: settingNames, Now: func() time.Time { return now }}
	s, other := openWords(t, path, options), openWords(t, path, options)
	fixed := openWords(t, path, Options{Quota: Quota{Memories: 2}})
	add := func(s *Store) error {
		_, err := s.AddMemory(t.Context(), NewMemory{Content: "x"})
		return err
	}
	for range 2 {
		if err := add(other); err != nil {
			t.Fatal(err)
		}
	}
	if err := add(s); !errors.Is(err, ErrTooLarge) {
		t.Fatalf("got %v for a third memory, want ErrTooLarge", err)
	}
	set(t, s, SettingMemories, 3)
	if err := add(other); !errors.Is(err, ErrTooLarge) {
		t.Errorf("another handle got %v at once, want ErrTooLarge: it asks every ten seconds", err)
	}
	now = now.Add(10 * time.Second)
	if err := add(other); err != nil {
		t.Errorf("another handle got %v ten seconds later, want the memory stored", err)
	}
	set(t, s, SettingMemories, 4)
	if err := add(fixed); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a handle whose options hold got %v, want ErrTooLarge", err)
	}
	if err := add(s); err != nil {
		t.Errorf("got %v, want a fourth memory stored", err)
	}
	if u, err := s.Insights().Usage(t.Context()); err != nil || u.Quota.Memories != 4 {
		t.Errorf("the usage has the quota %d, %v; want 4", u.Quota.Memories, err)
	}
	if err := s.Upkeep().SetSetting(t.Context(), SettingMemories, nil); err != nil {
		t.Fatal(err)
	}
	if err := add(s); !errors.Is(err, ErrTooLarge) {
		t.Errorf("got %v with the option again, want ErrTooLarge", err)
	}
}

// Each setting reaches the configuration.
func TestEachSettingIsInTheConfiguration(t *testing.T) {
	s := openWords(t, filepath.Join(t.TempDir(), "s.db"), Options{Changeable: settingNames, BackupEvery: dayLong,
		KeepBackups: 14})
	value := func(i int) int64 {
		if settingNames[i] == SettingIndex {
			return leastIndex + 1
		}
		return int64(i + 2)
	}
	for i, name := range settingNames {
		set(t, s, name, value(i))
	}
	c, err := s.Upkeep().Configuration(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if want := (Quota{2, 3, 4, 5}); c.Quota != want || c.FileQuota != 6 || c.KeepTrash != 7*dayLong ||
		c.KeepActivity != 8*dayLong || c.MaxActivity != 9 || c.IndexMemory != leastIndex+1 || c.BackupEvery != 11*time.Hour ||
		c.KeepBackups != 12 {
		t.Errorf("got %+v, want the numbers 2 to 12", c)
	}
	noted := 0
	for e, err := range s.Upkeep().AuditEntries(t.Context(), AuditQuery{}) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Action == "setting.change" {
			noted++
		}
	}
	if noted != len(settingNames) {
		t.Errorf("the audit log has %d changes, want %d", noted, len(settingNames))
	}
	all, err := s.Upkeep().Settings(t.Context())
	if err != nil || len(all) != len(settingNames) {
		t.Fatalf("got %v, %v; want %d settings", all, err, len(settingNames))
	}
	for i, one := range all {
		if one.Name != settingNames[i] || one.Value != value(i) || !one.Changed || one.Default == one.Value {
			t.Errorf("got %+v, want %s with %d, changed", one, settingNames[i], value(i))
		}
	}
	mustAdd(t, s, NewMemory{Content: "x"})
	for m, err := range s.Memories(t.Context(), MemoryList{}) {
		if err != nil {
			t.Fatal(err)
		}
		if err := s.DeleteMemory(t.Context(), m.ID, nil); err != nil {
			t.Fatal(err)
		}
	}
	page, err := s.Trash().Page(t.Context(), TrashQuery{Limit: 10})
	if err != nil || len(page.Entries) != 1 {
		t.Fatalf("got %v, %v; want one entry", page, err)
	}
	if keeps := page.Entries[0].Until.Sub(page.Entries[0].DeletedAt); keeps != 7*dayLong {
		t.Errorf("the trash keeps it for %v, want 7 days", keeps)
	}
}

func TestSettingsThatCannotBeChanged(t *testing.T) {
	s := openWords(t, filepath.Join(t.TempDir(), "s.db"), Options{Changeable: []SettingName{SettingTrash}})
	for name, value := range map[SettingName]int64{SettingMemories: 1, "colour": 1, SettingTrash: 0} {
		err := s.Upkeep().SetSetting(t.Context(), name, &value)
		if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), string(name)) {
			t.Errorf("%s: got %v, want ErrInvalid with its name", name, err)
		}
	}
	for name, o := range map[string]Options{"an unknown one": {Changeable: []SettingName{"colour"}},
		"a trash that is off":     {Changeable: []SettingName{SettingTrash}, KeepTrash: -1},
		"an index that is off":    {Changeable: []SettingName{SettingIndex}, IndexMemory: -1},
		"backups before the last": {BackupEvery: -time.Hour},
		"fewer backups than none": {KeepBackups: -1}} {
		if _, err := Open(t.Context(), filepath.Join(t.TempDir(), "o.db"), &o); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: got %v, want ErrInvalid", name, err)
		}
	}
}

// With less memory for the index, the next search drops it, runs on disk and finds the same. With more, the index is in
// memory again. Another handle follows.
func TestTheMemoryOfTheIndexIsChanged(t *testing.T) {
	longtest.Only(t)
	path := filepath.Join(t.TempDir(), "s.db")
	now := time.Now()
	options := Options{Changeable: []SettingName{SettingIndex}, Now: func() time.Time { return now }}
	s := openWords(t, path, options)
	for i := range 40 {
		content := fmt.Sprintf("number%d", i)
		for j := range 400 {
			content += fmt.Sprintf(" word%dof%d", j, i)
		}
		mustAdd(t, s, NewMemory{Content: content})
	}
	other := openWords(t, path, options)
	search := func(s *Store) (way string, bytes int64) {
		t.Helper()
		before, err := s.Upkeep().Runtime(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		r, err := s.Search(t.Context(), Query{Text: "number17"})
		if err != nil || len(r.Hits) == 0 || !strings.Contains(r.Hits[0].Memory.Content, "number17") {
			t.Fatalf("got %v, %v; want number17 first", len(r.Hits), err)
		}
		after, err := s.Upkeep().Runtime(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if after.SearchesInMemory > before.SearchesInMemory {
			return "memory", after.IndexBytes
		}
		return "disk", after.IndexBytes
	}
	for name, one := range map[string]*Store{"this handle": s, "another": other} {
		if way, bytes := search(one); way != "memory" || bytes <= leastIndex {
			t.Fatalf("%s searches by %s, with %d bytes; want memory, with more than %d", name, way, bytes, leastIndex)
		}
	}
	set(t, s, SettingIndex, leastIndex)
	if way, bytes := search(s); way != "disk" || bytes > leastIndex {
		t.Errorf("with little memory, it searches by %s, with %d bytes; want disk, with %d at most", way, bytes, leastIndex)
	}
	now = now.Add(10 * time.Second)
	if way, bytes := search(other); way != "disk" || bytes > leastIndex {
		t.Errorf("another handle searches by %s, with %d bytes; want disk, with %d at most", way, bytes, leastIndex)
	}
	if err := s.Upkeep().SetSetting(t.Context(), SettingIndex, nil); err != nil {
		t.Fatal(err)
	}
	if way, _ := search(s); way != "memory" {
		t.Errorf("with the memory of before, it searches by %s, want memory", way)
	}
}
