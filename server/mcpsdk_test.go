package server

import (
	"os"
	"strings"
	"testing"
)

// The texts in mcpsdk.go match one version of the SDK; the scenarios of the messages check them.
func TestTheTextsOfTheSDKAreThoseOfItsVersion(t *testing.T) {
	required, err := os.ReadFile("../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(required), "github.com/modelcontextprotocol/go-sdk "+sdkVersion+"\n") {
		t.Errorf("go.mod requires another version of the SDK than %s: review the texts in mcpsdk.go, and whether "+
			"mcparguments.go and mcpserver/linemessage.go are still needed, want %q in the required", sdkVersion,
			"github.com/modelcontextprotocol/go-sdk "+sdkVersion+"\n")
	}
}
