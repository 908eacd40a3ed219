package questions

import (
	"fmt"
	"strings"
)

// texts is the content of a file of texts/: what memories and questions of one language are made of. Its lines are
// "key: value"; # begins a comment.
//
//	projects, people   names, with | between them, that frames put for {x}, and fillers for {p} and {p2}
//	syllables          beginnings / middles / ends of further names
//	aside              a sentence that may follow what a memory says
//	frame              a category and the names for {x}. m: a wording of the memory; q: the question; y: what {y} may be
//	identifier         a kind of identifier. m, q, y as in a frame, with {id}
//	paraphrase         m: a memory; n: one that is near and answers nothing; q: a question that shares no word with m
//	unanswerable       q: a question that nothing answers
//	dialogue           turns, "Name: text"; the one that begins with * answers q
//	filler             a sentence of a long text, which answers nothing
type texts struct {
	language    string
	names       map[string][]string // projects and people
	syllables   [3][]string
	asides      []string
	frames      []frame
	identifiers []frame
	paraphrases []paraphrase
	unanswered  []string
	dialogues   []dialogue
	fillers     []string
}

// frame makes memories of one form, which differ in who or what they are about.
type frame struct {
	category string // or the kind of identifier
	subjects string // projects or people
	wordings []string
	question string
	values   []string
}

type paraphrase struct{ memory, near, question string }

type dialogue struct {
	turns    []turn
	question string
}

type turn struct {
	speaker, text string
	answer        bool
}

func parse(language, content string) (texts, error) {
	t := texts{language: language, names: map[string][]string{}}
	section := ""
	for i, line := range strings.Split(content, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		key, value, found := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		if !found {
			return t, fmt.Errorf("%s, line %d: %q has no colon", language, i+1, line)
		}
		if opened, err := t.open(key, value); err != nil {
			return t, fmt.Errorf("%s, line %d: %w", language, i+1, err)
		} else if opened {
			section = key
			continue
		}
		if err := t.add(section, key, value); err != nil {
			return t, fmt.Errorf("%s, line %d: %w", language, i+1, err)
		}
	}
	return t, nil
}

// open reads a line outside of a section, or one that begins a section.
func (t *texts) open(key, value string) (bool, error) {
	switch key {
	case "projects", "people":
		t.names[key] = strings.Split(value, "|")
	case "syllables":
		parts := strings.Split(value, "/")
		if len(parts) != 3 {
			return false, fmt.Errorf("syllables have %d parts; expected three", len(parts))
		}
		for i, p := range parts {
			t.syllables[i] = strings.Split(strings.TrimSpace(p), "|")
		}
	case "aside":
		t.asides = append(t.asides, value)
	case "filler":
		t.fillers = append(t.fillers, value)
	case "frame":
		category, subjects, _ := strings.Cut(value, ", ")
		if t.names[subjects] == nil {
			return false, fmt.Errorf("frame %q names no list of subjects", value)
		}
		t.frames = append(t.frames, frame{category: category, subjects: subjects})
	case "identifier":
		t.identifiers = append(t.identifiers, frame{category: value})
	case "dialogue":
		t.dialogues = append(t.dialogues, dialogue{})
	case "paraphrase", "unanswerable":
	default:
		return false, nil
	}
	return true, nil
}

// add reads a line of a section.
func (t *texts) add(section, key, value string) error {
	switch section {
	case "frame":
		return t.frames[len(t.frames)-1].add(key, value)
	case "identifier":
		return t.identifiers[len(t.identifiers)-1].add(key, value)
	case "unanswerable":
		if key == "q" {
			t.unanswered = append(t.unanswered, value)
			return nil
		}
	case "paraphrase":
		if key == "m" {
			t.paraphrases = append(t.paraphrases, paraphrase{memory: value})
			return nil
		}
		if len(t.paraphrases) == 0 {
			return fmt.Errorf("%q stands before the memory of its paraphrase", key)
		}
		if last := &t.paraphrases[len(t.paraphrases)-1]; key == "n" {
			last.near = value
			return nil
		} else if key == "q" {
			last.question = value
			return nil
		}
	case "dialogue":
		last := &t.dialogues[len(t.dialogues)-1]
		if key == "q" {
			last.question = value
			return nil
		}
		speaker, answer := strings.CutPrefix(key, "*")
		last.turns = append(last.turns, turn{speaker, value, answer})
		return nil
	}
	return fmt.Errorf("%q is unknown in the section %q", key, section)
}

func (f *frame) add(key, value string) error {
	switch key {
	case "m":
		f.wordings = append(f.wordings, value)
	case "q":
		f.question = value
	case "y":
		f.values = strings.Split(value, "|")
	default:
		return fmt.Errorf("%q is unknown in a frame", key)
	}
	return nil
}
