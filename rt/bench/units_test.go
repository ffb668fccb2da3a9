package bench

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gonum.org/v1/gonum/floats/scalar"

	"lockstep/io/can"
	"lockstep/io/record"
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

// A range of the bench replaces that of the database, with the units of the bench.
// The database of the demo names no format. A frame of the other format would not be decoded.
func TestFormatOfABenchIsThatOfMessagesWithoutOne(t *testing.T) {
	for format, fd := range map[string]bool{"": false, "    format: classic\n": false, "    format: fd\n": true} {
		b, err := Parse("b.yaml", "", []byte(benchtest.DemoText(t, "    database: powershift.dbc\n", "    database: powershift.dbc\n"+format)))
		if err != nil {
			t.Fatal(err)
		}
		h, err := Prepare(b)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range h.Maps[0].Rx {
			if r.FD != fd {
				t.Errorf("%q: received message %s is of CAN FD: %t", format, r.Name, r.FD)
			}
		}
		for _, s := range h.Maps[0].Tx {
			if (s.Flags&can.FlagFDF != 0) != fd {
				t.Errorf("%q: sent message %s has the flags %X", format, s.Name, s.Flags)
			}
		}
	}
}

func TestRangesOfABenchReplaceThoseOfItsDatabase(t *testing.T) {
	const torque = "    ranges: {Torque.tau_load: [-2 kN.m, 300 N.m], Speeds.w1: all, TCU_Pressure_1.pressure_C1: [0.1 MPa, 3 MPa]}\n"
	b, err := Parse("b.yaml", "", []byte(benchtest.DemoText(t, "    database: powershift.dbc\n", "    database: powershift.dbc\n"+torque)))
	if err != nil {
		t.Fatal(err)
	}
	db, err := b.Database(&b.Buses[0])
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][2]float64{}
	for _, m := range db.Messages {
		for _, s := range m.Signals {
			got[m.Name+"."+s.Name] = [2]float64{s.Min, s.Max}
		}
	}
	for name, want := range map[string][2]float64{"Torque.tau_load": {-2000, 300}, "Speeds.w1": {0, 0}, "TCU_Pressure_1.pressure_C1": {1, 30}, "TCU_Pressure_1.pressure_C2": {0, 40}} {
		for i := range want {
			if !scalar.EqualWithinAbs(got[name][i], want[i], 1e-9) {
				t.Errorf("%s: %v, want %v", name, got[name], want)
			}
		}
	}
	for text, want := range map[string]string{
		"{Torque.tau: all}":                     `ranges: powershift.dbc has no signal "Torque.tau"`,
		"{Torque.tau_load: [1 N.m]}":            "ranges: Torque.tau_load: expected [LOWEST, HIGHEST], or all",
		"{Torque.tau_load: [2 N.m, 1 N.m]}":     "2 N.m is not below 1 N.m",
		"{Torque.tau_load: [0 bar, 1 bar]}":     "unit bar does not fit",
		"{Torque.tau_load: [1, 2]}":             "1 needs a unit: 1 N.m?",
		"{Speeds.w1: [1000 rad/s, 2000 rad/s]}": "ranges: {Speeds.w1: all}",
	} {
		b, err := Parse("b.yaml", "", []byte(benchtest.DemoText(t, "    database: powershift.dbc\n", "    database: powershift.dbc\n    ranges: "+text+"\n")))
		if err == nil {
			_, err = Prepare(b)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// The pages of a message are all of its multiplexor, or those of a list; a speed of 1e300 rad/s is refused.
func TestPagesOfAFrameFollowFromMux(t *testing.T) {
	data, err := plants.Read("powershift.dbc")
	if err != nil {
		t.Fatal(err)
	}
	const pages = "BO_ 1027 Pages: 8 Bench\n SG_ page M : 0|8@1+ (1,0) [0|0] \"\" TCU\n SG_ a m0 : 8|8@1+ (1,0) [0|0] \"\" TCU\n SG_ b m4 : 8|8@1+ (1,0) [0|0] \"\" TCU\n\n"
	database := strings.Replace(string(data), "CM_ \"The", pages+"CM_ \"The", 1)
	prepare := func(database, mux string) (*Handover, error) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "p.dbc"), []byte(database), 0o644); err != nil {
			t.Fatal(err)
		}
		text := benchtest.DemoText(t, "database: powershift.dbc", "database: p.dbc") + "    restbus: {Pages: {cycle: 20 ms, " + mux + "}}\n"
		b, err := Parse("b.yaml", dir, []byte(text))
		if err != nil {
			return nil, err
		}
		return Prepare(b)
	}
	for mux, want := range map[string][]byte{"mux: all": {0, 4}, "mux: [4, 9, 4]": {4, 9, 4}, "values: {page: 4}": {4}} {
		h, err := prepare(database, mux)
		if err != nil {
			t.Errorf("%s: %v", mux, err)
			continue
		}
		tx := &h.Maps[0].Tx[len(h.Maps[0].Tx)-1]
		got := []byte{tx.Base[0]}
		for i := range tx.Pages {
			got = append(got[:i], tx.Pages[i][0])
		}
		if string(got) != string(want) {
			t.Errorf("%s: pages %v, want %v", mux, got, want)
		}
	}
	const pressure = "(0.01,0) [0|40] \"bar\""
	huge := strings.Replace(database, pressure, "(1e300,0) [0|0] \"bar\"", 1)
	if _, err := prepare(huge, "values: {page: 4}"); huge == database || err == nil || !strings.Contains(err.Error(), "p.dbc:") || !strings.Contains(err.Error(), "ranges: {") {
		t.Errorf("a factor of 1e300: %v", err)
	}
}

func TestExportedSignalsHaveTheUnitsOfTheBench(t *testing.T) {
	data, err := plants.Read("powershift.dbc")
	if err != nil {
		t.Fatal(err)
	}
	text := benchtest.DemoText(t, "database: powershift.dbc", "database: powershift.dbc\n    units: {N.m: kN.m, Speeds.w1: deg/s}")
	b, err := Parse("b.yaml", t.TempDir(), []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	h := &record.Header{Buses: []record.Bus{{Database: "powershift.dbc", Units: b.Buses[0].UnitsInPlace()}},
		Files: []record.File{{Role: "dbc", Name: "powershift.dbc", Text: data}}}
	if err := AddLayouts(h); err != nil {
		t.Fatal(err)
	}
	units := map[string]string{}
	for _, m := range h.Buses[0].Layout.Messages {
		for _, s := range m.Signals {
			units[m.Name+"."+s.Name] = s.Unit
		}
	}
	for name, want := range map[string]string{"Torque.tau_engine": "kN.m", "Speeds.w1": "deg/s", "Speeds.w2": "rad/s"} {
		if units[name] != want {
			t.Errorf("%s is in %q, want %q", name, units[name], want)
		}
	}
}
