// Command apistub writes the Go API of this module as text: Go files with all that is exported and nothing else, one
// after the other, in the form of a txtar archive. apidiff reads them like any module, so each change is compared with
// a text that people can review.
//
//	go run ./.ci/apistub > .ci/api.txt            # records the API
//	go run ./.ci/apistub -extract DIR .ci/api.txt # makes a module of what was recorded
package main

import (
	"bytes"
	"flag"
	"fmt"
	"go/format"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"log"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

const module = "github.com/souvenir-ai/souvenir"

func main() {
	log.SetFlags(0)
	dir := flag.String("extract", "", "the folder to write a recorded API to")
	flag.Parse()
	var err error
	if *dir != "" {
		err = extract(*dir, flag.Arg(0))
	} else {
		err = record(os.Stdout)
	}
	if err != nil {
		log.Fatal(err)
	}
}

// record writes the packages that others can import, and those of internal that these name in their API.
func record(w io.Writer) error {
	out, err := exec.Command("go", "list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}", "./...").Output()
	if err != nil {
		return fmt.Errorf("go list: %w", err)
	}
	exports, public := map[string]string{}, []string(nil)
	for line := range strings.Lines(string(out)) {
		name, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		exports[name] = file
		if isOurs(name) && !strings.Contains(name, "/internal/") && !strings.Contains(name, "/cmd/") &&
			!strings.Contains(name, "/examples/") && !strings.Contains(name, "/e2e/") &&
			!strings.Contains(name, "/eval") {
			public = append(public, name)
		}
	}
	packages := importer.ForCompiler(token.NewFileSet(), "gc", func(name string) (io.ReadCloser, error) {
		return os.Open(exports[name])
	})
	files := map[string][]byte{}
	for len(public) > 0 {
		name := public[0]
		public = public[1:]
		if _, done := files[name]; done {
			continue
		}
		pkg, err := packages.Import(name)
		if err != nil {
			return err
		}
		if pkg.Name() == "main" {
			continue
		}
		s := stub{pkg: pkg, imports: map[string]bool{}}
		if files[name], err = s.source(); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		for imported := range s.imports {
			if isOurs(imported) {
				public = append(public, imported)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if _, err := fmt.Fprintf(w, "-- %s --\n%s", fileOf(name), files[name]); err != nil {
			return err
		}
	}
	return nil
}

func isOurs(name string) bool { return name == module || strings.HasPrefix(name, module+"/") }

// fileOf names the file of a package in the record.
func fileOf(name string) string {
	return path.Join(strings.TrimPrefix(strings.TrimPrefix(name, module), "/"), "api.go")
}

// stub writes one package.
type stub struct {
	pkg     *types.Package
	imports map[string]bool
	body    bytes.Buffer
}

// qualify names a type of another package, and notes that it must be imported.
func (s *stub) qualify(p *types.Package) string {
	if p == s.pkg {
		return ""
	}
	s.imports[p.Path()] = true
	return p.Name()
}

func (s *stub) text(t types.Type) string { return types.TypeString(t, s.qualify) }

func (s *stub) source() ([]byte, error) {
	scope := s.pkg.Scope()
	for _, name := range scope.Names() {
		object := scope.Lookup(name)
		if object.Exported() {
			s.declare(object)
		}
	}
	var file bytes.Buffer
	fmt.Fprintf(&file, "package %s\n\n", s.pkg.Name())
	for _, name := range slices.Sorted(maps.Keys(s.imports)) {
		fmt.Fprintf(&file, "import %q\n", name)
	}
	file.Write(s.body.Bytes())
	return format.Source(file.Bytes())
}

func (s *stub) declare(object types.Object) {
	switch o := object.(type) {
	case *types.Const:
		value := o.Val().ExactString()
		if basic, ok := o.Type().(*types.Basic); ok && basic.Info()&types.IsUntyped != 0 {
			fmt.Fprintf(&s.body, "\nconst %s = %s\n", o.Name(), value)
			return
		}
		fmt.Fprintf(&s.body, "\nconst %s %s = %s\n", o.Name(), s.text(o.Type()), value)
	case *types.Var:
		fmt.Fprintf(&s.body, "\nvar %s %s\n", o.Name(), s.text(o.Type()))
	case *types.Func:
		s.function(o)
	case *types.TypeName:
		s.typeName(o)
	}
}

func (s *stub) typeName(o *types.TypeName) {
	if o.IsAlias() {
		aliased := o.Type()
		if alias, ok := aliased.(*types.Alias); ok {
			aliased = alias.Rhs()
		}
		fmt.Fprintf(&s.body, "\ntype %s = %s\n", o.Name(), s.text(aliased))
		return
	}
	t, ok := o.Type().(*types.Named)
	if !ok {
		return
	}
	underlying := t.Underlying()
	if fields, ok := underlying.(*types.Struct); ok {
		underlying = exportedFields(fields)
	}
	fmt.Fprintf(&s.body, "\ntype %s %s\n", o.Name(), s.text(underlying))
	methods := slices.SortedFunc(t.Methods(), func(a, b *types.Func) int { return strings.Compare(a.Name(), b.Name()) })
	for _, method := range methods {
		if method.Exported() {
			s.function(method)
		}
	}
}

// exportedFields replaces unexported fields by a mark that some exist.
func exportedFields(t *types.Struct) *types.Struct {
	var fields []*types.Var
	var tags []string
	hidden := false
	for i := range t.NumFields() {
		if field := t.Field(i); field.Exported() {
			fields, tags = append(fields, field), append(tags, t.Tag(i))
		} else {
			hidden = true
		}
	}
	if hidden {
		content := types.Type(types.Typ[types.Byte])
		if !types.Comparable(t) {
			content = types.NewSlice(content)
		}
		fields = append(fields, types.NewField(token.NoPos, nil, "_", content, false))
		tags = append(tags, "")
	}
	return types.NewStruct(fields, tags)
}

func (s *stub) function(f *types.Func) {
	signature := f.Signature()
	receiver := ""
	if r := signature.Recv(); r != nil {
		receiver = "(_ " + s.text(r.Type()) + ") "
	}
	text := strings.TrimPrefix(s.text(signature), "func")
	fmt.Fprintf(&s.body, "\nfunc %s%s%s { panic(0) }\n", receiver, f.Name(), text)
}

// extract writes the files of a record as a module with this module's requirements.
func extract(dir, recorded string) error {
	data, err := os.ReadFile(recorded)
	if err != nil {
		return err
	}
	for part := range strings.SplitSeq("\n"+string(data), "\n-- ") {
		name, content, ok := strings.Cut(part, " --\n")
		if !ok {
			continue
		}
		if err := write(filepath.Join(dir, filepath.FromSlash(name)), []byte(content)); err != nil {
			return err
		}
	}
	for _, name := range []string{"go.mod", "go.sum"} {
		content, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if err := write(filepath.Join(dir, name), content); err != nil {
			return err
		}
	}
	return nil
}

func write(name string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return os.WriteFile(name, content, 0o644)
}
