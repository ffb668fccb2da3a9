package bench

import (
	"fmt"
	"time"

	"lockstep/io/sigmap"
	"lockstep/rt"
	"lockstep/sched"
)

// view is a run as every part beside its loop sees it: the plan that it was prepared from,
// and the status block that its target writes.
type view struct {
	h    *Handover
	page *rt.Page
}

// safe says why the run went to the safe state, and when, simulated time; "" it did
// not.
func (v view) safe() (why string, since float64) {
	reason := rt.Reason(v.page.SafeReason.Load())
	if reason == rt.NotEnded {
		return "", 0
	}
	why = reason.String()
	if reason == rt.MissedTick || reason == rt.MissedLimit {
		why += " (" + v.h.Bench.Overrun.String() + ")"
	}
	return why, float64(int64(v.page.SafeTick.Load())*v.h.Tables.PeriodNs) / 1e9
}

// behind tells for an instant, ns on CLOCK_MONOTONIC, how long a tick has been due
// that has not come, and how many grid points have passed since the last one.
// The clock decides: a target that stands still cannot count what it misses.
func (v view) behind(now int64) (still time.Duration, points int64) {
	start, ticks := int64(v.page.StartNs.Load()), int64(v.page.Ticks.Load())
	grid := sched.Grid{Start: start, Period: v.h.Tables.PeriodNs}
	last := v.h.Loop.Ticks
	if start == 0 || now <= grid.Due(ticks+1) || last > 0 && ticks >= last {
		return 0, 0
	}
	points = (now-start)/grid.Period - ticks
	if last > 0 {
		points = min(points, last-ticks)
	}
	return time.Duration(now - grid.Due(ticks+1)), points
}

// silent lists the received messages that have been away, or too short, for longer
// than quiet; one that drives nothing and has no cycle is not waited for.
func (v view) silent() (list []Silence) {
	tick, period := int64(v.page.Ticks.Load()), v.h.Tables.PeriodNs
	i := 0
	for b, m := range v.h.Maps {
		for _, rx := range m.Rx {
			last := int64(v.page.LastRx[i].Load())
			awaited := len(rx.Fields) > 0 || rx.CycleTicks > 0 || rx.TimeoutTicks > 0
			if i++; awaited && (tick-last)*period >= int64(quiet) {
				bus, name := v.h.Bench.Buses[b].Name.Text, rx.Name
				if len(v.h.Maps) > 1 {
					name += " on " + bus
				}
				list = append(list, Silence{
					Bus: bus, Message: name, Last: float64(last*period) / 1e9, For: float64((tick-last)*period) / 1e9,
					Substituted: len(rx.OnTimeout.Values) > 0 && v.page.Rx[i-1].Load().Late,
				})
			}
		}
	}
	return list
}

// quiet is how long a received message may stay away before the display and the
// report say so.
const quiet = 500 * time.Millisecond

// standstill is how late a tick may be before the display says so.
const standstill = 100 * time.Millisecond

// messageTrouble is what is wrong with a received message right now, in at most 60 columns;
// "" nothing. With now only of one whose last frame was bad.
func (v view) messageTrouble(now bool) string {
	at := 0
	for _, m := range v.h.Maps {
		for i := range m.Rx {
			w := &v.page.Rx[at]
			at++
			s := w.Load()
			bad := s.Protected && (s.Frame == sigmap.FrameError || s.Frame == sigmap.FrameRepeated || s.Frame == sigmap.FrameWrongSequence)
			if !bad && (now || !s.Late && !(s.Protected && s.Window == sigmap.WindowInvalid)) {
				continue
			}
			got := receivedMessage(w, &m.Rx[i])
			if list := got.wrong(); len(list) > 0 && got.Frames > 0 {
				return fmt.Sprintf("%s: %s", cutName(m.Rx[i].Name), list[0])
			}
		}
	}
	return ""
}

// state says how a run is doing.
func (v view) state() string {
	p := v.page
	still, _ := v.behind(sched.Now())
	switch {
	case rt.State(p.State.Load()) == rt.Preparing:
		return "preparing"
	case rt.Reason(p.Reason.Load()) != rt.NotEnded:
		return "over: " + rt.Reason(p.Reason.Load()).String()
	case rt.Reason(p.SafeReason.Load()) != rt.NotEnded:
		return "safe: " + rt.Reason(p.SafeReason.Load()).String()
	case still > standstill:
		return fmt.Sprintf("stands still for %.1f s", still.Seconds())
	}
	return "running"
}

// ended says why a run whose target has ended by itself is over, and whether that is as it
// should be. stop is the signal that asked it to end, overdue why the supervisor did; "" neither.
func (v view) ended(stop, overdue string) (why string, clean bool) {
	reason := rt.Reason(v.page.Reason.Load())
	unsafe, since := v.safe()
	switch {
	case reason.Clean() && unsafe != "":
		return fmt.Sprintf("%s; in the safe state since %.3f s", unsafe, since), false
	case (reason == rt.Stopped || reason == rt.Shutdown) && stop != "":
		return "stopped by " + stop, true
	case reason == rt.Stopped && overdue != "":
		return overdue, false
	case reason == rt.Shutdown:
		return "stopped by SIGTERM to the target process", true
	case reason.Clean():
		return reason.String(), true
	case reason == rt.NonFinite:
		return fmt.Sprintf("state %s of the plant is no longer finite", v.h.Tables.StateName[v.page.BrokenState.Load()]), false
	case reason == rt.MissedTick:
		return fmt.Sprintf("%s (%s)", reason, v.h.Bench.Overrun), false
	}
	return reason.String(), false
}
