package mcpserver_test

import (
	"os"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

func TestMain(m *testing.M) { os.Exit(longtest.Main(m)) }
