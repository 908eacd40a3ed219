package migrate_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/migrate"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

// importKilled imports in a separate process, which is killed after the items of one, two and three transactions.
func importKilled(t *testing.T, store, from, path string) {
	t.Helper()
	for kill := range 3 {
		child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestAnImportThatWasKilledIsCompletedByTheNextOne$")
		child.Env = append(os.Environ(), "MIGRATE_TEST_STORE="+store, "MIGRATE_TEST_FROM="+from, "MIGRATE_TEST_PATH="+path)
		out, err := child.StdoutPipe()
		if err == nil {
			err = child.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for n := 0; n < (kill+1)*500 && lines.Scan(); {
			if strings.HasPrefix(lines.Text(), "item ") {
				n++
			}
		}
		if err := child.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := child.Wait(); err == nil {
			t.Fatal("got an import that ended, want one that is killed")
		}
	}
}

func TestAnImportThatWasKilledIsCompletedByTheNextOne(t *testing.T) {
	longtest.Only(t)
	if path := os.Getenv("MIGRATE_TEST_STORE"); path != "" {
		store, err := souvenir.Open(t.Context(), path, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = migrate.Import(t.Context(), store, os.Getenv("MIGRATE_TEST_FROM"), os.Getenv("MIGRATE_TEST_PATH"),
			&migrate.Options{Progress: func(_ string, n, _ int) { fmt.Println("item", n) }})
		t.Fatalf("got %v, want that the process is killed before the import ends", err)
	}
	var chats, graph strings.Builder
	for c := range 4 {
		fmt.Fprintf(&chats, `%s{"uuid":"c%d","chat_messages":[`, []string{"[", ",", ",", ","}[c], c)
		for i := range 600 {
			fmt.Fprintf(&chats, `%s{"uuid":"%d-%d","sender":"human","text":"第%d条消息，第%d个会话。"}`, []string{"", ","}[min(i, 1)],
				c, i, i, c)
		}
		chats.WriteString("]}")
	}
	for i := range 2400 {
		fmt.Fprintf(&graph, "{\"type\":\"entity\",\"name\":\"实体 %d\",\"observations\":[\"Number %d.\"]}\n", i%2200, i)
		fmt.Fprintf(&graph, "{\"type\":\"relation\",\"from\":\"实体 %d\",\"to\":\"实体 %d\",\"relationType\":\"knows\"}\n",
			i%2200, i*7%2200)
	}
	folder := files(t, map[string]string{"conversations.json": chats.String() + "]", "memory.jsonl": graph.String()})
	for _, from := range []string{"claude", "server-memory"} {
		whole, path := openStore(t), filepath.Join(t.TempDir(), "killed.db")
		want, err := migrate.Import(t.Context(), whole, from, folder, nil)
		if err != nil {
			t.Fatal(err)
		}
		importKilled(t, path, from, folder)
		store, err := souvenir.Open(t.Context(), path, nil)
		if err != nil {
			t.Fatal(err)
		}
		got, err := migrate.Import(t.Context(), store, from, folder, nil)
		if err != nil || got.Links != want.Links || got.Added+got.TurnsAdded >= want.Added+want.TurnsAdded {
			t.Errorf("%s: got %+v and %v, want what was left of %+v", from, got, err, want)
		}
		if !slices.Equal(contents(t, store), contents(t, whole)) {
			t.Errorf("%s: got %d memories, want the %d that an import without kills stores", from, len(contents(t, store)),
				len(contents(t, whole)))
		}
		if report, err := store.Upkeep().Check(t.Context(), nil); err != nil || !report.OK {
			t.Errorf("%s: the check says %+v and %v, want OK", from, report, err)
		}
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
