package tododoc

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/fault"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

func mustParse(t *testing.T, content string) Document {
	t.Helper()
	d, err := Parse(content)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestReplacingASectionKeepsTheStyleOfTheDocument(t *testing.T) {
	const airy, tight = "## Constitution\n\nold\n\n## Spec\n\n## Plan\n\n## Tasks\n\n## Gaps\n\nold\n",
		"## Constitution\nold\n## Spec\n## Plan\n## Tasks\n## Gaps"
	windows := strings.ReplaceAll(airy, "\n", "\r\n")
	for _, c := range []struct {
		name, content string
		section       Section
		body, want    string // want: from the section's heading up to the next one
	}{
		{"a blank line after the heading", airy, Constitution, "new", "## Constitution\n\nnew\n\n"},
		{"blank lines around", airy, Constitution, " \n\nnew\n\n\n", "## Constitution\n\nnew\n\n"},
		{"indentation", airy, Constitution, "\n    code\n\n- x", "## Constitution\n\n    code\n\n- x\n\n"},
		{"an empty section", airy, Plan, "new", "## Plan\n\nnew\n\n"},
		{"emptied", airy, Constitution, "", "## Constitution\n\n"},
		{"the last one", airy, Gaps, "new", "## Gaps\n\nnew\n"},
		{"the last one emptied", airy, Gaps, " ", "## Gaps\n"},
		{"no blank line after the heading", tight, Constitution, "new", "## Constitution\nnew\n\n"},
		{"a section without any line", tight, Spec, "new", "## Spec\nnew\n\n"},
		{"the end of the document", tight, Gaps, "new", "## Gaps\nnew\n"},
		{"the end of the document, nothing", tight, Gaps, "\n", "## Gaps"},
		{"CR LF", windows, Constitution, "new\nlines\r\nmixed",
			"## Constitution\r\n\r\nnew\r\nlines\r\nmixed\r\n\r\n"},
		{"CR LF into LF", airy, Constitution, "new\r\nlines\r\n", "## Constitution\n\nnew\nlines\n\n"},
		{"CR", strings.ReplaceAll(airy, "\n", "\r"), Constitution, "new\nlines", "## Constitution\r\rnew\rlines\r\r"},
		{"its own heading", airy, Constitution, "\n## constitution ##\n\nnew", "## Constitution\n\nnew\n\n"},
		{"code", airy, Constitution, "```\n## Plan\n```", "## Constitution\n\n```\n## Plan\n```\n\n"},
		{"code that goes on to the end", airy, Gaps, "```\n## Plan", "## Gaps\n\n```\n## Plan\n"},
		{"lower headings", airy, Constitution, "### Plan\n#### x\n# y",
			"## Constitution\n\n### Plan\n#### x\n# y\n\n"},
	} {
		before := mustParse(t, c.content)
		changed, warnings, err := before.Replace(c.content, c.section, c.body)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		s := before.Section(c.section)
		if want := c.content[:s.heading] + c.want + c.content[s.End:]; changed != want {
			t.Errorf("%s: the document is %q, want %q", c.name, changed, want)
		}
		if (c.name == "its own heading") != (len(warnings) == 1) {
			t.Errorf("%s: got the warnings %q, want one for its own heading, otherwise none", c.name, warnings)
		}
		again, _, err := mustParse(t, changed).Replace(changed, c.section, c.body)
		if err != nil || again != changed {
			t.Errorf("%s: the same body again makes %q (%v), want no error and %q", c.name, again, err, changed)
		}
	}
}

func TestBodiesThatBreakTheDocumentAreRefused(t *testing.T) {
	for body, says := range map[string]string{
		"text\n## Plan\nmore":              `line 2 is "## Plan"`,
		"## Notes":                         `line 1 is "## Notes"`,
		"x\n## Tasks":                      `line 2 is "## Tasks"`,
		"## Tasks\n## Tasks":               `line 2 is "## Tasks"`,
		"## tasks\n\n- [ ] T1\n- [x] T1 b": "lines 3 and 4 are both the task T1",
		"a\n\n   ```sh\n## x\n``":          "line 3 begins fenced code without an end",
		"~~~\n```":                         "line 1 begins fenced code",
	} {
		_, _, err := mustParse(t, goodTodo).Replace(goodTodo, Tasks, body)
		if !errors.Is(err, errInvalid) || !strings.Contains(err.Error(), says) ||
			!strings.Contains(err.Error(), `section "tasks"`) {
			t.Errorf("%q gives %v, want %q", body, err, says)
		}
	}
	// A heading that is indented like the code of a list item belongs to that code. Another one ends it.
	indented, body := "## Constitution\n   ## Spec\n## Plan\n## Tasks\n## Gaps", "* ```"
	if _, _, err := mustParse(t, indented).Replace(indented, Constitution, body); !errors.Is(err, errInvalid) ||
		!strings.Contains(err.Error(), "line 1 begins fenced code without an end") {
		t.Errorf(`%q before an indented heading gives %v, want %v and "line 1 begins fenced code without an end" in the `+
			"error", body, err, errInvalid)
	}
	if _, _, err := mustParse(t, indented).Replace(indented, Spec, body); err != nil {
		t.Errorf("%q before a heading at the margin gives %v", body, err)
	}
}

func TestCompletingATaskChangesOneByte(t *testing.T) {
	for id, want := range map[string]string{"T1": "- [x] T1 write", "t12": "+ [x] [T12] test", " T1 ": "- [x] T1 write",
		"**T12**:": "+ [x] [T12] test"} {
		changed, task, err := mustParse(t, goodTodo).Complete(goodTodo, id)
		if err != nil || !task.Done || !strings.Contains(changed, want) || differing(goodTodo, changed) != 1 {
			t.Errorf("completing %q gives %+v, %v, want that line done and the others unchanged", id, task, err)
		}
		if again, _, err := mustParse(t, changed).Complete(changed, id); err != nil || again != changed {
			t.Errorf("completing %q again: %v, got %v, want %v", id, err, again, changed)
		}
	}
	for _, id := range []string{"T2", "T3"} {
		if changed, task, err := mustParse(t, goodTodo).Complete(goodTodo, id); err != nil || changed != goodTodo ||
			!task.Done {
			t.Errorf("completing %s, which is done: got %+v, %v, want it done, no error and %q as before", id, task,
				err, goodTodo)
		}
	}
}

// differing counts the bytes in which two texts of one length differ, or returns -1 for different lengths.
func differing(a, b string) int {
	if len(a) != len(b) {
		return -1
	}
	n := 0
	for i := range len(a) {
		if a[i] != b[i] {
			n++
		}
	}
	return n
}

func TestAnUnknownTaskGetsTheListOfTasks(t *testing.T) {
	var many strings.Builder
	for i := range 30 {
		fmt.Fprintf(&many, "- [ ] T%d a\n", i)
	}
	long := five(map[Section]string{Tasks: "## Tasks\n" + many.String()})
	for _, c := range []struct{ content, id, says string }{
		{goodTodo, "T13", "there are T12, T3, T2, T1"},
		{goodTodo, "T", "there are T1, T2, T3, T12"},
		{goodTodo, "T5", `task_id "T5"`}, // in code
		{goodTodo, "T9", `task_id "T9"`}, // in another section
		{goodTodo, "parser", "there are T1"},
		{long, "T100", "there are T29, T28, T27, T26, T25, T24, T23, T22, T21, T20 and 20 more"},
		{long, strings.Repeat("9", 40), "20 more"},
		{five(nil), "T1", "there are no tasks"},
	} {
		_, _, err := mustParse(t, c.content).Complete(c.content, c.id)
		var known *fault.Error
		if !errors.Is(err, errNotFound) || !errors.As(err, &known) || known.Argument != "task_id" ||
			!strings.Contains(err.Error(), c.says) {
			t.Errorf("completing %q gives %v, want %q", c.id, err, c.says)
		}
	}
}

// FuzzTodo edits every document that parses, and checks that nothing else changes.
func FuzzTodo(f *testing.F) {
	for _, seed := range []string{
		goodTodo, strings.ReplaceAll(goodTodo, "\n", "\r\n"), five(nil), strings.TrimSpace(five(nil)), "\ufeff" + five(nil),
		five(map[Section]string{Tasks: "## Tasks\r- [ ] T1\r\n~~~~\n## Gaps\n~~~~\n\t+ [X] T2",
			Gaps: "## Gaps\n```\n## Gaps"}),
		"## Constitution\n   ## Spec\n## Plan\n## Tasks\n## Gaps",
		"## Constitution\n    ```\n   ## Spec\n## Plan\n\u00a0\n## Tasks\n     ~~~\n   - [ ] T1\n  ~~~\n## Gaps",
	} {
		f.Add(seed, "new\n```\n## x\n```")
		f.Add(seed, "* ```\n  x")
		f.Add(seed, "\n\n## Tasks ##\n- [ ] T3 x\r\n\t- [x] T4\n    ```")
	}
	f.Fuzz(func(t *testing.T, content, body string) {
		d, err := Parse(content)
		if err != nil {
			if !errors.Is(err, errInvalid) {
				t.Fatalf("got %v, want %v", err, errInvalid)
			}
			return
		}
		at := d.Sections[0].heading
		for i, s := range d.Sections {
			if s.Section != Sections[i] || s.heading != at || s.Start <= s.heading || s.Body != content[s.Start:s.End] ||
				!strings.Contains(content[s.heading:s.Start], string(s.Section[1:])) {
				t.Fatalf("section %d of %q is %+v; the one before ends at %d; want the parts in order, with their text",
					i, content, s, at)
			}
			at = s.End
		}
		if at != len(content) {
			t.Fatalf("the sections of %q end at %d, want %v", content, at, len(content))
		}
		for _, task := range d.Tasks {
			checkCompletion(t, content, d, task)
		}
		for _, s := range d.Sections {
			same, _, err := d.Replace(content, s.Section, s.Body)
			if err != nil || same != content {
				t.Fatalf("the body of %s makes %q, %v, want no error and %q", s.Section, same, err, content)
			}
			checkReplacement(t, content, d, s, body)
		}
	})
}

func TestRandomTodosChangeOnlyWhereTheyAreEdited(t *testing.T) {
	pieces := []string{"text", "- [ ] T%d open", "  - [x] T%d done", "```", "~~~~", "    ```", "  ```sh", "# one",
		"### three", "## Tasks", "    ## Plan", "", " ", "\t- [X] t%d", "---", "\u00a0", "- [ ] none"}
	random := rand.New(rand.NewPCG(7, 8))
	next := 0
	some := func() string {
		ending := []string{"\n", "\n", "\r\n", "\r"}[random.IntN(4)]
		var b strings.Builder
		for range random.IntN(7) {
			piece := pieces[random.IntN(len(pieces))]
			if strings.Contains(piece, "%d") {
				next++
				piece = fmt.Sprintf(piece, next)
			}
			b.WriteString(piece + ending)
		}
		return b.String()
	}
	valid := 0
	for range longtest.Size(30_000, 5_000) {
		content := some()
		for _, s := range Sections {
			content += strings.Repeat(" ", random.IntN(4)) + s.Heading() + "\n" + some()
		}
		d, err := Parse(content)
		if err != nil {
			continue
		}
		valid++
		for _, task := range d.Tasks {
			checkCompletion(t, content, d, task)
		}
		for _, s := range d.Sections {
			checkReplacement(t, content, d, s, some())
		}
	}
	if least := longtest.Size(1000, 150); valid < least {
		t.Errorf("only %d of the documents are any, want at least %d", valid, least)
	}
}

func checkCompletion(t *testing.T, content string, d Document, task Task) {
	t.Helper()
	changed, done, err := d.Complete(content, task.ID)
	if err != nil || !done.Done || done.ID != task.ID {
		t.Fatalf("completing %s of %q: got %+v, %v, want no error and this task done", task.ID, content, done, err)
	}
	n := differing(content, changed)
	if n != 1 && (!task.Done || n != 0) {
		t.Fatalf("completing %s makes %q of %q, want one line changed, or none where it is done", task.ID, changed,
			content)
	}
	before, total := d.Progress()
	after, totalAfter := mustParse(t, changed).Progress()
	if total != totalAfter || after != before+n {
		t.Fatalf("completing %s in %q: got %d of %d, want %d of %d", task.ID, content, after, totalAfter, before+n, total)
	}
}

// checkReplacement checks that a section gets a body, and that everything else stays byte for byte.
func checkReplacement(t *testing.T, content string, d Document, s Part, body string) {
	t.Helper()
	changed, _, err := d.Replace(content, s.Section, body)
	if err != nil {
		if !errors.Is(err, errInvalid) {
			t.Fatalf("got %v, want %v", err, errInvalid)
		}
		return
	}
	got, err := Parse(changed)
	if err != nil {
		t.Fatalf("%s with the body %q makes %q of %q: %v", s.Section, body, changed, content, err)
	}
	for i, other := range got.Sections {
		if was := d.Sections[i]; other.Section != s.Section &&
			(other.Body != was.Body || content[was.heading:was.Start] != changed[other.heading:other.Start]) {
			t.Fatalf("%s with the body %q makes %q of %q, want the other sections unchanged", s.Section, body, changed,
				content)
		}
	}
	if !strings.HasPrefix(changed, content[:s.Start]) || !strings.HasSuffix(changed, content[s.End:]) {
		t.Fatalf("%s with the body %q makes %q of %q, want %q at the beginning of changed and %q at the end of changed",
			s.Section, body, changed, content, content[:s.Start], content[s.End:])
	}
	if len(got.Tasks) != len(d.Tasks) && s.Section != Tasks {
		t.Fatalf("%s with the body %q changes the tasks of %q, want them unchanged", s.Section, body, content)
	}
	again, _, err := got.Replace(changed, s.Section, body)
	if err != nil || again != changed {
		t.Fatalf("%s with the body %q makes %q of %q, and then %q (%v), want no error and again %v", s.Section, body, changed,
			content, again, err, changed)
	}
}

func TestCheckboxesOfASectionAreTickedInPlace(t *testing.T) {
	content := "## Constitution\r\n\r\n## Spec\r\n## Plan\r\n## Tasks\r\n- [ ] T1 one\r\n  - [X] no id\r\n```\r\n- [ ] " +
		"code\r\n```\r\n## Gaps\r\n* [ ] ask\r\n+ [x] asked"
	d, err := Parse(content)
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	changed := content
	for _, section := range []Section{Plan, Tasks, Gaps} {
		for _, box := range d.Section(section).Checkboxes() {
			told = append(told, fmt.Sprintf("%d %s %q %v", box.Line, box.ID, box.Text, box.Done))
			if same := box.Tick(content, box.Done); same != content {
				t.Errorf("ticking %q again changes %q, want %v", box.Text, same, content)
			}
			changed = box.Tick(changed, !box.Done)
		}
	}
	if want := []string{`6 T1 "one" false`, `7  "no id" true`, `12  "ask" false`, `13  "asked" true`}; !slices.Equal(told,
		want) {
		t.Errorf("the check boxes are %q, want %v", told, want)
	}
	want := strings.NewReplacer("[ ] T1", "[x] T1", "[X] no", "[ ] no", "[ ] ask", "[x] ask", "[x] asked",
		"[ ] asked").Replace(content)
	if changed != want {
		t.Errorf("ticked the other way round: %q, want %v", changed, want)
	}
	if same := (Task{}).Tick(content, true); same != content {
		t.Errorf("a task of no document changes %q, want %v", same, content)
	}
}
