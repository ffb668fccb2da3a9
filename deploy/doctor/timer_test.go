package doctor

import (
	"slices"
	"strings"
	"testing"

	"lockstep/deploy/latency"
	"lockstep/sched"
)

func TestTimerCheckFollowsTheMeasurement(t *testing.T) {
	better, equal := slices.Repeat([]float64{0.8}, 10), slices.Repeat([]float64{1}, 10)
	for _, c := range []struct {
		timer   string
		ratios  []float64
		reasons []string
		verdict Verdict
		can     Can
		words   []string
	}{
		{sched.Timerfd, better, nil, Wrong, Restart, []string{"take nanosleep: p99 of nanosleep is 0.80 of timerfd's at 1ms", "timer: nanosleep in the bench file"}},
		{sched.Nanosleep, better, nil, OK, "", []string{"keep nanosleep: "}},
		{sched.Timerfd, equal, nil, OK, "", []string{"no difference beyond chance: keep timerfd"}},
		{sched.Timerfd, better, []string{"no SCHED_FIFO 80"}, Unknown, "", []string{"take nanosleep: ", "not measured as in a run: no SCHED_FIFO 80", "sudo "}},
		{sched.Timerfd, nil, []string{"a bench runs on CPU 3"}, Unknown, "", []string{"not measured: a bench runs on CPU 3"}},
		{sched.Timerfd, better[:3], nil, Unknown, "", []string{"3 pairs of turns are too few", "latency -for 10m"}},
	} {
		req := demo
		req.Timer, req.Timers = c.timer, &latency.TimerComparison{Period: 1_000_000, RatiosP99: c.ratios, Reasons: c.reasons}
		d := diagnose(t, "tuned", req, nil)
		d.have(t, "timer", c.verdict, c.can, c.words...)
		if !d.Fit {
			t.Errorf("%s: the host is not fit", c.words)
		}
		var out strings.Builder
		if err := d.Text(&out); err != nil || !strings.Contains(strings.Join(strings.Fields(out.String()), " "), "timer "+c.words[0]) {
			t.Errorf("no line %q (%v) in\n%s", c.words[0], err, &out)
		}
	}
	if c := diagnose(t, "tuned", demo, nil).Check("timer"); c != nil {
		t.Errorf("without a measurement: %+v", c)
	}
}
