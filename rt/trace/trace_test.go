package trace

import (
	"bytes"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/floats/scalar"

	"lockstep/io/record"
	"lockstep/model/units"
)

// whole is the view of all times.
var whole = View{To: math.Inf(1)}

func file(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

func open(t *testing.T, content string, patterns ...string) *Trace {
	t.Helper()
	r, err := Open("plot", file(t, "run.csv", content), whole, patterns...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// damped is a run of two speeds and a pressure. shift delays the oscillation, s.
func damped(t *testing.T, rows int, step, shift float64) *Trace {
	t.Helper()
	var b strings.Builder
	b.WriteString("time[s],w[rpm],v[m/s],p[bar]\n")
	for i := range rows {
		at := float64(i) * step
		p := "0"
		if i >= int(math.Round((0.2+shift)/step)) {
			p = "5"
		}
		for k, v := range []float64{at, 1000 + 100*math.Sin(10*(at-shift)), math.Exp(-at)} {
			if k > 0 {
				b.WriteByte(',')
			}
			b.WriteString(units.Format(v, ""))
		}
		b.WriteString("," + p + "\n")
	}
	return open(t, b.String())
}

func TestARecordAndItsExportHaveEqualSignals(t *testing.T) {
	name := filepath.Join(t.TempDir(), "run.rec")
	w, err := record.Create(name, record.Header{
		Period: 5e6, Start: 1,
		Inputs:  []record.Signal{{Name: "p", Unit: "Pa", Declared: "bar"}},
		Outputs: []record.Signal{{Name: "w", Unit: "rad/s", Declared: "rpm"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for i := range int64(400) {
		e := &record.Entry{Kind: record.TickEntry, Tick: record.Tick{Index: i + 1, U: []float64{1e5 / 3 * float64(i)}, Y: []float64{100 / 7. * float64(i)}}}
		if err := w.Tick(&e.Tick); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	a, err := Open("diff", name, whole)
	if err != nil {
		t.Fatal(err)
	}
	for _, format := range []string{"csv", "mdf4"} {
		b, err := Open("diff", exported(t, name, format), whole, "p", "w")
		if err != nil {
			t.Fatal(err)
		}
		c, err := Compare(a, b, "", nil)
		if err != nil {
			t.Fatal(err)
		}
		if len(c.Times) != 400 || len(c.Deviations) != 2 || c.Err() != nil || c.Only[0] != nil || c.Only[1] != nil {
			t.Errorf("%s: %d common times, %d signals: %v", format, len(c.Times), len(c.Deviations), c.Err())
		}
	}
	if all, err := Open("plot", exported(t, name, "mdf4"), whole); err != nil || len(all.Signals) != 2 {
		t.Errorf("the MDF4 file has %d signals, want those of the plant: %v", len(all.Signals), err)
	}
	if _, err := Open("plot", exported(t, name, "mdf4"), whole, "q"); err == nil || !strings.Contains(err.Error(), `no signal "q"`) {
		t.Errorf("an unknown signal: %v", err)
	}
	if got := a.Signals[1]; got.Unit.Spelled != "rpm" || !scalar.EqualWithinRel(got.Values[7], 100*30/math.Pi, 1e-14) {
		t.Errorf("w at tick 8 is %g %s, want 100 rad/s in rpm", got.Values[7], got.Unit.Spelled)
	}

	// A part is read alone, and has the values that Window takes from the whole.
	v := View{From: 0.5, To: 1.25}
	cutOut, err := a.Window(v)
	if err != nil {
		t.Fatal(err)
	}
	part, err := Open("diff", name, v)
	if err != nil || !slices.Equal(part.Time, cutOut.Time) || !slices.Equal(part.Signals[1].Values, cutOut.Signals[1].Values) || len(part.Time) != 151 {
		t.Errorf("%d ticks, %v; want those of Window, 151", len(part.Time), err)
	}
	if _, err := Open("diff", name, View{From: 5, To: 6}); err == nil || !strings.Contains(err.Error(), "lasts from 0.005 s to 2 s") {
		t.Errorf("no tick in the view: %v", err)
	}
	defer func(n int) { maxValues = n }(maxValues)
	maxValues = 302 // two signals of 151 ticks
	if _, err := Open("diff", name, v); err != nil {
		t.Error(err)
	}
	if _, err := Open("diff", name, whole); err == nil || !strings.Contains(err.Error(), "more than 302 values of 2 signals up to 0.76 s") {
		t.Errorf("more values than allowed: %v", err)
	}
	maxValues = math.MaxInt

	// Half of the file: what it lacks is named.
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	cut := file(t, "cut.rec", string(content[:len(content)-8]))
	if part, err := Open("plot", cut, whole); err != nil || part.Gaps == nil {
		t.Errorf("a record without its end: gaps %v, error %v", part.Gaps, err)
	}
}

func exported(t *testing.T, name, format string) string {
	t.Helper()
	r, err := record.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	file := filepath.Join(t.TempDir(), "run."+format)
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := record.Export(r, format, f); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestPatternsChooseSignalsInTheirOrder(t *testing.T) {
	const text = "time[s],J1.w[rpm],J2.w[rpm],p[bar]\n0,1,2,3\n1,4,5,6\n"
	r := open(t, text, "p", "J*.w", "J1.w")
	if got := r.names(); !slices.Equal(got, []string{"p", "J1.w", "J2.w"}) {
		t.Errorf("signals %q", got)
	}
	if got := r.Signals[2].Values; !slices.Equal(got, []float64{2, 5}) {
		t.Errorf("J2.w is %v", got)
	}
	_, err := Open("plot", file(t, "run.csv", text), whole, "J1w")
	if err == nil || !strings.Contains(err.Error(), `no signal "J1w" (did you mean J1.w?)`) {
		t.Errorf("an unknown signal: %v", err)
	}
}

func TestBadFilesAreNamedWithTheirPosition(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"time[s],w[rpm]\n0,1\n0,2\n", "run.csv:3:1: plot: column time: 0 is not after the row before it"},
		{"time[s],w[rpm]\nNaN,1\n", "run.csv:2:1: plot: column time: NaN is not after"},
		{"time[s],w[rpm]\n0,x\n", `run.csv:2:3: plot: column w: "x" is not a number`},
		{"time[s],w[rpm]\n", "run.csv:2:1: plot: the file has a header and no row"},
		{"time[s],w[rpm\n0,1\n", `run.csv:1:9: plot: column "w[rpm": a bracket of the unit is missing: write w[rpm]`},
		{"time[s];w[rpm]\n0;1\n", "separated by ';'"},
	} {
		_, err := Open("plot", file(t, "run.csv", c.text), whole)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %q", c.text, err, c.want)
		}
	}
}

// The difference of two sines of amplitude 100 rpm with a phase of 10·0.01 rad is a sine of amplitude
// 200·sin(0.05).
func TestDeviationAgreesWithTheClosedForm(t *testing.T) {
	a, b := damped(t, 2001, 0.001, 0), damped(t, 2001, 0.001, 0.01)
	c, err := Compare(a, b, "", []string{"w=9rpm", "v=0 m/s"})
	if err != nil {
		t.Fatal(err)
	}
	worst := c.Deviations[0]
	amplitude := 200 * math.Sin(0.05)
	if worst.Name != "w" || worst.Since != 0 || !scalar.EqualWithinRel(worst.Largest, amplitude, 1e-4) || !scalar.EqualWithinRel(worst.RMS, amplitude/math.Sqrt2, 0.05) {
		t.Errorf("worst is %s by %g since %g, %g RMS; want w by %g rpm", worst.Name, worst.Largest, worst.Since, worst.RMS, amplitude)
	}
	if err := c.Err(); err == nil || !strings.Contains(err.Error(), "1 of 2 signals deviate beyond their tolerance: w by 9.99") {
		t.Errorf("error %v", err)
	}
	var out bytes.Buffer
	if err := c.Write(&out); err != nil || !strings.Contains(out.String(), "not judged") || !strings.Contains(out.String(), "BEYOND since") {
		t.Errorf("%v\n%s", err, &out)
	}

	// The same runs, aligned where the pressure rises, are equal.
	c, err = Compare(a, b, "p > 2 bar", []string{"w=1e-6rpm"})
	if err != nil {
		t.Fatal(err)
	}
	if !scalar.EqualWithinAbs(c.Shift, -0.01, 1e-12) || c.Err() != nil {
		t.Errorf("shift %g, %v", c.Shift, c.Err())
	}
}

func TestRunsWithDifferentPeriodsAreComparedAtCommonTimes(t *testing.T) {
	c, err := Compare(damped(t, 301, 0.005, 0), damped(t, 501, 0.003, 0), "", nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Times) != 101 || !scalar.EqualWithinAbs(c.Times[1], 0.015, 1e-12) || c.Err() != nil {
		t.Errorf("%d common times, %v", len(c.Times), c.Err())
	}
}

// A run that ended early must not pass as equal.
func TestARunThatEndsEarlyIsNotEqual(t *testing.T) {
	long, short := damped(t, 301, 0.005, 0), damped(t, 200, 0.005, 0)
	c, err := Compare(long, short, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Err(); err == nil || !strings.Contains(err.Error(), "-from and -to") {
		t.Errorf("error %v", err)
	}
	part, err := long.Window(View{To: 0.995})
	if err != nil {
		t.Fatal(err)
	}
	if c, err = Compare(part, short, "", nil); err != nil || c.Err() != nil {
		t.Errorf("the common part: %v, %v", err, c.Err())
	}
}

func TestNaNOfOneRunAloneIsADeviation(t *testing.T) {
	a := open(t, "time[s],w[rpm]\n0,1\n1,NaN\n2,NaN\n")
	b := open(t, "time[s],w[rpm]\n0,1\n1,NaN\n2,3\n")
	c, err := Compare(a, b, "", []string{"w=1e300rpm"})
	if err != nil {
		t.Fatal(err)
	}
	if d := c.Deviations[0]; !d.Beyond() || d.Since != 2 || c.Err() == nil {
		t.Errorf("since %g, %v", d.Since, c.Err())
	}
}

func TestBadTolerancesAndTriggersAreExplained(t *testing.T) {
	a, b := damped(t, 100, 0.01, 0), damped(t, 100, 0.01, 0)
	for _, c := range []struct{ trigger, tolerance, want string }{
		{"", "w", "write NAME=VALUE"},
		{"", "w=3", "3 needs a unit: 3 rpm?"},
		{"", "w=3bar", "does not fit"},
		{"", "w=-3rpm", "is not 0 or more"},
		{"", "ww=3rpm", `no common signal "ww" (did you mean w?)`},
		{"p", "", "write SIGNAL > VALUE"},
		{"p > 9 bar", "", "is never true"},
		{"p > 9", "", "needs a unit"},
		{"q > 9 bar", "", `no signal "q"`},
	} {
		var tolerances []string
		if c.tolerance != "" {
			tolerances = []string{c.tolerance}
		}
		if _, err := Compare(a, b, c.trigger, tolerances); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q %q: %v, want %q", c.trigger, c.tolerance, err, c.want)
		}
	}
	other := open(t, "time[s],w[bar]\n0,1\n0.01,2\n")
	if _, err := Compare(a, other, "", nil); err == nil || !strings.Contains(err.Error(), `signal "w"`) {
		t.Errorf("signals of other units: %v", err)
	}
}

// Of many values in one column of a diagram the extremes are drawn.
func TestDecimationKeepsPeaks(t *testing.T) {
	r := &Trace{File: "x"}
	s := Signal{Name: "w", Unit: units.Want("rpm")}
	for i := range 100_000 {
		r.Time = append(r.Time, float64(i)*1e-3)
		s.Values = append(s.Values, math.Sin(float64(i)*0.001))
	}
	s.Values[54_321] = 7
	r.Signals = []Signal{s}
	c := r.curve(&s, "w", 0)
	k := slices.Index(c.Y, 7)
	if len(c.Y) > 10_000 || k < 0 || !scalar.EqualWithinAbs(c.X[k], 54.321, 0.1) {
		t.Errorf("%d points, the peak of 7 at %d", len(c.Y), k)
	}
}

// The half blocks of a rising straight line rise by one half row per column.
func TestBlocksDrawAStraightLine(t *testing.T) {
	text := "time[s],w[rpm]\n"
	for i := range 2 * blockRows {
		text += units.Format(float64(i), "") + "," + units.Format(float64(i), "") + "\n"
	}
	out := open(t, text).Blocks(labelWidth + 1 + 32)
	lines := strings.Split(out, "\n")
	if lines[0] != "w, rpm" || len(lines) != blockRows+3 {
		t.Fatalf("%d lines:\n%s", len(lines), out)
	}
	last := math.Inf(1)
	for _, line := range lines[1 : 1+blockRows] {
		_, plot, _ := strings.Cut(line, "|")
		first := float64(len([]rune(plot)) - len([]rune(strings.TrimLeft(plot, " "))))
		if plot == "" || !(first < last) {
			t.Errorf("a rising line does not move to the left from row to row:\n%s", out)
			break
		}
		last = first
	}
}

func TestDiagramsAreWrittenInThreeFormats(t *testing.T) {
	s := damped(t, 100, 0.01, 0).Sheet()
	if len(s.Charts) != 3 {
		t.Errorf("%d charts for rpm, m/s and bar", len(s.Charts))
	}
	svg := s.SVG()
	if !bytes.HasPrefix(svg, []byte("<svg")) || bytes.Contains(svg, []byte("NaN")) || !bytes.Contains(svg, []byte(">rpm</text>")) {
		t.Error("no unit in the SVG")
	}
	content, err := s.PNG()
	if err != nil {
		t.Fatal(err)
	}
	image, err := png.Decode(bytes.NewReader(content))
	if err != nil || image.Bounds().Dx() != 2*sheetWidth {
		t.Errorf("PNG: %v", err)
	}
	if content, err = s.PDF(); err != nil || !bytes.HasPrefix(content, []byte("%PDF-")) {
		t.Errorf("PDF: %v", err)
	}
}

// A renamed signal is a difference: of all signals without -tol, with -tol where a pattern matches it.
func TestAMissingSignalIsNotEqual(t *testing.T) {
	a, b := open(t, "time[s],v[m/s],w\n0,1,1\n1,1,2\n"), open(t, "time[s],v[km/h],speed\n0,3.6,1\n1,3.6,2\n")
	for _, c := range []struct {
		tolerances []string
		want       string // in the error; "": none
		cases      int    // of JUnit
	}{
		{nil, b.File + " has no signal w; " + a.File + " has no signal speed", 4},
		{[]string{"v=0.1m/s"}, "", 2},
		{[]string{"*=0.1m/s"}, "has no signal w", 4},
		{[]string{"v=0.1m/s", "v*=1km/h"}, "", 2},
	} {
		d, err := Compare(a, b, "", c.tolerances)
		if err != nil {
			t.Fatalf("%q: %v", c.tolerances, err)
		}
		if err := d.Err(); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %q", c.tolerances, err, c.want)
		}
		var text strings.Builder
		if err := d.JUnit().Write(&text); err != nil || strings.Count(text.String(), "<testcase") != c.cases {
			t.Errorf("%q: %v, want %d cases in\n%s", c.tolerances, err, c.cases, &text)
		}
	}
	if _, err := Compare(a, open(t, "time[s],speed\n0,1\n1,2\n"), "", nil); err == nil || !strings.Contains(err.Error(), "no signal in common") {
		t.Errorf("no common signal: %v", err)
	}
}

// The flags and times of the ticks that export writes behind the signals belong to the host.
func TestColumnsOfTheTickAreReadOnlyByName(t *testing.T) {
	const text = "time[s],v,flags[1],the tick before[ns],send[ns]\n0,1,0,5,6\n1,1,0,7,8\n"
	for want, patterns := range map[string][]string{"v": nil, "send": {"send"}, "v flags": {"v", "flags"}} {
		if got := strings.Join(open(t, text, patterns...).names(), " "); got != want {
			t.Errorf("%q: %q, want %q", patterns, got, want)
		}
	}
	if got := open(t, "time[s],v,flags,w\n0,1,0,5\n1,1,0,7\n").names(); len(got) != 3 {
		t.Errorf("columns of another program: %q", got)
	}
}

func TestAPartThatEndsBeforeItBeginsIsRefused(t *testing.T) {
	_, err := Open("plot", file(t, "run.csv", "time[s],v\n0,1\n1,1\n"), View{From: 2, To: 1})
	if err == nil || err.Error() != "plot: -to 1 s is before -from 2 s" {
		t.Error(err)
	}
}
