package hostinfo

import (
	"fmt"
	"testing"

	"golang.org/x/sys/unix"
)

// statLine returns a line of /proc/PID/stat.
func statLine(pid int, name string, priority, policy int) string {
	return fmt.Sprintf("%d (%s) S 2 0 0 0 -1 69238848 0 0 0 0 0 41 0 0 -51 0 1 0 60 0 0 18446744073709551615 0 0 0 0 0 0 0 2147483647 0 0 0 0 17 3 %d %d 0 0 0 0 0 0 0 0 0 0 0",
		pid, name, priority, policy)
}

func TestParseStatAcceptsAnyThreadName(t *testing.T) {
	for _, name := range []string{"ktimers/3", "a) S 1 (b", "", " ", "((", "irq/129-kvaser_"} {
		got, err := ParseStat(statLine(42, name, 50, unix.SCHED_FIFO))
		if err != nil || got.Name != name || got.PID != 42 || got.Priority != 50 || got.Policy != unix.SCHED_FIFO {
			t.Errorf("%q: %+v, %v", name, got, err)
		}
	}
}

func TestParsePolicyReadsTheOutputOfFormatPolicy(t *testing.T) {
	for policy := range policies {
		text := FormatPolicy(policy, 81)
		got, priority, err := ParsePolicy(text)
		realtime := policy == unix.SCHED_FIFO || policy == unix.SCHED_RR
		if known := policies[policy] != "" && policy != unix.SCHED_DEADLINE; known != (err == nil) || known && (got != policy || priority == 81 != realtime) {
			t.Errorf("policy %d is %q, read %d %d, %v", policy, text, got, priority, err)
		}
	}
	for _, text := range []string{"", "FIFO", "FIFO 0", "FIFO 100", "FIFO x", "OTHER 5", "fifo 5", "DEADLINE", "7"} {
		if policy, priority, err := ParsePolicy(text); err == nil {
			t.Errorf("%q was accepted as policy %d %d", text, policy, priority)
		}
	}
}

func FuzzStat(f *testing.F) {
	f.Add(statLine(42, "ktimers/3", 1, 1))
	f.Add(statLine(1, "a) (b", 0, 0))
	f.Add("1 (")
	f.Add(") 1 (")
	f.Fuzz(func(t *testing.T, text string) {
		if thread, err := ParseStat(text); err != nil && thread.Name != "" {
			t.Fatalf("%q: %+v with error %v", text, thread, err)
		}
	})
}
