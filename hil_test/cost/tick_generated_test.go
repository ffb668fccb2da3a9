package cost

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"lockstep/hil_test/lab"
	"lockstep/rt/gen"
)

// generatedJumps returns tickJumps for a generated target: the loop calls the generated code of the
// signals and of the kernel.
func generatedJumps(t *testing.T, list codeListing, dir string) map[string][]string {
	t.Helper()
	jumps := map[string][]string{protectionCode + "checksum": {}} // no target without protected messages
	for name, targets := range tickJumps {
		if strings.HasPrefix(name, kernelCode) || strings.HasPrefix(name, sequenceCode) {
			continue
		}
		jumps[name] = []string{}
		for _, callee := range targets {
			switch {
			case strings.HasPrefix(callee, sequenceCode):
				if callee = plantCode + strings.TrimPrefix(callee, sequenceCode); list[callee] == nil {
					continue // Changes, and Change of a plant whose inputs change on the grid
				}
			case callee == sigmapCode+"Decode", callee == sigmapCode+"Due", callee == sigmapCode+"Encode":
				callee = "main.(*bus0)." + strings.TrimPrefix(callee, sigmapCode)
			case strings.Contains(callee, "Virtual"):
				continue // a target has no virtual time
			}
			jumps[name] = append(jumps[name], callee)
		}
	}
	for name := range list {
		if strings.HasPrefix(name, "main.sum") {
			jumps[protectionCode+"checksum"] = append(jumps[protectionCode+"checksum"], name)
		}
	}
	maps.Copy(jumps, plantJumps(t, list, filepath.Join(dir, "plant")))
	return jumps
}

// plantJumps returns the targets of the indirect calls of a generated kernel. Its source calls them
// through the variable jump, in a function or in one that the compiler has inlined.
func plantJumps(t *testing.T, list codeListing, dir string) map[string][]string {
	t.Helper()
	calls, indirect := map[string][]string{}, map[string][]string{} // by function: methods that it calls directly and through jump
	files, _ := filepath.Glob(filepath.Join(dir, "*.go"))
	for _, file := range files {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok {
				name := plantCode + fn.Name.Name
				ast.Inspect(fn, func(n ast.Node) bool {
					if call, ok := n.(*ast.CallExpr); ok {
						if to, ok := call.Fun.(*ast.SelectorExpr); ok && fmt.Sprint(to.X) == "jump" {
							indirect[name] = append(indirect[name], plantCode+to.Sel.Name)
						} else if ok && fmt.Sprint(to.X) == "k" {
							calls[name] = append(calls[name], plantCode+to.Sel.Name)
						}
					}
					return true
				})
			}
		}
	}
	jumps := map[string][]string{}
	var collect func(name string, at *codeFunction) []string
	collect = func(name string, at *codeFunction) []string {
		targets := slices.Clone(indirect[name])
		for _, callee := range calls[name] {
			if !slices.Contains(at.calls, callee) {
				targets = append(targets, collect(callee, at)...)
			}
		}
		return targets
	}
	for name, f := range list {
		if strings.HasPrefix(name, plantCode) && f.jumps {
			jumps[name] = collect(name, f)
		}
	}
	return jumps
}

const plantCode = "plant.(*Kernel)."

// The test checks the tick of generated targets like that of the command.
func TestTickOfAGeneratedTargetNeitherAllocatesNorLocksNorGrowsTheStack(t *testing.T) {
	t.Parallel()
	for bench, archs := range map[string][]string{"powershift-bench": {"amd64", "arm64"}, "abs-bench": {"amd64"}} {
		if bench == "abs-bench" && !lab.LongTests() {
			continue
		}
		dir := t.TempDir()
		if err := (gen.Request{Bench: bench, Dir: dir}).Run(io.Discard); err != nil {
			t.Fatal(err)
		}
		module := "lockstep/generated/" + strings.ReplaceAll(bench, "-", "_")
		names := strings.NewReplacer(module+"/internal/", "lockstep/", module+"/plant", "plant")
		for _, goarch := range archs {
			if !slices.Contains(processors(), goarch) {
				continue
			}
			t.Run(bench+" "+goarch, func(t *testing.T) { walkTarget(t, dir, goarch, names) })
		}
	}
}

// walkTarget builds the target in a folder for a processor and checks its tick.
func walkTarget(t *testing.T, dir, goarch string, names *strings.Replacer) {
	bin := filepath.Join(t.TempDir(), "target")
	build := exec.Command("go", "build", "-trimpath", "-o", bin, ".")
	build.Dir, build.Env = dir, append(os.Environ(), "GOARCH="+goarch, "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off", "GOAMD64=v1")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	list := disassembleFile(t, bin, names.Replace)
	w := codeWalk{list: list, jumps: generatedJumps(t, list, dir), depth: map[string]int{}}
	stack := w.walk(tickRoot)
	for _, finding := range w.findings {
		t.Error(finding)
	}
	for _, name := range []string{"main.(*bus0).Decode", "main.(*bus0).Encode", plantCode + "Step"} {
		if _, walked := w.depth[name]; !walked {
			t.Errorf("the tick does not reach %s", name)
		}
	}
	t.Logf("%d functions, at most %d bytes of stack", len(w.depth), stack)
	if stack > tickStack {
		t.Errorf("a tick takes %d bytes of stack, want at most %d", stack, tickStack)
	}
}
