package server_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir/server"
	"github.com/souvenir-ai/souvenir/server/internal/servertest"
)

// Each endpoint reads the members of its body that the document describes: one with a wrong type is refused by name.
func TestDescribedMembersOfBodiesAreRead(t *testing.T) {
	w := servertest.New(t, server.Options{})
	checked := 0
	for path, methods := range servertest.ReadDocument(t, w).Paths {
		for method, operation := range methods {
			body, _ := operation.RequestBody.Content["application/json"].Schema.(map[string]any)
			members, _ := body["properties"].(map[string]any)
			for name := range members {
				checked++
				at := strings.NewReplacer("{id}", "x", "{user}", "x").Replace(path)
				given := `{"` + name + `": [[1]]}`
				if name == "arguments" { // a tool reads these
					given = `{"name": "memory", "arguments": [[1]]}`
				}
				w.Do(servertest.Admin, strings.ToUpper(method), at, given).Expect(http.StatusBadRequest, name)
			}
		}
	}
	if checked < 30 {
		t.Errorf("only %d members were sent, want at least 30", checked)
	}
}
