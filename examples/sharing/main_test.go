package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestTwoPeopleAndAnAgentSeeWhatIsSharedWithThem(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	const want = `Ben, before: What is planned for the boat?
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
	if strings.TrimSpace(out.String()) != want {
		t.Errorf("it prints\n%s\nwant\n%s", out.String(), want)
	}
}
