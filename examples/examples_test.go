// Package examples_test runs the examples that are commands with a fixed output, as a reader does.
package examples_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

// run is one run of an example: its input and output.
type run struct{ in, out string }

// An example with its own tests would need its own test binary, which links the whole store, so these share one. They
// are linked and run in the long form, and one of them with -short. go test compiles and vets all.
func TestExamplesPrintWhatTheyPromise(t *testing.T) {
	longtest.Only(t)
	examples := map[string][]run{
		"agent":    {{dentistIn, dentistOut}, {keyIn, keyOut}}, // the second run remembers the first
		"embedder": {{"", embedderOut}},
		"sharing":  {{"", sharingOut}},
		"todo":     {{"", todoOut}},
	}
	for _, name := range longtest.Keys(examples, len(examples), 1) {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			program := filepath.Join(folder, name)
			build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./"+name)
			if out, err := build.CombinedOutput(); err != nil {
				t.Fatalf("go build: %v\n%s", err, out)
			}
			var arguments []string
			if name == "agent" {
				arguments = []string{filepath.Join(folder, "agent.db")}
			}
			for _, run := range examples[name] {
				cmd := exec.CommandContext(t.Context(), program, arguments...)
				cmd.Stdin = strings.NewReader(run.in)
				out, err := cmd.CombinedOutput()
				if got, want := strings.TrimSpace(string(out)), strings.TrimSpace(run.out); err != nil || got != want {
					t.Errorf("got %v and the output\n%s\nwant\n%s", err, got, want)
				}
			}
		})
	}
}

const dentistIn = `Who is my dentist?
My dentist is Dr. Brandt.

The server key lies under the blue pot.
Who is my dentist?
`

const dentistOut = `you:   Who is my dentist?
agent: I don't know yet.
you:   My dentist is Dr. Brandt.
agent: I'll keep that in mind.
you:   
you:   The server key lies under the blue pot.
agent: I'll keep that in mind.
you:   Who is my dentist?
agent: You told me: My dentist is Dr. Brandt.
you:   
`

const keyIn = `Where is the server key?
My dentist is Dr. Lindqvist.
Who is my dentist?
`

const keyOut = `you:   Where is the server key?
agent: You told me: The server key lies under the blue pot.
you:   My dentist is Dr. Lindqvist.
agent: I'll keep that in mind.
you:   Who is my dentist?
agent: You told me: My dentist is Dr. Lindqvist.
you:   
`

const embedderOut = `stored "Anna cannot eat peanuts.", found by meaning already: false
stored "The train to Bergen leaves at 8:05 from platform 3.", found by meaning already: false
stored "Ben plays the cello in a quartet.", found by meaning already: false

railway peanuts?
  Anna cannot eat peanuts. (meaning 0.00, words 0.83)
  by words only for now

The service answers now. What waited is embedded in the background.

railway departure?
  The train to Bergen leaves at 8:05 from platform 3. (meaning 1.00, words 0.00)

food allergy?
  Anna cannot eat peanuts. (meaning 1.00, words 0.00)

musical instruments?
  Ben plays the cello in a quartet. (meaning 1.00, words 0.00)
`

const sharingOut = `Ben, before: What is planned for the boat?
  nothing that can be seen

Ben, invited: What is planned for the boat?
  nothing that can be seen

Ben: What is planned for the boat?
  The boat gets a new mast in April. (by anna)
  The sailmaker wants a third of the price in advance. (by anna)

Anna: Which wood was ordered for the mast?
  The mast is ordered, of spruce; it comes by lorry. (by anna)
  The boat gets a new mast in April. (by anna)

Ben: What is my birthday present?
  The sailmaker wants a third of the price in advance. (by anna)
  The boat gets a new mast in April. (by anna)

Anna's agent: What is Ben's birthday present?
  The sailmaker wants a third of the price in advance. (by anna)
  The boat gets a new mast in April. (by anna)

Anna's agent, storing: this view of the store is read-only

Ben, afterwards: What is planned for the boat?
  nothing that can be seen`

const todoOut = `The plan is stored. 0 of 4 tasks are done; open:
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
