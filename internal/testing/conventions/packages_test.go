package conventions

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// listPackages runs go list for this module's packages and their dependencies, without tests.
func listPackages(t *testing.T, env string, args []string) graph {
	t.Helper()
	if g, ok := listedBefore[env]; ok {
		return g
	}
	tool, err := exec.LookPath("go")
	if err != nil {
		t.Skipf("the go tool is not installed here: %v", err)
	}
	args = append([]string{"list", "-e", "-deps", "-json=ImportPath,Imports,Standard,DepOnly,Module,Error"}, args...)
	cmd := exec.CommandContext(t.Context(), tool, append(args, "./...")...)
	cmd.Env = append(os.Environ(), env)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(cmd.Args, " "), err, stderr.String())
	}
	g := graph{}
	for dec := json.NewDecoder(&stdout); ; {
		var p listed
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			listedBefore[env] = g
			return g
		} else if err != nil {
			t.Fatalf("reading what go list printed: %v", err)
		}
		if p.Error != nil && !p.DepOnly {
			t.Errorf("go list: %s: %s", p.ImportPath, p.Error.Err)
		}
		g[p.ImportPath] = p
	}
}
