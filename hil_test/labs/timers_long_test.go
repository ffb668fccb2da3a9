//go:build long

package labs

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"lockstep/hil_test/lab"
)

// Doctor measures both timers on the isolated CPU of a PREEMPT_RT kernel, where a timerfd expires in the
// thread ktimers and nanosleep in the interrupt. An emulator has no meaningful latencies: the test prints
// the figures, and checks that each period has a verdict from the rights of a run.
func TestLabTimersAreComparedOnPreemptRT(t *testing.T) {
	if !lab.Inside(t, lab.PreemptRT) {
		return
	}
	for _, period := range []string{"1ms", "5ms"} {
		begin := time.Now()
		p := lab.Start(t, lab.Command(t), "doctor", "-json", "-period", period)
		p.WaitFor(4 * lab.Timeout) // 20 processes start on a starved host
		var d struct {
			Checks []struct{ Name, Verdict, Found string }
		}
		if err := json.Unmarshal([]byte(p.Out.String()), &d); err != nil {
			t.Fatalf("doctor -json: %v\n%s%s", err, &p.Out, &p.Err)
		}
		found := ""
		for _, c := range d.Checks {
			if c.Name == "timer" {
				found = c.Verdict + ": " + c.Found
			}
		}
		t.Logf("%s after %v", found, time.Since(begin).Round(time.Second))
		if !strings.Contains(found, "of timerfd's at "+period) || strings.HasPrefix(found, "unknown") {
			t.Errorf("period %s: %q; want a comparison with the rights of a run", period, found)
		}
	}
}
