package markdown

import (
	"github.com/yuin/goldmark/ast"
	extensionast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// tamer changes elements that would affect the page around the text.
type tamer struct{}

// Transform turns images into links, makes links send no referrer, and puts headings below those of the page, which
// has two levels.
func (tamer) Transform(document *ast.Document, reader text.Reader, pc parser.Context) {
	m := meterOf(pc)
	if m.over = m.over || depthOf(document) > maxDepth; m.over {
		return
	}
	var images []*ast.Image
	_ = ast.Walk(document, func(node ast.Node, entering bool) (ast.WalkStatus,
		error) { // the function below returns no error
		if !entering {
			return ast.WalkContinue, nil
		}
		switch node := node.(type) {
		case *ast.Image:
			images = append(images, node)
			m.spend(8 * (len(node.Destination) + len(node.Title)))
		case *ast.Heading:
			node.Level = min(node.Level+2, 6)
		case *ast.Link:
			m.spend(8 * (len(node.Destination) + len(node.Title))) // many links may share one address, which is escaped for each
			node.SetAttributeString("rel", []byte("noopener noreferrer nofollow"))
		case *ast.AutoLink:
			node.SetAttributeString("rel", []byte("noopener noreferrer nofollow"))
		}
		return ast.WalkContinue, nil
	})
	for _, image := range images {
		link := ast.NewLink()
		link.Destination, link.Title = image.Destination, image.Title
		link.SetAttributeString("rel", []byte("noopener noreferrer nofollow"))
		for child := image.FirstChild(); child != nil; child = image.FirstChild() {
			link.AppendChild(link, child)
		}
		if link.FirstChild() == nil {
			link.AppendChild(link, ast.NewString([]byte("picture")))
		}
		image.Parent().ReplaceChild(image.Parent(), image, link)
	}
	flatten(document, reader.Source())
}

// flatten removes links inside links, where they are invalid: their text stays.
func flatten(document *ast.Document, source []byte) {
	var inner []ast.Node
	flat := map[ast.Node]bool{}
	depth := 0
	_ = ast.Walk(document, func(node ast.Node, entering bool) (ast.WalkStatus, error) { // the function returns no error
		_, link := node.(*ast.Link)
		_, auto := node.(*ast.AutoLink)
		switch {
		case entering && (link || auto) && depth > 0:
			inner, flat[node] = append(inner, node), true
		case entering && link:
			depth++
		case link && !flat[node]:
			depth--
		}
		return ast.WalkContinue, nil
	})
	for _, node := range inner {
		parent := node.Parent()
		if auto, ok := node.(*ast.AutoLink); ok {
			parent.ReplaceChild(parent, node, ast.NewString(util.EscapeHTML(auto.Label(source))))
			continue
		}
		for child := node.FirstChild(); child != nil; child = node.FirstChild() {
			parent.InsertBefore(parent, node, child)
		}
		parent.RemoveChild(parent, node)
	}
}

// plainly renders raw HTML and inputs as text.
type plainly struct{}

// RegisterFuncs registers the renderers.
func (p plainly) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(ast.KindRawHTML, p.inline)
	r.Register(ast.KindHTMLBlock, p.block)
	r.Register(extensionast.KindTaskCheckBox, p.task)
}

func (plainly) inline(w util.BufWriter, source []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	if raw, ok := node.(*ast.RawHTML); ok && entering {
		_, err := w.Write(util.EscapeHTML(raw.Segments.Value(source)))
		return ast.WalkSkipChildren, err
	}
	return ast.WalkContinue, nil
}

func (plainly) block(w util.BufWriter, source []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	raw, ok := node.(*ast.HTMLBlock)
	if !ok || !entering {
		return ast.WalkContinue, nil
	}
	lines := raw.Lines().Value(source)
	if raw.HasClosure() {
		lines = append(lines, raw.ClosureLine.Value(source)...)
	}
	_, err := w.WriteString("<p>" + string(util.EscapeHTML(lines)) + "</p>\n")
	return ast.WalkSkipChildren, err
}

func (plainly) task(w util.BufWriter, _ []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	box, ok := node.(*extensionast.TaskCheckBox)
	if !ok || !entering {
		return ast.WalkContinue, nil
	}
	mark := "☐ "
	if box.IsChecked {
		mark = "☑ "
	}
	_, err := w.WriteString(mark)
	return ast.WalkContinue, err
}
