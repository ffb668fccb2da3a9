package plants_test

import (
	"fmt"
	"math"
	"regexp"
	"strings"
	"testing"
	"time"

	"lockstep/model/kernel"
	"lockstep/model/modeltest"
	"lockstep/model/plants"
)

// Shafts of hp8: the columns of its equations. Each has the members of the planetary sets whose speeds are its outputs.
var hp8Shafts = [][]string{{"w_turbine", "w_carrier2"}, {"w_sun1", "w_sun2"}, {"w_ring1"}, {"w_carrier1", "w_ring4"},
	{"w_ring2", "w_sun3"}, {"w_ring3", "w_sun4"}, {"w_carrier3"}, {"w_out", "w_carrier4"}}

// hp8Sets holds sun, carrier and ring of each set as columns, and the teeth of sun and ring.
var hp8Sets = [][5]float64{{1, 3, 2, 48, 96}, {1, 0, 4, 48, 96}, {4, 6, 5, 69, 111}, {5, 7, 3, 28, 104}}

// hp8Elements holds the columns that an element ties together; -1 is the housing.
var hp8Elements = map[byte][2]int{'A': {1, -1}, 'B': {2, -1}, 'C': {0, 5}, 'D': {6, 7}, 'E': {4, 5}}

// hp8Gears holds the closed elements and the published ratio of each gear: 8HP70, first generation.
var hp8Gears = []struct {
	name, closed string
	ratio        float64
}{
	{"1", "ABC", 4.714}, {"2", "ABE", 3.143}, {"3", "BCE", 2.106}, {"4", "BDE", 1.667}, {"5", "BCD", 1.285},
	{"6", "CDE", 1}, {"7", "ACD", 0.839}, {"8", "ADE", 0.667}, {"R", "ABD", -3.317},
}

// hp8Speeds returns the speeds of the shafts over that of the output shaft: the sets by Willis, the closed elements.
func hp8Speeds(closed string) []float64 {
	n := len(hp8Shafts)
	var rows [][]float64
	row := func() []float64 {
		rows = append(rows, make([]float64, n+1))
		return rows[len(rows)-1]
	}
	for _, s := range hp8Sets {
		r := row()
		r[int(s[0])] += s[3]
		r[int(s[1])] -= s[3] + s[4]
		r[int(s[2])] += s[4]
	}
	for _, e := range []byte(closed) {
		r := row()
		r[hp8Elements[e][0]] = 1
		if other := hp8Elements[e][1]; other >= 0 {
			r[other] = -1
		}
	}
	r := row()
	r[n-1], r[n] = 1, 1
	for c := range n { // Gauss-Jordan with pivots
		for i := c; i < n; i++ {
			if math.Abs(rows[i][c]) > math.Abs(rows[c][c]) {
				rows[i], rows[c] = rows[c], rows[i]
			}
		}
		for i := range n {
			if i == c {
				continue
			}
			for j, factor := n, rows[i][c]/rows[c][c]; j >= c; j-- {
				rows[i][j] -= factor * rows[c][j]
			}
		}
	}
	speeds := make([]float64, n)
	for i := range n {
		speeds[i] = rows[i][n] / rows[i][i]
	}
	return speeds
}

// hp8Text returns the plant with edits, which come in pairs, and with outputs added.
func hp8Text(t *testing.T, outputs string, edits ...string) string {
	t.Helper()
	data, err := plants.Read("hp8")
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	for i := 0; i < len(edits); i += 2 {
		if !strings.Contains(text, edits[i]) {
			t.Fatalf("hp8 does not have %q", edits[i])
		}
		text = strings.ReplaceAll(text, edits[i], edits[i+1])
	}
	return text + outputs
}

// engage sets the currents of a gear; the other elements are open.
func engage(b *modeltest.Bench, closed string) {
	for _, e := range "ABCDE" {
		current := 0.0
		if strings.ContainsRune(closed, e) {
			current = 0.85 // A
		}
		b.Set(string(e)+".current", current)
	}
}

func TestHp8MembersTurnAsTheTeethSay(t *testing.T) {
	b := modeltest.New(t, hp8Text(t, ""), 5*time.Millisecond)
	b.Set("throttle", 0.25)
	at := 0.0
	for _, g := range hp8Gears {
		want := hp8Speeds(g.closed)
		if ratio := want[0]; !(math.Abs(ratio-g.ratio) < 5.1e-4) {
			t.Errorf("gear %s: the teeth give the ratio %.4f, published is %g", g.name, ratio, g.ratio)
		}
		if g.name == "R" { // stop first
			b.Set("brake.pressure", 40e5)
			b.Set("throttle", 0)
			at += 6
			b.To(at, nil)
			b.Set("brake.pressure", 0)
			b.Set("throttle", 0.25)
		}
		engage(b, g.closed)
		at += 2
		checked := 0
		b.To(at, func(now float64) {
			if now < at-0.5 {
				return
			}
			for _, e := range g.closed {
				if mode := b.Get(string(e) + ".mode"); mode != 0 {
					t.Fatalf("gear %s, %.3f s: %c is not locked, mode %g", g.name, now, e, mode)
				}
			}
			out := b.Get("w_out")
			for i, members := range hp8Shafts {
				for _, name := range members {
					if got := b.Get(name); !(math.Abs(got-want[i]*out) <= 1e-12*math.Abs(want[0]*out)) {
						t.Fatalf("gear %s, %.3f s: %s is %.15g rad/s, the teeth say %.15g", g.name, now, name, got, want[i]*out)
					}
					checked++
				}
			}
			for i, set := range hp8Sets { // a planet rolls in the ring
				carrier, ring := want[int(set[1])], want[int(set[2])]
				name, turns := fmt.Sprintf("w_planet%d", i+1), (carrier+(ring-carrier)*set[4]/((set[4]-set[3])/2))*out
				if got := b.Get(name); !(math.Abs(got-turns) <= 1e-12*math.Abs(want[0]*out)) {
					t.Fatalf("gear %s, %.3f s: %s is %.15g rad/s, the teeth say %.15g", g.name, now, name, got, turns)
				}
				checked++
			}
		})
		if out := b.Get("w_out"); checked < 1700 || (g.name == "R") != (out < -1) || (g.name != "R") != (out > 10) {
			t.Errorf("gear %s: %d speeds compared, the output shaft turns with %g rad/s", g.name, checked, out)
		}
	}
}

// Energies, works and losses of hp8: what the sources deliver is stored or lost.
const hp8Energy = `  "stored.*": {energy: "*"}
  "lost.*": {dissipated: "*"}
`

// Resistances of the car have no output of their work.
const (
	resistances   = "A: 2.3 m2, Cd: 0.26, Cr: 0.011"
	noResistances = "Cr: 0"
)

// balance returns the stored, delivered and lost energy by the outputs of hp8Energy and the given works.
func balance(b *modeltest.Bench, works ...string) (stored, lost, delivered float64) {
	for i, p := range b.Tables.Outputs {
		switch {
		case strings.HasPrefix(p.Name, "stored."):
			stored += b.Y[i]
		case strings.HasPrefix(p.Name, "lost."):
			lost += b.Y[i]
		}
	}
	for _, name := range works {
		delivered += b.Get(name)
	}
	return stored, lost, delivered
}

// The gearbox with a torque in place of the engine, a damper in place of the converter, pressures in place of the valves
// and pistons, without drag of the open elements, and a car without resistances is linear between the events. Its own waveforms shift through all gears and down again.
func TestHp8ClosesItsEnergyBalanceWithoutLaws(t *testing.T) {
	data, err := plants.Read("hp8")
	if err != nil {
		t.Fatal(err)
	}
	before, rest, _ := strings.Cut(string(data), "  # Turbocharged engine")
	_, rest, _ = strings.Cut(rest, "  starter:")
	starter, rest, _ := strings.Cut(rest, "  # As automatic4's")
	_, rest, _ = strings.Cut(rest, "  # cgeo:")
	before, elements, _ := strings.Cut(before, "assemblies:")
	_, elements, _ = strings.Cut(elements, "\nelements:")
	before += "elements:" + elements
	rest, oil, _ := strings.Cut(rest, "  valve_A:")
	_, oil, _ = strings.Cut(oil, "  # Oil with")
	rest += "  # Oil with" + oil
	for _, cut := range []string{`,\s+set: \{valve_[^}]*\}`, `\[[0-9.]+, 350\],\s+`} { // full pistons, fill pulses
		before = regexp.MustCompile(cut).ReplaceAllString(before, "")
	}
	before = strings.ReplaceAll(before, ", 90]", ", 0]") // kiss point
	for _, e := range []string{"A", "B", "C", "D", "E", "TCC"} {
		rest = strings.Replace(rest, "pressure: valve_"+e+".piston", "pressure: "+e+".current", 1)
		rest = strings.Replace(rest, "  p_"+e+": {signal: valve_"+e+".piston, unit: bar}\n", "", 1)
	}
	text := before + "  push: {type: torque, flange: crank, tau: {product: [400 N.m, throttle]}}\n  starter:" + starter +
		"  slip: {type: damper, a: crank, b: input, d: 3}\n  # cgeo:" + rest
	for _, edit := range [][2]string{
		{", heat_port: oil", ""}, {"  p_line: {unit: bar, min: 0, max: 25, default: 20}\n", ""},
		{"current: {unit: mA", "current: {unit: bar"}, {"p0: kiss, ", ""}, {"mu: {value: 0.12, min: 0.08", "mu: {value: 0.003, min: 0.001"}, {resistances, noResistances},
		{"  torque_limit: {unit: 1, min: 0, max: 1, default: 1}\n", ""},
		{"  ignition: {unit: 1, flag: true, default: 1}\n", ""}, {"  engine_on: {unit: 1, flag: true, default: 1}\n", ""},
		{"  grade: {unit: \"%\", min: -40, max: 40}\n", ""}, {", inclination: grade", ""}, {"  ambient: {unit: degC, min: -40, max: 60, default: 20}\n", ""},
		{"  T_oil: {unit: degC, min: -40, max: 180, set: {oil.T_start: T_oil}}\n", ""},
		{"  oil: {type: heat_capacitor, C: 23.4 kJ/K, T_start: 20 degC}\n", ""}, {"  T_oil: {signal: oil, unit: degC}\n", ""},
		{"  cooler: {type: thermal_conductor, port_a: oil, port_b: ambient, G: 60 W/K}\n", ""}, {"  P_cooler: {signal: cooler.Q_flow}\n", ""},
		{"  T_engine: {torque: engine}\n", ""}, {"  T_turbine: {signal: converter.tau_turbine}\n", ""},
	} {
		if !strings.Contains(text, edit[0]) {
			t.Fatalf("hp8 does not have %q", edit[0])
		}
		text = strings.ReplaceAll(text, edit[0], edit[1])
	}
	text += hp8Energy + "  W: {work: push}\n"
	closesBalance(t, text, 2*time.Millisecond, 1e-9, "W")
}

// The whole plant: engine, converter and losses are laws, and the balance closes to their tolerance.
func TestHp8ClosesItsEnergyBalance(t *testing.T) {
	closesBalance(t, hp8Text(t, hp8Energy+"  W: {work: engine}\n", resistances, noResistances), 5*time.Millisecond, 1e-8, "W")
}

func closesBalance(t *testing.T, text string, period time.Duration, share float64, works ...string) {
	t.Helper()
	b := modeltest.NewUndriven(t, text, kernel.Options{Period: period})
	first, _, _ := balance(b, works...)
	worst, most := 0.0, 0.0
	b.To(17, func(float64) {
		stored, lost, delivered := balance(b, works...)
		worst, most = max(worst, math.Abs(stored+lost-first-delivered)), max(most, math.Abs(delivered))
	})
	if events := b.Get("events"); !(worst <= share*most) || !(most > 1e5) || events < 20 {
		t.Errorf("%g J of %g J are missing, %.1e of them; %g events", worst, most, worst/most, events)
	}
	t.Logf("%.3g J of %.0f kJ, %.1e", worst, most/1e3, worst/most)
}
