package latency

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"lockstep/hil_test/lab"
	"lockstep/sched"
)

// TestMain runs the test binary as a child of `lockstep latency` if its arguments say so.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "latency" {
		if _, err := Child(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	lab.Main(m)
}

// children returns the command lines of the running direct children of this process by pid.
func children(t *testing.T) map[int]string {
	t.Helper()
	list := map[int]string{}
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range files {
		stat, _ := os.ReadFile(file)
		_, after, _ := strings.Cut(string(stat), ") ")
		f := strings.Fields(after) // state, parent, ...
		if len(f) > 1 && f[0] != "Z" && f[1] == strconv.Itoa(os.Getpid()) {
			line, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "cmdline"))
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			list[pid] = strings.ReplaceAll(strings.TrimRight(string(line), "\x00"), "\x00", " ")
		}
	}
	return list
}

func TestEveryMethodCountsEveryGridPoint(t *testing.T) {
	for _, m := range methods {
		if m.child == "" {
			continue
		}
		for _, busy := range []bool{false, true} {
			c := &turn{Sleep: m.sleep, Naive: m.name == methodNaive, Busy: busy && m.name == methodNaive, Period: 1_000_000, Warmup: 10, Points: 100, Priority: 1}
			if m.spin {
				c.Spin = 50_000
			}
			if m.deadline {
				c.Runtime = 500_000
			}
			out, err := output(t.Context(), c.command(m.child))
			if err != nil && m.deadline && refusedDeadline(sched.Probe(c.thread())) != nil {
				if !strings.Contains(err.Error(), "no SCHED_DEADLINE of 500µs in 1ms: ") {
					t.Errorf("%s: %v", m.name, err)
				}
				continue
			}
			if err != nil {
				t.Fatalf("%s: %v", m.name, err)
			}
			r, err := parseRecord(out)
			if err != nil {
				t.Fatalf("%s: %v", m.name, err)
			}
			checkRecord(t, r, c)
		}
	}
}

func TestAMeasurementReportsAllMethods(t *testing.T) {
	l := Measurement{For: 1200 * time.Millisecond, Period: time.Millisecond, CPU: -1, Priority: 80, Load: true}
	var calls int
	l.Progress = func(string) { calls++ }
	r, err := l.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if left := children(t); len(left) != 0 {
		t.Errorf("still running: %v", left)
	}
	wantLoaded, wantIdle := 0, 0
	for _, m := range methods {
		if m.child == "" {
			continue
		}
		if m.deadline && r.Tickers[m.name] == nil { // only an isolated CPU can have SCHED_DEADLINE
			if !strings.Contains(strings.Join(r.NotMeasured, "\n"), "no SCHED_DEADLINE of 500µs in 1ms: ") {
				t.Errorf("no %s, without a reason: %q", m.name, r.NotMeasured)
			}
			continue
		}
		wantLoaded++
		if r.Tickers[m.name] == nil || r.Tickers[m.name].Samples == 0 {
			t.Errorf("no %s under load: %v", m.name, r.Reasons)
		}
		if !(m.weight(false) <= 0) {
			wantIdle++
			if r.Idle.Tickers[m.name] == nil {
				t.Errorf("no %s idle", m.name)
			}
		}
	}
	if len(r.Tickers) != wantLoaded || len(r.Idle.Tickers) != wantIdle || calls < wantLoaded+wantIdle {
		t.Errorf("%d tickers under load, %d idle, %d calls of Progress", len(r.Tickers), len(r.Idle.Tickers), calls)
	}
	all := map[string]*Figures{}
	for m, f := range r.all() {
		all[m.name] = f
	}
	for name, f := range all {
		if !(f.P50 <= f.P99 && f.P99 <= f.P999 && f.P999 <= f.Max) {
			t.Errorf("%s: p50 %d, p99 %d, p99.9 %d, max %d ns", name, f.P50, f.P99, f.P999, f.Max)
		}
		against := all[f.Against]
		if (f.RatioP50 != nil) != (against != nil) {
			t.Errorf("%s: ratio %v to %q, measured: %t", name, f.RatioP50, f.Against, against != nil)
		}
	}
	// The turns are too short for a 99.9th percentile on any host.
	if r.Representative || !strings.Contains(strings.Join(r.Reasons, "\n"), strconv.Itoa(minSamples)) {
		t.Errorf("representative %t, reasons %q", r.Representative, r.Reasons)
	}
	if !strings.Contains(r.Load, "garbage") {
		t.Errorf("load %q", r.Load)
	}
}

func TestWithoutLoadTheFiguresAreIdle(t *testing.T) {
	l := Measurement{For: 400 * time.Millisecond, Period: time.Millisecond, CPU: -1, Priority: 80}
	r, err := l.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if r.Load != "none" || r.Tickers[sched.Timerfd] != r.Idle.Tickers[sched.Timerfd] || r.Tickers[sched.Timerfd+"_supervised"] != nil {
		t.Errorf("load %q, tickers %v, idle %v", r.Load, r.Tickers, r.Idle.Tickers)
	}
}

func TestAMeasurementEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	l := Measurement{For: time.Hour, Period: time.Millisecond, CPU: -1, Priority: 80, Load: true, Progress: func(string) { cancel() }}
	if r, err := l.Run(ctx); !errors.Is(err, context.Canceled) || r != nil {
		t.Errorf("an interrupted measurement gives %v, %v", r, err)
	}
	if left := children(t); len(left) != 0 {
		t.Errorf("still running: %v", left)
	}
}

func TestInvalidMeasurementsAreRefused(t *testing.T) {
	good := Measurement{For: time.Second, Period: time.Millisecond, CPU: 0, Priority: 80, Load: true}
	if err := good.Check(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		change func(*Measurement)
		says   string
	}{
		{func(l *Measurement) { l.Period = 0 }, "period 0s"},
		{func(l *Measurement) { l.Period = time.Second }, "period 1s"},
		{func(l *Measurement) { l.Period = 1_000_500 }, "period 1.0005ms"},
		{func(l *Measurement) { l.Priority = 0 }, "priority 0"},
		{func(l *Measurement) { l.Priority = 100 }, "priority 100"},
		{func(l *Measurement) { l.CPU = 8000 }, "CPU 8000"},
		{func(l *Measurement) { l.For = 559 * time.Millisecond }, "use at least 560ms"},
		{func(l *Measurement) { l.Period = 10 * time.Millisecond }, "of 10ms: use at least 5.6s"},
		{func(l *Measurement) { l.For = -time.Second }, "-1s"},
		{func(l *Measurement) { l.For = math.MinInt64 }, "use at least 560ms"},
	} {
		l := good
		c.change(&l)
		if err := l.Check(); err == nil || !strings.HasPrefix(err.Error(), "latency: ") || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: %v, want an error that says %q", l, err, c.says)
		}
		if _, err := l.Run(t.Context()); err == nil {
			t.Errorf("%+v is measured", l)
		}
	}
}
