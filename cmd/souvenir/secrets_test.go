package main

import (
	"testing"

	"github.com/souvenir-ai/souvenir"
)

func TestSecretsAreTreatedAsAsked(t *testing.T) {
	const secret = "AKIA" + "Y7QW3ERTU5OPASDF"
	for mode, want := range map[string]string{"flag": "use " + secret, "mask": "use [secret: aws-access-token]"} {
		o := &souvenir.Options{}
		if err := treatSecrets(o, mode); err != nil || len(o.Hooks) != 1 {
			t.Fatalf("%s: got %v, %v, want hooks", mode, o.Hooks, err)
		}
		m := souvenir.NewMemory{Content: "use " + secret}
		if err := o.Hooks[0].BeforeStore(t.Context(), souvenir.Operation{}, &m); err != nil || m.Content != want {
			t.Errorf("%s: got %q, %v, want %q", mode, m.Content, err, want)
		}
	}
	off := &souvenir.Options{}
	if err := treatSecrets(off, "off"); err != nil || off.Hooks != nil {
		t.Errorf("off: got %v, %v, want none", off.Hooks, err)
	}
	newStore(t).fails(t, exitUsage, "--secrets", "serve", "--secrets", "hide")
	newStore(t).fails(t, exitUsage, "--secrets", "mcp", "--user", "anna", "--secrets", "hide")
}
