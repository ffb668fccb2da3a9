package supervisor

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"lockstep/io/can"
	"lockstep/rt/bench"
	"lockstep/rt/check"
	"lockstep/rt/host"
	"lockstep/sched"
)

// waitForInterfaces waits until the interfaces of the run exist and are up, at most Options.Wait.
// After that time, opening a bus reports the missing interface.
func (r *Session) waitForInterfaces() {
	if r.Options.Wait == 0 {
		return
	}
	links, err := can.OpenLinks()
	if err != nil {
		return
	}
	defer links.Close()
	until := time.Now().Add(r.Options.Wait)
	for _, bus := range r.Bench.Buses {
		name, announced := bus.Interface.Text, false
		for bench.IsHostInterface(name) && time.Now().Before(until) {
			if link, err := links.Query(name); err == nil && link.Up {
				break
			}
			if !announced {
				fmt.Fprintf(r.Options.Out, "bus %s: waiting for %s, at most %v\n", bus.Name.Text, name, r.Options.Wait)
			}
			announced = true
			time.Sleep(pollInterval)
		}
	}
}

// refuseBusOff returns an error if a controller is bus-off before the start.
func (s *busStates) refuseBusOff() error {
	for _, w := range s.buses {
		if name := w.bus.Interface.Text; w.errors.State == can.Off {
			return fmt.Errorf("bus %s: %s is bus-off: repair the wiring, the bit rate or the termination, then ip link set %s down && ip link set %s up%s restart-ms 100",
				w.bus.Name.Text, name, name, name, upRate(w.bus))
		}
	}

	return nil
}

// upRate returns the arguments that `ip link set NAME up` needs for the bit rate of the bus.
func upRate(bus *bench.Bus) string {
	if bus.BitRate == 0 {
		return " type can bitrate 500000"
	}
	return fmt.Sprintf(" type can bitrate %.0f", bus.BitRate)
}

// warnings returns a line for each anomaly of a bus before the first tick.
func (s *busStates) warnings() (list []string) {
	for _, w := range s.buses {
		name := w.bus.Name.Text
		if w.errors.State > can.Active {
			list = append(list, fmt.Sprintf("bus %s: %s is %s: check that another node is on the bus and has the same bit rate",
				name, w.bus.Interface.Text, w.describe()))
		}

		if w.bus.BitRate > 0 && w.link.BitRate > 0 && int(w.bus.BitRate) != w.link.BitRate {
			list = append(list, fmt.Sprintf("bus %s: %s runs at %g kbit/s, the bench file says %g kbit/s: ip link set %s down && ip link set %s up%s",
				name, w.bus.Interface.Text, float64(w.link.BitRate)/1e3, w.bus.BitRate/1e3, w.bus.Interface.Text, w.bus.Interface.Text, upRate(w.bus)))
		}
	}

	return list
}

// missingRights returns the rights that the recovery rules of the buses need and the host refuses.
func (s *busStates) missingRights() (list []sched.Missing) {
	if sched.Capable(unix.CAP_NET_ADMIN) {
		return nil
	}
	for _, w := range s.buses {
		if w.bus.RestartNs > 0 && w.link.Card {
			list = append(list, sched.Missing{
				What: fmt.Sprintf("no right to restart %s (recover of bus %s): CAP_NET_ADMIN is missing",
					w.bus.Interface.Text, w.bus.Name.Text),
				Help: fmt.Sprintf("add cap_net_admin to the capabilities of the command, or leave it to the driver: recover: wait, and ip link set %s up%s restart-ms %d",
					w.bus.Interface.Text, upRate(w.bus), w.bus.RestartNs/1e6),
			})
		}
	}

	return list
}

// checkRights collects the rights that the host refuses. A run on a real bus fails without them,
// unless Options.BestEffort is set.
func (r *Session) checkRights() error {
	r.missing = sched.Probe(r.Handover.Thread)
	budget, err := r.overBudget()
	if err != nil {
		return err
	}
	r.missing = append(append(r.missing, budget...), r.states.missingRights()...)
	if r.shared != nil {
		r.missing = append(r.missing, *r.shared)
	}
	if !r.hasRealBus() || r.Options.BestEffort || len(r.missing) == 0 {
		return nil
	}
	var list []error
	for _, m := range r.missing {
		list = append(list, fmt.Errorf("run: %s: %s", m.What, m.Help))
	}
	list = append(list, errors.New("run: refused on a real bus without these rights; -besteffort runs without them"))
	return &host.Exit{Code: 3, Err: errors.Join(list...)}
}

// hasRealBus reports whether a bus of the run is neither a pair nor a log, nor goes to the virtual box.
func (r *Session) hasRealBus() bool {
	virtual := ""
	if at := r.Bench.VirtualBox(); at != "" {
		virtual = "udp:" + at
	}
	return slices.ContainsFunc(r.Bench.Buses, func(b bench.Bus) bool {
		return b.Interface.Text != bench.PairInterface && !bench.IsLog(b.Interface.Text) && b.Interface.Text != virtual
	})
}

// overBudget measures the worst tick on this host and compares it with the tick_budget of the
// bench. It returns nil if the tick fits or the bench has no budget.
func (r *Session) overBudget() ([]sched.Missing, error) {
	budget := time.Duration(r.Bench.BudgetNs)
	if budget == 0 {
		return nil, nil
	}
	worst, err := check.MeasureWorstTick(r.Handover, r.Options.Progress)
	if err != nil || worst.WorstNs <= int64(budget) {
		return nil, err
	}
	return []sched.Missing{{
		What: fmt.Sprintf("the worst tick takes %v, longer than the tick_budget of %v (%s)",
			time.Duration(worst.WorstNs).Round(100*time.Nanosecond), budget, worst.Under),
		Help: "raise tick_budget, make the plant smaller or use a faster CPU; `lockstep check` measures it",
	}}, nil
}
