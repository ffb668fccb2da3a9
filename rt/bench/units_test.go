package bench

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gonum.org/v1/gonum/floats/scalar"

	"lockstep/io/yamlfile"
	"lockstep/model/plants"
	"lockstep/rt/bench/benchtest"
)

// A database of a manufacturer spells units in its own way, or leaves them out.
func TestBenchTranslatesTheUnitsOfItsDatabase(t *testing.T) {
	data, err := plants.Read("powershift.dbc")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(string(data), `"rad/s"`, `"Unit_RadianPerSecon"`)
	text = strings.Replace(text, ` [-3276.8|3276.7] "N.m"`, ` [-3276.8|3276.7] ""`, 1)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "own.dbc"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ units, want string }{
		{"", `"Unit_RadianPerSecon"`},
		{"{Unit_RadianPerSecon: rad/s}", `tau_engine`},
		{"{Unit_RadianPerSecon: rad/s, Torque.tau_engine: N.m}", ""},
		{"{Unit_RadianPerSecon: rpm, Torque.tau_engine: kN.m, Speeds.w1: rad/s}", ""},
		{"{Unit_RadianPerSecon: rad/s, Torque.tau_engine: bar}", `"bar"`},
		{"{Unit_RadianPerSec: rad/s}", `bus "drive": units: ` + filepath.Join(dir, "own.dbc") + ` has no unit and no signal MESSAGE.SIGNAL "Unit_RadianPerSec" (did you mean Unit_RadianPerSecon?)`},
		{"{Unit_RadianPerSecon: rads}", `bus "drive": units: unit "rads"`},
		{"{Unit_RadianPerSecon: }", `expected one value, got nothing`},
	} {
		bench := benchtest.DemoText(t, "database: powershift.dbc", "database: own.dbc")
		if c.units != "" {
			bench = strings.Replace(bench, "database: own.dbc", "database: own.dbc\n    units: "+c.units, 1)
		}
		b, err := Parse("b.yaml", dir, []byte(bench))
		var h *Handover
		if err == nil {
			h, err = Prepare(b)
		}
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", c.units, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s:\ngot  %v\nwant %s", c.units, err, c.want)
		case strings.HasPrefix(c.want, "bus"):
			at := map[bool]string{true: "Unit_RadianPerSec:", false: "rads}"}[strings.Contains(c.want, "MESSAGE.SIGNAL")]
			var got *yamlfile.FileError
			if line, col := benchtest.Place(t, bench, at); !errors.As(err, &got) || got.File != "b.yaml" || got.Line != line || got.Col != col {
				t.Errorf("%v is not at %d:%d", err, line, col)
			}
		case c.want == "" && strings.Contains(c.units, "rpm"):
			w1, w2, tau := h.Maps[0].Tx[0].Fields[0].Factor, h.Maps[0].Tx[0].Fields[1].Factor, h.Maps[0].Tx[1].Fields[0].Factor
			if w1 != 0.02 || !scalar.EqualWithinRel(w2, 0.01*math.Pi/30, 1e-12) || !scalar.EqualWithinRel(tau, 100, 1e-12) {
				t.Errorf("w1 counts by %g rad/s, w2 by %g, tau_engine by %g N.m", w1, w2, tau)
			}
		}
	}
}
