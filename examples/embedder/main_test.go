package main

import (
	"bytes"
	"net/http"
	"testing"
)

func TestMemoriesAreFoundByWordsAtOnceAndByMeaningWhenTheServiceIsUp(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), remote{model: "stand-in", dimensions: concepts, client: http.DefaultClient},
		&out); err != nil {
		t.Fatal(err)
	}
	const want = `stored "Anna cannot eat peanuts.", found by meaning already: false
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
	if out.String() != want {
		t.Errorf("it prints\n%s\nwant\n%s", out.String(), want)
	}
}
