package cost

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"lockstep/hil_test/lab"
)

// latencyBound is the largest wake-up latency of a ticker, over that of the C program with the same
// system call, at the median and at the 99th percentile.
const latencyBound = 1.2

// latencyTries is the number of measurements of which one must meet all targets. Other tenants of a
// shared host add latency, to either side of the ratio. A ticker that is too slow fails every try;
// a good one fails when the host disturbs its turns more than those of the C program.
const latencyTries = 3

// latencyFigures are the figures of one method in the report of `lockstep latency`.
type latencyFigures struct {
	P50        int64    `json:"p50_ns"`
	P99        int64    `json:"p99_ns"`
	Max        int64    `json:"max_ns"`
	Missed     int64    `json:"missed"`
	OverPeriod int64    `json:"over_period"`
	Samples    int64    `json:"samples"`
	RatioP50   *float64 `json:"ratio_p50"`
	RatioP99   *float64 `json:"ratio_p99"`
}

// latencyReport is the part of the report under load, for which the targets hold.
type latencyReport struct {
	Tickers    map[string]*latencyFigures `json:"tickers"`
	Cyclictest *latencyFigures            `json:"cyclictest"`
	CTimerfd   *latencyFigures            `json:"c_timerfd"`
	Reasons    []string                   `json:"reasons"`
}

// peer returns the figures of the C program with which a ticker is compared.
func (r *latencyReport) peer(ticker string) *latencyFigures {
	if ticker == "nanosleep" || ticker == "nanosleep_supervised" {
		return r.Cyclictest
	}
	return r.CTimerfd
}

// slowness returns the targets that a ticker misses; nil: it meets all.
func (r *latencyReport) slowness(ticker string) (list []string) {
	f, c := r.Tickers[ticker], r.peer(ticker)
	if f == nil || c == nil {
		return []string{fmt.Sprintf("%s: no figures of it or of its C program: %q", ticker, r.Reasons)}
	}
	for _, ratio := range []struct {
		name  string
		value *float64
	}{{"p50", f.RatioP50}, {"p99", f.RatioP99}} {
		value := math.NaN()
		if ratio.value != nil {
			value = *ratio.value
		}
		if !(value <= latencyBound) {
			list = append(list, fmt.Sprintf("%s: %s is %.2f times that of the C program, more than %.1f", ticker, ratio.name, value, latencyBound))
		}
	}
	// Latencies of a period or more are counted on both sides: a stall of 18 ms is one of them,
	// and 18 missed ticks of 1 ms. The host stalls either side by chance, so a difference of up to
	// two standard deviations is not significant.
	ours, theirs := float64(f.OverPeriod), float64(c.OverPeriod)*float64(f.Samples)/float64(c.Samples)
	if !(ours-theirs <= 2*math.Sqrt(ours+theirs)) {
		list = append(list, fmt.Sprintf("%s: %d wake-ups in %d were over a period late, the C program has %d in %d", ticker, f.OverPeriod, f.Samples, c.OverPeriod, c.Samples))
	}
	return list
}

// measureLatency runs lockstep latency for 30 s.
func measureLatency(t *testing.T) *latencyReport {
	t.Helper()
	file := filepath.Join(t.TempDir(), "latency.json")
	cmd := exec.Command(lab.Command(t), "latency", "-for", "30s", "-report", file)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	r := &latencyReport{}
	if err := json.Unmarshal(text, r); err != nil {
		t.Fatal(err)
	}
	return r
}

// The test compares the tickers with cyclictest and a C program on a timerfd, in the same minute on
// the same CPU. Other processes load the CPUs; the supervisor takes CPU time and makes garbage. The
// naive loop, one process that reads a timerfd, misses the targets: this is the reason for two
// processes and raw system calls.
func TestTickersWakeUpAsFastAsCPrograms(t *testing.T) {
	lab.RequireLong(t, "measures for minutes, under a load on all CPUs")
	for _, program := range []string{"cyclictest", "cc"} {
		if _, err := exec.LookPath(program); err != nil {
			lab.Skip(t, "no "+program+": apt-get install rt-tests gcc libc6-dev")
		}
	}
	var all []string
	for try := 1; try <= latencyTries; try++ {
		r := measureLatency(t)
		var slow []string
		for _, ticker := range []string{"timerfd", "timerfd_supervised", "nanosleep", "nanosleep_supervised"} {
			slow = append(slow, r.slowness(ticker)...)
		}
		r.log(t, try)
		if r.slowness("naive") == nil {
			t.Errorf("try %d: the naive loop also meets the targets, want it to miss one", try)
		}
		if slow == nil {
			return
		}
		all = append(all, fmt.Sprintf("try %d: %q", try, slow))
	}
	t.Errorf("no try of %d meets all targets:", latencyTries)
	for _, slow := range all {
		t.Error(slow)
	}
}

// log prints the figures of a try.
func (r *latencyReport) log(t *testing.T, try int) {
	t.Helper()
	all := map[string]*latencyFigures{"cyclictest": r.Cyclictest, "c_timerfd": r.CTimerfd}
	var names []string
	for name, f := range r.Tickers {
		all[name] = f
	}
	for name, f := range all {
		if f != nil {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		f := all[name]
		line := fmt.Sprintf("try %d: %-20s p50 %6.1f, p99 %8.1f, max %8.0f us; %d missed, %d over a period of %d", try, name,
			float64(f.P50)/1e3, float64(f.P99)/1e3, float64(f.Max)/1e3, f.Missed, f.OverPeriod, f.Samples)
		if f.RatioP50 != nil && f.RatioP99 != nil {
			line += fmt.Sprintf("; ratios %.2f, %.2f", *f.RatioP50, *f.RatioP99)
		}
		t.Log(line)
	}
}
