package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
)

func TestTheSecondRunRemembersTheFirst(t *testing.T) {
	file := filepath.Join(t.TempDir(), "agent.db")
	for _, session := range []struct{ in, out string }{
		{
			"Who is my dentist?\nMy dentist is Dr. Brandt.\n\nThe server key lies under the blue pot.\nWho is my dentist?\n",
			`you:   Who is my dentist?
agent: I don't know yet.
you:   My dentist is Dr. Brandt.
agent: I'll keep that in mind.
you:   
you:   The server key lies under the blue pot.
agent: I'll keep that in mind.
you:   Who is my dentist?
agent: You told me: My dentist is Dr. Brandt.
you:   
`},
		{
			"Where is the server key?\nMy dentist is Dr. Lindqvist.\nWho is my dentist?\n",
			`you:   Where is the server key?
agent: You told me: The server key lies under the blue pot.
you:   My dentist is Dr. Lindqvist.
agent: I'll keep that in mind.
you:   Who is my dentist?
agent: You told me: My dentist is Dr. Lindqvist.
you:   
`},
	} {
		var out bytes.Buffer
		if err := run(t.Context(), file, strings.NewReader(session.in), &out); err != nil {
			t.Fatal(err)
		}
		if out.String() != session.out {
			t.Errorf("it prints\n%s\nwant\n%s", out.String(), session.out)
		}
	}
}
