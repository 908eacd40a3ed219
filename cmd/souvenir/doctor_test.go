package main

import (
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir/cmd/souvenir/internal/doctor"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

func TestDoctor(t *testing.T) {
	c := newStore(t)
	token := strings.TrimSpace(c.ok(t, "token", "add", "--user", "anna", "--name", "doctor"))
	p := c.start(t, "serve", "--listen", "127.0.0.1:0")
	well := call{dir: c.dir, env: []string{"SOUVENIR_TOKEN=" + token}}.ok(t, "doctor", p.url)
	for line := range strings.Lines(well) {
		if !strings.HasPrefix(line, "ok       ") {
			t.Errorf("%q, want at its start \"ok       \"", line)
		}
	}
	if !strings.Contains(well, "call one") || !strings.Contains(well, "can register") || strings.Contains(well, token) {
		t.Errorf(`got %v, want "call one", "can register" and no %q in it`, well, token)
	}
	if got := c.ok(t, "doctor", p.url, "--no-register"); strings.Contains(got, "can register") {
		t.Errorf(`got %v, want no "can register" in it`, got)
	}
	type report struct {
		URL      string
		Findings []doctor.Finding
	}
	if got := decode[report](t, c.ok(t, "doctor", p.url, "--json")); got.URL != p.url || len(got.Findings) < 10 ||
		got.Findings[0].Level != doctor.OK {
		t.Errorf("got %+v, want URL %v, at least 10 findings and level %v", got, p.url, doctor.OK)
	}
	if !longtest.On() {
		return
	}
	// Clients are lost under another name than the server's own.
	other := strings.Replace(p.url, "127.0.0.1", "localhost", 1)
	o := c.run(t, "doctor", other)
	if o.code != exitError || o.stderr != "" || !strings.Contains(o.stdout, "\nproblem  metadata ") ||
		!strings.Contains(o.stdout, "--public-url") {
		t.Errorf("got %+v, want a problem of the metadata that names --public-url", o)
	}
	if o := c.run(t, "doctor", other, "--json"); o.code != exitError || !strings.Contains(o.stdout, `"level": "problem"`) {
		t.Errorf(`got %+v, want code %v and "level": "problem" in the stdout`, o, exitError)
	}
	p.stop(t)
	if o := c.run(t, "doctor", p.url); o.code != exitError || !strings.HasPrefix(o.stdout, "problem  reach ") {
		t.Errorf(`got %+v, want code %v and "problem  reach " at the beginning of the stdout`, o, exitError)
	}
}
