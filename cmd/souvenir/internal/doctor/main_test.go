package doctor_test

import (
	"os"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/longtest"
	"github.com/souvenir-ai/souvenir/internal/passwords"
)

func TestMain(m *testing.M) {
	if !longtest.On() {
		passwords.CheapForTests()
	}
	os.Exit(longtest.Main(m))
}
