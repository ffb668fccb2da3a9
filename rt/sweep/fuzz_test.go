package sweep

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"

	"lockstep/io/yamlfile"
	"lockstep/rt/guide"
)

// FuzzSweep checks that any text gives a sweep or an error of one line with a position. Each case
// of a sweep has one finite value of each parameter, which its text gives back.
func FuzzSweep(f *testing.F) {
	for _, b := range (guide.Guide{Source: Guide}).Blocks() {
		if b.Language == "yaml" {
			f.Add(b.Text)
		}
	}
	const head = "sweep: a\nplant: p\nresults: {w: {final: w}}\nparameters:\n  mu: "
	for _, s := range []string{
		"{from: 1 bar, to: 200 kPa, steps: 3}", "{values: [1, 2 %, 3]}\n  J: [4, 5, 6]\ncases: zip\n", "{of: [a.b, c.d], values: [1]}\nfor: 1 s\n",
		"{random: uniform, from: 0, to: 1, seed: 7, n: 3}", "{random: log, from: 1, to: 10, seed: 7, n: 3}", "{random: normal, mean: 20 degC, deviation: 1 K, seed: 7, n: 3}",
		"{random: normal, mean: 1, deviation: 1}\ncases: {latin_hypercube: 4, seed: 2}\n", "{from: 1e308, to: -1e308, steps: 2}", "{values: []}",
	} {
		f.Add(head + s)
	}
	f.Add("{")
	f.Add("sweep: [")
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Count(text, "0000") > 3 {
			return // millions of values of many parameters take long
		}
		s, err := parse("s.yaml", []byte(text))
		if err != nil {
			var at *yamlfile.FileError
			if !errors.As(err, &at) || at.File != "s.yaml" || at.Line < 1 || at.Col < 1 || strings.Contains(err.Error(), "\n") {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		if s.Cases < 1 || s.Cases > maxCases || len(s.Columns) != 1+len(s.parameters)+len(s.results) {
			t.Fatalf("%q: %d cases, columns %v", text, s.Cases, s.Columns)
		}
		for i := range s.parameters {
			p := &s.parameters[i]
			for _, at := range []int64{0, s.Cases / 2, s.Cases - 1} {
				k := p.index(at)
				v, unit, err := number(p.text(k))
				if err != nil || unit != p.unit || v != p.values[k] || math.IsNaN(v) || math.IsInf(v, 0) {
					t.Fatalf("%q: case %d gives %s the value %g %s, as text %q (%v)", text, at, p.name.Text, p.values[k], p.unit, p.text(k), err)
				}
			}
		}
	})
}

// A grid of 300 parameters with a million values each has more than two gigabytes of values.
func TestGridWithTooManyCasesIsRefusedBeforeItsValuesAreMade(t *testing.T) {
	text := "sweep: a\nplant: p\nresults: {w: {final: w}}\nparameters:\n" + "  mu: {from: 1, to: 2, steps: 1000000}\n"
	for i := range 300 {
		text += fmt.Sprintf("  p%d: {from: 1, to: 2, steps: 1000000}\n", i)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := parse("s.yaml", []byte(text))
	runtime.ReadMemStats(&after)
	if err == nil || !strings.Contains(err.Error(), "1e+12 cases, at most 1000000 are possible") {
		t.Errorf("%v", err)
	}
	if used := after.TotalAlloc - before.TotalAlloc; used > 1<<30 {
		t.Errorf("reading the file took %d bytes", used)
	}
}
