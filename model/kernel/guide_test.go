package kernel_test

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"lockstep/model/kernel"
	"lockstep/model/modeltest"
	"lockstep/rt/guide"
)

// guideRows returns the rows of table n, from 0, of a section of the guide, without its head.
func guideRows(t *testing.T, topic string, n int) (rows [][]string) {
	t.Helper()
	s, ok := guide.Guide{Name: "method", Source: kernel.Method}.Section(topic)
	if !ok {
		t.Fatalf("no section %s", topic)
	}
	before := ""
	for line := range strings.Lines(string(s.Source)) {
		if !strings.HasPrefix(line, "|") {
			before = ""
			continue
		}
		if strings.HasPrefix(line, "|---") {
			n--
		} else if before != "" && n == -1 {
			cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
			for i := range cells {
				cells[i] = strings.Trim(strings.TrimSpace(cells[i]), "`")
			}
			rows = append(rows, cells)
		}
		before = line
	}
	if len(rows) == 0 {
		t.Fatalf("no such table in section %s", topic)
	}
	return rows
}

func number(t *testing.T, s string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(s, 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// same reports whether a equals b to the digits that the guide prints.
func same(a, b float64) bool { return math.Abs(a-b) <= 1e-6*max(1, math.Abs(b)) }

// example returns the tables of the plant of the worked example.
func example(t *testing.T, scheme kernel.Scheme, form kernel.Form) *kernel.Tables {
	t.Helper()
	blocks := guide.Guide{Name: "method", Source: kernel.Method}.Blocks()
	i := slices.IndexFunc(blocks, func(b guide.Block) bool { return b.Language == "yaml" })
	if i < 0 {
		t.Fatal("the guide has no plant")
	}
	tables, err := kernel.Prepare(modeltest.System(t, blocks[i].Text),
		kernel.Options{Period: 5 * time.Millisecond, Scheme: scheme, Form: form})
	if err != nil {
		t.Fatal(err)
	}
	return tables
}

func TestGuideExampleHasItsMatricesAndBounds(t *testing.T) {
	tables := example(t, kernel.Complete, kernel.Projected)
	for _, m := range guideRows(t, "worked-example", 0) {
		have, ok := map[string][]float64{"W": tables.W, "Bc": tables.Bc, "G": tables.Gram, "P": tables.Modes[1].P}[m[0]]
		want := strings.Split(m[1], ", ")
		if !ok || len(want) != len(have) {
			t.Fatalf("%s is %v, the guide says %s", m[0], have, m[1])
		}
		for i, v := range have {
			if !same(v, number(t, want[i])) {
				t.Errorf("%s is %v, the guide says %s", m[0], have, m[1])
			}
		}
	}
	b := tables.Bounds()
	have := map[string]int{
		"periods": 2 + int(tables.LagBound*1e9)/int(tables.PeriodNs), "substeps": b.Substeps, "events located per period": b.Events,
		"minimum substeps per period": b.MinSubsteps, "breakpoints": b.Breakpoints, "iterations of laws": b.Iterations, "pivots per event": b.Pivots,
	}
	rows := guideRows(t, "worked-example", 3)
	for _, r := range rows {
		if v, ok := have[r[0]]; !ok || float64(v) != number(t, r[1]) {
			t.Errorf("%s: %d, the guide says %s", r[0], v, r[1])
		}
	}
	if len(rows) != len(have) {
		t.Errorf("the guide has %d bounds, want %d", len(rows), len(have))
	}
}

// The tables of the example are the outputs of the kernel, in every scheme and form.
func TestGuideExampleHasItsMotion(t *testing.T) {
	motion, buffer := guideRows(t, "worked-example", 1), guideRows(t, "worked-example", 2)
	for _, scheme := range []kernel.Scheme{kernel.Complete, kernel.Papers} {
		for _, form := range []kernel.Form{kernel.Projected, kernel.Held} {
			tables := example(t, scheme, form)
			rows := outputsOf(tables)
			check := func(at string, names []string, want []string) {
				t.Helper()
				row := rows[int(math.Round(number(t, at)/0.005))]
				for i, name := range names {
					if !same(row[name], number(t, want[i])) {
						t.Errorf("%s, %s: %s at %s s is %.9g, the guide says %s", scheme, form, name, at, row[name], want[i])
					}
				}
			}
			for _, r := range motion {
				check(r[0], []string{"clutch.mode", "w_engine", "w_vehicle", "clutch.tau"}, r[1:])
				if scheme == kernel.Complete {
					check(r[0], []string{"eta", "lag"}, r[5:])
				}
			}
			for _, r := range buffer {
				if scheme == kernel.Papers {
					check(r[0], []string{"eta", "lag"}, r[1:])
				}
			}
		}
	}
}

// outputsOf returns the outputs of 2.5 s by name, one row for each grid time.
func outputsOf(tables *kernel.Tables) (rows []map[string]float64) {
	k, y, u := kernel.New(tables), make([]float64, len(tables.Outputs)), make([]float64, len(tables.Inputs))
	k.Output(y)
	for range 501 {
		row := map[string]float64{}
		for i, o := range tables.Outputs {
			row[o.Name] = y[i]
		}
		rows = append(rows, row)
		k.Step(y, u)
	}
	return rows
}

func TestGuideListsTheOutputs(t *testing.T) {
	var listed []string
	for _, r := range guideRows(t, "outputs", 0) {
		for _, name := range strings.Split(r[0], ", ") {
			listed = append(listed, strings.Trim(name, "`"))
		}
	}
	text := "plant: t\nelements:\n  a: {type: inertia, J: 1}\n  b: {type: brake, flange: a, mu: 1, cgeo: 1, fn: 1 N}\n" +
		"  m: {type: mass, m: 1}\n  r: {type: fixed, s0: 0}\n" +
		"  k: {type: affine_spring, a: r, b: m, c: [1, 2], borders: [1], hysteresis: 1}\n"
	tables, err := kernel.Prepare(modeltest.System(t, text), kernel.Options{Period: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	have := []string{}
	for _, o := range tables.Outputs {
		name := o.Name
		for _, element := range []string{"b", "m", "k", "r"} {
			if rest, ok := strings.CutPrefix(name, element+"."); ok {
				name = "NAME." + rest
			}
		}
		if !slices.Contains(have, name) {
			have = append(have, name)
		}
	}
	for _, list := range [][]string{listed, have} {
		slices.Sort(list)
	}
	if !slices.Equal(listed, have) {
		t.Errorf("the guide lists %q, the kernel gives %q", listed, have)
	}
}

// The bounds of the errors in the guide equal those of the test in model/plants.
func TestGuideListsTheBoundsOfTheErrors(t *testing.T) {
	text, err := os.ReadFile("../plants/truth_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range guideRows(t, "accuracy", 1) {
		name, _, _ := strings.Cut(r[0], "`")
		m := regexp.MustCompile(`plant: "` + name + `", file: .*? one: (\S+), five: ([^,}]+),?(?: ten: ([^,}]+))?`).FindSubmatch(text)
		if m == nil {
			t.Errorf("no test of %s", name)
			continue
		}
		for i, want := range r[1:] {
			if have := cmp.Or(string(m[i+1]), "-"); strings.Trim(have, ",") != want {
				t.Errorf("%s: the test allows %s, the guide says %s", name, have, want)
			}
		}
	}
}

func TestGuideListsEveryFile(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var want, listed []string
	for _, f := range files {
		if f != "doc.go" && !strings.HasSuffix(f, "_test.go") {
			want = append(want, f)
		}
	}
	for _, r := range guideRows(t, "files", 0) {
		listed = append(listed, r[0])
	}
	slices.Sort(listed)
	if !slices.Equal(listed, want) {
		t.Errorf("the guide lists %q, the folder has %q", listed, want)
	}
}

// The memory of a lock set in the guide equals the count of Tables.Bytes.
func TestGuideStatesTheMemoryOfALockSet(t *testing.T) {
	tables := example(t, kernel.Complete, kernel.Projected)
	n, m, mc := tables.N, tables.M, tables.Mc
	if want := 2 * 8 * (3*n*n + 4*n*(m+mc) + mc*(2*n+m+mc)); tables.Bytes() != want {
		t.Errorf("two lock sets take %d bytes, the guide says %d", tables.Bytes(), want)
	}
	const formula = "8·(3·n² + 4·n·(m+mc) + mc·(2·n+m+mc))"
	if !strings.Contains(string(kernel.Method), fmt.Sprintf("`%s`", formula)) {
		t.Errorf("the guide does not say %s", formula)
	}
}
