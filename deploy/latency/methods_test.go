package latency

import (
	"context"
	"errors"
	"os/exec"
	"strings"
	"testing"
	"time"

	"lockstep/hil_test/lab"
)

// cyclictestReport is a report of cyclictest 2.40, with fewer classes and a delay of 250 ms.
const cyclictestReport = `{
  "file_version": 1,
  "cmdline:": "cyclictest -m -p80 -i1000 -l1000 -t1 -a1 -h 200000 -q --json=out.json",
  "rt_test_version:": "2.40",
  "return_code": 0,
  "num_threads": 1,
  "resolution_in_ns": 0,
  "thread": {
    "0": {
      "histogram": {"15": 100, "16": 850, "30": 44, "999": 1, "1000": 1, "2500": 1, "9999": 1, "18000": 1},
      "cycles": 1000,
      "min": 15,
      "max": 250000,
      "avg": 23.49,
      "cpu": 1,
      "node": 0
    }
  }
}`

func TestParseCyclictestReadsTheHistogram(t *testing.T) {
	r, err := parseCyclictest([]byte(cyclictestReport), 1_000_000)
	if err != nil {
		t.Fatal(err)
	}
	// One wake-up is not in the histogram: it counts as the largest.
	if r.Samples != 1000 || r.OffChart != 2 || r.Max != 250_000_000 {
		t.Errorf("%d samples, %d off the chart, max %d ns; want 1000, 2, 250000000", r.Samples, r.OffChart, r.Max)
	}
	if r.OverPeriod != 5 || r.Missed != 1+2+9+18+250 {
		t.Errorf("%d wake-ups over 1 ms, %d points missed; want 5 and 280", r.OverPeriod, r.Missed)
	}
	for _, c := range []struct{ q, lo, hi float64 }{{0.5, 16_000, 17_000}, {0.99, 30_000, 31_000}, {0.999, 18_000_000, 250_000_000}} {
		if got := r.quantile(c.q); !(got >= c.lo && got <= c.hi) {
			t.Errorf("quantile %g = %g ns, want %g to %g", c.q, got, c.lo, c.hi)
		}
	}
}

func TestParseCyclictestRefusesInvalidReports(t *testing.T) {
	for _, text := range []string{
		"", "{}", "[]", "nonsense", cyclictestReport[:300],
		strings.Replace(cyclictestReport, `"thread": {`, `"thread": {"1": {},`, 1),
		strings.Replace(cyclictestReport, `"30": 44`, `"30": -44`, 1),
		strings.Replace(cyclictestReport, `"30": 44`, `"-30": 44`, 1),
		`{"thread": {"0": {"histogram": {}, "cycles": 0, "max": 0}}}`,
	} {
		if r, err := parseCyclictest([]byte(text), 1_000_000); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%.60q gives %+v, %v, want an error of one line", text, r, err)
		}
	}
}

// The C program counts like the measuring process: each wake-up in one class, each grid point once.
func TestTheCProgramCountsEveryGridPoint(t *testing.T) {
	if _, err := exec.LookPath("cc"); err != nil {
		lab.Skip(t, "no C compiler (cc): apt-get install gcc libc6-dev")
	}
	program, err := compile(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	c := &turn{Period: 500_000, Warmup: 10, Points: 200, CPU: 0, Priority: 1}
	cmd := timerfdCommand(program, c)
	out, err := output(t.Context(), cmd)
	if err != nil {
		t.Fatal(err)
	}
	r, err := parseRecord(out)
	if err != nil {
		t.Fatal(err)
	}
	checkRecord(t, r, c)
}

// checkRecord checks that every grid point of a turn was counted once.
func checkRecord(t *testing.T, r *record, c *turn) {
	t.Helper()
	sum := r.OffChart
	for _, n := range r.Histogram {
		sum += n
	}
	// A late last wake-up passes points beyond the end. A late last wake-up of the warm-up passes
	// points that are counted.
	if points := r.Samples + r.Missed; sum != r.Samples || (r.Missed == 0 && points != c.Points) || r.Samples > c.Points || r.Samples < 1 {
		t.Errorf("%d wake-ups in classes, %d in all, %d missed, of %d points", sum, r.Samples, r.Missed, c.Points)
	}
	if q := r.quantile(0.5); !(q >= 0 && q <= float64(r.Max)) || r.Max <= 0 {
		t.Errorf("p50 %g ns, max %d ns", q, r.Max)
	}
}

func TestAFailedCompilationIsAnErrorOfOneLine(t *testing.T) {
	if _, err := compile(t.Context(), "/nonexistent"); err == nil || strings.Contains(err.Error(), "\n") {
		t.Errorf("compiled into a missing folder: %v", err)
	}
	t.Setenv("PATH", "/nonexistent")
	if _, err := compile(t.Context(), t.TempDir()); !errors.Is(err, errNoCompiler) {
		t.Errorf("without a compiler: %v", err)
	}
}

func TestAProcessEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	cmd := exec.Command("sleep", "1000")
	if _, err := output(ctx, cmd); err != context.DeadlineExceeded {
		t.Errorf("sleep 1000 ended with %v", err)
	}
	if cmd.ProcessState == nil {
		t.Error("the process was not waited for")
	}
}
