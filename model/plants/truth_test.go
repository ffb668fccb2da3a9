package plants_test

import (
	"encoding/csv"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"lockstep/model"
	"lockstep/model/kernel"
	"lockstep/model/plants"
)

// truth is a table of an independent solution; rows of equal time are an event, the
// last one counts.
type truth struct {
	names []string
	time  []float64
	rows  [][]float64
}

func readTruth(t *testing.T, file string) truth {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	all, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var tr truth
	for _, name := range all[0] {
		name, _, _ = strings.Cut(name, "[")
		tr.names = append(tr.names, name)
	}
	for _, line := range all[1:] {
		row := make([]float64, len(line))
		for i, s := range line {
			if row[i], err = strconv.ParseFloat(s, 64); err != nil {
				row[i] = math.NaN()
			}
		}
		if n := len(tr.time); n > 0 && tr.time[n-1] == row[0] {
			tr.rows[n-1] = row
			continue
		}
		tr.time, tr.rows = append(tr.time, row[0]), append(tr.rows, row)
	}
	return tr
}

func load(t testing.TB, name string) *model.System {
	t.Helper()
	data, err := plants.Read(name)
	if err != nil {
		data, err = os.ReadFile("testdata/" + name + ".yaml")
	}
	if err != nil {
		t.Fatal(err)
	}
	p, err := model.Load(name+".yaml", data)
	if err != nil {
		t.Fatal(err)
	}
	sys, err := p.Assemble()
	if err != nil {
		t.Fatal(err)
	}
	return sys
}

// run steps a plant and returns for every column the largest error over its range at
// the time stamps that truth and grid share, and the events.
func run(t testing.TB, sys *model.System, opt kernel.Options, tr truth) (worst map[string]float64, events []kernel.Event, tables *kernel.Tables) {
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
	span := map[string][2]float64{}
	for i, name := range tr.names[1:] {
		low, high := math.Inf(1), math.Inf(-1)
		for _, r := range tr.rows {
			low, high = min(low, r[i+1]), max(high, r[i+1])
		}
		span[name] = [2]float64{low, high}
	}
	worst = map[string]float64{}
	h, tick, shared := opt.Period.Seconds(), 0, 0
	for i, at := range tr.time {
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
		for c, name := range tr.names[1:] {
			j, ok := column[name]
			if !ok {
				continue
			}
			r := span[name]
			e := math.Abs(y[j]-tr.rows[i][c+1]) / (r[1] - r[0])
			if e > worst[name] || e != e {
				worst[name] = e
			}
		}
	}
	if shared < 20 {
		t.Fatalf("only %d time stamps are shared", shared)
	}
	return worst, events, tables
}

func TestProbe(t *testing.T) {
	for _, c := range []struct{ name, file string }{
		{"coupled-clutches", "/work/shared/refs/msl/CoupledClutches.csv"},
		{"OneWayClutchDisengaged", "/work/shared/refs/msl/OneWayClutchDisengaged.csv"},
		{"Backlash", "/work/shared/refs/msl/Backlash.csv"},
		{"First", "/work/shared/refs/msl/First.csv"},
		{"ElasticBearing", "/work/shared/refs/msl/ElasticBearing.csv"},
		{"EddyCurrentBrake", "/work/shared/refs/msl/EddyCurrentBrake.csv"},
		{"GenerationOfFMUs", "/work/shared/refs/msl/GenerationOfFMUs.csv"},
		{"hybrid", "/work/shared/refs/papers/D1_hybrid6.csv"},
		{"automatic4", "/work/shared/refs/papers/F_automatic.csv"},
	} {
		t.Run(c.name, func(t *testing.T) {
			tr := readTruth(t, c.file)
			for _, ms := range []int{1, 5, 10} {
				start := time.Now()
				sys := load(t, c.name)
				worst, events, tables := run(t, sys, kernel.Options{Period: time.Duration(ms) * time.Millisecond}, tr)
				t.Logf("%d ms: split %d degree %d steep %.3g radius %.3g modes %d events %d, %v", ms, tables.Split, tables.Degree, tables.Steepness, tables.Radius, len(tables.Modes), len(events), time.Since(start))
				var b strings.Builder
				for _, name := range tr.names[1:] {
					if e, ok := worst[name]; ok {
						fmt.Fprintf(&b, "%s %.1e  ", name, e)
					}
				}
				t.Log(b.String())
				if ms == 1 && len(events) < 30 {
					for _, e := range events {
						t.Logf("%.12g %s %d->%d", e.Time, tables.Frictions[e.Friction], e.From, e.To)
					}
				}
			}
		})
	}
}
