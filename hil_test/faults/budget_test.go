package faults

import (
	"strings"
	"time"
)

// budget sets a tick_budget of 1 us, which receiving from a socket already exceeds.
func budget(a *attempt) {
	small := []string{"# tick_budget: 1 ms", "tick_budget: 1 us"}
	var s *session
	got := "lockstep stop "
	// While other tests hold all CPUs, the run is refused for lack of a CPU.
	for until := time.Now().Add(timeout); strings.Contains(got, "lockstep stop ") && time.Now().Before(until); {
		s = a.run(plan{change: small, args: []string{"-besteffort=false"}})
		<-s.over
		got = s.errors.String()
	}
	a.Log(got)
	a.must(s.cmd.ProcessState.ExitCode() == 3, "exit code %d, want 3", s.cmd.ProcessState.ExitCode())
	for _, want := range []string{"run: the worst tick takes ", "µs, longer than the tick_budget of 1µs (", ": raise tick_budget, make the plant smaller or use a faster CPU", "-besteffort runs without them"} {
		a.must(strings.Contains(got, want), "the refusal does not say %q:\n%s", want, got)
	}
	a.must(len(s.bus.end()) == 0, "%d frames of a refused run, want none", len(s.bus.all()))

	s = a.run(plan{change: small, args: []string{"-for", "1s"}})
	s.ends(0, "")
	r := s.read()
	a.must(r.BestEffort && strings.Contains(strings.Join(r.BestEffortWhy, "\n"), "the worst tick takes "), "best effort %t: %q", r.BestEffort, r.BestEffortWhy)
	a.must(time.Duration(r.BudgetNs) == time.Microsecond && r.LateTicks+r.Missed == 200, "%d ticks over the budget of %d ns, %d missed; want 200, all over 1 us", r.LateTicks, r.BudgetNs, r.Missed)
}
