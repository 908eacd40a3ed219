package postgres_test

import (
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/postgres"
	"github.com/souvenir-ai/souvenir/internal/postgres/pgtest"
)

// A commit that changes memories wakes the other handles on the schema, also after a cut connection, and no others.
func TestACommitWakesTheOthersOnTheSchema(t *testing.T) {
	address := pgtest.Address(t)
	proxy := pgtest.NewProxy(t, address)
	open := func(address string) (d *postgres.DB, woken chan struct{}) {
		d, err := postgres.Open(t.Context(), address, db.Opening{Readers: 2})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = d.Close() })
		woken = make(chan struct{}, 100)
		d.Follow(func() { woken <- struct{}{} })
		<-woken // it listens
		return d, woken
	}
	one, own := open(address)
	_, other := open(proxy.Address)
	_, stranger := open(pgtest.Address(t))
	write := func(statement string, args ...any) {
		t.Helper()
		if err := one.Write(t.Context(), func(tx db.Tx) error {
			_, err := tx.Exec(statement, args...)
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	write(`INSERT INTO change (memory_id) VALUES (?)`, 1)
	<-other
	if n := postgres.Cut(one); n == 0 {
		t.Error("connections that listen: got none to cut, want some")
	}
	<-other // it listens again
	write(`INSERT INTO change (memory_id) VALUES (?)`, 2)
	<-other
	time.Sleep(time.Second / 2) // until the reconnected ones have been greeted
	for _, woken := range []chan struct{}{own, other, stranger} {
		for len(woken) > 0 {
			<-woken
		}
	}
	write(`INSERT INTO setting (key, value) VALUES ('other', ?)`, 1)
	time.Sleep(time.Second / 4)
	if got := []int{len(own), len(other), len(stranger)}; got[0]+got[1]+got[2] != 0 {
		t.Errorf("calls after a change of a setting: got %v, want none", got)
	}
	write(`INSERT INTO change (memory_id) VALUES (?)`, 3)
	<-other
	if got := []int{len(own), len(stranger)}; got[0]+got[1] != 0 {
		t.Errorf("calls of the writer itself, and of another schema: got %v, want none", got)
	}
}
