package transfer

import (
	"cmp"
	"context"
	"slices"
	"strconv"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/fault"
	"github.com/souvenir-ai/souvenir/internal/valid"
)

// An export has the lines of one namespace after those of another, the default one first. A line names each other
// namespace before its lines; users in lines belong to the namespace named last.

// namespace is a namespace to export.
type namespace struct {
	name string
	user int64 // row of one of its users; 0: it is the default one
}

// sql is an expression for the name.
func (n namespace) sql() string {
	if n.name == "" {
		return `''`
	}
	return `(SELECT namespace FROM users WHERE id = ` + strconv.FormatInt(n.user, 10) + `)`
}

// spaces returns the namespaces to export, at least one.
func (e *exporter) spaces() ([]namespace, error) {
	if e.User != nil {
		return []namespace{{}}, nil
	}
	var all []namespace
	err := e.tx.Each(func(row db.Rows) error {
		var n namespace
		err := row.Scan(&n.name, &n.user)
		all = append(all, n)
		return err
	}, `SELECT namespace, min(id) FROM users GROUP BY namespace ORDER BY namespace`)
	if err != nil {
		return nil, err
	}
	has := func(name string) bool {
		return slices.ContainsFunc(all, func(n namespace) bool { return n.name == name })
	}
	for _, name := range e.Namespaces {
		if name != "" && !has(name) {
			return nil, fault.New(fault.KindNotFound, "Namespaces", "{} has %s, which has no users", fault.Show(name))
		}
	}
	if len(all) == 0 || len(all) == 1 && all[0].name == "" {
		return []namespace{{}}, nil
	}
	e.apart = true
	if !has("") { // it also has rows without a user
		all = append([]namespace{{}}, all...)
	}
	if e.Namespaces != nil {
		all = slices.DeleteFunc(all, func(n namespace) bool { return !slices.Contains(e.Namespaces, n.name) })
	}
	return all, nil
}

// namespaceItem is a line that names the namespace of the lines after it.
type namespaceItem struct {
	lineNumber
	name string
}

func (*namespaceItem) apply(*importTx) error { return nil } // not a row

func parseNamespace(line []byte, n int) (importItem, error) {
	var given struct {
		Name string `json:"name"`
	}
	if err := decodeLine(line, &given); err != nil {
		return nil, err
	}
	if err := valid.Name("name", given.Name); err != nil {
		return nil, err
	}
	return &namespaceItem{lineNumber(n), given.Name}, nil
}

// checkNamespace refuses an export of several namespaces if the import has a single target namespace.
func (im *importer) checkNamespace(kind string) error {
	if kind == kindNamespace && im.begun && im.Namespace != "" {
		return fault.Invalid("Namespace",
			"{} is %s, but the export has several namespaces; export one alone, or omit the option",
			fault.Show(im.Namespace))
	}
	im.begun = true
	return nil
}

// enter begins the lines of a namespace. It first writes the batch, which belongs to another one.
func (im *importer) enter(ctx context.Context, item *namespaceItem) error {
	if err := im.lateLinks(ctx); err != nil {
		return err
	}
	im.namespace, im.current, im.moved = cmp.Or(im.Namespace, item.name), nil, nil
	im.report.Line = max(im.report.Line, item.line())
	return nil
}
