package plants_test

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"lockstep/hil_test/truth"
	"lockstep/model/kernel"
)

// nonlinear are the cases of springs with regions, clearances and tyres: the largest
// error of any column over its range, and of an event, s, for each period. The truth
// files give 13 digits.
var nonlinear = []struct {
	plant, file string
	grids       []grid
}{
	{"A1_linear", "A1_linear", []grid{{period: time.Millisecond, tol: 1e-12, late: 0}, {period: 100 * time.Millisecond, tol: 1e-12, late: 0}}},
	{"oscillator", "A2_pwa_spring_T2_continuous", []grid{{period: time.Millisecond, tol: 1e-11, late: 1e-10}, {period: 100 * time.Millisecond, tol: 1e-11, late: 1e-10}}},
	{"A4_pwa_spring_T6", "A4_pwa_spring_T6", []grid{{period: time.Millisecond, tol: 1e-11, late: 1e-10}, {period: 100 * time.Millisecond, tol: 1e-11, late: 1e-10}}},
	{"A7_static_friction_T9", "A7_static_friction_T9", []grid{{period: time.Millisecond, tol: 1e-10, late: 1e-10}, {period: 100 * time.Millisecond, tol: 1e-10, late: 1e-10}}},
	{"A9_energy_T6_undamped", "A9_energy_T6_undamped", []grid{{period: time.Millisecond, tol: 1e-10, late: 1e-10}, {period: 100 * time.Millisecond, tol: 1e-10, late: 1e-10}}},
	{"B1_collision", "B1_collision", []grid{{period: time.Millisecond, tol: 1e-10, late: 1e-9}, {period: 100 * time.Millisecond, tol: 1e-10, late: 1e-9}}},
	{"B3_collision", "B3_collision", []grid{{period: time.Millisecond, tol: 1e-10, late: 1e-9}, {period: 100 * time.Millisecond, tol: 1e-10, late: 1e-9}}},
	{"two-masses", "B7_collision", []grid{{period: time.Millisecond, tol: 1e-10, late: 1e-9}, {period: 100 * time.Millisecond, tol: 1e-10, late: 1e-9}}},
	{"hybrid-clearance", "D3_clearance_case1", []grid{{period: time.Millisecond, tol: 1e-9, late: 1e-9}, {period: 5 * time.Millisecond, tol: 1e-9, late: 1e-9}}},
	{"hybrid-tyre", "D4_tyre1_high_speed_start_pacejka", []grid{{period: time.Millisecond, tol: 1e-6, late: 1e-7}, {period: 5 * time.Millisecond, tol: 1e-6, late: 1e-7}}},
	{"D4_tyre1_high_speed_start_clutch", "D4_tyre1_high_speed_start_clutch", []grid{{period: time.Millisecond, tol: 1e-6, late: 1e-7}, {period: 5 * time.Millisecond, tol: 1e-6, late: 1e-7}}},
	{"hybrid-spring", "D2_spring_case1", []grid{{period: time.Millisecond, tol: 1e-9, late: 1e-9}, {period: 5 * time.Millisecond, tol: 1e-9, late: 1e-9}}},
}

type grid struct {
	period    time.Duration
	tol, late float64
	opt       kernel.Options // complete, the papers' scheme, or every mode built in the tick
}

func (g grid) String() string {
	return fmt.Sprintf("%v %s memory %d", g.period, g.opt.Scheme, g.opt.Memory)
}

func TestNonlinearPlantsMatchIndependentSolutions(t *testing.T) {
	for _, c := range nonlinear {
		t.Run(c.plant, func(t *testing.T) {
			tr, want := truth.Read(t, "testdata/"+c.file+".csv").AfterEvents(), readNonlinear(t, "testdata/"+c.file+"_events.csv")
			for _, g := range everyWay(c.grids) {
				worst, events, tables := run(t, load(t, c.plant), g.opt, tr)
				within(t, g, tr.Names[1:], worst)
				late := inOrder(t, g, want, happened(tables, events, want))
				t.Logf("%v: %d events in order within %.1e s", g, len(want), late)
			}
		})
	}
}

// everyWay returns each grid with the complete scheme, with the papers' scheme, and with every mode
// built in the tick.
func everyWay(grids []grid) (all []grid) {
	for _, g := range grids {
		for _, opt := range []kernel.Options{{}, {Scheme: kernel.Papers}, {Memory: 1}} {
			g.opt, g.opt.Period = opt, g.period
			all = append(all, g)
		}
	}
	return all
}

// within checks the largest error of each column over its range.
func within(t *testing.T, g grid, names []string, worst map[string]float64) {
	t.Helper()
	compared, most, at := 0, 0.0, ""
	for _, name := range names {
		e, ok := worst[name]
		if !ok {
			continue
		}
		compared++
		if !(e <= g.tol) {
			t.Errorf("%v: %s is off by %.2g of its range, more than %.2g", g, name, e, g.tol)
		}
		if e > most {
			most, at = e, name
		}
	}
	if compared < 2 {
		t.Errorf("only %d columns are compared", compared)
	}
	t.Logf("%v: %d columns within %.1e of their range (%s)", g, compared, most, at)
}

// happening is an event with the name used by the truth files.
type happening struct {
	time float64
	name string
}

// readNonlinear reads the events of a truth file without impacts of a closing speed up to 1e-6.
// Regions are counted from the middle.
func readNonlinear(t *testing.T, file string) (list []happening) {
	t.Helper()
	for _, e := range truth.ReadEvents(t, file) {
		name := e.Name
		switch {
		case strings.HasPrefix(name, "start"):
			continue
		case name == "impact":
			text, ok := e.Fields["wrel_before"]
			if !ok {
				text = e.Fields["closing_speed"]
			}
			if v, err := strconv.ParseFloat(text, 64); err != nil || math.Abs(v) <= 1e-6 {
				continue // too slow to count
			}
		case strings.HasPrefix(name, "x"):
			name = "region" + e.Fields["spring_region"]
		case strings.HasPrefix(name, "region"):
			name = strings.Replace(name, "-", "", 1)
		}
		list = append(list, happening{e.Time, name})
	}
	return list
}

// happened returns the events of a run with names that the truth lists.
func happened(tables *kernel.Tables, events []kernel.Event, want []happening) (list []happening) {
	listed := map[string]bool{}
	for _, w := range want {
		listed[w.name] = true
	}
	for _, e := range events {
		if name := called(tables, e); listed[name] {
			list = append(list, happening{e.Time, name})
		}
	}
	return list
}

// called returns the name of an event in the truth files; "" if a clutch becomes active or free.
func called(tables *kernel.Tables, e kernel.Event) string {
	if s := e.Friction - len(tables.Frictions); s >= 0 {
		middle, kind := len(tables.Switches[s].Borders)/2, ""
		if tables.Switches[s].Name == "damper" {
			kind = "damper "
		}
		return fmt.Sprintf("%sregion%.0f", kind, math.Abs(float64(int(e.To)-middle)))
	}
	clutch := strings.Replace(tables.Frictions[e.Friction], "tyre", "Cw", 1)
	switch {
	case tables.Friction[e.Friction].Gap != nil:
		return map[int8]string{kernel.Impact: "impact", kernel.Stuck: "contact_begin", kernel.Free: "separation"}[e.To]
	case e.From == kernel.Free || e.To == kernel.Free:
		return ""
	case clutch == "friction" && e.To == kernel.Stuck:
		return "stick"
	case clutch == "friction":
		return "v_sign"
	case e.To == kernel.Stuck:
		return "lock_" + clutch
	}
	return "slip_" + clutch
}

// inOrder checks that the events equal those of the truth in their order. Slow impacts may precede
// a contact.
func inOrder(t *testing.T, g grid, want, have []happening) (worst float64) {
	t.Helper()
	for i, w := range want {
		for w.name == "contact_begin" && i < len(have) && have[i].name == "impact" {
			have = slices.Delete(have, i, i+1)
		}
		if i >= len(have) || have[i].name != w.name || !(math.Abs(have[i].time-w.time) <= g.late) {
			t.Errorf("%v: event %d is %v, want %v within %g s", g, i, have[min(i, len(have)):min(i+1, len(have))], w, g.late)
			return math.NaN()
		}
		worst = max(worst, math.Abs(have[i].time-w.time))
	}
	if len(have) != len(want) {
		t.Errorf("%v: %d events, want %d: %v", g, len(have), len(want), have[len(want):])
	}
	return worst
}

// In 1000 oscillations without damping the energy of spring and mass is constant.
func TestUndampedSpringWithRegionsKeepsItsEnergy(t *testing.T) {
	const ticks = 22026 // 1000 swings of 2.2026 s
	tables, err := kernel.Prepare(load(t, "A9_energy_T6_undamped"), kernel.Options{Period: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	k := kernel.New(tables)
	y := make([]float64, len(tables.Outputs))
	energy := func() float64 {
		x, v := math.Abs(y[0]), y[1]
		return 0.5*v*v + 0.5*x*x + 0.5*19*max(0, x-0.15)*max(0, x-0.15)
	}
	k.Output(y)
	first, drift, crossings := energy(), 0.0, 0
	for range ticks {
		k.Step(y, nil)
		crossings += len(k.Events())
		e := math.Abs(energy()/first - 1)
		if !(e <= 1e-11) {
			t.Fatalf("after %d crossings the energy is off by %.2g", crossings, e)
		}
		drift = max(drift, e)
	}
	if crossings < 3990 || crossings > 4010 {
		t.Errorf("%d crossings in about a thousand swings of four", crossings)
	}
	t.Logf("energy within %.1e after %d crossings", drift, crossings)
}
