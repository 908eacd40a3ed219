package main

import (
	"testing"
	"time"
	"unicode"
)

func TestShortenKeepsToItsColumns(t *testing.T) {
	for _, test := range []struct {
		text    string
		columns int
		want    string
	}{
		{"short", 10, "short"}, {"just so", 7, "just so"}, {"too long", 7, "too lo…"},
		{"京都の宿", 8, "京都の宿"}, {"京都の宿", 7, "京都の…"}, {"京都の宿", 6, "京都…"}, {"", 3, ""},
		{"cafe\u0301s", 5, "cafe\u0301s"},
	} {
		if got := shorten(test.text, test.columns); got != test.want {
			t.Errorf("shorten(%q, %d) = %q; want %q", test.text, test.columns, got, test.want)
		}
	}
}

func FuzzPrintedTextIsHarmlessAndFits(f *testing.F) {
	f.Add("a plain text", 5)
	f.Add("侬0", 2)
	f.Add("\x1b[2J\u202e京都\xff\u0301", 3)
	f.Fuzz(func(t *testing.T, text string, columns int) {
		if columns < 2 || columns > 1000 {
			return
		}
		printed := shorten(plain(text), columns)
		used := 0
		for _, r := range printed {
			if unicode.IsControl(r) {
				t.Fatalf("%q is shown as %q, want no control characters", text, printed)
			}
			used += runeColumns(r)
		}
		if used > columns {
			t.Fatalf("%q is shown as %q in %d columns, want at most %d", text, printed, used, columns)
		}
	})
}

func FuzzSizesAreReadAsPrinted(f *testing.F) {
	for _, text := range []string{"0", "17", "1.5G", "500MiB", "9223372036854775807", "8796093022207T", "-1"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var b, again byteSize
		if b.Set(text) != nil {
			return
		}
		if err := again.Set(b.String()); err != nil || again != b || b < 0 {
			t.Fatalf("%q is parsed as %d and printed as %q, which is parsed as %d (%v), want %v again, not negative",
				text, int64(b), b.String(), int64(again), err, b)
		}
	})
}

func TestSizesAreReadAndPrinted(t *testing.T) {
	for text, want := range map[string]int64{"0": 0, "17": 17, "1k": 1 << 10, "1KB": 1 << 10, "500MiB": 500 << 20,
		"2 GiB": 2 << 30, "1T": 1 << 40} {
		var b byteSize
		if err := b.Set(text); err != nil || int64(b) != want {
			t.Errorf("Set(%q): %d, %v; want %d", text, b, err, want)
		}
	}
	for _, text := range []string{"", "-1", "1.5G", "MiB", "1X", "99999999T", "ten"} {
		b := byteSize(7)
		if err := b.Set(text); err == nil || b != 7 {
			t.Errorf("Set(%q): %d, %v; want an error and no change", text, b, err)
		}
	}
	for bytes, want := range map[byteSize]string{0: "0", 1000: "1000", 1 << 10: "1KiB", 100 << 20: "100MiB",
		3 << 30: "3GiB"} {
		if got := bytes.String(); got != want {
			t.Errorf("%d is shown as %q; want %q", int64(bytes), got, want)
		}
	}
	for bytes, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1536: "1.5 KiB", 5 << 20: "5.0 MiB",
		3 << 30: "3.0 GiB"} {
		if got := size(bytes); got != want {
			t.Errorf("size(%d) = %q; want %q", bytes, got, want)
		}
	}
}

func TestAges(t *testing.T) {
	for text, want := range map[string]time.Duration{"": 0, "30m": 30 * time.Minute, "12h": 12 * time.Hour,
		"90d": 90 * 24 * time.Hour, "2w": 14 * 24 * time.Hour, "1y": 365 * 24 * time.Hour} {
		if got, err := parseAge("--expires-in", text); err != nil || got != want {
			t.Errorf("parseAge(%q) = %s, %v; want %s", text, got, err, want)
		}
	}
	for _, text := range []string{"d", "0d", "-3d", "1.5d", "999999999y", "-1h", "0s", "tomorrow"} {
		if got, err := parseAge("--expires-in", text); err == nil {
			t.Errorf("parseAge(%q) = %s; want an error", text, got)
		}
	}
}

func TestBarLine(t *testing.T) {
	for _, test := range []struct {
		done, total int
		want        string
	}{
		{5, 0, "copy         5"},
		{0, 4, "copy         ░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░   0 %  0 of 4"},
		{2, 4, "copy         ███████████████░░░░░░░░░░░░░░░  50 %  2 of 4"},
		{9, 4, "copy         ██████████████████████████████ 100 %  9 of 4"},
	} {
		if got, _ := barLine("copy", test.done, test.total); got != test.want {
			t.Errorf("barLine(%d, %d) = %q; want %q", test.done, test.total, got, test.want)
		}
	}
}
