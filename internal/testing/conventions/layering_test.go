package conventions

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

const modulePath = "github.com/souvenir-ai/souvenir"

// reach says how far a layering rule looks.
type reach string

const (
	direct   reach = "direct imports"     // the packages named in import statements
	anyDepth reach = "imports, any depth" // and, transitively, their imports
)

// layer is one rule: no package of From imports a package of Never.
//
// Patterns are import paths. A pattern that begins with "./" is relative to this module; one that
// ends in "/..." also covers everything below it.
type layer struct {
	From   []string
	Except []string // packages of From that the rule ignores
	Never  []string
	But    []string // packages of Never that the rule allows
	Reach  reach
	Why    string
}

// dashboardRooms are the rooms of the dashboard.
var dashboardRooms = []string{
	"./server/internal/dashboard/clients", "./server/internal/dashboard/files", "./server/internal/dashboard/memories",
	"./server/internal/dashboard/overview", "./server/internal/dashboard/pictures", "./server/internal/dashboard/projects",
	"./server/internal/dashboard/proposals", "./server/internal/dashboard/trash", "./server/internal/dashboard/upkeep",
}

// layers returns the rules about engines and all other rules.
func layers() (all []layer) {
	for _, e := range engines {
		own := e.dir + "/..."
		all = append(all, layer{
			From:   []string{"./..."},
			Except: []string{own},
			Never:  e.drivers,
			Reach:  direct,
			Why:    e.dir + " alone knows its driver",
		}, layer{
			From:   []string{"./internal/..."},
			Except: append([]string{own}, e.besides...),
			Never:  []string{own},
			Reach:  direct,
			Why:    "what lies below the API speaks to internal/db: it works with any engine",
		})
		if e.opener != "" {
			all = append(all, layer{
				From: []string{"./", "./internal/...", "./tools/...", "./mcpserver/...", "./server/...", "./eval/...",
					"./embedders/..."},
				Except: append([]string{own}, e.tests...),
				Never:  append([]string{e.opener, own}, e.drivers...),
				Reach:  anyDepth,
				Why:    "a program that wants this engine imports " + e.opener + ": others link none of it",
			})
		}
	}
	return append(all, rules...)
}

// allowedModules are the modules that a program gets by importing the root package. It is a list, not a number, so that
// each new dependency is a deliberate decision.
var allowedModules = []string{
	// SQLite in pure Go, and its dependencies.
	"modernc.org/sqlite", "modernc.org/libc", "modernc.org/mathutil", "modernc.org/memory",
	"github.com/dustin/go-humanize", "github.com/mattn/go-isatty", "github.com/ncruces/go-strftime",
	"github.com/remyoudompheng/bigfft", "golang.org/x/sys",
	// SQLite in C, with the build tag souvenir_cgo.
	"github.com/mattn/go-sqlite3", "github.com/asg017/sqlite-vec-go-bindings",
	// Ids.
	"github.com/google/uuid", "github.com/golang-jwt/jwt/v5", "golang.org/x/crypto",
	// Unicode: normalisation for the tokenizer and full text.
	"golang.org/x/text",
	// Types of files, from their first bytes.
	"github.com/gabriel-vasile/mimetype",
}

// builds are the variants that the rules are checked under, as environment and flags of go list.
var builds = []struct {
	Name string
	Env  string
	Args []string
}{
	{"pure Go", "CGO_ENABLED=0", nil},
	{"cgo", "CGO_ENABLED=1", []string{"-tags=souvenir_cgo,sqlite_fts5"}},
}

// listed is the output of go list for one package.
type listed struct {
	ImportPath string
	Imports    []string
	Standard   bool
	DepOnly    bool // only imported by this module's ./..., not part of it
	Module     *struct{ Path string }
	Error      *struct{ Err string }
}

// graph holds packages by import path.
type graph map[string]listed

// listedBefore caches the graphs of builds by their environment, since two tests read each.
var listedBefore = map[string]graph{}

func TestImportsPointOneWay(t *testing.T) {
	atRoot(t)
	for i, build := range builds {
		if !longtest.Part(i, 1, len(builds)) {
			continue
		}
		t.Run(build.Name, func(t *testing.T) {
			g := listPackages(t, build.Env, build.Args)
			for _, rule := range layers() {
				found, unchecked := rule.check(g)
				for _, pattern := range unchecked {
					t.Logf("nothing to check yet for %s: it may not import %s", pattern, strings.Join(rule.Never, ", "))
				}
				for _, chain := range found {
					t.Errorf("%s\n\twhy not: %s", chain, rule.Why)
				}
			}
		})
	}
}

func TestRootPackageHasOnlyAllowedModules(t *testing.T) {
	atRoot(t)
	used := map[string]bool{}
	for i, build := range builds {
		if !longtest.Part(i, 1, len(builds)) {
			continue
		}
		t.Run(build.Name, func(t *testing.T) {
			g := listPackages(t, build.Env, build.Args)
			if _, ok := g[modulePath]; !ok {
				t.Fatalf("go list does not list the root package %s, want it there", modulePath)
			}
			chains := g.chains(modulePath)
			reported := map[string]bool{}
			for _, path := range slices.Sorted(maps.Keys(chains)) {
				p := g[path]
				if p.Standard || p.Module == nil || p.Module.Path == modulePath {
					continue
				}
				module := p.Module.Path
				used[module] = true
				if !slices.Contains(allowedModules, module) && !reported[module] {
					reported[module] = true
					t.Errorf("the root package now needs the module %s, which is not in allowedModules\n\tby %s, want only "+
						"those",
						module, strings.Join(chains[path], " -> "))
				}
			}
		})
	}
	for _, module := range allowedModules {
		if !used[module] {
			t.Logf("allowed, but not used: %s", module)
		}
	}
}

func pkg(path string, imports ...string) listed {
	return listed{ImportPath: strings.Replace(path, "./", modulePath+"/", 1), Imports: imports}
}

func own(path string) string { return modulePath + "/" + path }

// violations are imports that break a rule of the layers, and some that are allowed.
var violations = []struct {
	name     string
	packages []listed
	want     string // "" = allowed
}{
	{"root, two steps from net/http", []listed{pkg(modulePath, own("internal/a")), pkg("./internal/a", "net/http")},
		modulePath + " -> " + own("internal/a") + " -> net/http"},
	{"internal imports MCP", []listed{pkg("./internal/a", "github.com/modelcontextprotocol/go-sdk/mcp")},
		own("internal/a") + " -> github.com/modelcontextprotocol/go-sdk/mcp"},
	{"root imports the tools", []listed{pkg(modulePath, own("tools")), pkg("./tools")},
		modulePath + " -> " + own("tools")},
	{"tools import the server", []listed{pkg("./tools", own("server")), pkg("./server")},
		own("tools") + " -> " + own("server")},
	{"mcpserver imports the server", []listed{pkg("./mcpserver", own("server")), pkg("./server")},
		own("mcpserver") + " -> " + own("server")},
	{"mcpserver knows HTTP", []listed{pkg("./mcpserver", "net/http")},
		own("mcpserver") + " -> net/http"},
	{"server imports a command", []listed{pkg("./server", own("cmd/souvenir")), pkg("./cmd/souvenir")},
		own("server") + " -> " + own("cmd/souvenir")},
	{"a room imports the server",
		[]listed{pkg("./server/internal/web", own("server/internal/x")), pkg("./server/internal/x", own("server"))},
		own("server/internal/web") + " -> " + own("server/internal/x") + " -> " + own("server")},
	{"the frame knows a room", []listed{pkg("./server/internal/web", own("server/internal/signin")),
		pkg("./server/internal/signin")},
		own("server/internal/web") + " -> " + own("server/internal/signin")},
	{"a leaf knows the dashboard", []listed{pkg("./server/internal/route", own("server/internal/dashboard/files"))},
		own("server/internal/route") + " -> " + own("server/internal/dashboard/files")},
	{"a package below the API knows its types", []listed{pkg("./internal/naming", modulePath), pkg(modulePath)},
		own("internal/naming") + " -> " + modulePath},
	{"the client of object storage knows stores", []listed{pkg("./s3", modulePath), pkg(modulePath)},
		own("s3") + " -> " + modulePath},
	{"documents look below the API", []listed{pkg("./documents", own("internal/files/filetext")),
		pkg("./internal/files/filetext")},
		own("documents") + " -> " + own("internal/files/filetext")},
	{"the program knows the measurements", []listed{pkg("./cmd/souvenir", own("eval")), pkg("./eval")},
		own("cmd/souvenir") + " -> " + own("eval")},
	{"signin knows authserver", []listed{pkg("./server/internal/signin", own("server/internal/authserver"))},
		own("server/internal/signin") + " -> " + own("server/internal/authserver")},
	{"authserver knows the dashboard", []listed{pkg("./server/internal/authserver", own("server/internal/dashboard"))},
		own("server/internal/authserver") + " -> " + own("server/internal/dashboard")},
	{"a room of the dashboard knows authserver",
		[]listed{pkg("./server/internal/dashboard/clients", own("server/internal/authserver"))},
		own("server/internal/dashboard/clients") + " -> " + own("server/internal/authserver")},
	{"one room of the dashboard knows another",
		[]listed{pkg("./server/internal/dashboard/files", own("server/internal/dashboard/memories"))},
		own("server/internal/dashboard/files") + " -> " + own("server/internal/dashboard/memories")},
	{"dashboard makes its rooms",
		[]listed{pkg("./server/internal/dashboard", own("server/internal/dashboard/files"), own("server/internal/signin")),
			pkg("./server/internal/dashboard/files", own("server/internal/web"), own("server/internal/dashboard/textview"))},
		""},
	{"root imports a driver", []listed{pkg(modulePath, "modernc.org/sqlite")},
		modulePath + " -> modernc.org/sqlite"},
	{"server speaks SQL", []listed{pkg("./server", "database/sql")},
		own("server") + " -> database/sql"},
	{"a subpackage of tools reaches into internal/sqlite",
		[]listed{pkg("./tools/x", own("internal/sqlite")), pkg("./internal/sqlite")},
		own("tools/x") + " -> " + own("internal/sqlite")},
	{"a page writes to the store past the API",
		[]listed{pkg("./server/internal/dashboard/files", own("internal/db")), pkg("./internal/db")},
		own("server/internal/dashboard/files") + " -> " + own("internal/db")},
	{"the contract of engines knows the kernel",
		[]listed{pkg("./internal/db", own("internal/kernel")), pkg("./internal/kernel")},
		own("internal/db") + " -> " + own("internal/kernel")},
	{"an engine opens sealed values", []listed{pkg("./internal/sqlite", own("internal/sealing/sealedrows")),
		pkg("./internal/sealing/sealedrows", own("internal/db"))},
		own("internal/sqlite") + " -> " + own("internal/sealing/sealedrows")},
	{"what opens sealed values knows the kernel", []listed{pkg("./internal/sealing/sealedrows", own("internal/kernel"))},
		own("internal/sealing/sealedrows") + " -> " + own("internal/kernel")},
	{"a tool reads a damaged file", []listed{pkg("./tools", own("internal/recovery/salvage"))},
		own("tools") + " -> " + own("internal/recovery/salvage")},
	{"salvage knows a store", []listed{pkg("./internal/recovery/salvage", own("internal/kernel"))},
		own("internal/recovery/salvage") + " -> " + own("internal/kernel")},
	{"a package below the API imports the engine", []listed{pkg("./internal/retrieval/filter", own("internal/sqlite")),
		pkg("./internal/sqlite")}, own("internal/retrieval/filter") + " -> " + own("internal/sqlite")},
	{"recovery reads files", []listed{pkg("./internal/recovery", own("internal/sqlite")), pkg("./internal/sqlite")}, ""},
	{"root imports the second engine",
		[]listed{pkg(modulePath, own("internal/postgres")), pkg("./internal/postgres", "github.com/jackc/pgx/v5")},
		modulePath + " -> " + own("internal/postgres")},
	{"a package beside the second engine speaks to its driver",
		[]listed{pkg("./postgres", "github.com/jackc/pgx/v5/pgxpool")},
		own("postgres") + " -> github.com/jackc/pgx/v5/pgxpool"},
	{"a program opens the second engine", []listed{pkg("./cmd/x", own("postgres")),
		pkg("./postgres", modulePath, own("internal/postgres")), pkg("./internal/postgres", "github.com/jackc/pgx/v5")},
		""},
	{"the server reads documents by itself", []listed{pkg("./server", own("documents")), pkg("./documents")},
		own("server") + " -> " + own("documents")},
	{"root knows the protocol of S3", []listed{pkg(modulePath, own("internal/a")), pkg("./internal/a", own("s3"))},
		modulePath + " -> " + own("internal/a") + " -> " + own("s3")},
	{"a program keeps files in a bucket", []listed{pkg("./cmd/x", modulePath, own("s3"), own("otel")), pkg("./s3")},
		""},
	{"the kernel searches", []listed{pkg("./internal/kernel", own("internal/a")),
		pkg("./internal/a", own("internal/retrieval")), pkg("./internal/retrieval")},
		own("internal/kernel") + " -> " + own("internal/a") + " -> " + own("internal/retrieval")},
	{"root verifies tokens", []listed{pkg(modulePath, "github.com/golang-jwt/jwt/v5")},
		modulePath + " -> github.com/golang-jwt/jwt/v5"},
	{"internal/sqlite imports a driver",
		[]listed{pkg("./internal/sqlite", "modernc.org/sqlite", "modernc.org/sqlite/vec")}, ""},
	{"server reaches SQL through root",
		[]listed{pkg("./server", modulePath, "net/http"), pkg(modulePath, "database/sql")}, ""},
	{"a name that only begins alike", []listed{pkg(modulePath, own("serverless")), pkg("./serverless", "net/httptrace")},
		""},
}

// TestLayersCatchViolations breaks every rule once, in an invented module, and checks that it is reported.
func TestLayersCatchViolations(t *testing.T) {
	atRoot(t)
	for _, test := range violations {
		t.Run(test.name, func(t *testing.T) {
			g := graph{}
			for _, p := range test.packages {
				g[p.ImportPath] = p
			}
			var found []string
			for _, rule := range layers() {
				chains, _ := rule.check(g)
				found = append(found, chains...)
			}
			if test.want == "" && len(found) > 0 {
				t.Errorf("allowed, but reported: %q, want found empty", found)
			}
			if test.want != "" && !slices.ContainsFunc(found,
				func(s string) bool { return strings.HasPrefix(s, test.want+" ") }) {
				t.Errorf("want %q to be reported; got %q", test.want, found)
			}
		})
	}
}

// check returns one line per forbidden import, and the patterns of From that match no package.
func (l layer) check(g graph) (found, unchecked []string) {
	for _, pattern := range l.From {
		matched := false
		for _, from := range slices.Sorted(maps.Keys(g)) {
			if g[from].DepOnly || !match(pattern, from) {
				continue
			}
			matched = true
			if matchAny(l.Except, from) {
				continue
			}
			chains := g.chains(from)
			for _, to := range slices.Sorted(maps.Keys(chains)) {
				chain := chains[to]
				if len(chain) == 1 || l.Reach == direct && len(chain) > 2 || !matchAny(l.Never, to) ||
					matchAny(l.But, to) {
					continue
				}
				found = append(found, fmt.Sprintf("%s (%s)", strings.Join(chain, " -> "), l.Reach))
			}
		}
		if !matched {
			unchecked = append(unchecked, pattern)
		}
	}
	return found, unchecked
}

// chains returns the shortest import chain from one package to each of its dependencies, itself included.
func (g graph) chains(from string) map[string][]string {
	chains := map[string][]string{from: {from}}
	for queue := []string{from}; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		for _, next := range g[at].Imports {
			if _, seen := chains[next]; !seen {
				chains[next] = append(slices.Clip(chains[at]), next)
				queue = append(queue, next)
			}
		}
	}
	return chains
}

func matchAny(patterns []string, path string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return match(p, path) })
}

func match(pattern, path string) bool {
	if rest, ok := strings.CutPrefix(pattern, "./"); ok {
		pattern = strings.TrimSuffix(modulePath+"/"+rest, "/")
	}
	if base, ok := strings.CutSuffix(pattern, "/..."); ok {
		return path == base || strings.HasPrefix(path, base+"/")
	}
	return path == pattern
}
