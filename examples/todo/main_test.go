package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestTheNextSessionFindsTheLastOnesState(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	const want = `The plan is stored. 0 of 4 tasks are done; open:
  T1 Measure the movement
  T2 Write the stepper driver
  T3 Let the hands find midnight after a power cut
  T12 Cut the dial

ticked off: T1 Measure the movement

ticked off: T2 Write the stepper driver

The session ends. 2 of 4 tasks are done; open:
  T3 Let the hands find midnight after a power cut
  T12 Cut the dial

T7: TaskRef.TaskID "T7" is not among the tasks; there are T3, T2, T12, T1

The next session begins.
rule: Don't add a dependency without asking.
gaps:
- Nobody said how the chime sounds at night.`
	if strings.TrimSpace(out.String()) != want {
		t.Errorf("it prints\n%s\nwant\n%s", out.String(), want)
	}
}
