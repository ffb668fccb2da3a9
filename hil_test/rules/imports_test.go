package rules

import (
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// ours lists every package and the packages of this module that it may import. The rule holds
// for the product's files; tests may import more. No package outside of hil_test imports one of
// hil_test.
var ours = map[string][]string{
	"sched":          {"sched/hostinfo"},
	"sched/hostinfo": {},
	"sched/journal":  {"sched/hostinfo"},

	"io/can":               {"io/wire"},
	"io/csvfile":           {"io/inputfile", "io/yamlfile", "model/units"},
	"io/dbc":               {"io/can", "io/messages"},
	"io/framelog":          {"io/can"},
	"io/inputfile":         {},
	"io/isotp":             {"io/can"},
	"io/j1939":             {"io/can"},
	"io/messages":          {"io/can"},
	"io/record":            {"io/can", "io/framelog", "io/inputfile", "io/j1939", "io/messages", "model/units"},
	"io/record/recordtest": {"io/record"},
	"io/sigmap":            {"io/can", "io/j1939", "io/messages", "model/units"},
	"io/strictjson":        {},
	"io/tir":               {},
	"io/uds":               {"io/can", "io/isotp"},
	"io/wire":              {},
	"io/yamlfile":          {"model/units"},

	"model":                   {"model/units"},
	"model/assemble":          {"io/yamlfile", "model", "model/network", "model/units"},
	"model/cycle":             {"io/csvfile", "io/inputfile", "model/units"},
	"model/driver":            {},
	"model/element":           {"io/yamlfile", "model", "model/law", "model/network", "model/units"},
	"model/element/car":       {"io/tir", "io/yamlfile", "model", "model/element", "model/law", "model/network", "model/units"},
	"model/element/contact":   {"model", "model/element", "model/law", "model/network"},
	"model/element/driver":    {"model", "model/cycle", "model/driver", "model/element", "model/law", "model/network"},
	"model/element/fluid":     {"model", "model/element", "model/law", "model/network", "model/units"},
	"model/element/machine":   {"model", "model/element", "model/law", "model/network", "model/units"},
	"model/element/mechanics": {"model", "model/element", "model/law", "model/network", "model/units"},
	"model/element/signal":    {"model", "model/element", "model/law", "model/network", "model/units"},
	"model/element/thermal":   {"model/element", "model/law", "model/network"},
	"model/element/planar":    {"model/element", "model/law", "model/network", "model/units"},
	"model/kernel":            {"model", "model/units"},
	"model/law":               {"model", "model/network"},
	"model/library":           {"model/element", "model/element/car", "model/element/contact", "model/element/driver", "model/element/fluid", "model/element/machine", "model/element/mechanics", "model/element/planar", "model/element/signal", "model/element/thermal"},
	"model/modeltest":         {"io/yamlfile", "model", "model/assemble", "model/kernel", "model/library", "model/plantfile", "model/units"},
	"model/network":           {"io/yamlfile", "model", "model/units"},
	"model/plantfile":         {"io/inputfile", "io/yamlfile", "model", "model/element", "model/law", "model/network", "model/units"},
	"model/plants":            {},
	"model/units":             {},

	"codegen":            {"codegen/c99", "codegen/fmu", "codegen/specialise", "model", "model/kernel", "model/units"},
	"codegen/c99":        {},
	"codegen/fmu":        {"model/kernel", "model/units"},
	"codegen/signals":    {"io/sigmap", "model/units"},
	"codegen/specialise": {"codegen/c99", "model", "model/kernel", "model/units"},

	"rt":                   {"io/can", "io/sigmap", "io/wire", "rt/checkpoint", "rt/fault", "rt/network", "sched"},
	"rt/bench":             {"io/can", "io/dbc", "io/framelog", "io/inputfile", "io/j1939", "io/messages", "io/record", "io/sigmap", "io/wire", "io/yamlfile", "model", "model/assemble", "model/kernel", "model/library", "model/network", "model/plantfile", "model/plants", "model/units", "rt", "rt/diagnosis", "rt/ecu", "rt/fault", "rt/host", "rt/network", "rt/target", "sched"},
	"rt/bench/benchtest":   {"model/plants"},
	"rt/check":             {"io/can", "io/dbc", "io/j1939", "io/messages", "io/sigmap", "io/wire", "model", "model/assemble", "model/kernel", "model/network", "model/plantfile", "model/units", "rt", "rt/bench", "rt/diagnosis", "rt/progress", "rt/scenario", "sched"},
	"rt/checkpoint":        {},
	"rt/cmd/lockstep":      {"*"},
	"rt/control":           {"io/messages", "io/sigmap", "io/strictjson", "model/kernel", "model/network", "model/plantfile", "model/units", "rt", "rt/bench", "rt/diagnosis", "rt/fault", "rt/graph", "rt/host", "rt/inspect", "rt/network", "rt/recorder", "rt/report", "rt/scenario", "rt/traffic", "sched", "sched/hostinfo"},
	"rt/diagnosis":         {"io/can", "io/inputfile", "io/isotp", "io/j1939", "io/uds", "io/yamlfile", "model/units", "sched"},
	"rt/ecu":               {"rt/ecu/brakes", "rt/ecu/gearbox", "rt/ecu/unit"},
	"rt/ecu/brakes":        {"rt/ecu/diagnosis", "rt/ecu/unit"},
	"rt/ecu/diagnosis":     {},
	"rt/ecu/gearbox":       {"rt/ecu/diagnosis", "rt/ecu/unit"},
	"rt/ecu/unit":          {"rt/ecu/diagnosis"},
	"rt/ecu/unit/unittest": {"rt/ecu/unit"},
	"rt/fault":             {"io/can", "io/sigmap", "model/driver"},
	"rt/gen":               {"codegen", "codegen/fmu", "codegen/signals", "io/can", "io/inputfile", "io/sigmap", "io/wire", "model", "model/driver", "model/kernel", "model/units", "rt", "rt/bench", "rt/checkpoint", "rt/fault", "rt/host", "rt/network", "rt/progress", "rt/target", "sched", "sched/hostinfo"},
	"rt/graph":             {"model/network", "rt/bench"},
	"rt/guide":             {},
	"rt/guide/guidetest":   {"rt/guide"},
	"rt/host":              {"rt", "sched", "sched/hostinfo", "sched/journal"},
	"rt/inspect":           {"rt", "rt/bench", "rt/checkpoint", "rt/host", "rt/report", "rt/tableset", "rt/target"},
	"rt/junit":             {},
	"rt/live":              {},
	"rt/metrics":           {"rt", "rt/fault", "rt/host", "rt/report", "sched"},
	"rt/network":           {"io/can", "io/sigmap", "model/units", "rt/fault"},
	"rt/plot":              {},
	"rt/port":              {"io/can", "io/j1939", "io/sigmap", "rt", "rt/bench", "rt/diagnosis"},
	"rt/progress":          {},
	"rt/recorder":          {"io/can", "io/framelog", "io/record", "model/kernel", "rt", "rt/bench", "rt/diagnosis", "rt/fault", "rt/host", "rt/port", "rt/report", "rt/scenario", "sched"},
	"rt/report":            {"io/can", "io/sigmap", "io/wire", "rt", "rt/bench", "rt/checkpoint", "rt/tableset", "sched"},
	"rt/runtest":           {"io/can", "io/dbc", "io/sigmap", "rt", "rt/bench", "rt/bench/benchtest", "sched"},
	"rt/scenario":          {"io/messages", "io/record", "io/sigmap", "io/uds", "io/yamlfile", "model/cycle", "model/driver", "model/kernel", "model/plantfile", "model/units", "rt", "rt/bench", "rt/diagnosis", "rt/fault", "rt/host", "rt/junit", "rt/network", "rt/report"},
	"rt/soak":              {"io/inputfile", "io/sigmap", "model/plants", "rt", "rt/bench", "rt/ecu", "rt/fault", "rt/host", "rt/inspect", "rt/network", "rt/progress", "rt/report", "rt/scenario", "rt/supervisor", "rt/unitprogram", "sched", "sched/hostinfo"},
	"rt/supervisor":        {"io/can", "io/inputfile", "io/j1939", "io/record", "model/kernel", "model/units", "rt", "rt/bench", "rt/check", "rt/checkpoint", "rt/control", "rt/diagnosis", "rt/fault", "rt/host", "rt/inspect", "rt/live", "rt/metrics", "rt/network", "rt/port", "rt/progress", "rt/recorder", "rt/report", "rt/scenario", "rt/tableset", "rt/target", "rt/unitprogram", "sched"},
	"rt/sweep":             {"io/inputfile", "io/yamlfile", "model/plantfile", "model/units", "rt", "rt/bench", "rt/host", "rt/progress", "rt/scenario", "rt/virtual"},
	"rt/tableset":          {"model/kernel", "rt"},
	"rt/target":            {"io/can", "io/sigmap", "rt", "rt/checkpoint", "rt/fault", "sched"},
	"rt/unitprogram":       {"io/can", "rt", "rt/bench", "rt/host", "sched", "sched/hostinfo"},
	"rt/traffic":           {"io/can", "io/messages", "io/sigmap", "io/strictjson", "rt", "rt/bench", "rt/report"},
	"rt/trace":             {"io/csvfile", "io/framelog", "io/inputfile", "io/record", "model/units", "rt/bench", "rt/junit", "rt/plot"},
	"rt/view":              {"io/record", "io/strictjson", "model/units", "rt/bench", "rt/control", "rt/graph", "rt/host", "rt/report", "rt/trace"},
	"rt/virtual":           {"io/can", "io/csvfile", "io/inputfile", "io/record", "io/sigmap", "io/wire", "io/yamlfile", "model", "model/kernel", "model/library", "model/plantfile", "model/plants", "model/units", "rt", "rt/bench", "rt/checkpoint", "rt/control", "rt/diagnosis", "rt/ecu", "rt/fault", "rt/host", "rt/network", "rt/port", "rt/progress", "rt/recorder", "rt/report", "rt/scenario", "rt/tableset", "rt/target", "rt/unitprogram", "sched"},

	"deploy":         {},
	"deploy/certify": {"deploy/doctor", "deploy/latency", "rt", "rt/bench", "rt/check", "rt/host", "rt/plot", "rt/progress", "rt/report", "rt/soak", "rt/supervisor", "sched", "sched/hostinfo"},
	"deploy/doctor":  {"deploy/latency", "io/can", "sched", "sched/hostinfo", "sched/journal"},
	"deploy/latency": {"deploy/load", "rt/host", "rt/plot", "sched", "sched/hostinfo"},
	"deploy/load":    {},
}

// tests are the packages of hil_test that hold tests and may import anything. helpers are the
// packages that they share.
var (
	tests   = []string{"rules", "accuracy", "cost", "interop", "labs", "proof", "faults", "install", "mutants"}
	helpers = map[string][]string{
		"hil_test":            {},
		"hil_test/lab":        {"sched", "sched/hostinfo"},
		"hil_test/proof/unit": {},
		"hil_test/rig":        {"model", "model/assemble", "model/kernel", "model/library", "model/plantfile", "model/plants", "model/units"},
		"hil_test/study":      {"codegen", "hil_test/rig", "model", "model/kernel", "model/plants", "rt/plot"},
		"hil_test/truth":      {},
	}
)

// allowed returns the packages of this module that a package may import; known: the package is
// listed.
func allowed(folder string) (list []string, known bool) {
	if name, ok := strings.CutPrefix(folder, "hil_test/"); ok && slices.Contains(tests, name) {
		return []string{"*"}, true
	}
	if list, known = ours[folder]; !known {
		list, known = helpers[folder]
	}
	return list, known
}

// independent are packages whose files and tests import no package of this module but each other: they
// check the product with separate code.
var independent = []string{"rt/ecu", "rt/ecu/brakes", "rt/ecu/diagnosis", "rt/ecu/gearbox", "rt/ecu/unit", "rt/ecu/unit/unittest", "hil_test/proof/unit"}

// theirs lists every external module and the packages that may import it.
var theirs = map[string][]string{
	"github.com/brutella/can":          {"hil_test/lab", "hil_test/proof", "hil_test/proof/unit", "rt/ecu", "rt/ecu/brakes", "rt/ecu/gearbox", "rt/ecu/unit", "rt/ecu/unit/unittest"},
	"github.com/goccy/go-yaml":         {"io/yamlfile"},
	"github.com/parquet-go/parquet-go": {"rt/sweep"},
	"golang.org/x/sys":                 {"deploy/certify", "deploy/doctor", "deploy/latency", "deploy/load", "hil_test/lab", "hil_test/study", "io/can", "rt", "rt/bench", "rt/check", "rt/checkpoint", "rt/control", "rt/host", "rt/inspect", "rt/metrics", "rt/network", "rt/recorder", "rt/soak", "rt/supervisor", "rt/sweep", "rt/tableset", "rt/target", "rt/unitprogram", "rt/virtual", "sched", "sched/hostinfo"},
	"github.com/yuin/goldmark":         {"rt/guide"},
	"golang.org/x/image":               {"rt/plot"},
	"golang.org/x/term":                {"rt/cmd/lockstep", "rt/progress", "rt/supervisor"},
	"gonum.org/v1/gonum":               {"hil_test/study", "model/assemble", "model/element/car", "model/element/planar", "model/kernel", "model/modeltest", "rt/check"},
	"gonum.org/v1/plot":                {"rt/plot"},
	"codeberg.org/go-fonts/liberation": {"rt/plot"},
}

// forTests are the external packages that every test may import.
var forTests = []string{"gonum.org/v1/gonum/floats/scalar", "golang.org/x/sys/unix", "pgregory.net/rapid"}

// source is a Go file of the repository.
type source struct {
	path    string // relative to the top of the repository
	folder  string
	name    string // name in the package clause
	test    bool
	imports []string
}

const top = "../.."

// sources returns every Go file of the repository with its imports.
func sources(t *testing.T) (list []source) {
	t.Helper()
	err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := d.Name(); d.IsDir() && path != top && (strings.HasPrefix(name, ".") || name == "testdata") {
			return filepath.SkipDir
		}
		if d.IsDir() || filepath.Ext(path) != ".go" {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		path, _ = filepath.Rel(top, path)
		s := source{path: path, folder: filepath.Dir(path), name: f.Name.Name, test: strings.HasSuffix(path, "_test.go")}
		for _, i := range f.Imports {
			text, err := strconv.Unquote(i.Path.Value)
			if err != nil {
				return err
			}
			s.imports = append(s.imports, text)
		}
		list = append(list, s)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(list) < 10 {
		t.Fatalf("found only %d Go files above hil_test", len(list))
	}
	return list
}

func TestPackagesImportOnlyWhatTheDesignAllows(t *testing.T) {
	for _, s := range sources(t) {
		allowed, known := allowed(s.folder)
		if !known {
			t.Errorf("%s: the package %s is not in the table", s.path, s.folder)
		}
		for _, path := range s.imports {
			own, isOurs := strings.CutPrefix(path, "lockstep/")
			switch {
			case isOurs && !s.test && !slices.Contains(allowed, own) && !slices.Contains(allowed, "*"):
				t.Errorf("%s imports %s", s.path, path)
			case isOurs && slices.Contains(independent, s.folder) && !slices.Contains(independent, own):
				t.Errorf("%s imports %s: the package must share no code with the target", s.path, path)
			case !isOurs && strings.Contains(path, ".") && !(s.test && slices.Contains(forTests, path)):
				checkModule(t, s, path)
			}
		}
	}
}

func TestImportTableHasNoUnusedEntry(t *testing.T) {
	used := map[string]bool{}
	for _, s := range sources(t) {
		for _, path := range s.imports {
			if own, ok := strings.CutPrefix(path, "lockstep/"); ok && !s.test {
				used[s.folder+" "+own] = true
			}
		}
	}
	for _, table := range []map[string][]string{ours, helpers} {
		for folder, list := range table {
			for _, own := range list {
				if own != "*" && !used[folder+" "+own] {
					t.Errorf("%s does not import %s: remove it from the table", folder, own)
				}
			}
		}
	}
}

// checkModule checks an import from outside the module and the standard library.
func checkModule(t *testing.T, s source, path string) {
	t.Helper()
	for module, users := range theirs {
		if path == module || strings.HasPrefix(path, module+"/") {
			if !slices.Contains(users, s.folder) {
				t.Errorf("%s imports %s, which only %s may import", s.path, path, strings.Join(users, ", "))
			}
			return
		}
	}
	t.Errorf("%s imports %s: the module is not in the table", s.path, path)
}

func TestThereIsOneCommand(t *testing.T) {
	for _, s := range sources(t) {
		if s.name == "main" && s.folder != "rt/cmd/lockstep" && s.folder != "hil_test/study" { // a study is not part of the product
			t.Errorf("%s: a second command; lockstep is the only one", s.path)
		}
	}
}

func TestPackageClausesFitTheFolders(t *testing.T) {
	names := map[string]string{"hil_test": "hiltest", "rt/cmd/lockstep": "main", "hil_test/study": "main"}
	for _, s := range sources(t) {
		want, ok := names[s.folder]
		if !ok {
			want = filepath.Base(s.folder)
		}
		if s.name != want && !(s.test && s.name == want+"_test") {
			t.Errorf("%s: package %s, want %s", s.path, s.name, want)
		}
		if s.folder == "io" {
			t.Errorf("%s: io/ holds folders only", s.path)
		}
	}
}

func TestTopOfTheRepositoryIsFixed(t *testing.T) {
	must := []string{"LICENSE", "README.md", "go.mod", "go.sum", "hil_test", "io", "model", "rt", "sched"}
	may := append([]string{"codegen", "deploy"}, must...)
	entries := tracked(t)
	for _, name := range entries {
		if !strings.HasPrefix(name, ".") && !slices.Contains(may, name) {
			t.Errorf("%s does not belong at the top of the repository", name)
		}
	}
	for _, name := range must {
		if !slices.Contains(entries, name) {
			t.Errorf("%s is missing at the top of the repository", name)
		}
	}
}

// tracked returns the names at the top of the repository that git does not ignore; without git,
// all names.
func tracked(t *testing.T) []string {
	t.Helper()
	names := map[string]bool{}
	cmd := exec.Command("git", "ls-files", "--cached", "--others", "--exclude-standard")
	cmd.Dir = top
	if out, err := cmd.Output(); err == nil && len(out) > 0 {
		for line := range strings.Lines(string(out)) {
			name, _, _ := strings.Cut(strings.Trim(line, "\"\n"), "/")
			if _, err := os.Lstat(filepath.Join(top, name)); err == nil {
				names[name] = true
			}
		}
		return slices.Sorted(maps.Keys(names))
	}
	entries, err := os.ReadDir(top)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names[e.Name()] = true
	}
	return slices.Sorted(maps.Keys(names))
}

func TestModuleAndItsPinnedVersions(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(top, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	if !strings.HasPrefix(text, "module lockstep\n") {
		t.Error("go.mod: the module is not called lockstep")
	}
	if !strings.Contains(text, "github.com/brutella/can v0.0.2") {
		t.Error("go.mod: github.com/brutella/can is not v0.0.2")
	}
	if strings.Contains(text, "replace ") {
		t.Error("go.mod: replace has no effect in programs that import this module")
	}
}

func TestLicenceIsApache2(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(top, "LICENSE"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Apache License", "Version 2.0, January 2004", "Copyright 2026 The lockstep authors"} {
		if !strings.Contains(string(data), want) {
			t.Errorf("LICENSE does not say %q", want)
		}
	}
}
