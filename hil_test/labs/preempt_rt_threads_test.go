package labs

import (
	"os"
	"strings"
	"testing"

	"lockstep/hil_test/lab"
)

// online takes the isolated CPU offline (value 0) or online (1).
func online(t *testing.T, value string) {
	t.Helper()
	if err := os.WriteFile("/sys/devices/system/cpu/cpu"+lab.IsolatedCPU+"/online", []byte(value), 0); err != nil {
		t.Fatal(err)
	}
}

func cpuOffline(t *testing.T) {
	b := runRT(t)
	online(t, "0")
	defer online(t, "1")
	lost := "the loop lost CPU " + lab.IsolatedCPU
	ended := func() bool {
		select {
		case <-b.Done:
			return true
		default:
			return false
		}
	}
	lab.Await(t, "the end of the run, or the message that the loop lost its CPU", func() bool { return ended() || strings.Contains(b.Out.String(), lost) })
	if !ended() {
		r := b.stop()
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
