package rules

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"lockstep/model/modeltest"
	"lockstep/rt/bench"
	"lockstep/rt/bench/benchtest"
)

// Rules for the numbers with a fraction that a function reads from text.
const (
	typed   = "a person types it: it carries its unit; 0 needs none, except as a temperature"
	beside  = "its unit is stated beside it: of a table, an input or a column"
	element = "a parameter of an element, which may be bare and is SI then; a port follows typed or beside"
	plain   = "a number without a unit"
	file    = "a file format or the host states it, not a person"
)

// numberReaders lists every function that reads numbers with a fraction, as FOLDER.FUNCTION CALL, and
// the rule for their units.
var numberReaders = map[string]string{
	"io/csvfile.field ParseFloat":            beside, // in the head of the column
	"io/dbc.number ParseFloat":               file,
	"io/dbc.numberAttribute ParseFloat":      file,
	"io/dbc.rawValue ParseFloat":             file,
	"io/framelog.setPrintedTime ParseFloat":  file,
	"io/sigmap.parseNumber ParseFloat":       typed, // the signal's own unit follows, or it has none
	"io/sigmap.parseNumber Typed":            typed,
	"io/sigmap.parseRaw Evaluate":            typed, // words the error
	"io/sigmap.compileSubstitute Typed":      typed,
	"io/tir.add ParseFloat":                  file,
	"io/tir.isRow ParseFloat":                file,
	"model/element.Number ParseFloat":        file,  // the default in the table of parameters
	"model/law.expr ParseFloat":              plain, // of a formula in the code
	"model/plantfile.Quantity Evaluate":      element,
	"model/plantfile.Quantity In":            element,
	"model/plantfile.Quantity Typed":         typed, // of an output without unit
	"model/plantfile.parameter Evaluate":     element,
	"model/plantfile.scalarUnit Evaluate":    element, // for its unit alone
	"model/plantfile.assigned Evaluate":      typed,
	"model/plantfile.assigned Typed":         typed,
	"rt/bench.readNanoseconds ReadQuantity":  typed,
	"rt/bench.ReadQuantity Typed":            typed,
	"rt/bench.readTable Beside":              beside,
	"rt/bench.readFormula Evaluate":          typed,
	"rt/bench.readFormula Typed":             typed,
	"rt/bench.readSine ReadQuantity":         typed,
	"rt/bench.readAction Typed":              typed,
	"rt/bench.applyRanges Typed":             typed,
	"rt/bench.prepareSafeValues Typed":       typed,
	"rt/bench.readBitRate ParseFloat":        typed, // bit/s, kbit/s or Mbit/s
	"rt/bench.ReadSetting Typed":             typed,
	"rt/diagnosis.Encode Typed":              typed,
	"rt/diagnosis.convertLinear ParseFloat":  file, // ODX
	"rt/diagnosis.readTime Typed":            typed,
	"rt/diagnosis.readValue ParseFloat":      plain, // factor and offset; the unit is beside them
	"rt/cmd/lockstep.time ParseDuration":     typed,
	"rt/cmd/lockstep.time Typed":             typed, // words the error
	"rt/scenario.readLane ReadQuantity":      typed,
	"rt/scenario.readSettings ReadQuantity":  typed,
	"rt/scenario.readTyped Typed":            typed,
	"rt/scenario.readRate Evaluate":          typed,
	"rt/scenario.readRate Typed":             typed,
	"rt/scenario.setTolerance Evaluate":      typed, // a share in %
	"rt/network.ParseSupply Typed":           typed,
	"rt/sweep.fit Evaluate":                  typed,
	"rt/sweep.fit Typed":                     typed,
	"rt/sweep.number ParseFloat":             typed, // fit compares it with the rule of its key
	"rt/sweep.readSpan ReadQuantity":         typed,
	"rt/sweep.numbers Typed":                 typed,
	"rt/sweep.quantity Typed":                typed,
	"rt/trace.firstTime Typed":               typed,
	"rt/trace.setTolerance Typed":            typed,
	"sched.throttling ParseFloat":            file,
	"rt/control.parseTicks Typed":            typed,
	"deploy/latency.parseOSNoise ParseFloat": file, // rtla, %

	"model/plantfile.readStartQuantity Evaluate": typed,
	"model/plantfile.readStartQuantity Typed":    typed,
}

// readersOfText holds the names of the functions that make a float64 from text.
var readersOfText = []string{"ParseFloat", "ParseDuration", "Quantity", "Typed", "Evaluate", "Beside", "In", "ReadQuantity",
	"Float64Var", "Float64", "Duration", "DurationVar"}

// TestEveryReaderOfNumbersHasARuleForTheirUnit finds the functions that read numbers and compares them
// with numberReaders.
func TestEveryReaderOfNumbersHasARuleForTheirUnit(t *testing.T) {
	found := map[string]bool{}
	for _, s := range sources(t) {
		if s.test || strings.HasPrefix(s.folder, "hil_test") || s.folder == "model/units" {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(top, s.path), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			name := "var"
			if fn, ok := d.(*ast.FuncDecl); ok {
				name = fn.Name.Name
			}
			ast.Inspect(d, func(n ast.Node) bool {
				if c, ok := n.(*ast.CallExpr); ok && readsNumber(c) {
					found[fmt.Sprintf("%s.%s %s", s.folder, name, calledName(c))] = true
				}
				return true
			})
		}
	}
	for _, at := range slices.Sorted(maps.Keys(found)) {
		if numberReaders[at] == "" {
			t.Errorf("%s has no rule for the unit of its numbers", at)
		}
	}
	for at := range numberReaders {
		if !found[at] {
			t.Errorf("%s: there is no such reader", at)
		}
	}
}

func calledName(c *ast.CallExpr) string {
	switch f := c.Fun.(type) {
	case *ast.SelectorExpr:
		return f.Sel.Name
	case *ast.Ident:
		return f.Name
	}
	return ""
}

// readsNumber reports whether a call makes a number of text. Parameter.In and the methods of a scope
// that take a field are no such calls: Quantity of a scope is listed by itself.
func readsNumber(c *ast.CallExpr) bool {
	name := calledName(c)
	if !slices.Contains(readersOfText, name) || len(c.Args) == 0 {
		return false
	}
	f, method := c.Fun.(*ast.SelectorExpr)
	of := ""
	if method {
		if x, ok := f.X.(*ast.Ident); ok {
			of = x.Name
		}
	}
	switch name {
	case "Quantity":
		return of == "units"
	case "In":
		return of == "v"
	case "Duration", "Float64":
		return of == "a" // a flag
	}
	return true
}

// typedNumber is a number of a bench or plant file by the key that has it. Its place is #.
type typedNumber struct {
	old, text string // part of the file, and the text in its place
	unit      string // wanted unit, as the refusal names it
	right     string // a number with its unit
	same      string // the same in another unit
	wrong     string // a number in a unit that does not fit
}

const (
	timeHint = "7 ms or 7 s"
	barHint  = "7 bar"
)

// benchTimes are the numbers of a bench that package bench reads as times, by the key in the code.
var benchTimes = map[string]typedNumber{
	"period":          {"period: 5 ms", "period: #", timeHint, "5 ms", "0.005 s", "5 bar"},
	"spin":            {"period: 5 ms", "period: 5 ms\nspin: #", timeHint, "50 us", "0.05 ms", "5 bar"},
	"tick_budget":     {"period: 5 ms", "period: 5 ms\ntick_budget: #", timeHint, "2 ms", "2000 us", "5 rpm"},
	"watchdog":        {"period: 5 ms", "period: 5 ms\nwatchdog: #", timeHint, "2 s", "2000 ms", "5 m"},
	"time":            {"  time: 100 ms", "  time: #", timeHint, "100 ms", "0.1 s", "5 K"},
	"cycle":           {"Slow: {cycle: 20 ms}", "Slow: {cycle: #}", timeHint, "20 ms", "0.02 s", "5 bar"},
	"min_gap":         {"min_gap: 10 ms", "min_gap: #", timeHint, "10 ms", "0.01 s", "5 bar"},
	"phase":           {"Slow: {cycle: 20 ms}", "Slow: {cycle: 20 ms, phase: #}", timeHint, "5 ms", "0.005 s", "5 bar"},
	"timeout":         {"timeout: 40 ms", "timeout: #", timeHint, "40 ms", "0.04 s", "5 bar"},
	"first_timeout":   {"timeout: 40 ms", "timeout: 40 ms\n        first_timeout: #", timeHint, "2 s", "2000 ms", "5 bar"},
	"delay":           {"Slow: {cycle: 20 ms}", "Slow: {cycle: 20 ms, delay: #}", timeHint, "5 ms", "0.005 s", "5 bar"},
	"hold":            {"period: 5 ms", "period: 5 ms\nnetwork: {wake: {by: any, hold: #}}", timeHint, "2 s", "2000 ms", "5 bar"},
	"offset":          {"Slow: {cycle: 20 ms}", "Slow: {cycle: 20 ms}\n    nm: {message: Slow, node: 1, offset: #}", timeHint, "20 ms", "0.02 s", "5 bar"},
	"repeat":          {"Slow: {cycle: 20 ms}", "Slow: {cycle: 20 ms}\n    nm: {message: Slow, node: 1, repeat: #}", timeHint, "2 s", "2000 ms", "5 bar"},
	"wait":            {"Slow: {cycle: 20 ms}", "Slow: {cycle: 20 ms}\n    nm: {message: Slow, node: 1, wait: #}", timeHint, "2 s", "2000 ms", "5 bar"},
	"immediate_cycle": {"Slow: {cycle: 20 ms}", "Slow: {cycle: 20 ms}\n    nm: {message: Slow, node: 1, immediate_cycle: #}", timeHint, "20 ms", "0.02 s", "5 bar"},
	"hang":            {"control_unit: powershift ", "control_unit: {exec: ./tcu, hang: #} ", timeHint, "30 s", "0.5 min", "5 bar"},
	"waveform":        {"period: 0.1 s}", "period: #}", timeHint, "0.2 s", "200 ms", "5 bar"},
}

// benchValues are the other numbers of a bench.
var benchValues = map[string]typedNumber{
	"safe: values":    {"tau_load: 0", "tau_load: #", "7 N.m", "100 N.m", "0.1 kN.m", "5 bar"},
	"safe: speed":     {"w3: 0", "w3: #", "7 rpm", "300 rpm", "31.4 rad/s", "5 Hz"},
	"substitute":      {"clutch1.pressure: 3 bar", "clutch1.pressure: #", barHint, "3 bar", "300 kPa", "3 N"},
	"supervisor_gone": {"stop after 1 s", "stop after #", timeHint, "1 s", "1000 ms", ""},
	"recover":         {"    database: ", "    recover: restart after #\n    database: ", timeHint, "1 s", "200 ms", ""},
	"constant":        {"{table: [[0 s, 100], [0.1 s, 200]], period: 0.1 s}", "#", "7 rpm", "1500 rpm", "50 rad/s", "5 bar"},
	"mean":            {"mean: 10 N.m", "mean: #", "7 N.m", "10 N.m", "0.01 kN.m", "10 rpm"},
	"amplitude":       {"amplitude: 5 N.m", "amplitude: #", "7 N.m", "5 N.m", "0.005 kN.m", "10 rpm"},
	"frequency":       {"frequency: 2 Hz", "frequency: #", "7 Hz", "2 Hz", "(1 + 1)*1 Hz", "2 rpm"},
	"formula":         {"{sine: {mean: 10 N.m, amplitude: 5 N.m, frequency: 2 Hz}}", "{formula: #, period: 1 s}", "7 N.m", "5 N.m*t", "5 N*1 m*t", "5 rpm*t"},
	"unit of a table": {"[0.1 s, 200]], ", "[0.1 s, 200]], units: [s, #], ", "", "rpm", "rad/s", "bar"},
	"control unit":    {"control_unit: powershift ", "control_unit: {name: truck, up_2: #} ", "7 rad/s", "80 rad/s", "800 rpm", "5 bar"},
}

// TestEveryNumberOfABenchHasItsUnit types each number of a bench without its unit, with it, with
// another one, and with a wrong one. It compares the list of times with the calls of readNanoseconds.
func TestEveryNumberOfABenchHasItsUnit(t *testing.T) {
	dir := benchtest.GuardedFolder(t)
	load := func(n typedNumber, number string) error {
		text := benchtest.GuardedText(t)
		if !strings.Contains(n.text, "network:") {
			text = "network: {start: run}\n" + text // for the times of ignition and network management
		}
		if !strings.Contains(text, n.old) {
			t.Fatalf("the bench has no %q", n.old)
		}
		b, err := bench.Parse("b.yaml", dir, []byte(strings.Replace(text, n.old, strings.Replace(n.text, "#", number, 1), 1)))
		if err == nil {
			_, err = bench.Prepare(b)
		}
		return err
	}
	for _, list := range []map[string]typedNumber{benchTimes, benchValues} {
		for key, n := range list {
			walk(t, key, n, func(number string) error { return load(n, number) })
		}
	}
	for _, key := range timesOfBenches(t) {
		if _, ok := benchTimes[key]; !ok {
			t.Errorf("the test has no time %s, which package bench reads", key)
		}
	}
}

// walk tries a number without its unit, with it, in another unit and in a wrong one.
func walk(t *testing.T, key string, n typedNumber, load func(number string) error) {
	t.Helper()
	if err := load("7"); n.unit != "" && (err == nil || !strings.Contains(err.Error(), "needs a unit") ||
		!strings.Contains(err.Error(), n.unit) && key != "formula") {
		t.Errorf("%s: 7 without a unit: %v; want a hint to %s", key, err, n.unit)
	}
	for _, number := range []string{n.right, n.same} {
		if err := load(number); err != nil {
			t.Errorf("%s: %s: %v", key, number, err)
		}
	}
	if err := load(n.wrong); n.wrong != "" && (err == nil || !strings.Contains(err.Error(), "does not fit")) {
		t.Errorf("%s: %s: %v; want an error", key, n.wrong, err)
	}
}

// timesOfBenches returns the keys of the times that package bench reads: the last word of the third
// argument of readNanoseconds.
func timesOfBenches(t *testing.T) (keys []string) {
	for _, s := range sources(t) {
		if s.test || s.folder != "rt/bench" {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(top, s.path), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			c, ok := n.(*ast.CallExpr)
			if !ok || calledName(c) != "readNanoseconds" {
				return true
			}
			what := c.Args[2]
			if sum, ok := what.(*ast.BinaryExpr); ok {
				what = sum.Y
			}
			word := strings.Trim(what.(*ast.BasicLit).Value, `"`)
			keys = append(keys, word[strings.LastIndex(word, " ")+1:])
			return true
		})
	}
	if len(keys) < 10 {
		t.Fatalf("found only the times %q", keys)
	}
	return keys
}

const tableDefault = "{table: [[0, 1], [1, 2]]}" // of the input of plantOfNumbers

const plantOfNumbers = `plant: numbers
inputs:
  p: {unit: bar, min: 0, max: 40, default: {table: [[0, 1], [1, 2]]}, delay: 20 ms}
elements:
  rim: {type: inertia, J: 1, w_start: 100 rpm}
  grip: {type: brake, flange: rim, mu: 0.1, cgeo: 1, area: 10 cm2, pressure: p}
  push: {type: torque, flange: rim, tau: 50 N.m}
outputs:
  w: {speed: rim, min: -500 rpm, max: 500 rpm}
  n: {speed: rim, unit: rpm, min: -5000, max: 5000}
  load: {torque: push, per: 400 N.m}
`

// plantNumbers are the numbers of a plant file by their place. Without a hint a number may be bare: its
// unit is stated beside it, or it is a parameter of an element in SI.
var plantNumbers = map[string]typedNumber{
	"min of an input":            {"min: 0, max: 40", "min: 0, max: #", "", "40 bar", "4 MPa", "40 N"},
	"table of an input":          {"[0, 1]", "[0, #]", "", "1 bar", "100 kPa", "1 m"},
	"time in a table":            {"[1, 2]", "[#, 2]", "", "1 s", "1000 ms", "1 bar"},
	"unit of a table":            {"[1, 2]]", "[1, 2]], units: [ms, #]", "", "bar", "kPa", "rpm"},
	"frequency of a sine":        {tableDefault, "{sine: {amplitude: 0, offset: 1, f: #}}", "7 Hz", "2 Hz", "2000*0.001 Hz", "2 rpm"},
	"phase of a sine":            {tableDefault, "{sine: {amplitude: 0, offset: 1, f: 1 Hz, phase: #}}", "7 deg or 7 rad", "90 deg", "1.5 rad", "2 bar"},
	"begin of a sine":            {tableDefault, "{sine: {amplitude: 0, offset: 1, f: 1 Hz, startTime: #}}", timeHint, "1 s", "200 ms", "2 bar"},
	"begin of a step":            {tableDefault, "{step: {height: 1, startTime: #}}", timeHint, "1 s", "200 ms", "2 bar"},
	"duration of a ramp":         {tableDefault, "{sum: [{ramp: {height: 1, duration: #}}, 1]}", timeHint, "1 s", "200 ms", "2 bar"},
	"width of a pulse":           {tableDefault, "{pulse: {amplitude: 1, width: #, period: 1 s}}", "7 %", "40 %", "(0.2 + 0.2)*100 %", "2 bar"},
	"period of a pulse":          {tableDefault, "{pulse: {amplitude: 1, width: 50 %, period: #}}", timeHint, "1 s", "200 ms", "2 bar"},
	"rise of a trapezoid":        {tableDefault, "{trapezoid: {amplitude: 1, rising: #, width: 0, falling: 0, period: 9 s}}", timeHint, "1 s", "200 ms", "2 bar"},
	"width of a trapezoid":       {tableDefault, "{trapezoid: {amplitude: 1, rising: 0, width: #, falling: 0, period: 9 s}}", timeHint, "1 s", "200 ms", "2 bar"},
	"fall of a trapezoid":        {tableDefault, "{trapezoid: {amplitude: 1, rising: 0, width: 0, falling: #, period: 9 s}}", timeHint, "1 s", "200 ms", "2 bar"},
	"period of a table":          {"[1, 2]]}", "[1, 2]], period: #}", timeHint, "2 s", "2000 ms", "1 bar"},
	"begin of a table":           {"[1, 2]]}", "[1, 2]], startTime: #}", timeHint, "2 s", "2000 ms", "1 bar"},
	"waveform of an element":     {"tau: 50 N.m", "tau: {sine: {amplitude: 1, f: 2, phase: #}}", "", "1 rad", "60 deg", "1 bar"},
	"offset of an output in rpm": {"w: {speed: rim,", "w: {speed: rim, unit: rpm, offset: #,", "7 rpm", "1 rpm", "1 rad/s", "1 bar"},
	"delay":                      {"20 ms", "#", timeHint, "20 ms", "0.02 s", "1 bar"},
	"parameter of an element":    {"J: 1,", "J: #,", "", "1 kg.m2", "1000 g.m2", "1 bar"},
	"minimum of an output in SI": {"min: -500 rpm", "min: #", "7 rad/s", "-50 rad/s", "-500 rpm", "1 bar"},
	"minimum in an input's unit": {"min: -5000, max: 5000}", "min: -5000, max: 5000}\n  q: {signal: p, max: #}", barHint, "3 bar", "300 kPa", "1 m"},
	"minimum of a declared one":  {"min: -5000", "min: #", "", "-5000 rpm", "-500 rad/s", "1 bar"},
	"divisor of an output":       {"per: 400 N.m", "per: #", "7 N.m", "400 N.m", "0.4 kN.m", "1 bar"},
	"unit of an output":          {"unit: rpm", "unit: #", "", "rad/s", "1/min", "bar"},
}

// TestEveryNumberOfAPlantHasItsUnit types each kind of number of a plant file.
func TestEveryNumberOfAPlantHasItsUnit(t *testing.T) {
	for key, n := range plantNumbers {
		if !strings.Contains(plantOfNumbers, n.old) {
			t.Fatalf("the plant has no %q", n.old)
		}
		walk(t, key, n, func(number string) error {
			return modeltest.Check(strings.Replace(plantOfNumbers, n.old, strings.Replace(n.text, "#", number, 1), 1))
		})
	}
}
