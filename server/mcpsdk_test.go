package server

import (
	"os"
	"strings"
	"testing"
)

// The texts of mcpsdk.go are those of one version of the SDK; the scenarios of the messages hold them to it.
func TestTheTextsOfTheSDKAreThoseOfItsVersion(t *testing.T) {
	required, err := os.ReadFile("../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(required), "github.com/modelcontextprotocol/go-sdk "+sdkVersion+"\n") {
		t.Errorf("go.mod requires another version of the SDK than %s: look at each text in mcpsdk.go anew, and at what the "+
			"SDK says now", sdkVersion)
	}
}
