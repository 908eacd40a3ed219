package web

// Question is asked before something is done, in a page's own words.
type Question struct {
	ID     string // of its heading
	Title  string
	Text   string
	Action string // path of the form
	Kept   []Fact // the fields of the form
	Button string
	Back   string // path of the page to which Cancel leads
}

// QuestionPage is a page that asks, and does nothing else.
type QuestionPage struct {
	Asks *Question
}

// Fact is something that is known, by its name.
type Fact struct{ Key, Value string }

// Option is a choice of a select.
type Option struct {
	Value, Label string
	Chosen       bool
}

// Choices makes options of values and their labels, and adds the chosen value if it is none of them.
func Choices(chosen string, pairs ...string) []Option {
	var all []Option
	known := false
	for i := 0; i+1 < len(pairs); i += 2 {
		all = append(all, Option{pairs[i], pairs[i+1], pairs[i] == chosen})
		known = known || pairs[i] == chosen
	}
	if !known {
		all = append(all, Option{chosen, chosen, true})
	}
	return all
}
