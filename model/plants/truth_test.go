package plants_test

import (
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"lockstep/hil_test/truth"
	"lockstep/model"
	"lockstep/model/assemble"
	"lockstep/model/kernel"
	"lockstep/model/library"
	"lockstep/model/plantfile"
	"lockstep/model/plants"
)

func load(t testing.TB, name string) *model.System {
	t.Helper()
	data, err := plants.Read(name)
	if err != nil {
		data, err = os.ReadFile("testdata/" + name + ".yaml")
	}
	if err != nil {
		t.Fatal(err)
	}
	return assembled(t, name, data)
}

// assembled is the plant of a file.
func assembled(t testing.TB, name string, data []byte) *model.System {
	t.Helper()
	p, err := plantfile.Load(name+".yaml", data, library.Elements())
	if err != nil {
		t.Fatal(err)
	}
	sys, err := assemble.System(p)
	if err != nil {
		t.Fatal(err)
	}
	return sys
}

// run steps a plant and returns for every column the largest error over its range at
// the time stamps that truth and grid share, and the events.
func run(t testing.TB, sys *model.System, opt kernel.Options, tr truth.Table) (worst map[string]float64, events []kernel.Event, tables *kernel.Tables) {
	t.Helper()
	tables, err := kernel.Prepare(sys, opt)
	if err != nil {
		t.Fatal(err)
	}
	k := kernel.New(tables)
	y, u := make([]float64, len(tables.Outputs)), make([]float64, len(tables.Inputs))
	column := map[string]int{}
	for j, o := range tables.Outputs {
		column[o.Name] = j
	}
	span := tr.Spans()
	worst = map[string]float64{}
	h, tick, shared := opt.Period.Seconds(), 0, 0
	for i, at := range tr.Time {
		n := int(math.Round(at / h))
		if math.Abs(float64(n)*h-at) > 1e-9 {
			continue
		}
		for ; tick < n; tick++ {
			k.Step(y, u)
			events = append(events, k.Events()...)
		}
		if n == 0 {
			k.Output(y)
		}
		shared++
		for c, name := range tr.Names[1:] {
			j, ok := column[name]
			if !ok {
				continue
			}
			worst[name] = max(worst[name], math.Abs(y[j]-tr.Rows[i][c+1])/span[c+1])
		}
	}
	if shared < 20 {
		t.Fatalf("only %d time stamps are shared", shared)
	}
	return worst, events, tables
}

// cases are the plants with an independent solution: largest error of any column over
// its range allowed at 1, 5 and 10 ms, and of the time of an event. The issue asks for 1e-4 and 1e-3
// of the hybrid, 2e-4 of the automatic; what is reached is in the log.
var cases = []struct {
	plant, file string
	one, five   float64
	ten         float64  // at 10 ms; 0: not run
	events      []string // "time lock|slip|cross NAME"
	eventsFile  string
	late, late5 float64 // s, at 1 ms and at 5 ms
}{
	{plant: "coupled-clutches", file: "CoupledClutches.csv", one: 1e-8, five: 1e-8, late: 1e-6, late5: 1e-5, events: []string{
		"0.70962 lock clutch2", "0.79166 lock clutch1", "0.83111 slip clutch1", "0.90685 lock clutch1", "1.00030 slip clutch1", "1.14397 lock clutch3"}},
	{plant: "OneWayClutchDisengaged", file: "OneWayClutchDisengaged.csv", one: 1e-11, five: 1e-11, late: 1e-6, late5: 1e-5, events: []string{
		"0.088861 lock oneWayClutch", "0.254780 slip oneWayClutch", "0.683924 lock oneWayClutch", "0.754780 slip oneWayClutch",
		"1.183924 lock oneWayClutch", "1.254780 slip oneWayClutch", "1.683924 lock oneWayClutch", "1.754780 slip oneWayClutch"}},
	{plant: "Backlash", file: "Backlash.csv", one: 1e-5, five: 2e-4},
	{plant: "First", file: "First.csv", one: 1e-11, five: 1e-11},
	{plant: "ElasticBearing", file: "ElasticBearing.csv", one: 1e-8, five: 1e-8},
	{plant: "EddyCurrentBrake", file: "EddyCurrentBrake.csv", one: 1e-7, five: 1e-6},
	{plant: "GenerationOfFMUs", file: "GenerationOfFMUs.csv", one: 1e-11, five: 1e-11},
	{plant: "GenerationOfFMUsTranslational", file: "GenerationOfFMUs.csv", one: 1e-11, five: 1e-11},
	{plant: "powershift", file: "../../kernel/testdata/H_powershift.csv", one: 1e-6, five: 5e-6,
		eventsFile: "../../kernel/testdata/H_powershift_events.csv", late: 1e-6, late5: 1e-5},
	{plant: "hybrid", file: "D1_hybrid6.csv", one: 1e-8, five: 1e-8, ten: 1e-8, eventsFile: "D1_hybrid6_events.csv", late: 1e-7, late5: 1e-6},
	{plant: "rail17", file: "G_rail17.csv", one: 1e-5, five: 1e-5, events: wheelLocks, late: 1e-8, late5: 1e-8},
	{plant: "automatic4", file: "F_automatic.csv", one: 2e-5, five: 2e-5, ten: 2e-5, eventsFile: "F_automatic_events.csv", late: 1e-6, late5: 1e-5},
}

func TestPlantsMatchIndependentSolutions(t *testing.T) {
	for _, c := range cases {
		t.Run(c.plant, func(t *testing.T) {
			tr := truth.Read(t, "testdata/"+c.file).AfterEvents()
			want := c.events
			if c.eventsFile != "" {
				want = readEvents(t, "testdata/"+c.eventsFile)
			}
			for _, g := range []struct {
				ms        int
				tol, late float64
			}{{1, c.one, c.late}, {5, c.five, c.late5}, {10, c.ten, c.late5}} {
				if g.tol == 0 {
					continue
				}
				worst, events, tables := run(t, load(t, c.plant), kernel.Options{Period: time.Duration(g.ms) * time.Millisecond}, tr)
				compared, most, at := 0, 0.0, ""
				for _, name := range tr.Names[1:] {
					e, ok := worst[name]
					if !ok {
						continue
					}
					compared++
					if !(e <= g.tol) {
						t.Errorf("%d ms: %s is off by %.2g of its range, more than %.2g", g.ms, name, e, g.tol)
					}
					if e > most {
						most, at = e, name
					}
				}
				if compared < 2 {
					t.Errorf("only %d columns are compared", compared)
				}
				late := matchEvents(t, fmt.Sprintf("%d ms", g.ms), want, events, tables.Frictions, g.late)
				t.Logf("%d ms: %d columns within %.1e of their range (%s), %d events within %.1e s", g.ms, compared, most, at, len(want), late)
			}
		})
	}
}

// readEvents reads the locks, break-aways and passages through zero of a truth file;
// events called zero are grazing ones, without a transition.
func readEvents(t *testing.T, file string) []string {
	t.Helper()
	var list []string
	for _, e := range truth.ReadEvents(t, file) {
		for _, kind := range []string{"unlock", "lock", "slip", "cross"} {
			name, ok := strings.CutPrefix(strings.TrimSpace(e.Name), kind)
			if !ok {
				continue
			}
			name = strings.TrimRight(strings.TrimPrefix(name, "_"), "+-")
			if name != "" && name[0] >= '0' && name[0] <= '9' {
				name = "clutch" + name
			}
			list = append(list, e.Fields["t"]+" "+strings.Replace(kind, "unlock", "slip", 1)+" "+name)
			break
		}
	}
	if list == nil {
		t.Fatalf("%s has no events", file)
	}
	return list
}

// matchEvents checks that every event of the truth happens, and no other one of its
// kinds; it returns the largest difference in time, s.
func matchEvents(t *testing.T, what string, want []string, got []kernel.Event, frictions []string, tol float64) (worst float64) {
	t.Helper()
	if want == nil {
		return 0
	}
	var have []string
	for _, e := range got {
		switch kind := ""; {
		case e.Time == 0 || e.Friction >= len(frictions) || e.From == kernel.Free || e.To == kernel.Free:
		default:
			kind = "cross"
			if e.To == kernel.Stuck {
				kind = "lock"
			} else if e.From == kernel.Stuck {
				kind = "slip"
			}
			have = append(have, fmt.Sprintf("%.12g %s %s", e.Time, kind, frictions[e.Friction]))
		}
	}
	if len(have) != len(want) {
		t.Errorf("%s: %d events, want %d:\n%s", what, len(have), len(want), strings.Join(have, "\n"))
	}
	for _, w := range want {
		at, name, _ := strings.Cut(w, " ")
		wanted, _ := strconv.ParseFloat(at, 64)
		best := math.Inf(1)
		for _, h := range have {
			if at, n, _ := strings.Cut(h, " "); n == name {
				is, _ := strconv.ParseFloat(at, 64)
				best = min(best, math.Abs(is-wanted))
			}
		}
		rounded := tol
		if digits := len(at) - strings.IndexByte(at, '.') - 1; digits < 7 {
			rounded = max(tol, 0.6*math.Pow(10, -float64(digits)))
		}
		if !(best <= rounded) {
			t.Errorf("%s: %s is off by %.2g s, more than %.2g s", what, w, best, rounded)
		}
		worst = max(worst, best)
	}
	return worst
}
