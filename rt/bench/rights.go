package bench

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"lockstep/sched"
)

// rights asks what the host refuses. A bus with a name is somebody's unit under
// test: without the rights the run is refused there, unless best effort will do.
func (r *run) rights() error {
	r.missing = sched.Probe(r.h.Thread)
	budget, err := r.overBudget()
	if err != nil {
		return err
	}
	r.missing = append(append(r.missing, budget...), r.states.missing()...)
	if r.shared != nil {
		r.missing = append(r.missing, *r.shared)
	}
	if !r.real() || r.options.BestEffort || len(r.missing) == 0 {
		return nil
	}
	var list []error
	for _, m := range r.missing {
		list = append(list, fmt.Errorf("run: %s: %s", m.What, m.Help))
	}
	list = append(list, errors.New("run: refused on a real bus without these; -besteffort runs anyway and says so"))
	return &Exit{3, errors.Join(list...)}
}

// real says that a bus of the run is outside of it.
func (r *run) real() bool {
	return slices.ContainsFunc(r.bench.Buses, func(b Bus) bool { return b.Interface.Text != pair && !strings.HasPrefix(b.Interface.Text, fromFile) })
}

// overBudget measures the dearest tick on this host against the bench's budget for
// one, where it names one.
func (r *run) overBudget() ([]sched.Missing, error) {
	budget := time.Duration(r.bench.BudgetNs)
	if budget == 0 {
		return nil, nil
	}
	dearest, where, err := measure(r.bench, r.h.Tables)
	if err != nil || dearest <= budget {
		return nil, err
	}
	return []sched.Missing{{
		What: fmt.Sprintf("the dearest tick takes %v, longer than the tick_budget of %v (%s)", dearest.Round(100*time.Nanosecond), budget, where),
		Help: "raise tick_budget, make the plant smaller or use a faster CPU; `lockstep check` measures it",
	}}, nil
}
