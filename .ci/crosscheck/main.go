// Command crosscheck type-checks this module, its tests included, for other systems and processors. It reads everything
// from source, the standard library too, and generates no code. It finds the errors of a build for the system, except
// those that only an assembler or the linker finds, in a tenth of the time.
//
//	go run ./.ci/crosscheck darwin/arm64 windows/amd64
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

func main() {
	log.SetFlags(0)
	if len(os.Args) < 2 {
		log.Fatal("crosscheck: no target; name one or more, as in darwin/arm64")
	}
	failed := false
	for _, target := range os.Args[1:] {
		number, errs, err := check(target)
		if err != nil {
			log.Fatalf("%s: %v", target, err)
		}
		for _, err := range errs {
			fmt.Printf("%s: %v\n", target, err)
		}
		fmt.Printf("%s: %d packages of this module, %d errors\n", target, number, len(errs))
		failed = failed || len(errs) > 0
	}
	if failed {
		os.Exit(1)
	}
}

// listed is a package as go list describes it. That of a test has its import path and that of the test in brackets.
type listed struct {
	ImportPath, ForTest, Dir string
	GoFiles, SFiles          []string
	ImportMap                map[string]string
	Standard                 bool
	Module                   *struct {
		GoVersion string
		Main      bool
	}
}

// ours reports whether the package is of this module, so that all of it is checked and not just what it exports.
func (p *listed) ours() bool { return p.Module != nil && p.Module.Main }

// check type-checks the module for one target. It returns how many packages of the module it saw, and the errors.
func check(target string) (number int, errs []error, err error) {
	packages, err := list(target)
	if err != nil {
		return 0, nil, err
	}
	_, processor, _ := strings.Cut(target, "/")
	c := checker{sizes: types.SizesFor("gc", processor), files: token.NewFileSet(), done: map[string]*types.Package{},
		known: map[string]bool{}}
	for _, p := range packages { // each after its imports
		if strings.HasSuffix(p.ImportPath, ".test") { // the main package that go test generates
			continue
		}
		if p.ours() {
			number++
		}
		c.check(p)
	}
	if number == 0 {
		return 0, nil, errors.New("go list names no package of this module")
	}
	return number, c.errs, nil
}

// list returns the packages of the module, its tests and all that they import, for a target like windows/amd64.
func list(target string) ([]*listed, error) {
	system, processor, ok := strings.Cut(target, "/")
	if !ok || types.SizesFor("gc", processor) == nil {
		return nil, errors.New("no such target; want a system and a processor, as in darwin/arm64")
	}
	cmd := exec.Command("go", "list", "-deps", "-test",
		"-json=ImportPath,ForTest,Dir,GoFiles,SFiles,ImportMap,Standard,Module", "./...")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+system, "GOARCH="+processor)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	var packages []*listed
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		p := new(listed)
		if err := decoder.Decode(p); err == io.EOF {
			return packages, nil
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		packages = append(packages, p)
	}
}

// checker type-checks the packages of one target.
type checker struct {
	sizes types.Sizes
	files *token.FileSet
	done  map[string]*types.Package // by import path
	errs  []error
	known map[string]bool // their texts, as a package is checked with its tests and without
}

func (c *checker) report(err error) {
	if !c.known[err.Error()] {
		c.known[err.Error()] = true
		c.errs = append(c.errs, err)
	}
}

func (c *checker) check(p *listed) {
	if p.ImportPath == "unsafe" {
		return
	}
	var parsed []*ast.File
	for _, name := range p.GoFiles {
		if !filepath.IsAbs(name) {
			name = filepath.Join(p.Dir, name)
		}
		file, err := parser.ParseFile(c.files, name, nil, parser.SkipObjectResolution)
		if err != nil {
			c.report(err)
		}
		if file != nil {
			parsed = append(parsed, file)
		}
	}
	config := types.Config{
		Importer:         importer{c, p.ImportMap},
		Sizes:            c.sizes,
		IgnoreFuncBodies: !p.ours(),
		Error:            c.report,
	}
	if p.Module != nil && p.Module.GoVersion != "" {
		config.GoVersion = "go" + p.Module.GoVersion
	}
	path, _, _ := strings.Cut(p.ImportPath, " ")
	c.done[p.ImportPath], _ = config.Check(path, c.files, parsed, nil) // errors went to config.Error
	if p.ours() && len(p.SFiles) == 0 {
		c.needBodies(parsed)
	}
}

// needBodies reports functions without a body, which the type checker leaves to an assembler.
func (c *checker) needBodies(parsed []*ast.File) {
	for _, file := range parsed {
		for _, declared := range file.Decls {
			if f, ok := declared.(*ast.FuncDecl); ok && f.Body == nil {
				c.report(fmt.Errorf("%s: %s has no body, and its package no assembler for this target",
					c.files.Position(f.Pos()), f.Name.Name))
			}
		}
	}
}

// importer finds the imports of one package among the packages checked before it.
type importer struct {
	c    *checker
	maps map[string]string // import paths that stand for others: vendored ones, and those of tests
}

func (i importer) Import(path string) (*types.Package, error) {
	if path == "unsafe" {
		return types.Unsafe, nil
	}
	if mapped, ok := i.maps[path]; ok {
		path = mapped
	}
	if p := i.c.done[path]; p != nil {
		return p, nil
	}
	return nil, fmt.Errorf("go list names no package %s", path)
}
