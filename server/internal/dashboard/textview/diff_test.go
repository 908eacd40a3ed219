package textview

import (
	"strings"
	"testing"
	"time"
)

// signedLines returns the lines of a difference as a reader sees them: a sign and the text, with the marked parts in
// brackets.
func signedLines(d *Diff) string {
	var out strings.Builder
	for _, line := range d.Lines {
		out.WriteString(map[string]string{"same": " ", "gone": "-", "new": "+", "skip": "…"}[line.Kind])
		for _, span := range line.Spans {
			if span.Changed {
				out.WriteString("[" + span.Text + "]")
			} else {
				out.WriteString(span.Text)
			}
		}
		out.WriteString("\n")
	}
	return out.String()
}

func TestDifferencesOfTexts(t *testing.T) {
	for _, c := range []struct{ before, after, want string }{
		{"", "", ""},
		{"a\nb", "a\nb", ""},
		{"the kettle is blue", "the kettle is red", "-the kettle is [blue]\n+the kettle is [red]\n"},
		{"keep this and that here", "keep one or two here", "-keep [this and that] here\n+keep [one or two] here\n"},
		{"all of it", "quite something else", "-all of it\n+quite something else\n"},
		{"a\nb\nc\nd\ne\nf\ng", "a\nb\nc\nd\ne\nf\nG", "…\n e\n f\n-g\n+G\n"},
		{"1\n2\n3\n4\n5\n6\n7\n8\n9", "one\n2\n3\n4\n5\n6\n7\n8\nnine", "-1\n+one\n 2\n 3\n…\n 7\n 8\n-9\n+nine\n"},
		{"1\n2\n3\n4\n5", "new\n1\n2\n3\n4\nV", "+new\n 1\n 2\n 3\n 4\n-5\n+V\n"},
		{"one\n", "one", " one\n-\n"},
		{"", "x", "-\n+x\n"},
		{"größe 5\n日本", "größe 6\n日本", "-größe [5]\n+größe [6]\n 日本\n"},
		{"same line\ngone", "same line", " same line\n-gone\n"},
	} {
		if got := signedLines(Compare(c.before, c.after, MaxDiffShown)); got != c.want {
			t.Errorf("%q and %q:\n%swant\n%s", c.before, c.after, got, c.want)
		}
	}
	if d := Compare("1\n2\n3", "1\ntwo\nthree\n4", MaxDiffShown); d.Removed != 2 || d.Added != 3 {
		t.Errorf("%d are gone and %d new, want removed 2 and added 3", d.Removed, d.Added)
	}
}

// Comparing texts of any size takes little time and shows little.
func TestDifferencesAreBounded(t *testing.T) {
	numbers := func(step int) string {
		var text strings.Builder
		for i := range 30_000 {
			text.WriteString(strings.Repeat("x", i*step%7) + "\n")
		}
		return text.String()
	}
	for name, texts := range map[string][2]string{
		"short lines":          {numbers(3), numbers(5)},
		"one long line":        {strings.Repeat("a b ", 60_000), strings.Repeat("b a ", 60_000)},
		"words under the most": {strings.Repeat("a b ", maxWordDiffed/8), strings.Repeat("c b ", maxWordDiffed/8)},
		"signs":                {strings.Repeat("<", 100_000), strings.Repeat("&", 100_000)},
	} {
		begun := time.Now()
		d := Compare(texts[0], texts[1], MaxDiffShown)
		if took := time.Since(begun); took > 3*time.Second {
			t.Errorf("%s: %v, want at most %v", name, took, 3*time.Second)
		}
		page := 0
		for _, line := range d.Lines {
			for _, span := range line.Spans {
				page += len(span.Text)
			}
			page += 100
		}
		if page > 2*MaxDiffShown || len(d.Lines) == 0 {
			t.Errorf("%s: %d bytes in %d lines, want at most %v bytes and some lines", name, page, len(d.Lines), 2*MaxDiffShown)
		}
	}
	if d := Compare(strings.Repeat("x", MaxDiffed), "y", MaxDiffShown); !d.TooLarge || len(d.Lines) > 0 {
		t.Errorf("a text of %d bytes: got %d lines, too large %v, want none and true", MaxDiffed, len(d.Lines),
			d.TooLarge)
	}
}

// A difference contains exactly the two texts.
func FuzzDifferences(f *testing.F) {
	for _, seed := range [][2]string{{"a\nb\nc", "a\nc"}, {"", "x\n\n"}, {"the kettle", "the  kettle\n"},
		{"\xff\n", "\xff \xfe"}, {"a b c d", "d c b a"}} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, before, after string) {
		d := Compare(before, after, 1<<30)
		if d.TooLarge {
			return
		}
		var old, now []string
		skipped := 0
		for _, line := range d.Lines {
			text := ""
			for _, span := range line.Spans {
				text += span.Text
			}
			switch line.Kind {
			case "gone":
				old = append(old, text)
			case "new":
				now = append(now, text)
			case "same":
				old, now = append(old, text), append(now, text)
			case "skip":
				skipped += line.Skipped
			}
		}
		if len(d.Lines) == 0 {
			if before != after {
				t.Fatalf("nothing differs: got %v, want %v", before, after)
			}
			return
		}
		if skipped == 0 && (strings.Join(old, "\n") != before || strings.Join(now, "\n") != after) {
			t.Fatalf("%q and %q, want both texts back", old, now)
		}
		if len(old)+skipped != strings.Count(before, "\n")+1 || len(now)+skipped != strings.Count(after, "\n")+1 {
			t.Fatalf("got %d and %d lines and %d skipped, want %d and %d in all", len(old), len(now), skipped,
				strings.Count(before, "\n")+1, strings.Count(after, "\n")+1)
		}
	})
}
