// Postgres measures stores in a PostgreSQL database with pgvector 0.8 or newer. It creates schemas and drops them at
// the end, unless -keep is given. It measures an existing schema as it is.
//
//	go run ./postgres -db postgres://... -users 1000       100 memories of each user, beside a plain table
//	go run ./postgres -db postgres://... -large 100000     a single owner, with and without the index of vectors
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/seed"
	"github.com/souvenir-ai/souvenir/postgres"
)

// settings are the flags.
type settings struct {
	db, sql  string
	large    int
	users    int
	searches int
	keep     bool
}

func main() {
	log.SetFlags(0)
	var s settings
	flag.StringVar(&s.db, "db", "", "address of the database, of a user who may create schemas and extensions")
	flag.StringVar(&s.sql, "sql", "../postgres", "the folder with vectors.sql")
	flag.IntVar(&s.large, "large", 0, "memories of a single owner, searched without an index in memory")
	flag.IntVar(&s.users, "users", 0, "users with 100 memories each")
	flag.IntVar(&s.searches, "searches", 200, "searches of each kind")
	flag.BoolVar(&s.keep, "keep", false, "keep the schemas")
	flag.Parse()
	if s.db == "" {
		log.Fatal("-db is empty; give the address of a database, such as postgres://postgres@127.0.0.1:5432/postgres")
	}
	if s.users > 0 {
		if err := users(context.Background(), s); err != nil {
			log.Fatal(err)
		}
	}
	if s.large > 0 {
		if err := large(context.Background(), s); err != nil {
			log.Fatal(err)
		}
	}
}

// schema makes a schema, unless it exists, and returns its address.
func schema(ctx context.Context, s settings, name string) (address string, made bool, err error) {
	u, err := url.Parse(s.db)
	if err != nil {
		return "", false, err
	}
	conn, err := pgx.Connect(ctx, s.db)
	if err != nil {
		return "", false, err
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }()
	err = conn.QueryRow(ctx, `SELECT to_regnamespace($1) IS NULL`, name).Scan(&made)
	if err == nil && made {
		_, err = conn.Exec(ctx, "CREATE SCHEMA "+name)
	}
	query := u.Query()
	query.Set("search_path", name)
	u.RawQuery = query.Encode()
	return u.String(), made, err
}

// execute runs statements in a schema.
func execute(ctx context.Context, address, script string) error {
	conn, err := pgx.Connect(ctx, address)
	if err != nil {
		return err
	}
	_, err = conn.PgConn().Exec(ctx, script).ReadAll()
	return errors.Join(err, conn.Close(ctx))
}

// fill adds memories in batches.
func fill(ctx context.Context, store *souvenir.Store, memories []souvenir.NewMemory) error {
	for batch := range slices.Chunk(memories, 100) {
		if _, err := store.AddMemories(ctx, batch, nil); err != nil {
			return err
		}
	}
	return nil
}

func drop(ctx context.Context, s settings, name string) error {
	if s.keep {
		return nil
	}
	return execute(ctx, s.db, "DROP SCHEMA "+name+" CASCADE")
}

// large measures the searches of a single owner, whose memories do not fit into the index in memory.
func large(ctx context.Context, s settings) (err error) {
	name := fmt.Sprint("bench_large_", s.large)
	address, made, err := schema(ctx, s, name)
	if err != nil {
		return err
	}
	store, err := postgres.Open(ctx, address, &souvenir.Options{IndexMemory: -1})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close(), drop(ctx, s, name)) }()
	if made {
		start := time.Now()
		if err := fill(ctx, store, seed.Sentences(1, s.large)); err != nil {
			return err
		}
		fmt.Printf("%d memories stored in %.0f s, 100 at once\n", s.large, time.Since(start).Seconds())
		if err := execute(ctx, address, "VACUUM ANALYZE"); err != nil {
			return err
		}
	}
	queries := queries(s.searches)
	want, err := inMemory(ctx, address, queries)
	if err != nil {
		return err
	}
	if err := compare(ctx, store, queries[:min(len(queries), s.searches/20+1)], want); err != nil {
		return err
	}
	script, err := os.ReadFile(filepath.Join(s.sql, "vectors.sql"))
	if err != nil {
		return err
	}
	if err := execute(ctx, address, "SET search_path = "+name+"; "+string(script)); err != nil {
		return err
	}
	indexed, err := postgres.Open(ctx, address, &souvenir.Options{IndexMemory: -1})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(indexed.Close(), err) }()
	start := time.Now()
	if err := indexed.Upkeep().StoreIndex(ctx); err != nil {
		return err
	}
	fmt.Printf("index of vectors filled in %.0f s\n", time.Since(start).Seconds())
	if err := execute(ctx, address, "VACUUM ANALYZE passage_near"); err != nil {
		return err
	}
	return compare(ctx, indexed, queries, want)
}

// kind is a kind of search.
type kind struct {
	name  string
	query func(text string, vector []float32) souvenir.Query
}

var kinds = []kind{
	{"words and meaning", func(text string, _ []float32) souvenir.Query { return souvenir.Query{Text: text} }},
	{"meaning alone", func(_ string, vector []float32) souvenir.Query { return souvenir.Query{Vector: vector} }},
	{"an event type that all have", func(text string, _ []float32) souvenir.Query {
		return souvenir.Query{Text: text, Filter: souvenir.Filter{"event_type": "decision"}}
	}},
	{"a tag that 2 % have", func(text string, _ []float32) souvenir.Query {
		return souvenir.Query{Text: text, Tags: []string{"tag7"}}
	}},
}
