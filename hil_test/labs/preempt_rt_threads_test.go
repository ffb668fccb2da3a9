package labs

import (
	"os"
	"strings"
	"testing"
	"time"

	"lockstep/hil_test/lab"
)

// online takes the isolated CPU offline (value 0) or online (1).
func online(t *testing.T, value string) {
	t.Helper()
	if err := os.WriteFile("/sys/devices/system/cpu/cpu"+lab.IsolatedCPU+"/online", []byte(value), 0); err != nil {
		t.Fatal(err)
	}
}

// cpuOffline takes the CPU of the loop offline. The loop then shares CPU 0 with everything else, at a
// higher priority, in an emulator that may be slow. So the supervisor may report late, but never not.
func cpuOffline(t *testing.T) {
	b := runRT(t)
	online(t, "0")
	defer online(t, "1")
	lost := "best effort: the loop lost CPU " + lab.IsolatedCPU
	ended := func() bool {
		select {
		case <-b.Done:
			return true
		default:
			return false
		}
	}
	const limit = 3 * lab.Timeout
	lab.AwaitFor(t, "the end of the run, or the message that the loop lost its CPU", limit,
		func() bool { return ended() || strings.Contains(b.Out.String(), lost) })
	if !ended() {
		least := time.Since(b.ticking)
		r := b.StopWithin(limit)
		b.checkClock(r, least)
		if !r.BestEffort || !strings.Contains(b.Out.String(), lost) {
			t.Errorf("the run continued, best effort %t, without the message that the loop lost its CPU:\n%s", r.BestEffort, &b.Out)
		}
		return
	}
	message := strings.TrimSpace(b.Err.String())
	t.Logf("the run has ended: %s", message)
	if code := b.Wait(); code != 1 || !strings.HasPrefix(message, "lockstep: run: ") || strings.Contains(message, "\n") {
		t.Errorf("exit %d, want 1 and the reason in one line: %q", code, message)
	}
}
