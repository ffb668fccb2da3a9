package sweep

import (
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"lockstep/model/units"
)

// typedNumber is a number that a person types in a sweep file. Its place in the text is #.
type typedNumber struct {
	text string // replaces a line of the file
	unit string // unit of the number; "": a plain number
	same string // 3 in that unit, in another unit
	si   float64
	get  func(s *Sweep, m *meter) float64 // value that is applied, SI
}

// firstValue returns the first value of the first parameter, in SI.
func firstValue(s *Sweep, _ *meter) float64 {
	p := &s.parameters[0]
	return units.Want(p.unit).ToSI(p.values[0])
}

// Numbers by the key that has them.
var (
	sweepNumbers = map[string][]typedNumber{
		"step": {{"step: #", "ms", "0.003 s", 0.003, func(s *Sweep, _ *meter) float64 { return s.step.Seconds() }}},
		"for":  {{"for: #", "s", "3000 ms", 3, func(s *Sweep, _ *meter) float64 { return s.length.Seconds() }}},
		"cases": {{"cases: {latin_hypercube: #, seed: 1}\nparameters: {p: {from: 0, to: 5 bar}}", "", "", 3,
			func(s *Sweep, _ *meter) float64 { return float64(s.Cases) }}},
		"sweep": nil, "about": nil, "plant": nil, "bench": nil, "scenario": nil, "parameters": nil, "results": nil,
	}
	parameterNumbers = map[string][]typedNumber{
		"values":    {{"p: {values: [#]}", "bar", "300 kPa", 3e5, firstValue}, {"brake.mu: {values: [#]}", "", "", 3, firstValue}},
		"from":      {{"p: {from: #, to: 5 bar, steps: 2}", "bar", "300 kPa", 3e5, firstValue}},
		"to":        {{"p: {from: #, to: #, steps: 1}", "bar", "300 kPa", 3e5, firstValue}},
		"mean":      {{"p: {random: normal, mean: #, deviation: 1e-12 bar, seed: 1, n: 1}", "bar", "300 kPa", 3e5, firstValue}},
		"deviation": {{"T: {random: normal, mean: 20 degC, deviation: #, seed: 1, n: 1}", "K", "3000 mK", 3, nil}},
		"steps": {{"p: {from: 0, to: 5 bar, steps: #}", "", "", 3,
			func(s *Sweep, _ *meter) float64 { return float64(s.Cases) }}},
		"n": {{"p: {random: uniform, from: 0, to: 5 bar, seed: 1, n: #}", "", "", 3,
			func(s *Sweep, _ *meter) float64 { return float64(s.Cases) }}},
		"seed": {{"p: {random: uniform, from: 0, to: 5 bar, n: 1, seed: #}", "", "", 0, nil}},
		"of":   nil, "random": nil,
	}
	resultNumbers = map[string][]typedNumber{
		"first": {{"{first: n > #}", "rpm", "0.1 rad/s*pi", math.Pi / 10, func(_ *Sweep, m *meter) float64 { return m.conditions[0].Limit }}},
		"count": {{"{count: n > #}", "rpm", "0.1 rad/s*pi", math.Pi / 10, func(_ *Sweep, m *meter) float64 { return m.conditions[0].Limit }}},
		"within": {{"{settles: p_out, within: #, of: 0}", "bar", "300 kPa", 3e5, func(_ *Sweep, m *meter) float64 { return m.hi }},
			{"{settles: T_room, within: #, of: 0 K}", "K", "3000 mK", 3, func(_ *Sweep, m *meter) float64 { return m.hi }}},
		"of": {{"{settles: p_out, within: 1 bar, of: #}", "bar", "300 kPa", 3e5, func(_ *Sweep, m *meter) float64 { return m.hi - 1e5 }},
			{"{settles: T_room, within: 1 K, of: #}", "degC", "276.15 K", 276.15, func(_ *Sweep, m *meter) float64 { return m.hi - 1 }}},
		"from":  {{"{final: n, from: #}", "s", "tick 600", 3, func(_ *Sweep, m *meter) float64 { return float64(m.from) * m.period }}},
		"to":    {{"{final: n, to: #}", "s", "tick 600", 3, func(_ *Sweep, m *meter) float64 { return float64(m.to) * m.period }}},
		"final": nil, "min": nil, "max": nil, "mean": nil, "rms": nil, "integral": nil, "settles": nil, "unit": nil,
	}
)

// Every number of a sweep file is refused without its unit, and applied in SI.
func TestEveryTypedNumberOfASweepHasItsUnit(t *testing.T) {
	listed := func(what string, keys []string, numbers map[string][]typedNumber) {
		t.Helper()
		keys = slices.Compact(slices.Sorted(slices.Values(keys)))
		if list := slices.Sorted(maps.Keys(numbers)); !slices.Equal(keys, list) {
			t.Errorf("%s: the code reads %q; numbers are listed of %q", what, keys, list)
		}
	}
	_, err := Load(folder(t, "unknown: 1\n"))
	_, known, _ := strings.Cut(err.Error(), "known are ")
	listed("sweep file", strings.Split(known, ", "), sweepNumbers)
	listed("parameter", slices.Concat(axisLists, axisKeys), parameterNumbers)
	listed("result", slices.Concat(rules, resultKeys), resultNumbers)

	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "declared.yaml"), []byte(declared), 0o666); err != nil {
		t.Fatal(err)
	}
	read := func(text string) (*Sweep, *meter, error) {
		file := filepath.Join(dir, "s.yaml")
		if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		s, err := Load(file)
		if err != nil {
			return nil, nil, err
		}
		w, err := s.worker()
		if err != nil {
			return nil, nil, err
		}
		c, err := w.prepare()
		if err != nil {
			return nil, nil, err
		}
		defer c.Close()
		m, err := newMeter(s.results[0], c)
		return s, m, err
	}
	check := func(n typedNumber, file func(line string) string) {
		with := func(number string) (float64, error) {
			s, m, err := read(file(strings.ReplaceAll(n.text, "#", number)))
			if err != nil || n.get == nil {
				return n.si, err
			}
			return n.get(s, m), nil
		}
		spelled := strings.TrimSpace("3 " + n.unit)
		for _, text := range []string{spelled, n.same} {
			if got, err := with(text); text != "" && (err != nil || n.si != 0 && !(math.Abs(got/n.si-1) < 1e-12)) {
				t.Errorf("%s with %s: %v (%v), want %v", n.text, text, got, err, n.si)
			}
		}
		if _, err := with("3 kg"); err == nil {
			t.Errorf("%s: 3 kg is accepted", n.text)
		}
		if _, err := with("3"); n.unit != "" && (err == nil || !strings.Contains(err.Error(), "3 needs a unit: 3 ")) {
			t.Errorf("%s with a bare number: %v", n.text, err)
		}
	}
	const head, parameters, results = "sweep: s\nplant: declared.yaml\n", "parameters: {p: [1 bar]}\n", "results: {r: {final: n}}\n"
	for _, list := range sweepNumbers {
		for _, n := range list {
			check(n, func(line string) string {
				if strings.Contains(line, "parameters:") {
					return head + line + "\n" + results
				}
				return head + line + "\n" + parameters + results
			})
		}
	}
	for _, list := range parameterNumbers {
		for _, n := range list {
			check(n, func(line string) string { return head + "parameters: {" + line + "}\n" + results })
		}
	}
	for _, list := range resultNumbers {
		for _, n := range list {
			check(n, func(line string) string { return head + parameters + "results: {r: " + line + "}\n" })
		}
	}
}
