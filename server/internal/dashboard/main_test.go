package dashboard_test

import (
	"os"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/postgres/pgtest"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Drop(longtest.MainWithCheapPasswords(m))) }
