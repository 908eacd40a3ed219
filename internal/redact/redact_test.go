package redact

import (
	"fmt"
	"testing"
)

type secret struct {
	Name, Value string
	Tries       int
}

func (s secret) Format(f fmt.State, _ rune) { Format(f, s, "Value") }

func TestSecretsAreHiddenFromEveryVerb(t *testing.T) {
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d"} {
		if got, want := fmt.Sprintf(verb, secret{"ann", "s3cret", 2}), "{Name:ann Value:[hidden] Tries:2}"; got != want {
			t.Errorf("%s prints %s, want %s", verb, got, want)
		}
	}
	if got, want := fmt.Sprint(secret{Name: "ann"}), "{Name:ann Value: Tries:0}"; got != want {
		t.Errorf("without a secret it prints %s, want %s", got, want)
	}
}
