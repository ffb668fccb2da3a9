package latency

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/floats/scalar"
)

// recordOf returns the record of latencies, ns.
func recordOf(period int64, late ...int64) *record {
	m := &meter{period: period}
	for _, ns := range late {
		m.recordWakeUp(ns, 0, 1+ns/period)
	}
	return m.record(nil)
}

func TestQuantilesAreWithinAClassOfTheSortedSamples(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{1, 2, 7, 1000, 20_000} {
		late := make([]int64, n)
		for i := range late {
			late[i] = int64(math.Exp(r.Float64() * math.Log(9e6))) // 1 ns to 9 ms
		}
		rec := recordOf(1_000_000, late...)
		slices.Sort(late)
		if rec.Samples != int64(n) || rec.Max != late[n-1] {
			t.Errorf("%d samples up to %d ns: %d, up to %d ns", n, late[n-1], rec.Samples, rec.Max)
		}
		for _, q := range []float64{0.001, 0.5, 0.99, 0.999, 1} {
			exact := float64(late[int(math.Ceil(q*float64(n)))-1])
			if got := rec.quantile(q); !scalar.EqualWithinAbs(got, exact, 1000) || !(got <= float64(rec.Max)) {
				t.Errorf("%d samples: quantile %g = %g ns, want %g ns to 1 us, at most %d ns", n, q, got, exact, rec.Max)
			}
		}
	}
}

func TestLatenciesOffTheChartAreCountedAndTheLargestIsExact(t *testing.T) {
	r := recordOf(1_000_000, 9_999_999, 10_000_000, 123_456_789, 999_999, 1_000_000)
	if r.OffChart != 2 || r.Max != 123_456_789 || r.Samples != 5 || r.Histogram[9999] != 1 {
		t.Errorf("off the chart %d, max %d ns, %d samples, class 9999 us has %d; want 2, 123456789, 5, 1", r.OffChart, r.Max, r.Samples, r.Histogram[9999])
	}
	if r.OverPeriod != 4 || r.Missed != 9+10+123+1 {
		t.Errorf("%d wake-ups over a period of 1 ms, %d points missed, want 4 and 143", r.OverPeriod, r.Missed)
	}
	if got := r.quantile(0.99); got != 123_456_789 {
		t.Errorf("p99 off the chart is %g ns, want the largest", got)
	}
}

func TestQuantilesWithoutSamplesAreNaN(t *testing.T) {
	for _, q := range []float64{0.5, 0, -1, 2, math.NaN()} {
		r := recordOf(1000)
		if q != 0.5 {
			r = recordOf(1000, 5, 6)
		}
		if got := r.quantile(q); !math.IsNaN(got) {
			t.Errorf("quantile %g of %d samples = %g, want NaN", q, r.Samples, got)
		}
	}
	if f := figures([]*record{nil, nil}, nil); f != nil {
		t.Errorf("figures of no rounds: %+v", f)
	}
}

func TestRatioIsTheMedianOverRoundsThatHaveBoth(t *testing.T) {
	round := func(us int64) *record { return recordOf(1_000_000, us*1000+500, us*1000+500, us*1000+500) }
	ours := []*record{round(20), nil, round(900), round(30), round(11)}
	theirs := []*record{round(20), round(5), round(9), round(20), nil}
	f := figures(ours, theirs)
	// 20.5/20.5, 900.5/9.5 and 30.5/20.5: the burst in the third does not decide.
	if f.RatioP50 == nil || !scalar.EqualWithinRel(*f.RatioP50, 30.5/20.5, 0.02) || !scalar.EqualWithinRel(*f.RatioP99, 30.5/20.5, 0.02) {
		t.Errorf("ratios %v, %v, want %g", f.RatioP50, f.RatioP99, 30.5/20.5)
	}
	if f.Samples != 12 {
		t.Errorf("%d samples", f.Samples)
	}
	// The pairs are 20 and 20, 900 and 9, 30 and 20 us; rounds of one side alone are left out.
	if f.PooledP50 == nil || !scalar.EqualWithinRel(*f.PooledP50, 30.5/20.5, 0.02) {
		t.Errorf("pooled ratio %v, want %g", f.PooledP50, 30.5/20.5)
	}
}

func TestAReportWithoutCounterpartIsJSONWithNull(t *testing.T) {
	f := figures([]*record{recordOf(1_000_000, 5000)}, []*record{nil})
	text, err := json.Marshal(&Report{Idle: &ByMethod{}, ByMethod: ByMethod{Tickers: map[string]*Figures{"timerfd": f}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"ratio_p50":null`, `"ratio_p99":null`, `"cyclictest":null`, `"c_timerfd":null`, `"max_ns":5000`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %s in %s", want, text)
		}
	}
}

func TestTheWarmUpIsNotCountedAndCountingDoesNotAllocate(t *testing.T) {
	m := &meter{period: 1000, warmup: 10, points: 1 << 40}
	for k := range int64(10) {
		m.recordWakeUp(1<<40, 0, 1)
		if m.late.N() != 0 || m.passed != k+1 {
			t.Fatalf("point %d of the warm-up: %d samples", k+1, m.late.N())
		}
	}
	if n := testing.AllocsPerRun(1000, func() { m.recordWakeUp(5000, 1000, 1) }); n != 0 {
		t.Errorf("counting a wake-up allocates %v times", n)
	}
	m.recordWakeUp(-5, 0, 1) // a wake-up before the due time
	if m.late.Micro(0) != 1 || m.late.N() != 1002 {
		t.Errorf("class 0 has %d of %d wake-ups, want 1 of 1002", m.late.Micro(0), m.late.N())
	}
}
