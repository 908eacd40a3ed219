package markdown

import (
	"bytes"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// goldmark takes quadratic time and memory for some texts: a table has columns x rows cells, however few are written
// (yuin/goldmark#589), and for each unclosed opening it searches to the end again. Each parser with such a cost is
// wrapped here: it estimates the cost of its next step, and does nothing once a text has used up the budget for its
// length.

// meter counts what a text costs to parse. A unit is about a byte read, or half a byte allocated.
type meter struct {
	left int
	over bool

	block      ast.Node // the block being parsed; the following fields belong to it
	delimiters int      // of emphasis
	brackets   []int    // positions of open brackets
}

var meterKey = parser.NewContextKey()

const (
	perByte  = 512 // units that a byte of the text may cost
	perCell  = 512 // units per table cell, so that there may be as many cells as the text has bytes
	perLine  = 256 // units per step for each line it keeps
	perStep  = 64  // units per other step
	allowed  = 64 << 10
	maxLabel = 1000 // maximum bytes of a label in a lookup
)

func newMeter(length int) *meter { return &meter{left: allowed + perByte*length} }

// spend reports whether a step of that cost is within the budget.
func (m *meter) spend(units int) bool {
	if m.left -= units; m.left < 0 {
		m.over = true
	}
	return !m.over
}

// enter prepares for the text of a block.
func (m *meter) enter(block ast.Node) {
	if m.block != block {
		m.block, m.delimiters, m.brackets = block, 0, m.brackets[:0]
	}
}

// meterOf returns the meter of the text being parsed.
func meterOf(pc parser.Context) *meter {
	if m, ok := pc.Get(meterKey).(*meter); ok {
		return m
	}
	return newMeter(0)
}

// metered is an inline parser that estimates the cost of its next step.
type metered struct {
	parser.InlineParser
	cost func(m *meter, parent ast.Node, block text.Reader) int
}

// Parse runs the parser at this position, if it does not cost too much.
func (p metered) Parse(parent ast.Node, block text.Reader, pc parser.Context) ast.Node {
	m := meterOf(pc)
	if m.over {
		return nil
	}
	m.enter(parent)
	if !m.spend(p.cost(m, parent, block)) {
		return nil
	}
	return p.InlineParser.Parse(parent, block, pc)
}

// CloseBlock ends a block for parsers with state per block.
func (p metered) CloseBlock(parent ast.Node, block text.Reader, pc parser.Context) {
	if closer, ok := p.InlineParser.(parser.CloseBlocker); ok {
		closer.CloseBlock(parent, block, pc)
	}
}

// inlineParsers are goldmark's, with its priorities.
func inlineParsers() []util.PrioritizedValue {
	return []util.PrioritizedValue{
		util.Prioritized(extension.NewTaskCheckBoxParser(), 0),
		util.Prioritized(metered{parser.NewCodeSpanParser(), codeSpanCost}, 100),
		util.Prioritized(metered{parser.NewLinkParser(), linkCost}, 200),
		util.Prioritized(parser.NewAutoLinkParser(), 300),
		util.Prioritized(metered{parser.NewRawHTMLParser(), rawHTMLCost}, 400),
		util.Prioritized(metered{parser.NewEmphasisParser(), delimiterCost}, 500),
		util.Prioritized(metered{extension.NewStrikethroughParser(), delimiterCost}, 500),
		util.Prioritized(metered{extension.NewLinkifyParser(), addressCost}, 999),
	}
}

// restOf returns the rest of a block, from the current position on.
func restOf(parent ast.Node, block text.Reader) []byte {
	_, segment := block.PeekLine()
	lines := parent.Lines()
	if lines == nil || lines.Len() == 0 {
		return nil
	}
	source, end := block.Source(), lines.At(lines.Len()-1).Stop
	if segment.Start < 0 || segment.Start > end || end > len(source) {
		return nil
	}
	return source[segment.Start:end]
}

// searchCost is the cost of searching for an unescaped mark.
func searchCost(rest []byte, marks string) int {
	for at := 0; at < len(rest); {
		found := bytes.IndexAny(rest[at:], marks)
		if found < 0 {
			break
		}
		at += found + 1
		if at < 2 || rest[at-2] != '\\' {
			rest = rest[:at]
			break
		}
	}
	return perStep + len(rest) + perLine*bytes.Count(rest, []byte{'\n'})
}

// linkCost is the cost of a bracket. A closing one causes a lookup of its label, processing of the delimiters in
// it, and a search for an address or another label after it.
func linkCost(m *meter, parent ast.Node, block text.Reader) int {
	rest := restOf(parent, block)
	if len(rest) == 0 {
		return perStep
	}
	_, here := block.PeekLine()
	switch {
	case rest[0] == '[', rest[0] == '!' && len(rest) > 1 && rest[1] == '[':
		m.brackets = append(m.brackets, here.Start)
		return perStep
	case rest[0] != ']':
		return 1
	}
	cost := perStep + parent.ChildCount()
	if last := len(m.brackets) - 1; last >= 0 {
		cost += 4 * min(here.Start-m.brackets[last], maxLabel)
		m.brackets = m.brackets[:last]
	}
	switch {
	case len(rest) < 2:
	case rest[1] == '(':
		address := bytes.TrimLeft(rest[2:], " \t\r\n")
		marks := ")"
		if len(address) > 0 && address[0] == '<' {
			marks = ">"
		}
		cost += searchCost(address, marks)
	case rest[1] == '[':
		cost += searchCost(rest[2:], "[]")
	}
	return cost
}

// codeSpanCost is the cost of searching for a run of as many backticks.
func codeSpanCost(_ *meter, parent ast.Node, block text.Reader) int {
	rest := restOf(parent, block)
	count := len(rest) - len(bytes.TrimLeft(rest, "`"))
	at := count
	for at < len(rest) {
		next := bytes.IndexByte(rest[at:], '`')
		if next < 0 {
			at = len(rest)
			break
		}
		at += next
		run := len(rest[at:]) - len(bytes.TrimLeft(rest[at:], "`"))
		if at += run; run == count {
			break
		}
	}
	return perStep + at + perLine*bytes.Count(rest[:at], []byte{'\n'})
}

// rawHTMLCost is the cost of a tag, or of the search for the end of a comment, which happens once.
func rawHTMLCost(*meter, ast.Node, text.Reader) int { return 4 * perStep }

// delimiterCost is the cost of an emphasis delimiter, which may be compared with all others of its block.
func delimiterCost(m *meter, _ ast.Node, _ text.Reader) int {
	m.delimiters++
	return perStep + m.delimiters
}

// addressCost is the cost of searching for a bare address.
func addressCost(_ *meter, _ ast.Node, block text.Reader) int {
	line, _ := block.PeekLine()
	word := line
	if len(line) > 1 {
		if end := bytes.IndexAny(line[1:], " \t\r\n"); end >= 0 {
			word = line[:1+end]
		}
	}
	cost := 8 + len(word)
	if bytes.Contains(word[:min(len(word), 12)], []byte("http")) ||
		bytes.Contains(word[:min(len(word), 8)], []byte("www.")) {
		cost += 32 * min(len(word), 512) // a regular expression with counted repetition
	}
	return cost
}

// paragraphTransformers are goldmark's.
func paragraphTransformers() []util.PrioritizedValue {
	return []util.PrioritizedValue{
		util.Prioritized(transformer{parser.LinkReferenceParagraphTransformer, definitionsCost}, 100),
		util.Prioritized(transformer{extension.NewTableParagraphTransformer(), tableCost}, 200),
	}
}

// transformer converts a paragraph, and estimates the cost.
type transformer struct {
	parser.ParagraphTransformer
	cost func(paragraph *ast.Paragraph, source []byte) int
}

// Transform converts a paragraph, if it does not cost too much.
func (t transformer) Transform(paragraph *ast.Paragraph, reader text.Reader, pc parser.Context) {
	if m := meterOf(pc); !m.over && m.spend(t.cost(paragraph, reader.Source())) {
		t.ParagraphTransformer.Transform(paragraph, reader, pc)
	}
}

// definitionsCost is the cost of the link definitions at the start of a paragraph. Each moves the lines that follow
// it.
func definitionsCost(paragraph *ast.Paragraph, source []byte) int {
	lines := paragraph.Lines()
	cost := 0
	for i := range lines.Len() {
		segment := lines.At(i)
		line := bytes.TrimLeft(segment.Value(source), " \t")
		if !bytes.HasPrefix(line, []byte("[")) {
			if i == 0 {
				return 0
			}
			continue
		}
		begin, end := segment.Start, lines.At(lines.Len()-1).Stop
		cost += perStep + lines.Len() + searchCost(source[begin+1:end], "]")
		following := lines.At(min(i+1, lines.Len()-1)).Stop
		if title := bytes.IndexByte(source[begin:following], '('); title >= 0 {
			cost += searchCost(source[begin+title+1:end], "()")
		}
		if cost > perByte*MaxInput {
			break
		}
	}
	return cost
}

// tableCost is the cost of the table that a paragraph may be: it has a cell for each column in each row, written or
// not. Escaped pipes are compared with each other.
func tableCost(paragraph *ast.Paragraph, source []byte) int {
	lines := paragraph.Lines()
	cells, escaped := 0, 0
	for i := range lines.Len() {
		segment := lines.At(i)
		line := segment.Value(source)
		escaped += bytes.Count(line, []byte(`\|`))
		if i > 0 && delimits(line) {
			cells = max(cells, (bytes.Count(line, []byte("|"))+1)*(lines.Len()-i+1))
		}
	}
	if cells == 0 {
		return 0
	}
	return perCell*cells + escaped*escaped
}

// delimits reports whether a line can be the delimiter row of a table with several columns.
func delimits(line []byte) bool {
	return bytes.IndexByte(line, '|') >= 0 && bytes.IndexByte(line, '-') >= 0 &&
		len(bytes.Trim(line, "|-: \t\r\n\v\f")) == 0
}
