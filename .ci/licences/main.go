// Command licences checks the licence of every module that a package or a test of this module, or of a nested module,
// imports. It writes the notices of the modules that the program links, for it to show: souvenir version --licenses.
//
//	go run ./.ci/licences >cmd/souvenir/NOTICE.txt
//	go run ./.ci/licences -check cmd/souvenir/NOTICE.txt
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
)

// allowed are phrases of the licences that may be used, the most telling first. All of a licence's phrases must be
// there.
var allowed = []struct {
	name    string
	phrases []string
}{
	{"Apache-2.0", []string{"apache license", "version 2.0, january 2004"}},
	{"MPL-2.0", []string{"mozilla public license version 2.0"}},
	{"ISC", []string{"permission to use, copy, modify, and/or distribute this software for any purpose"}},
	{"BSD-3-Clause", []string{"redistribution and use in source and binary forms", "neither the name"}},
	{"BSD-2-Clause", []string{"redistribution and use in source and binary forms", "this list of conditions"}},
	{"MIT", []string{"permission is hereby granted, free of charge", "the above copyright notice"}},
	{"CC0-1.0", []string{"cc0 1.0 universal"}},
}

// systems are the systems that releases are made for.
var systems = []string{"linux", "darwin", "windows"}

type module struct {
	Path, Version, Dir string
	Main               bool
}

// licence is the licence of a module.
type licence struct{ name, text string }

func main() {
	check := flag.String("check", "", "compare with this `file` in place of writing")
	flag.Parse()
	if err := run(*check); err != nil {
		fmt.Fprintln(os.Stderr, "licences:", err)
		os.Exit(1)
	}
}

func run(check string) error {
	linked := map[string]module{}
	for _, system := range systems {
		if err := modules(linked, ".", system, "./cmd/souvenir"); err != nil {
			return err
		}
	}
	found, err := licences(linked)
	if err != nil {
		return err
	}
	notices, err := written(linked, found)
	if err != nil {
		return err
	}
	if check == "" {
		_, err := os.Stdout.Write(notices)
		return err
	}
	present, err := os.ReadFile(check)
	if err != nil {
		return err
	}
	if !bytes.Equal(present, notices) {
		return fmt.Errorf("%s is not that of the modules linked now: go run ./.ci/licences >%s", check, check)
	}
	nested, err := nestedModules()
	if err != nil {
		return err
	}
	all := map[string]module{}
	for _, folder := range append(nested, ".") {
		if err := modules(all, folder, runtime.GOOS, "-test", "./..."); err != nil {
			return err
		}
	}
	if _, err := licences(all); err != nil {
		return err
	}
	fmt.Printf("%d modules, %d of them linked, have licences that may be used; read: this module, and those in %s\n",
		len(all), len(linked), strings.Join(nested, ", "))
	return nil
}

// nestedModules returns the folders of the modules below this one.
func nestedModules() ([]string, error) {
	var folders []string
	for _, pattern := range []string{"*/go.mod", "*/*/go.mod", "*/*/*/go.mod"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			folders = append(folders, filepath.ToSlash(filepath.Dir(file)))
		}
	}
	if len(folders) < 2 {
		return nil, fmt.Errorf("the nested modules are %v, want those in adapters and otel: run it in the project's folder",
			folders)
	}
	return folders, nil
}

// licences returns the licences of modules; all must be known.
func licences(all map[string]module) (map[string]licence, error) {
	found, wrong := map[string]licence{}, []error{}
	for path, m := range all {
		l, err := licenceOf(m)
		if err != nil {
			wrong = append(wrong, err)
		}
		found[path] = l
	}
	return found, errors.Join(wrong...)
}

// modules adds the modules that some packages of the module in a folder import, by path and version.
func modules(all map[string]module, folder, system string, arguments ...string) error {
	list := exec.Command("go", append([]string{"list", "-deps", "-json=Module"}, arguments...)...)
	list.Dir = folder
	list.Env = append(os.Environ(), "GOOS="+system, "GOARCH=amd64", "CGO_ENABLED=0")
	list.Stderr = os.Stderr
	out, err := list.Output()
	if err != nil {
		return fmt.Errorf("%s: %w", list, err)
	}
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct{ Module *module }
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if p.Module != nil && !p.Module.Main {
			all[p.Module.Path+" "+p.Module.Version] = *p.Module
		}
	}
}

// licenceOf returns the licence of a module, whose text must be one that is known.
func licenceOf(m module) (licence, error) {
	entries, err := os.ReadDir(m.Dir)
	if err != nil {
		return licence{}, fmt.Errorf("%s %s: %w", m.Path, m.Version, err)
	}
	var texts []string
	for _, e := range entries {
		if !legal.MatchString(e.Name()) || !e.Type().IsRegular() {
			continue
		}
		content, err := os.ReadFile(filepath.Join(m.Dir, e.Name()))
		if err != nil {
			return licence{}, err
		}
		texts = append(texts, normalized(string(content)))
	}
	text := strings.Join(texts, "\n")
	plain := strings.Join(strings.Fields(strings.ToLower(text)), " ")
	for _, k := range allowed {
		if !slices.ContainsFunc(k.phrases, func(phrase string) bool { return !strings.Contains(plain, phrase) }) {
			return licence{k.name, text}, nil
		}
	}
	return licence{}, fmt.Errorf("%s %s has no licence that may be used in %s: look at it, and at the list in "+
		".ci/licences/main.go", m.Path, m.Version, m.Dir)
}

// legal matches the names of files with licences and notices.
var legal = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents)([.-](md|txt|mit|bsd|apache(-2\.0\.txt)?))?$`)

// normalized removes differences without meaning.
func normalized(text string) string {
	lines := strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " \t")
	}
	return strings.Trim(strings.Join(lines, "\n"), "\n") + "\n"
}

// written returns the notices. Modules with the same text share it.
func written(linked map[string]module, found map[string]licence) ([]byte, error) {
	root, err := exec.Command("go", "env", "GOROOT").Output() // runtime.GOROOT is empty in a trimmed binary
	if err != nil {
		return nil, fmt.Errorf("the folder of Go: %w", err)
	}
	goLicence, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(root)), "LICENSE"))
	if err != nil {
		return nil, fmt.Errorf("the licence of Go: %w", err)
	}
	users, names := map[string][]string{}, map[string]string{}
	text := normalized(string(goLicence))
	users[text], names[text] = []string{"the Go standard library"}, "BSD-3-Clause"
	for path, m := range linked {
		l := found[path]
		users[l.text] = append(users[l.text], m.Path+" "+m.Version)
		names[l.text] = l.name
	}
	var texts []string
	for text := range users {
		slices.Sort(users[text])
		texts = append(texts, text)
	}
	slices.SortFunc(texts, func(a, b string) int { return strings.Compare(users[a][0], users[b][0]) })
	var out bytes.Buffer
	out.WriteString("Souvenir is under the MIT licence (LICENSE). It contains the work of others, under these licences.\n")
	for _, text := range texts {
		fmt.Fprintf(&out, "\n%s\n%s\n(%s)\n\n%s", strings.Repeat("=", 80), strings.Join(users[text], "\n"), names[text], text)
	}
	for _, own := range []string{"internal/embedding/static/LICENSES.txt", "secrets/LICENSES.txt",
		"server/internal/web/static/vendor/LICENSES.txt"} {
		content, err := os.ReadFile(own) // of the model, of rules, and of what pages show
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&out, "\n%s\n%s\n\n%s", strings.Repeat("=", 80), own, normalized(string(content)))
	}
	return out.Bytes(), nil
}
