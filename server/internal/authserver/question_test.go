package authserver

import (
	"crypto/sha256"
	"fmt"
	"testing"
	"time"
)

var began = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func TestAQuestionIsAnsweredOnceInItsTime(t *testing.T) {
	question, other := sha256.Sum256([]byte("question")), sha256.Sum256([]byte("other"))
	var c questions
	nonce := c.add("browser", question, began)
	for name, taken := range map[string]bool{
		"another nonce":    c.take("nonce", "browser", question, began),
		"no nonce":         c.take("", "browser", question, began),
		"another browser":  c.take(nonce, "elsewhere", question, began),
		"another question": c.take(nonce, "browser", other, began),
		"too late":         c.take(nonce, "browser", question, began.Add(consentLifetime)),
	} {
		if taken {
			t.Errorf("%s was accepted, want it refused", name)
		}
	}
	if !c.take(nonce, "browser", question, began.Add(consentLifetime-time.Second)) {
		t.Error("the right one was not taken")
	}
	if c.take(nonce, "browser", question, began) {
		t.Error("it was accepted twice, want once")
	}
}

func TestOpenQuestionsAreBounded(t *testing.T) {
	question := sha256.Sum256([]byte("question"))
	var c questions
	first := c.add("patient", question, began)
	for range 10_000 {
		c.add("hasty", question, began)
	}
	if len(c.open) != 1+maxOpenConsents {
		t.Errorf("%d are open, want %v", len(c.open), 1+maxOpenConsents)
	}
	if !c.take(first, "patient", question, began) {
		t.Error("one browser drives out the question of another, want it kept")
	}
	for i := range 2 * maxConsents {
		c.add(fmt.Sprint("browser ", i), question, began)
	}
	if len(c.open) != maxConsents {
		t.Errorf("%d are open, want %v", len(c.open), maxConsents)
	}
	last := c.add("last", question, began.Add(consentLifetime))
	if len(c.open) != 1 || !c.take(last, "last", question, began.Add(consentLifetime)) {
		t.Errorf("of those that are too old %d are left, want only the last one, and it accepted", len(c.open)-1)
	}
}
