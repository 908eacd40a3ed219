package systemtest

import (
	"fmt"
	"os"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/postgres/pgtest"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

func TestMain(m *testing.M) {
	if where := os.Getenv(serverVariable); where != "" {
		if err := serveHistory(where); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if encoded := os.Getenv(jobVariable); encoded != "" {
		if err := runJob(encoded); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(pgtest.Drop(longtest.MainWithCheapPasswords(m)))
}
