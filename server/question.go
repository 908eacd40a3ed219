package server

// question is asked before something is done, in a page's own words.
type question struct {
	ID     string // of its heading
	Title  string
	Text   string
	Action string // path of the form
	Kept   []fact // the fields of the form
	Button string
	Back   string // path of the page to which Cancel leads
}

// asksPage is a page that asks, and does nothing else.
type asksPage struct {
	Asks *question
}

// fact is something that is known, by its name.
type fact struct{ Key, Value string }

// option is a choice of a select.
type option struct {
	Value, Label string
	Chosen       bool
}

// choices makes options of values and their labels, and adds the chosen value if it is none of them.
func choices(chosen string, pairs ...string) []option {
	var all []option
	known := false
	for i := 0; i+1 < len(pairs); i += 2 {
		all = append(all, option{pairs[i], pairs[i+1], pairs[i] == chosen})
		known = known || pairs[i] == chosen
	}
	if !known {
		all = append(all, option{chosen, chosen, true})
	}
	return all
}
