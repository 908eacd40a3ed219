package demo

import (
	"image/png"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/documents"
)

// The clients' memories are spread over the weeks, in three projects and outside, without repetition.
func TestMattersTellAStory(t *testing.T) {
	byDay, err := matters()
	if err != nil {
		t.Fatal(err)
	}
	projects, said := map[string]int{}, map[string]bool{}
	for day, memories := range byDay {
		for _, m := range memories {
			projects[m.ProjectName]++
			if len(m.Content) < 20 || said[m.Content] || m.EventType == "" || len(m.Tags) == 0 {
				t.Errorf("day %d: %+v is short, said twice, or without a type or tags; want it long, new, with a type and "+
					"tags", day, m)
			}
			said[m.Content] = true
		}
	}
	if len(byDay) < days/2 || len(projects) < 3 || len(said) < 100 {
		t.Errorf("got %d memories on %d days in the projects %v; want 100 on half of %d days in 3", len(said), len(byDay),
			projects, days)
	}
}

// The files of the demonstration are valid, so that searches find them and pages show them.
func TestFilesOfTheDemonstrationAreRead(t *testing.T) {
	plan, err := deckPlan()
	if err == nil {
		_, err = png.Decode(plan)
	}
	if err != nil {
		t.Errorf("the plan of the deck is no picture: %v", err)
	}
	for name, file := range map[string][3]string{"standby.eml": {"message/rfc822", standbyMail, "standby"},
		"group.html": {"text/html", groupBookings, "Group bookings"}} {
		read, err := documents.New(nil).ReadDocument(t.Context(), souvenir.Document{Filename: name, MIMEType: file[0],
			Size: int64(len(file[1])), Content: strings.NewReader(file[1])})
		if err != nil || !strings.Contains(read.Text, file[2]) {
			t.Errorf("%s says %q (%v), want %q in it", name, read.Text, err, file[2])
		}
	}
}
