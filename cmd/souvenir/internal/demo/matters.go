package demo

import (
	_ "embed" // for the matters
	"fmt"
	"strconv"
	"strings"

	"github.com/souvenir-ai/souvenir"
)

// mattersText holds the notes that clients made on some matters over the weeks. A line that begins with # begins a
// matter and has its project, which may be empty, its tags and its type. Each other line is a memory, after its day.
//
//go:embed matters.txt
var mattersText string

// matters returns those memories by day.
func matters() (map[int][]souvenir.NewMemory, error) {
	byDay := map[int][]souvenir.NewMemory{}
	var about souvenir.NewMemory
	for line := range strings.Lines(mattersText) {
		line = strings.TrimSuffix(line, "\n")
		if heading, ok := strings.CutPrefix(line, "# "); ok {
			parts := strings.Split(heading, " ")
			if len(parts) != 3 {
				return nil, fmt.Errorf("demo: a matter begins with %q; expected a project, tags and a type", line)
			}
			about = souvenir.NewMemory{ProjectName: parts[0], Tags: strings.Split(parts[1], ","), EventType: parts[2]}
			continue
		}
		if line == "" {
			continue
		}
		number, content, _ := strings.Cut(line, " ")
		day, err := strconv.Atoi(number)
		if err != nil || day < 0 || day >= days-1 {
			return nil, fmt.Errorf("demo: a memory begins with %q; expected a day from 0 to %d", number, days-2)
		}
		m := about
		m.Content = content
		byDay[day] = append(byDay[day], m)
	}
	return byDay, nil
}
