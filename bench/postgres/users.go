package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/seed"
	"github.com/souvenir-ai/souvenir/postgres"
)

const (
	each       = 100 // memories of a user
	writers    = 8
	active     = 50 // users that search repeatedly
	newcomers  = 300
	writingFor = 10 * time.Second
)

func userOf(store *souvenir.Store, n int) *souvenir.Store {
	return store.As(souvenir.Access{User: fmt.Sprint("user", n)})
}

// users measures a store of many users, beside a plain table with a vector.
func users(ctx context.Context, s settings) (err error) {
	name := fmt.Sprint("bench_users_", s.users)
	address, made, err := schema(ctx, s, name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, drop(ctx, s, name)) }()
	if made {
		if err := fillUsers(ctx, s, address); err != nil {
			return err
		}
	}
	between, err := newCounter(ctx, address)
	if err != nil {
		return err
	}
	table, err := newPlain(ctx, address, s.users)
	if err != nil {
		return err
	}
	defer table.pool.Close()
	store, err := postgres.Open(ctx, between.address, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	m := measured{store: store, table: table, between: between, users: s.users}
	if err := m.cold(ctx); err != nil {
		return err
	}
	if err := m.warm(ctx); err != nil {
		return err
	}
	return m.stores(ctx)
}

func fillUsers(ctx context.Context, s settings, address string) (err error) {
	store, err := postgres.Open(ctx, address, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	start := time.Now()
	err = inParallel(writers, func(writer int) error {
		for u := writer; u < s.users; u += writers {
			if _, err := userOf(store, u).AddMemories(ctx, seed.Sentences(uint64(u), each), nil); err != nil {
				return err
			}
		}
		return nil
	})
	took := time.Since(start).Seconds()
	fmt.Printf("%d memories of %d users stored in %.0f s: %.0f/s, %d at once, %d connections\n", s.users*each, s.users,
		took, float64(s.users*each)/took, each, writers)
	return errors.Join(err, execute(ctx, address, "VACUUM ANALYZE"))
}

// inParallel runs fn in some goroutines.
func inParallel(n int, fn func(number int) error) error {
	failed := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { failed[i] = fn(i) })
	}
	wg.Wait()
	return errors.Join(failed...)
}

type measured struct {
	store   *souvenir.Store
	table   *plain
	between *counter
	users   int
}

// series are durations of calls and their round trips.
type series struct {
	took  []time.Duration
	trips int64
}

func (m measured) time(to *series, fn func() error) error {
	before, start := m.between.trips.Load(), time.Now()
	err := fn()
	to.took = append(to.took, time.Since(start))
	to.trips += m.between.trips.Load() - before
	return err
}

func (s *series) report(what string) {
	trips := ""
	if s.trips > 0 {
		trips = fmt.Sprintf("%.1f round trips", float64(s.trips)/float64(len(s.took)))
	}
	reportTimes(what, trips, s.took)
}

// cold searches once for each of some users whose memories are not in memory yet.
func (m measured) cold(ctx context.Context) error {
	var ours, plain series
	for i, text := range queries(min(newcomers, m.users-active)) {
		view := userOf(m.store, active+i)
		err := m.time(&ours, func() error {
			found, err := view.Search(ctx, souvenir.Query{Text: text})
			if err == nil && len(found.Hits) == 0 {
				err = fmt.Errorf("%q: got no hits", text)
			}
			return err
		})
		if err == nil {
			err = m.time(&plain, func() error { return m.table.search(ctx, active+i, text) })
		}
		if err != nil {
			return err
		}
	}
	ours.report("search, cold")
	plain.trips = 0
	plain.report("plain table, search")
	return nil
}

// warm searches repeatedly for the same users, and reads their contexts.
func (m measured) warm(ctx context.Context) error {
	var ours, plain, contexts series
	for round, text := range queries(20) {
		for u := range min(active, m.users) {
			view := userOf(m.store, u)
			var first series
			to := &ours
			if round == 0 {
				to = &first
			}
			err := m.time(to, func() error {
				_, err := view.Search(ctx, souvenir.Query{Text: text})
				return err
			})
			if err == nil {
				err = m.time(&plain, func() error { return m.table.search(ctx, u, text) })
			}
			if err == nil {
				err = m.time(&contexts, func() error {
					_, err := view.GetContext(ctx, souvenir.ContextQuery{Query: text})
					return err
				})
			}
			if err != nil {
				return err
			}
		}
	}
	ours.report("search, warm")
	plain.trips = 0
	plain.report("plain table, search")
	contexts.report("get_context")
	return nil
}

// stores adds single memories over several connections, alternating with the plain table.
func (m measured) stores(ctx context.Context) error {
	var one series
	for i, memory := range seed.Sentences(4711, 50) {
		err := m.time(&one, func() error {
			_, err := userOf(m.store, i).AddMemory(ctx, memory)
			return err
		})
		if err != nil {
			return err
		}
	}
	one.report("store, one after the other")
	for range 2 {
		for _, way := range []struct {
			name string
			add  func(user int, memory souvenir.NewMemory) error
		}{
			{"store", func(user int, memory souvenir.NewMemory) error {
				_, err := userOf(m.store, user).AddMemory(ctx, memory)
				return err
			}},
			{"plain table, insert", func(user int, memory souvenir.NewMemory) error {
				return m.table.add(ctx, user, memory.Content)
			}},
		} {
			var stored atomic.Int64
			start := time.Now()
			err := inParallel(writers, func(writer int) error {
				for n, memory := range seed.Sentences(uint64(start.UnixNano())+uint64(writer), 50_000) {
					if time.Since(start) > writingFor {
						break
					}
					if err := way.add((writer+n*writers)%m.users, memory); err != nil {
						return err
					}
					stored.Add(1)
				}
				return nil
			})
			if err != nil {
				return err
			}
			fmt.Printf("%-34s %d connections: %.0f/s\n", way.name, writers, float64(stored.Load())/time.Since(start).Seconds())
		}
	}
	return nil
}

// plain is a table as a program without Souvenir would create it.
type plain struct{ pool *pgxpool.Pool }

func newPlain(ctx context.Context, address string, users int) (*plain, error) {
	config, err := pgxpool.ParseConfig(address)
	if err != nil {
		return nil, err
	}
	config.ConnConfig.RuntimeParams["search_path"] += ",public"
	config.MaxConns = writers
	p := &plain{}
	if p.pool, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return nil, err
	}
	_, err = p.pool.Exec(ctx, `CREATE EXTENSION IF NOT EXISTS vector WITH SCHEMA public; DROP TABLE IF EXISTS plain;
		CREATE TABLE plain (id bigserial PRIMARY KEY, owner bigint NOT NULL, content text NOT NULL,
			embedding vector(256) NOT NULL)`)
	if err != nil {
		return nil, err
	}
	for u := range users {
		memories := seed.Sentences(uint64(u), each)
		texts, vectors := make([]string, len(memories)), make([]string, len(memories))
		for i, m := range memories {
			texts[i] = m.Content
			if vectors[i], err = embedded(ctx, souvenir.ForDocument, m.Content); err != nil {
				return nil, err
			}
		}
		if _, err := p.pool.Exec(ctx, `INSERT INTO plain (owner, content, embedding)
			SELECT $1, c, e::vector FROM unnest($2::text[], $3::text[]) AS r (c, e)`, u, texts, vectors); err != nil {
			return nil, err
		}
	}
	if _, err = p.pool.Exec(ctx, `CREATE INDEX ON plain (owner)`); err == nil {
		_, err = p.pool.Exec(ctx, `VACUUM ANALYZE plain`)
	}
	return p, err
}

func embedded(ctx context.Context, purpose souvenir.Purpose, text string) (string, error) {
	vectors, err := souvenir.Builtin().Embed(ctx, purpose, []string{text})
	if err != nil {
		return "", err
	}
	return literal(vectors[0]), nil
}

func (p *plain) search(ctx context.Context, user int, text string) error {
	vector, err := embedded(ctx, souvenir.ForQuery, text)
	if err != nil {
		return err
	}
	rows, err := p.pool.Query(ctx, `SELECT id, content FROM plain WHERE owner = $1 ORDER BY embedding <=> $2::text::vector
		LIMIT 7`, user, vector)
	if err != nil {
		return err
	}
	for rows.Next() {
		if _, err := rows.Values(); err != nil {
			return err
		}
	}
	return rows.Err()
}

func (p *plain) add(ctx context.Context, user int, content string) error {
	vector, err := embedded(ctx, souvenir.ForDocument, content)
	if err != nil {
		return err
	}
	_, err = p.pool.Exec(ctx, `INSERT INTO plain (owner, content, embedding) VALUES ($1, $2, $3::text::vector)`, user,
		content, vector)
	return err
}
