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
func (r view) safe() (why string, since float64) {
	reason := rt.Reason(r.page.SafeReason.Load())
	if reason == rt.NotEnded {
		return "", 0
	}
	why = reason.String()
	if reason == rt.MissedTick || reason == rt.MissedLimit {
		why += " (" + r.h.Bench.Overrun.String() + ")"
	}
	return why, float64(int64(r.page.SafeTick.Load())*r.h.Tables.PeriodNs) / 1e9
}

// behind tells for an instant, ns on CLOCK_MONOTONIC, how long a tick has been due
// that has not come, and how many grid points have passed since the last one.
// The clock decides: a target that stands still cannot count what it misses.
func (r view) behind(now int64) (still time.Duration, points int64) {
	start, ticks := int64(r.page.StartNs.Load()), int64(r.page.Ticks.Load())
	grid := sched.Grid{Start: start, Period: r.h.Tables.PeriodNs}
	last := r.h.Loop.Ticks
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
func (r view) silent() (list []Silence) {
	tick, period := int64(r.page.Ticks.Load()), r.h.Tables.PeriodNs
	i := 0
	for b, m := range r.h.Maps {
		for _, rx := range m.Rx {
			last := int64(r.page.LastRx[i].Load())
			awaited := len(rx.Fields) > 0 || rx.CycleTicks > 0 || rx.TimeoutTicks > 0
			if i++; awaited && (tick-last)*period >= int64(quiet) {
				bus, name := r.h.Bench.Buses[b].Name.Text, rx.Name
				if len(r.h.Maps) > 1 {
					name += " on " + bus
				}
				list = append(list, Silence{
					Bus: bus, Message: name, Last: float64(last*period) / 1e9, For: float64((tick-last)*period) / 1e9,
					Substituted: len(rx.OnTimeout.Values) > 0 && r.page.Rx[i-1].Load().Late,
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
func (r view) messageTrouble(now bool) string {
	at := 0
	for _, m := range r.h.Maps {
		for i := range m.Rx {
			w := &r.page.Rx[at]
			at++
			s := w.Load()
			bad := s.Protected && (s.Frame == sigmap.FrameError || s.Frame == sigmap.FrameRepeated || s.Frame == sigmap.FrameWrongSequence)
			if !bad && (now || !s.Late && !(s.Protected && s.Window == sigmap.WindowInvalid)) {
				continue
			}
			v := receivedMessage(w, &m.Rx[i])
			if list := v.wrong(); len(list) > 0 && v.Frames > 0 {
				return fmt.Sprintf("%s: %s", cutName(m.Rx[i].Name), list[0])
			}
		}
	}
	return ""
}

// state says how a run is doing.
func (r view) state() string {
	p := r.page
	still, _ := r.behind(sched.Now())
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
