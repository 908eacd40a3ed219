package web

// Question asks for confirmation of an action, in a page's own words.
type Question struct {
	ID     string // of its heading
	Title  string
	Text   string
	Facts  []Fact // what it is about, in numbers
	Action string // path of the form
	Kept   []Fact // the fields of the form
	Button string
	Back   string // path of the page for Cancel
}

// QuestionPage is the data of a page that only asks a question.
type QuestionPage struct {
	Asks *Question
}

// Fact is a named value.
type Fact struct{ Key, Value string }

// Option is an option of a select.
type Option struct {
	Value, Label string
	Chosen       bool
}

// Choices builds options from values and their labels, and adds the chosen value if it is missing.
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
