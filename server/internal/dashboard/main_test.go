package dashboard_test

import (
	"os"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/longtest"
	"github.com/souvenir-ai/souvenir/internal/postgres/pgtest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Drop(longtest.MainWithCheapPasswords(m))) }
