package supervisor

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"lockstep/rt/bench"
	"lockstep/rt/check"
	"lockstep/rt/host"
	"lockstep/sched"
)

// rights asks what the host refuses. A bus with a name is somebody's unit under
// test: without the rights the run is refused there, unless best effort will do.
func (r *Session) rights() error {
	r.missing = sched.Probe(r.Handover.Thread)
	budget, err := r.overBudget()
	if err != nil {
		return err
	}
	r.missing = append(append(r.missing, budget...), r.states.missing()...)
	if r.shared != nil {
		r.missing = append(r.missing, *r.shared)
	}
	if !r.real() || r.Options.BestEffort || len(r.missing) == 0 {
		return nil
	}
	var list []error
	for _, m := range r.missing {
		list = append(list, fmt.Errorf("run: %s: %s", m.What, m.Help))
	}
	list = append(list, errors.New("run: refused on a real bus without these; -besteffort runs anyway and says so"))
	return &host.Exit{Code: 3, Err: errors.Join(list...)}
}

// real says that a bus of the run is outside of it.
func (r *Session) real() bool {
	return slices.ContainsFunc(r.Bench.Buses, func(b bench.Bus) bool {
		return b.Interface.Text != bench.PairInterface && !strings.HasPrefix(b.Interface.Text, bench.LogPrefix)
	})
}

// overBudget measures the dearest tick on this host against the bench's budget for
// one, where it names one.
func (r *Session) overBudget() ([]sched.Missing, error) {
	budget := time.Duration(r.Bench.BudgetNs)
	if budget == 0 {
		return nil, nil
	}
	dearest, where, err := check.MeasureDearest(r.Bench, r.Handover.Tables)
	if err != nil || dearest <= budget {
		return nil, err
	}
	return []sched.Missing{{
		What: fmt.Sprintf("the dearest tick takes %v, longer than the tick_budget of %v (%s)", dearest.Round(100*time.Nanosecond), budget, where),
		Help: "raise tick_budget, make the plant smaller or use a faster CPU; `lockstep check` measures it",
	}}, nil
}
