package server_test

import (
	"os"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/longtest"
)

func TestMain(m *testing.M) { os.Exit(longtest.MainWithCheapPasswords(m)) }
