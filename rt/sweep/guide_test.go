package sweep

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"lockstep/rt/guide"
	"lockstep/rt/guide/guidetest"
	"lockstep/rt/virtual"
)

var sweepGuide = guide.Guide{Name: "sweep", Source: Guide}

func TestGuideListsTheKeys(t *testing.T) {
	sorted := func(list []string) []string { return slices.Sorted(slices.Values(list)) }
	same := func(what string, got, want []string) {
		t.Helper()
		if got, want = sorted(got), sorted(want); !slices.Equal(got, want) {
			t.Errorf("%s: the guide lists %q, the code reads %q", what, got, want)
		}
	}
	_, err := Load(folder(t, "unknown: 1\n"))
	_, known, ok := strings.Cut(fmt.Sprint(err), "known are ")
	if !ok {
		t.Fatal(err)
	}
	same("sweep file", guidetest.FirstColumn(t, sweepGuide, "sweep-file", 0), strings.Split(known, ", "))
	same("parameter", guidetest.FirstColumn(t, sweepGuide, "parameter-values", 0), slices.Concat(axisLists, axisKeys))
	same("rules", guidetest.FirstColumn(t, sweepGuide, "sweep-results", 0), rules)
	same("keys of results", guidetest.FirstColumn(t, sweepGuide, "sweep-results", 1), resultKeys)
	same("latin hypercube", guidetest.FirstColumn(t, sweepGuide, "latin_hypercube", 0), []string{"latin_hypercube", "seed"})

	var random []string
	for name := range spreads {
		if name != "" {
			random = append(random, name)
		}
	}
	var told []string
	for _, m := range regexp.MustCompile("(?m)^- `([a-z]+)`: ").FindAllStringSubmatch(guidetest.Section(t, sweepGuide, "parameter-values"), -1) {
		told = append(told, m[1])
	}
	same("distributions", told, random)

	columns := guidetest.Section(t, sweepGuide, "sweep-output")
	for _, name := range ownColumns {
		if !strings.Contains(columns, "| `"+name+"` |") {
			t.Errorf("the guide does not list the column %s", name)
		}
	}
}

func TestGuideLimitsMatchTheCode(t *testing.T) {
	text := strings.ReplaceAll(string(Guide), "\n", " ")
	for _, want := range []string{"At most 1 000 000 cases", "N at most 100 000", "`step` | 5 ms"} {
		if !strings.Contains(text, want) {
			t.Errorf("the guide does not say %q", want)
		}
	}
	if maxCases != 1_000_000 || maxShards != 100_000 {
		t.Errorf("the limits are %d cases and %d shards", maxCases, maxShards)
	}
}

// examples writes the files of the guide to a folder, and returns the table of the guide.
func examples(t *testing.T) (dir, table string, sweeps []string) {
	t.Helper()
	dir = t.TempDir()
	for _, b := range (guide.Guide{Source: Guide}).Blocks() {
		kind, rest, _ := strings.Cut(b.Text, ": ")
		name, _, _ := strings.Cut(rest, "\n")
		switch {
		case b.Language == "text" && strings.HasPrefix(b.Text, "case,"):
			table = b.Text
			continue
		case b.Language != "yaml":
			continue
		case kind == "sweep":
			sweeps = append(sweeps, name)
		}
		if err := os.WriteFile(filepath.Join(dir, name+".yaml"), []byte(b.Text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir, table, sweeps
}

func TestGuideExamplesRun(t *testing.T) {
	dir, want, sweeps := examples(t)
	if !slices.Equal(sweeps, []string{"stops", "forms", "scatter", "abs-slip"}) {
		t.Fatalf("the guide has the sweeps %q", sweeps)
	}
	for _, name := range sweeps {
		s := load(t, filepath.Join(dir, name+".yaml"))
		o := do(t, s, filepath.Join(dir, name), 2, Shard{0, 1, ""})
		if o.Failed != 0 || o.Rows != map[string]int{"stops": 6, "forms": 48, "scatter": 20, "abs-slip": 4}[name] {
			t.Errorf("%s: %d cases, %d failed", name, o.Rows, o.Failed)
		}
		switch name {
		case "stops":
			checkStops(t, o)
			checkTable(t, filepath.Join(dir, name), want)
		case "abs-slip":
			if n := len(o.Head.Columns); o.Head.Columns[n-3].Name != "held" || o.Head.Columns[n-2].Name != "broken" {
				t.Errorf("%s has the columns %v, without the verdict", name, o.Head.Columns)
			}
			if s := o.get(t, "s"); !(s[2] > s[0]+1) {
				t.Errorf("%s: the car stops in %v m", name, s)
			}
		}
	}
}

// checkStops compares the flywheel with its closed form: it stops after J·w/tau, and its energy
// becomes heat.
func checkStops(t *testing.T, o *Outcome) {
	t.Helper()
	w, stop, heat := 1500*math.Pi/30, o.get(t, "t_stop"), o.get(t, "heat")
	for i, mu := range o.get(t, "brake.mu") {
		want := 2 * w / (mu * 0.2 * o.get(t, "force")[i])
		if !(math.Abs(stop[i]-want) < 0.011) || !(math.Abs(heat[i]-w*w/1e3) < 1e-3) {
			t.Errorf("case %d stops after %g s with %g kJ, want %g s and %g kJ", i, stop[i], heat[i], want, w*w/1e3)
		}
	}
}

// checkTable merges a folder and compares the titles and the case numbers with a table of the
// guide.
func checkTable(t *testing.T, dir, want string) {
	t.Helper()
	file := filepath.Join(dir, "table.csv")
	if _, err := Merge(dir, file, "", false); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	got, told := bytes.Split(data, []byte("\n")), strings.Split(want, "\n")
	if len(got) != len(told) {
		t.Fatalf("the table has %d lines, that of the guide %d", len(got), len(told))
	}
	for i := range told {
		a, b := strings.Split(string(got[i]), ","), strings.Split(told[i], ",")
		if !slices.Equal(a[:min(3, len(a))], b[:min(3, len(b))]) || i == 0 && string(got[0]) != told[0] {
			t.Errorf("line %d is %s, in the guide %s", i+1, got[i], told[i])
		}
	}
}

func TestGuideAddressesAreFound(t *testing.T) {
	dir, _, _ := examples(t)
	from := func(name, scenario string) []location {
		v, err := virtual.NewVariation(dir, name)
		if err == nil && scenario != "" {
			err = v.SetScenario(dir, scenario)
		}
		if err != nil {
			t.Fatal(err)
		}
		return locations(v)
	}
	var all []location
	all = append(all, from("automatic4", "automatic4-leaking-clutch")...)
	all = append(all, from("abs-bench", "abs-dry")...)
	all = append(all, from("flywheel.yaml", "")...)
	list := guidetest.FirstColumn(t, sweepGuide, "parameter-addresses", 0)
	if len(list) < 10 {
		t.Errorf("the guide has the addresses %q", list)
	}
	for _, name := range list {
		if _, err := find(all, name); err != nil {
			t.Error(err)
		}
	}
}
