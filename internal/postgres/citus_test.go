package postgres_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/postgres"
	"github.com/souvenir-ai/souvenir/internal/postgres/pgtest"
)

// openOnCitus opens a schema that is on a worker.
func openOnCitus(t *testing.T) (*postgres.DB, string) {
	t.Helper()
	pgtest.Server(t)
	if !pgtest.OnCitus() {
		t.Skipf("%s is not set: the tests run on one server", pgtest.Distributed)
	}
	address := pgtest.Address(t)
	d, err := postgres.Open(t.Context(), address, db.Opening{Readers: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d, address
}

// addMemory adds a memory without passages, in a new partition.
func addMemory(tx db.Tx, uid string) (memory int64, err error) {
	user, err := db.Insert(tx, `INSERT INTO users (uid, created_at) VALUES (?, 1) RETURNING id`, uid)
	if err != nil {
		return 0, err
	}
	collection, err := db.Insert(tx, `INSERT INTO collection (owner_id, name, description, created_at, updated_at)
		VALUES (?, 'c', '', 1, 1) RETURNING id`, user)
	if err != nil {
		return 0, err
	}
	partition, err := db.Insert(tx, `INSERT INTO partition (collection_id) VALUES (?) RETURNING id`, collection)
	if err != nil {
		return 0, err
	}
	return db.Insert(tx, `INSERT INTO memory (uid, partition_id, content, metadata, revision, created_at, updated_at)
		VALUES (?, ?, 'tea', '{"cups": [1, 2]}', 1, 1, 1) RETURNING id`, uid, partition)
}

// loseWorker kills the worker's half of the schema's current transaction.
func loseWorker(t *testing.T, address string) {
	t.Helper()
	ended := pgtest.Query(t, address, `SELECT sum(result::int)::text FROM run_command_on_workers(format($$
		SELECT count(pg_terminate_backend(a.pid, 5000)) FROM pg_stat_activity a WHERE a.state = 'idle in transaction'
			AND EXISTS (SELECT 1 FROM pg_locks l JOIN pg_class c ON c.oid = l.relation
				WHERE l.pid = a.pid AND c.relnamespace = %L::regnamespace) $$, current_schema()))`)
	if ended[0] != "1" {
		t.Errorf("transactions on workers that were ended: got %s, want 1", ended[0])
	}
}

func TestAStatementWithoutItsWorkerIsUnavailable(t *testing.T) {
	d, address := openOnCitus(t)
	for name, statement := range map[string]func(tx db.Tx) error{
		"a read": func(tx db.Tx) error {
			return tx.QueryRow(`SELECT count(*) FROM memory`).Scan(new(int))
		},
		"a write": func(tx db.Tx) error {
			_, err := addMemory(tx, "ann")
			return err
		},
		"a part": func(tx db.Tx) error {
			return tx.Savepoint(func() error {
				_, err := addMemory(tx, "ann")
				return err
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			err := d.Write(t.Context(), func(tx db.Tx) error {
				if _, err := addMemory(tx, "ben"); err != nil {
					return err
				}
				loseWorker(t, address)
				return statement(tx)
			})
			if !errors.Is(err, db.ErrUnavailable) {
				t.Errorf("got %v, want db.ErrUnavailable", err)
			}
			err = d.Read(t.Context(), func(tx db.Tx) error {
				names, err := db.Column[string](tx, `SELECT uid FROM users`)
				if len(names) != 0 {
					t.Errorf("afterwards: got the users %v, want none", names)
				}
				return err
			})
			if err != nil {
				t.Errorf("reading afterwards: %v", err)
			}
		})
	}
}

// The coordinator answers such a COMMIT with an error, but the worker may have committed.
func TestACommitWithoutItsWorkerIsOfUnknownOutcome(t *testing.T) {
	d, address := openOnCitus(t)
	err := d.Write(t.Context(), func(tx db.Tx) error {
		_, err := addMemory(tx, "ann")
		loseWorker(t, address)
		return err
	})
	if !errors.Is(err, db.ErrOutcomeUnknown) {
		t.Errorf("got %v, want db.ErrOutcomeUnknown", err)
	}
}

// If the worker refuses something only at the commit, the coordinator's error lacks the reason.
func TestACommitThatTheWorkerRefusesHasTheReason(t *testing.T) {
	d, _ := openOnCitus(t)
	err := d.Write(t.Context(), func(tx db.Tx) error {
		_, err := tx.Exec(`INSERT INTO memory_tag (memory_id, tag, position) VALUES (7, 'green', 0)`)
		return err
	})
	if !errors.Is(err, db.ErrForeignKey) || errors.Is(err, db.ErrOutcomeUnknown) {
		t.Errorf("the tag of no memory: got %v, want db.ErrForeignKey", err)
	}
}

// Each worker numbers its own transactions, so marks of another one are useless.
func TestChangesAreFoundAfterASchemaMovedToAnotherWorker(t *testing.T) {
	d, address := openOnCitus(t)
	add := func(uid string) (memory int64) {
		t.Helper()
		err := d.Write(t.Context(), func(tx db.Tx) (err error) {
			memory, err = addMemory(tx, uid)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return memory
	}
	since := func(mark db.Mark) (memories []int64, now db.Mark, complete bool) {
		t.Helper()
		err := d.Read(t.Context(), func(tx db.Tx) (err error) {
			memories, now, complete, err = tx.Changes().Since(mark, 100)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return memories, now, complete
	}
	mark := func() (now db.Mark) {
		t.Helper()
		err := d.Read(t.Context(), func(tx db.Tx) (err error) {
			now, err = tx.Changes().Mark()
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return now
	}
	const moved = `SELECT citus_schema_move(current_schema()::regnamespace, n.nodename, n.nodeport, 'block_writes')::text
		FROM pg_dist_node n WHERE n.noderole = 'primary' AND n.shouldhaveshards AND n.nodeport <>
			(SELECT DISTINCT s.nodeport FROM citus_shards s WHERE s.table_name = 'memory'::regclass) LIMIT 1`
	first := mark()
	ann := add("ann")
	got, second, complete := since(first)
	if !complete || !slices.Equal(got, []int64{ann}) {
		t.Errorf("before the move: got %v, complete %t; want %d", got, complete, ann)
	}
	pgtest.Query(t, address, moved)
	if _, _, complete := since(second); complete {
		t.Error("with a mark of the other worker: got a complete answer, want an incomplete one")
	}
	third := mark()
	ben := add("ben")
	if got, _, complete := since(third); !complete || !slices.Equal(got, []int64{ben}) {
		t.Errorf("after the move: got %v, complete %t; want %d", got, complete, ben)
	}
}

// An upgrade changes tables that are already on a worker.
func TestASchemaOnAWorkerCanBeMigrated(t *testing.T) {
	d, address := openOnCitus(t)
	pgtest.Altered(address)
	err := d.Write(t.Context(), func(tx db.Tx) error {
		if err := tx.(*postgres.Tx).ExecScript(`
			SET LOCAL citus.enable_unsafe_triggers = on; -- as a migration does; with a comment;
			CREATE TABLE later (id bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY, uid text NOT NULL DEFAULT 'a;b');
			ALTER TABLE memory ADD COLUMN later bigint NOT NULL DEFAULT 0;
			CREATE INDEX memory_later ON memory (later);
			CREATE FUNCTION later_added() RETURNS trigger LANGUAGE plpgsql AS $$
			BEGIN
				INSERT INTO later (uid) VALUES (NEW.uid);
				RETURN NULL;
			END $$;
			CREATE TRIGGER later_added AFTER INSERT ON memory FOR EACH ROW EXECUTE FUNCTION later_added();
			ALTER FUNCTION later_added() SET search_path = ` + pgtest.SchemaOf(address)); err != nil {
			return err
		}
		_, err := addMemory(tx, "ann")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := pgtest.Query(t, address, `SELECT uid FROM later`); !slices.Equal(got, []string{"ann"}) {
		t.Errorf("what the new trigger wrote: got %v, want [ann]", got)
	}
}
