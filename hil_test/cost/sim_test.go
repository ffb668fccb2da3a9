package cost

import (
	"math"
	"os"
	"testing"
	"time"

	"lockstep/hil_test/lab"
	"lockstep/hil_test/rig"
	"lockstep/model/kernel"
	"lockstep/rt"
	"lockstep/rt/progress"
	"lockstep/rt/report"
	"lockstep/rt/virtual"
)

// simBound is the bound of the time of a tick of sim that writes nothing, or of a case of a sweep, over that of
// the table kernel alone.
const simBound = 2

// sweepCase runs n ticks of a case as a sweep does, with a meter that reads one output.
func sweepCase(t *testing.T, plant string, n time.Duration) (*report.Report, error) {
	t.Helper()
	v, err := virtual.NewVariation("", plant)
	if err != nil {
		t.Fatal(err)
	}
	v.For = n
	c, err := v.Prepare(new(rt.StatusBlock))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	most := 0.0
	return c.Run(func(_ int64, y, _ []float64) bool {
		most = max(most, y[0])
		return true
	})
}

// The simulation has the progress line of the command, in a log. All run the same ticks with the plant's own
// waveforms, in turn, many times; the fastest of each counts. A run is shorter than the time for which a shared
// machine leaves a process its processor.
func TestSimAndSweepThatWriteNothingCostAtMostTwiceTheirKernel(t *testing.T) {
	lab.RequireLong(t, "measures")
	const (
		period = 5 * time.Millisecond
		tries  = 10  // at least
		limit  = 100 // at most, until the ratios hold: other processes only add to a minimum
	)
	log, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	for plant, ticks := range map[string]int{"coupled-clutches": 400, "powershift": 4000} {
		runs := map[string]func(n time.Duration) (*report.Report, error){
			"sim": func(n time.Duration) (*report.Report, error) {
				s := virtual.Simulation{Plant: plant, For: n, Step: period, Every: 1}
				s.Progress = progress.New(log, "sim")
				return s.Run()
			},
			"sweep": func(n time.Duration) (*report.Report, error) { return sweepCase(t, plant, n) },
		}
		least := map[string]float64{} // time of the ticks, s
		note := func(what string, s float64) {
			if old, ok := least[what]; !ok || s < old {
				least[what] = s
			}
		}
		r := rig.Prepare(t, plant, kernel.Options{Period: period}, false)
		ratio := func(what string) float64 { return least[what] / least["kernel"] }
		for try := 0; try < tries || try < limit && !(max(ratio("sim"), ratio("sweep")) <= simBound); try++ {
			for what, run := range runs {
				rep, err := run(time.Duration(ticks) * period)
				if err != nil || int(rep.Ticks) != ticks {
					t.Fatalf("%s: %v, want %d ticks", what, err, ticks)
				}
				note(what, rep.Real)
			}
			note("kernel", r.RunCost(ticks, 5, nil)*float64(ticks)*1e-9)
		}
		for what := range runs {
			t.Logf("%s: a tick of the kernel takes %.0f ns, of %s %.2f times that", plant, least["kernel"]/float64(ticks)*1e9, what, ratio(what))
			if q := ratio(what); !(q > 0 && q <= simBound) || math.IsNaN(q) {
				t.Errorf("%s: a tick of %s takes %.2f times the time of its kernel, want at most %d", plant, what, q, simBound)
			}
		}
	}
}
