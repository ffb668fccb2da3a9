package gen

import (
	"os"
	"strings"
	"testing"

	"lockstep/codegen"
)

func TestATargetUsesTheModuleVersionsOfTheRepository(t *testing.T) {
	for file, wants := range map[string][]string{
		"../../go.mod": {"\ngo " + goVersion + "\n", "\t" + sysModule + " " + sysPin + "\n"},
		"../../go.sum": {sysModule + " " + sysPin + " " + sysSum + "\n", sysModule + " " + sysPin + "/go.mod " + sysModSum + "\n"},
	} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range wants {
			if !strings.Contains(string(text), want) {
				t.Errorf("%s has no %q", file, want)
			}
		}
	}
}

func TestATargetContainsEveryPackageItImports(t *testing.T) {
	known := map[string]bool{}
	for _, part := range runtimeParts() {
		known["lockstep/"+part.path] = true
	}
	files := map[string][]byte{}
	copyRuntime(files, head, "m")
	for name, text := range files {
		if !strings.HasPrefix(string(text), head+"\n") {
			t.Errorf("%s does not begin with the marker", name)
		}
		for line := range strings.Lines(string(text)) {
			path, ours := strings.CutPrefix(strings.TrimSpace(line), `"m/internal/`)
			if ours && !known["lockstep/"+strings.TrimSuffix(path, `"`)] || strings.Contains(line, `"lockstep/`) {
				t.Errorf("%s: %s", name, line)
			}
		}
		if strings.HasSuffix(name, "_test.go") {
			t.Errorf("%s is a test", name)
		}
	}
	if len(files) < 40 {
		t.Errorf("only %d files", len(files))
	}
}

func TestPackageNamesAreLegal(t *testing.T) {
	for name, want := range map[string]string{"powershift-bench": "powershift_bench", "Rail 17": "rail_17", "17": "plant_17", "": "plant_", "Größe": "gr__e", "type": "plant_type", "main": "plant_main", "vendor": "plant_vendor", "math": "plant_math", "double": "double"} {
		if got := codegen.PackageName(name); got != want {
			t.Errorf("%q makes %q, want %q", name, got, want)
		}
	}
}
