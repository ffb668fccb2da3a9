package rules

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// opens lists the functions of the product that open files to read them, and what they open. A file
// that a person names is opened by io/inputfile: it bounds the size, and refuses what could block.
var opens = map[string]string{
	"io/inputfile/inputfile.go Open": "files that a person names",

	"sched/journal/journal.go Read":             "the journal of changed settings, without blocking and bounded",
	"rt/host/result.go CreateResult":            "an output that can only be written directly",
	"deploy/certify/files.go removeAbandoned":   "drafts of this program, without blocking and bounded",
	"rt/host/dirs.go ReadOwn":                   "files of this program, without blocking and bounded",
	"codegen/fmu/build.go Build":                "an object of the compiler, in a new folder",
	"deploy/latency/methods.go runCyclictest":   "the result of cyclictest, in a new folder",
	"rt/gen/build.go vendor":                    "the files of go mod vendor, in a new folder",
	"rt/host/result.go Commit":                  "a folder",
	"io/record/write.go syncFolder":             "a folder",
	"rt/gen/folder.go replace":                  "a folder",
	"rt/host/dirs.go openDir":                   "a folder",
	"rt/control/socket.go socketsIn":            "a folder of sockets, without following links",
	"rt/control/socket.go dialControl":          "a folder of sockets and a socket, as a place (O_PATH)",
	"rt/sweep/table.go replace":                 "a folder",
	"io/can/wire.go openShared":                 "memory of a box, a regular file in /dev/shm without following links",
	"io/can/dial.go Interfaces":                 "/sys",
	"io/can/missing.go readKernelFile":          "/proc, /boot and /lib/modules, bounded",
	"rt/inspect/inspect.go openSealed":          "memory of a target, by /proc, without blocking",
	"rt/ecu/open.go otherInterfaces":            "/sys",
	"rt/network/gpio.go openLine":               "a device, which is not read",
	"rt/host/undo.go BootID":                    "/proc",
	"rt/host/version.go Executable":             "/proc",
	"rt/report/ledger.go interrupts":            "/proc",
	"rt/report/noise.go readNoise":              "/sys",
	"sched/host.go holdLatency":                 "/dev/cpu_dma_latency",
	"sched/hostinfo/files.go ReadFile":          "/proc, /sys and /etc",
	"sched/hostinfo/fingerprint.go StolenTicks": "/proc",
	"sched/memory.go reachable":                 "/proc",
	"sched/memory.go reachableByTick":           "/proc",
	"sched/unixdiag.go boundNames":              "/proc",
}

// openers are the functions that open a file to read it, by package.
var openers = map[string][]string{
	"os":      {"Open", "OpenFile", "OpenInRoot", "OpenRoot", "ReadFile", "DirFS", "CopyFS"},
	"ioutil":  {"ReadFile"},
	"unix":    {"Open", "Openat", "Openat2"},
	"syscall": {"Open", "Openat"},
	"zip":     {"OpenReader"},
	"elf":     {"Open"},
	"parquet": {"ReadFile"},
}

// creates reports whether a call of os.OpenFile creates a file, that is, opens an output.
func creates(call *ast.CallExpr) (is bool) {
	for _, arg := range call.Args {
		ast.Inspect(arg, func(n ast.Node) bool {
			s, ok := n.(*ast.SelectorExpr)
			is = is || ok && (s.Sel.Name == "O_CREATE" || s.Sel.Name == "O_WRONLY")
			return true
		})
	}
	return is
}

// opensFile reports whether a node calls or names one of openers.
func opensFile(n ast.Node) bool {
	if call, ok := n.(*ast.CallExpr); ok && creates(call) {
		return false
	}
	found := false
	ast.Inspect(n, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok && creates(call) {
			return false
		}
		if s, ok := n.(*ast.SelectorExpr); ok {
			p, named := s.X.(*ast.Ident)
			found = found || named && slices.Contains(openers[p.Name], s.Sel.Name)
		}
		return !found
	})
	return found
}

func TestNamedFilesAreOpenedByOnePackage(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range sources(t) {
		if s.test || strings.HasPrefix(s.folder, "hil_test") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(top, s.path), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			name := "a variable"
			if fn, ok := d.(*ast.FuncDecl); ok {
				name = fn.Name.Name
			}
			if !opensFile(d) {
				continue
			}
			at := s.path + " " + name
			if seen[at] = true; opens[at] == "" {
				t.Errorf("%s opens a file to read it: if a person can name the file, use io/inputfile; otherwise list the function in opens", at)
			}
		}
	}
	for at := range opens {
		if !seen[at] {
			t.Errorf("%s opens no file: remove it from opens", at)
		}
	}
}
