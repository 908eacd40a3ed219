package systemtest

import (
	"os"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/longtest"
	"github.com/souvenir-ai/souvenir/internal/passwords"
)

// Passwords cost what they do in use only in the long form; internal/passwords looks at the cost itself.
func TestMain(m *testing.M) {
	if !longtest.On() {
		passwords.CheapForTests()
	}
	os.Exit(longtest.Main(m))
}
