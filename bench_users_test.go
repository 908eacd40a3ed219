package souvenir_test

import (
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir"
)

// BenchmarkCheckToken measures the check of the MCP token of a request.
func BenchmarkCheckToken(b *testing.B) {
	store := openBench(b, 100)
	if _, err := store.Accounts().AddUser(b.Context(), souvenir.NewUser{ID: "ann", Name: "ann"}); err != nil {
		b.Fatal(err)
	}
	var value string
	for range 100 {
		added, err := store.Accounts().AddToken(b.Context(), souvenir.NewToken{Name: "x", User: "ann"})
		if err != nil {
			b.Fatal(err)
		}
		value = added.Value
	}
	var took []time.Duration
	for b.Loop() {
		start := time.Now()
		_, err := store.Accounts().CheckToken(b.Context(), value)
		took = append(took, time.Since(start))
		if err != nil {
			b.Fatal(err)
		}
	}
	reportMedian(b, took)
}

// BenchmarkCheckSession measures the check of the session of a browser's request.
func BenchmarkCheckSession(b *testing.B) {
	store := openBench(b, 100)
	var value string
	for _, name := range []string{"ann", "ben", "carol"} {
		if _, err := store.Accounts().AddUser(b.Context(), souvenir.NewUser{Name: name}); err != nil {
			b.Fatal(err)
		}
		for range 100 {
			added, err := store.Accounts().AddSignIn(b.Context(), souvenir.NewSignIn{User: name})
			if err != nil {
				b.Fatal(err)
			}
			value = added.Value
		}
	}
	var took []time.Duration
	for b.Loop() {
		start := time.Now()
		_, err := store.Accounts().CheckSignIn(b.Context(), value)
		took = append(took, time.Since(start))
		if err != nil {
			b.Fatal(err)
		}
	}
	reportMedian(b, took)
}

// BenchmarkCheckPassword measures the check of a password, which is slow on purpose.
func BenchmarkCheckPassword(b *testing.B) {
	store := openBench(b, 1)
	if _, err := store.Accounts().AddUser(b.Context(),
		souvenir.NewUser{Name: "ann", Password: "right password"}); err != nil {
		b.Fatal(err)
	}
	var took []time.Duration
	for b.Loop() {
		start := time.Now()
		_, err := store.Accounts().CheckPassword(b.Context(), souvenir.Credentials{Name: "ann", Password: "right password"})
		took = append(took, time.Since(start))
		if err != nil {
			b.Fatal(err)
		}
	}
	reportMedian(b, took)
}
