package sched

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"
)

func TestBinsLeaveNoGapAndAreNarrow(t *testing.T) {
	low := int64(0)
	for i := range bins {
		high := upper(i)
		if bin(uint64(low)) != i || bin(uint64(high)) != i {
			t.Fatalf("bin %d is said to hold %d to %d ns, but these count in bins %d and %d", i, low, high, bin(uint64(low)), bin(uint64(high)))
		}
		if width := high - low + 1; width > 1 && width*64 > low {
			t.Fatalf("bin %d from %d ns is %d ns wide, more than 1/64", i, low, width)
		}
		low = high + 1
	}
	if low != limitNs || limitNs < 100e9 {
		t.Errorf("the bins end at %d ns, want %d ns, at least 100 s", low, int64(limitNs))
	}
}

// logUniform returns a duration between 1 ns and 100 s, each order of magnitude
// equally likely.
func logUniform(r *rand.Rand) int64 { return int64(math.Exp(r.Float64() * math.Log(100e9))) }

func TestQuantilesBoundTheSortedSamplesFromAbove(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{1, 2, 3, 10, 999, 20_000} {
		var h Histogram
		samples := make([]int64, n)
		for i := range samples {
			samples[i] = logUniform(r)
			h.Record(samples[i])
		}
		slices.Sort(samples)
		if h.N() != uint64(n) || h.Max() != samples[n-1] {
			t.Errorf("%d samples up to %d ns: N = %d, Max = %d ns", n, samples[n-1], h.N(), h.Max())
		}
		last := int64(0)
		for _, q := range []float64{0, 0.001, 0.01, 0.5, 0.9, 0.99, 0.999, 0.99999, 1} {
			exact := samples[max(0, int(math.Ceil(q*float64(n)))-1)]
			got := h.Quantile(q)
			if got < exact || got > exact+exact/64 {
				t.Errorf("%d samples: quantile %g = %d ns, want %d ns to 1/64 more", n, q, got, exact)
			}
			if got < last {
				t.Errorf("%d samples: quantile %g = %d ns, below the one before, %d ns", n, q, got, last)
			}
			last = got
		}
	}
}

func TestHistogramAcceptsNegativeAndHugeDurations(t *testing.T) {
	var h Histogram
	if h.N() != 0 || h.Max() != 0 || h.Quantile(0.5) != 0 {
		t.Errorf("empty: N = %d, Max = %d ns, median %d ns, want 0", h.N(), h.Max(), h.Quantile(0.5))
	}
	h.Record(-5)
	h.Record(math.MinInt64)
	if h.N() != 2 || h.Max() != 0 || h.Quantile(1) != 0 {
		t.Errorf("negative durations: N = %d, Max = %d ns, want 2 of 0 ns", h.N(), h.Max())
	}
	h.Record(math.MaxInt64)
	if h.Max() != math.MaxInt64 || h.Quantile(0.99) != math.MaxInt64 {
		t.Errorf("292 years: Max = %d ns, quantile 0.99 = %d ns", h.Max(), h.Quantile(0.99))
	}
	for _, q := range []float64{math.NaN(), -1, 2, math.Inf(1), math.Inf(-1)} {
		if h.Quantile(q) != h.Max() {
			t.Errorf("quantile %g = %d ns, want the largest, %d ns", q, h.Quantile(q), h.Max())
		}
	}
}

func TestHistogramConsistsOfWordsOnly(t *testing.T) {
	var h Histogram
	if size := unsafe.Sizeof(h); size != (1+bins+Micros)*8 {
		t.Errorf("a histogram has %d bytes, want %d: it lies in shared memory", size, (1+bins+Micros)*8)
	}
}

func TestHistogramIsReadableWhileItIsWritten(t *testing.T) {
	var h Histogram
	const samples = 100_000
	done := make(chan bool)
	go func() {
		r := rand.New(rand.NewPCG(3, 4))
		for range samples {
			h.Record(logUniform(r))
		}
		close(done)
	}()
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		if live := h.Quantile(0.99); live < 0 || live > h.Max() {
			t.Fatalf("p99 while written: %d ns, max %d ns", live, h.Max())
		}
	}
	if h.N() != samples {
		t.Errorf("%d samples counted, %d recorded", h.N(), samples)
	}
}

func TestHistogramDoesNotAllocate(t *testing.T) {
	var h Histogram
	ns := int64(1)
	if n := testing.AllocsPerRun(1000, func() {
		ns = ns*3 + 1
		h.Record(ns)
		h.Quantile(0.99)
	}); n != 0 {
		t.Errorf("Record and Quantile allocate %v times", n)
	}
}

func TestClassesCountEveryDurationOnce(t *testing.T) {
	var h Histogram
	for ns := int64(0); ns < 1<<38; ns = ns*9/8 + 1 {
		h.Record(ns)
	}
	for _, per := range []int{1, 2, 8, perOctave} {
		var sum uint64
		last := int64(-1)
		for _, c := range h.Classes(per) {
			if c.N == 0 || c.Upper <= last {
				t.Errorf("%d per octave: %d durations up to %d ns, after a class up to %d ns", per, c.N, c.Upper, last)
			}
			if last >= 1<<subBits && c.Upper-last > (last+1)/int64(per) && c.Upper > 2*last+1 {
				t.Errorf("%d per octave: a class from %d to %d ns", per, last, c.Upper)
			}
			sum, last = sum+c.N, c.Upper
		}
		if sum != h.N() || last != limitNs-1 {
			t.Errorf("%d per octave: %d durations up to %d ns, want %d up to %d", per, sum, last, h.N(), limitNs-1)
		}
	}
	var one Histogram
	one.Record(1500)
	if got := one.Classes(1); len(got) != 1 || got[0] != (Class{2047, 1}) {
		t.Errorf("1500 ns is in %v, want up to 2047", got)
	}
	if got := one.Classes(8); len(got) != 1 || got[0] != (Class{1535, 1}) {
		t.Errorf("1500 ns is in %v, want up to 1535", got)
	}
}

func TestOneMicrosecondClassesCoverTenMilliseconds(t *testing.T) {
	var h Histogram
	want := map[int]uint64{}
	beyond := uint64(0)
	r := rand.New(rand.NewPCG(5, 6))
	for range 20_000 {
		ns := logUniform(r)
		if h.Record(ns); ns < Micros*1000 {
			want[int(ns/1000)]++
		} else {
			beyond++
		}
	}
	h.Record(9_999_999)
	want[9999]++
	sum := uint64(0)
	for us := range Micros {
		if h.Micro(us) != want[us] {
			t.Errorf("%d us: %d durations, want %d", us, h.Micro(us), want[us])
		}
		sum += h.Micro(us)
	}
	if sum+beyond != h.N() || h.Micro(-1) != 0 || h.Micro(Micros) != 0 {
		t.Errorf("%d in classes of 1 us, %d beyond, of %d; outside of them %d and %d", sum, beyond, h.N(), h.Micro(-1), h.Micro(Micros))
	}
}

func TestSinceReturnsTheDurationsAfterACopy(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	var all, second Histogram
	for range 1000 {
		all.Record(logUniform(r) / 1000)
	}
	before := all.Copy()
	for range 1000 {
		ns := logUniform(r) / 1e6
		all.Record(ns)
		second.Record(ns)
	}
	d := all.Copy().Since(before)
	if d.N() != second.N() || d.Quantile(0.5) != second.Quantile(0.5) || d.Micro(7) != second.Micro(7) {
		t.Errorf("%d since, median %d ns, %d of 7 us; want %d, %d, %d", d.N(), d.Quantile(0.5), d.Micro(7), second.N(), second.Quantile(0.5), second.Micro(7))
	}
	if d.Max() < second.Max() || d.Max() > second.Max()+second.Max()/64 {
		t.Errorf("the longest since is %d ns, want %d to 1/64 more", d.Max(), second.Max())
	}
	all.Record(200e9)
	if got := all.Copy().Since(before).Max(); got != 200e9 {
		t.Errorf("a new longest is %d ns, want 200 s exactly", got)
	}
	if none := all.Copy().Since(all.Copy()); none.N() != 0 || none.Max() != 0 {
		t.Errorf("nothing since is %d up to %d ns", none.N(), none.Max())
	}
}
