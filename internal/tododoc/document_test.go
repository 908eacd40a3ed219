package tododoc

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/fault"
)

var errInvalid, errNotFound = &fault.Error{Kind: fault.KindInvalid}, &fault.Error{Kind: fault.KindNotFound}

const goodTodo = `# Apollo

Notes before the sections.

## Constitution

Never ship on friday.

## Spec

What it does.

` + "```md\n## Tasks\n- [ ] T9 in code\n```" + `

## Plan

1. think
2. build

## Tasks

- [ ] T1 write the parser
  - [x] T2 read CommonMark
* [X] **T3**: choose names
+ [ ] [T12] test it
- [ ] no id here
- T4 no box

    ` + "```\n    - [ ] T5 in inner code\n    ```" + `

## Gaps

None yet.
`

func TestATodoDocumentIsTakenApart(t *testing.T) {
	d, err := Parse(goodTodo)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(goodTodo, "\n")
	for i, s := range d.Sections {
		if s.Section != Sections[i] || lines[s.Line-1] != s.Section.Heading() || goodTodo[s.Start:s.End] != s.Body {
			t.Errorf("section %d is %+v, want its heading and its text there", i, s)
		}
	}
	if got := d.Section(Plan).Body; got != "\n1. think\n2. build\n\n" {
		t.Errorf("the plan is %q, want %v", got, "\n1. think\n2. build\n\n")
	}
	if (d.Section("notes") != Part{}) || Section("").Heading() != "" {
		t.Error("an unknown section is something, want nothing")
	}
	var got []string
	for _, task := range d.Tasks {
		if !strings.Contains(lines[task.Line-1], task.ID) {
			t.Errorf("line %[2]d lacks task %[1]s, want it there", task.ID, task.Line)
		}
		done := " open "
		if task.Done {
			done = " done "
		}
		got = append(got, task.ID+done+task.Text)
	}
	want := []string{"T1 open write the parser", "T2 done read CommonMark", "T3 done choose names", "T12 open test it"}
	if !slices.Equal(got, want) {
		t.Errorf("tasks are %q, want %q", got, want)
	}
	if done, total := d.Progress(); done != 2 || total != 4 {
		t.Errorf("progress is %d of %d, want done 2 and total 4", done, total)
	}
	if len(d.unnamed) != 1 || !strings.Contains(lines[d.unnamed[0]-1], "no id here") {
		t.Errorf(`checkboxes without an id are on lines %v, want one line, with "no id here"`, d.unnamed)
	}
}

// five returns the five headings alone, some of them replaced.
func five(instead map[Section]string) string {
	var b strings.Builder
	for _, s := range Sections {
		heading, replaced := instead[s]
		if !replaced {
			heading = s.Heading()
		}
		b.WriteString(heading + "\n")
	}
	return b.String()
}

func TestHeadingsOfATodoAreThoseOfCommonMark(t *testing.T) {
	for name, content := range map[string]string{
		"plain":               five(nil),
		"no last line ending": strings.TrimSuffix(five(nil), "\n"),
		"CR LF":               strings.ReplaceAll(five(nil), "\n", "\r\n"),
		"CR":                  strings.ReplaceAll(five(nil), "\n", "\r"),
		"byte order mark":     "\ufeff" + five(nil),
		"indented":            five(map[Section]string{Plan: "   ## Plan"}),
		"spaces":              five(map[Section]string{Plan: "##\t Plan  "}),
		"closed":              five(map[Section]string{Plan: "## Plan ####  "}),
		"in a fence":          five(map[Section]string{Plan: "```\n## Plan\n```\n## Plan"}),
		"in tildes":           five(map[Section]string{Plan: "~~~ md `x`\n```\n## Plan\n~~\n ~~~~  \n## Plan"}),
		"in a longer fence":   five(map[Section]string{Plan: "  `````go\n```\n## Plan\n````\n``````\n## Plan"}),
		"a fence's info":      five(map[Section]string{Plan: "```\n``` no closing\n## Plan\n```\n## Plan"}),
		"no fence":            five(map[Section]string{Plan: "``` `x\n## Plan"}),
		"too far indented":    five(map[Section]string{Plan: "    ## Plan\n\t## Plan\n## Plan"}),
		"indented code fence": five(map[Section]string{Plan: "    ```\n## Plan"}),
		"other levels": five(
			map[Section]string{Plan: "# Spec\n### Plan\n####### Plan\n##Plan\n#hash\n\\## Plan\n## Plan"}),
		"in an item's fence": five(map[Section]string{Plan: "- ```sh\n  ## Plan\n  ~~~\n\n   ```\n## Plan"}),
		"behind that item":   five(map[Section]string{Plan: "1. * ~~~\n     ## Plan\n## Plan"}),
		"fence at the end":   five(map[Section]string{Gaps: "## Gaps\n```\n## Gaps"}),
	} {
		if _, err := Parse(content); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestInvalidTodosAreRefusedWithHelp(t *testing.T) {
	for _, c := range []struct {
		name, content string
		says          []string
	}{
		{"nothing", "", []string{`missing: "## Constitution", "## Spec", "## Plan", "## Tasks", "## Gaps"`, "in this order"}},
		{"all that is missing", "## Spec\n## Tasks\n", []string{`missing: "## Constitution", "## Plan", "## Gaps"`}},
		{"another case", five(map[Section]string{Tasks: "## tasks"}),
			[]string{`line 4 is "## tasks", which must read "## Tasks"`}},
		{"punctuation", five(map[Section]string{Tasks: "## **Tasks:**"}),
			[]string{`line 4 is "## **Tasks:**", which must read "## Tasks"`}},
		{"another level", five(map[Section]string{Tasks: "### Tasks"}),
			[]string{`missing: "## Tasks" (line 4 is "### Tasks", which must read "## Tasks")`}},
		{"no space", five(map[Section]string{Tasks: "##Tasks"}), []string{`"## Tasks" (line 4 is "##Tasks", which`}},
		{"underlined", five(map[Section]string{Tasks: "Tasks\n-----"}),
			[]string{`"## Tasks" (line 4 is "Tasks", which must`}},
		{"twice", five(map[Section]string{Tasks: "## Tasks\n## Tasks"}),
			[]string{`"## Tasks" is on line 4 and again on line 5`}},
		{"order", five(map[Section]string{Spec: "## Plan", Plan: "## Spec"}),
			[]string{`"## Spec" on line 3 must come before "## Plan" on line 2`}},
		{"an extra section", five(map[Section]string{Gaps: "## Notes\n## Gaps"}),
			[]string{`line 5 is "## Notes"`, "not one of the five", "three #"}},
		{"before all", "## Intro\n" + five(nil), []string{`line 1 is "## Intro"`}},
		{"no text", "##\n" + five(nil), []string{`line 1 is "##"`}},
		{"swallowed by a fence", five(map[Section]string{Tasks: "text\n```sh\n## Tasks"}),
			[]string{`"## Tasks" (line 6 is in the fenced code that line 5 begins)`, `"## Gaps" (line 7 is`}},
		{"the same task twice", five(map[Section]string{Tasks: "## Tasks\n- [ ] T7 a\n- [x] T17 b\n * [x] t7: c"}),
			[]string{"lines 5 and 7 are both the task t7"}},
		{"many mistakes", strings.Repeat("## x\n", 50), []string{"and 43 more"}},
	} {
		_, err := Parse(c.content)
		var known *fault.Error
		if !errors.Is(err, errInvalid) || !errors.As(err, &known) || known.Argument != "content" {
			t.Errorf("%s: got %v, want an error about content", c.name, err)
			continue
		}
		for _, part := range c.says {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: the error says %q, want %q", c.name, err, part)
			}
		}
	}
}

func TestLongTaskIDsMakeNoLongErrors(t *testing.T) {
	task := "- [ ] T" + strings.Repeat("1", 100_000) + "\n"
	_, twice := Parse(five(map[Section]string{Tasks: "## Tasks\n" + task + task}))
	_, _, unknown := mustParse(t, five(map[Section]string{Tasks: "## Tasks\n" + task})).Complete("", "T2")
	for _, err := range []error{twice, unknown} {
		if err == nil || len(err.Error()) > 500 || !strings.Contains(err.Error(), "T1111") {
			t.Errorf(`got %.600v, want an error of at most 500 bytes with "T1111"`, err)
		}
	}
}

func TestOnlyWholeIDsAreTasks(t *testing.T) {
	for line, want := range map[string]string{
		"- [ ] T1 a": "T1", "-   [x]\tT001": "T001", "\t\t- [ ] t5 deep": "t5", "* [X] T2: b": "T2", "+ [ ] **T3.** c": "T3",
		"- [ ] `T4`) d": "T4", "- [ ] [T5] e": "T5",
		"- [ ] T1.2 a": "", "- [ ] T1a": "", "- [ ] T-1": "", "- [ ] T": "", "- [ ] 1": "", "- [ ] Task T1": "",
		"- [ ] T1-b": "", "- [ ] Tür": "",
		"- [ ]T1 a": "no task", "-[ ] T1": "no task", "- [] T1": "no task", "- [y] T1": "no task", "T1": "no task",
		"- T1": "no task", "1. [ ] T1": "no task", "- [x](T1) a": "no task", "- [ü] T1": "no task", "-     ": "no task",
		"- [ ]": "", "- [ ]  ": "",
	} {
		d, wrong := parse("## Tasks\n" + line)
		got := "no task"
		switch {
		case len(d.Tasks) == 1:
			got = d.Tasks[0].ID
		case len(d.unnamed) == 1:
			got = ""
		}
		if got != want {
			t.Errorf("%q is the task %q, want %q (%v)", line, got, want, wrong)
		}
	}
}

func TestFencesInListItemsHideTasks(t *testing.T) {
	for text, want := range map[string]int{
		"- [ ] T1 a\n\n    ```\n    - [ ] T2 b\n    ```\n- [ ] T3 c":  2,
		"- [ ] T1 a\n\n    ```\n    - [ ] T2 b\n  ```\n- [ ] T3 c":    2,
		"- [ ] T1 a\n\n     ~~~\n     - [ ] T2 b\n\n- [ ] T3 c":       2, // the item ends, and its code block with it
		"- [ ] T1 a\n\n    ```\n    - [ ] T2 b\n```\n- [ ] T3 c\n```": 1, // a new fence
		// the item begins with its fence
		"- ```\n  - [ ] T1 a\n  ```\n- [ ] T2 b\n- ```\n  c\n  ```\n- [ ] T3 d": 2,
		"12) ```\n    - [ ] T1 a\n    ```\n- [ ] T2 b":                          1,
		"- ```\n  - [ ] T1 a\n- [ ] T2 b":                                       1, // the code block ends with its item
		"-     ```\n- [ ] T1 a":                                                 1, // indented code
		"- ``` `a`\n  - [ ] T1 a":                                               1, // not a fence
		"1234567890. ```\n            - [ ] T1 a":                               1, // not a list item
	} {
		if d, _ := parse("## Tasks\n" + text); len(d.Tasks) != want {
			t.Errorf("%q has the tasks %+v, want %d", text, d.Tasks, want)
		}
	}
}
