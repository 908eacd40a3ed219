package web

import (
	"fmt"
	"html/template"
	"io"
	"io/fs"
	"iter"
	"path"
	"strings"
	"sync"
	"text/template/parse"
)

// pages are the templates of all pages in one set. A template that a page defines has the name PAGE/NAME there, and so
// has each one of the frame and of the parts that calls such a template; all pages share the others. A set for each
// page took 20 MB.
type pages struct {
	set   *template.Template
	names map[string]bool
}

// templates are the pages, parsed once.
var templates = sync.OnceValues(func() (pages, error) {
	const folder = "templates"
	set, err := template.New("").Funcs(pageWords()).ParseFS(embedded, folder+"/frame.html", folder+"/parts/*.html")
	if err != nil {
		return pages{}, err
	}
	files, err := fs.Glob(embedded, folder+"/*.html")
	if err != nil {
		return pages{}, err
	}
	shared, names := set.Templates(), map[string]bool{}
	for _, file := range files {
		own, err := template.New("").Funcs(pageWords()).ParseFS(embedded, file)
		if err != nil {
			return pages{}, err
		}
		page := strings.TrimSuffix(path.Base(file), ".html")
		names[page] = true
		for name, tree := range treesOf(page, own.Templates(), shared) {
			if _, err := set.AddParseTree(name, tree); err != nil {
				return pages{}, err
			}
		}
	}
	return pages{set, names}, nil
})

// execute writes the template that a page calls by a name.
func (p pages) execute(w io.Writer, page, name string, data any) error {
	if !p.names[page] {
		return fmt.Errorf("there is no page %q", page)
	}
	if p.set.Lookup(page+"/"+name) != nil {
		name = page + "/" + name
	}
	return p.set.ExecuteTemplate(w, name, data)
}

// treesOf returns the templates that belong to a page alone, by their names in the set: what it defines, and copies of
// those shared ones from which a call leads to these.
func treesOf(page string, own, shared []*template.Template) map[string]*parse.Tree {
	trees := map[string]*parse.Tree{}
	for _, t := range own {
		if t.Tree != nil { // the set's first template has none
			trees[t.Name()] = t.Tree
		}
	}
	for before := 0; before < len(trees); { // until no further one calls any of these
		before = len(trees)
		for _, t := range shared {
			if t.Tree == nil || trees[t.Name()] != nil {
				continue
			}
			for call := range callsIn(t.Tree) {
				if trees[call.Name] != nil {
					trees[t.Name()] = t.Tree.Copy()
					break
				}
			}
		}
	}
	named := map[string]*parse.Tree{}
	for name, tree := range trees {
		for call := range callsIn(tree) {
			if trees[call.Name] != nil {
				call.Name = page + "/" + call.Name
			}
		}
		named[page+"/"+name] = tree
	}
	return named
}

// callsIn ranges over the calls of templates in a template.
func callsIn(t *parse.Tree) iter.Seq[*parse.TemplateNode] {
	return func(yield func(*parse.TemplateNode) bool) {
		var each func(*parse.ListNode) bool
		branch := func(b parse.BranchNode) bool { return each(b.List) && each(b.ElseList) }
		each = func(list *parse.ListNode) bool {
			if list == nil {
				return true
			}
			for _, n := range list.Nodes {
				more := true
				switch n := n.(type) {
				case *parse.TemplateNode:
					more = yield(n)
				case *parse.IfNode:
					more = branch(n.BranchNode)
				case *parse.RangeNode:
					more = branch(n.BranchNode)
				case *parse.WithNode:
					more = branch(n.BranchNode)
				}
				if !more {
					return false
				}
			}
			return true
		}
		each(t.Root)
	}
}
