package main

import (
	"testing"

	"github.com/souvenir-ai/souvenir"
)

func TestSecretsAreTreatedAsAsked(t *testing.T) {
	const secret = "AKIA" + "Y7QW3ERTU5OPASDF"
	for mode, want := range map[string]string{"flag": "use " + secret, "mask": "use [secret: aws-access-token]"} {
		hooks, err := secretHooks(mode)
		if err != nil || len(hooks) != 1 {
			t.Fatalf("%s: got %v, %v, want hooks", mode, hooks, err)
		}
		m := souvenir.NewMemory{Content: "use " + secret}
		if err := hooks[0].BeforeStore(t.Context(), souvenir.Operation{}, &m); err != nil || m.Content != want {
			t.Errorf("%s: got %q, %v, want %q", mode, m.Content, err, want)
		}
	}
	if hooks, err := secretHooks("off"); err != nil || hooks != nil {
		t.Errorf("off: got %v, %v, want none", hooks, err)
	}
	newStore(t).fails(t, exitUsage, "--secrets", "serve", "--secrets", "hide")
	newStore(t).fails(t, exitUsage, "--secrets", "mcp", "--user", "anna", "--secrets", "hide")
}
