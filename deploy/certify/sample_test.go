package certify

import (
	"encoding/json"
	"math/rand/v2"
	"testing"
	"time"

	"lockstep/deploy/doctor"
	"lockstep/deploy/latency"
	"lockstep/rt/bench"
	"lockstep/rt/check"
	"lockstep/rt/report"
	"lockstep/sched"
	"lockstep/sched/hostinfo"
)

// cached holds the histograms made, by the arguments of histogram.
var cached = map[[4]int64]*sched.Histogram{}

// histogram makes a histogram of n samples, ns: n-1 from around upwards, and worst.
func histogram(n int, around, worst int64, seed uint64) *sched.Histogram {
	key := [4]int64{int64(n), around, worst, int64(seed)}
	if h := cached[key]; h != nil {
		return h.Copy()
	}
	h, r := &sched.Histogram{}, rand.New(rand.NewPCG(seed, 1))
	defer func() { cached[key] = h.Copy() }()
	for range n - 1 {
		h.Record(around + int64(r.ExpFloat64()*float64(around)/10))
	}
	h.Record(worst)
	return h
}

func spreadOf(h *sched.Histogram) report.Spread {
	return report.Spread{P50: h.Quantile(0.5), P99: h.Quantile(0.99), P999: h.Quantile(0.999), Max: h.Max()}
}

// hostOf reads a host of testdata and its diagnosis.
func hostOf(t *testing.T, name string) (*hostinfo.Host, doctor.Diagnosis) {
	t.Helper()
	root := "../../sched/hostinfo/testdata/hosts/" + name
	d, err := doctor.Examine(root, doctor.Requirements{CPU: -1, Priority: 80, Timer: sched.Timerfd})
	if err != nil {
		t.Fatal(err)
	}
	return hostinfo.Read(root, -1), d
}

// sample makes a certificate; scale multiplies its times.
func sample(t *testing.T, scale int64, seed uint64) *Certificate {
	t.Helper()
	const ticks = 720_000
	host, d := hostOf(t, "tuned") // host without objections
	late, tick, response := histogram(ticks, scale*9_000, scale*61_250, seed), histogram(ticks, scale*38_000, scale*142_000, seed+1), histogram(ticks, scale*2_500_000, scale*12_345_678, seed+2)
	answer := spreadOf(response)
	c := &Certificate{
		Format: 1, Made: "2026-11-20T20:00:00Z",
		Request: Request{Bench: "mine.yaml", ForNs: int64(time.Hour), Load: true, Kernel: "table"},
		Run: &report.Report{
			Bench: "mine", Plant: "powershift", Kernel: "table", StepNs: 5_000_000, Ticks: ticks, SimTime: 3600, Clean: true, Ended: "done",
			Late: spreadOf(late), Tick: spreadOf(tick), Response: &answer, Overrun: "skip 2", BudgetNs: 2_500_000,
			Usage: &report.Usage{}, RxFrames: 720_001, TxFrames: 1_440_002, BestEffortWhy: []string{},
			Soak: &report.Verdict{Pass: true, Load: "cpu on CPU 0", Criteria: []report.Criterion{{What: "end", Want: "clean", Seen: "done", Held: true}}},
		},
		Late: distribution(late), Tick: distribution(tick), Response: distribution(response),
		Worst: &check.WorstCase{
			PeriodNs: 5_000_000, WorstNs: scale * 61_600, Share: 0.0123, Under: "random commands", Elements: []string{"C1", "C2"},
			Exercises: []check.ExerciseCost{{Name: "random commands", Ticks: 4711, Times: 5, P50: 1_800, WorstNs: scale * 61_600}},
			Classes:   []check.LockCost{{Held: 0, Sets: 1, Ticks: 4000, P50: 1_700, WorstNs: 30_300, Share: 0.006, Under: "random commands"}},
			Sets:      []check.LockCost{{Held: 1, Locked: []string{"C2"}, Sets: 1, Ticks: 711, P50: 1_900, WorstNs: scale * 61_600, Share: 0.0123, Under: "random commands"}},
		},
		Buses: []Bus{{"drive", "can0"}}, Box: host.Machine(), Doctor: &d,
		Versions: Versions{Lockstep: "v1.2.3", Go: "go1.26", Arch: "amd64 v1", Binary: "ab12", Files: []bench.Hash{{Role: "plant", Name: "powershift", SHA256: "cd34"}}},
	}
	for i := range c.Box.CAN {
		c.Box.CAN[i].Driver = "kvaser_pci"
	}
	half := 0.9
	peer := &latency.Figures{P50: 8_000, P99: 12_000, P999: 15_000, Counts: latency.Counts{Max: 44_000, Samples: 10_000}, Histogram: map[int]int64{8: 9_999, 44: 1}}
	loop := *peer
	loop.RatioP50, loop.RatioP99 = &half, &half
	c.Reference = &Reference{Rounds: 60, Loop: &loop, Cyclictest: peer, Priority: 80, PhaseNs: 2_500_000}
	c.setReasons(objections(host, d))
	return c
}

// stored writes a certificate as JSON and reads it again.
func stored(t *testing.T, c *Certificate) *Certificate {
	t.Helper()
	text, err := c.JSON()
	if err != nil {
		t.Fatal(err)
	}
	back, err := Read("sample.json", text)
	if err != nil {
		t.Fatal(err)
	}
	return back
}

// edited changes the JSON of a certificate and parses it without checking the hash.
func edited(t *testing.T, c *Certificate, change func(tree map[string]any)) *Certificate {
	t.Helper()
	text, err := c.JSON()
	if err != nil {
		t.Fatal(err)
	}
	var tree map[string]any
	if err := json.Unmarshal(text, &tree); err != nil {
		t.Fatal(err)
	}
	change(tree)
	back := &Certificate{}
	if text, err = json.Marshal(tree); err == nil {
		err = json.Unmarshal(text, back)
	}
	if err != nil {
		t.Fatal(err)
	}
	back.text = text
	return back
}
