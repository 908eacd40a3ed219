package text

import (
	"unicode"
	"unicode/utf8"
)

// SplitterVersion increases with every change in where Split cuts. It is part of the embedding profile: vectors of
// passages that were cut differently are recomputed.
const SplitterVersion = 1

// Span is a passage: the bytes [Start, End) of the content.
type Span struct{ Start, End int }

// Split cuts s into passages of at most max bytes, in order and without overlap. The caller derives max from the
// input size of its embedder; a max below utf8.UTFMax, which one character may need, counts as that.
//
// Content that fits is a single passage. Longer content is cut at the strongest place that leaves a passage of fair
// size: before a heading, between blocks (paragraphs, lists, tables, fenced code), between list items, between
// sentences, between lines, between words, between characters; and the pieces are packed greedily. A piece that fits
// whole is cut only to keep the passage before it from being a scrap. A heading stays with the text that follows it.
//
// A passage begins and ends with something other than white space, and only white space is between passages. Text with
// only white space has no passages. Invalid UTF-8 is kept, byte by byte.
func Split(s string, max int) []Span {
	if max < utf8.UTFMax {
		max = utf8.UTFMax
	}
	start, end := trim(s, 0, len(s))
	if start == end {
		return nil
	}
	if end-start <= max {
		return []Span{{start, end}}
	}
	c := cutter{s: s, end: end, max: max, breaks: findBreaks(s[:end])}
	var spans []Span
	for start < end {
		cut, next := c.cut(start)
		spans = append(spans, Span{start, cut})
		start = next
	}
	return spans
}

// cutter walks over the content, one passage after another.
type cutter struct {
	s      string
	end    int // where the content ends
	max    int
	breaks []boundary
	done   int // earlier breaks are done
}

// cut returns where the passage that begins at start ends, and where the next one begins.
func (c *cutter) cut(start int) (end, next int) {
	if c.end-start <= c.max {
		return c.end, c.end
	}
	for c.done < len(c.breaks) && c.breaks[c.done].start <= start {
		c.done++
	}
	// The last break of each strength that this passage can reach, ...
	var reach, after [strengths]*boundary
	i := c.done
	for ; i < len(c.breaks) && c.breaks[i].end <= start+c.max; i++ {
		b := &c.breaks[i]
		reach[b.strength] = b
	}
	// ... and the first one after it, which ends the piece that would begin the next passage.
	for ; i < len(c.breaks) && c.breaks[i].end <= start+2*c.max; i++ {
		if b := &c.breaks[i]; after[b.strength] == nil {
			after[b.strength] = b
		}
	}
	var best, following *boundary
	for k := strengths - 1; k >= 0; k-- {
		if b := reach[k]; b != nil && (best == nil || b.end > best.end) {
			best = b
		}
		if b := after[k]; b != nil && (following == nil || b.end < following.end) {
			following = b
		}
		if best == nil {
			continue
		}
		if best.end-start >= c.max/4 || c.fits(best.start, following) {
			return best.end, best.start
		}
	}
	return c.cutWords(start)
}

// fits reports whether the piece from start to the break, or to the end of the content, is no longer than a
// passage.
func (c *cutter) fits(start int, to *boundary) bool {
	if to != nil {
		return to.end-start <= c.max
	}
	return c.end-start <= c.max
}

// cutWords cuts at the last white space that leaves at least half a passage, or else between characters.
func (c *cutter) cutWords(start int) (end, next int) {
	limit := start + c.max
	for i := limit; i > start+c.max/2; {
		r, _ := utf8.DecodeRuneInString(c.s[i:])
		if unicode.IsSpace(r) {
			_, end = trim(c.s, start, i)
			next, _ = trim(c.s, i, c.end)
			return end, next
		}
		_, size := utf8.DecodeLastRuneInString(c.s[:i])
		i -= size
	}
	for i := limit; i > limit-utf8.UTFMax; i-- {
		if utf8.RuneStart(c.s[i]) {
			limit = i
			break
		}
	}
	at := clusterStart(c.s, start+c.max/2, limit)
	_, end = trim(c.s, start, at)
	next, _ = trim(c.s, at, c.end)
	return end, next
}

// clusterStart moves a cut back to where a character begins with all its marks and joined parts, a simple form of
// the grapheme clusters of UAX #29, but not below from.
func clusterStart(s string, from, cut int) int {
	for i := cut; i > from; {
		r, _ := utf8.DecodeRuneInString(s[i:])
		before, size := utf8.DecodeLastRuneInString(s[:i])
		const joiner = '\u200d'
		modifier := 0x1f3fb <= r && r <= 0x1f3ff // skin tones
		if !unicode.IsMark(r) && r != joiner && before != joiner && !modifier {
			return i
		}
		i -= size
	}
	return cut
}

// trim returns s[start:end] without white space around it, as offsets.
func trim(s string, start, end int) (int, int) {
	for start < end {
		r, size := utf8.DecodeRuneInString(s[start:end])
		if !unicode.IsSpace(r) {
			break
		}
		start += size
	}
	for start < end {
		r, size := utf8.DecodeLastRuneInString(s[start:end])
		if !unicode.IsSpace(r) {
			break
		}
		end -= size
	}
	return start, end
}
