package report

import (
	"fmt"
	"time"

	"lockstep/io/sigmap"
	"lockstep/rt"
	"lockstep/rt/bench"
	"lockstep/sched"
)

// View is a run as every part beside its loop sees it: the plan that it was prepared from,
// and the status block that its target writes.
type View struct {
	Handover *bench.Handover
	Page     *rt.Page
}

// Safe says why the run went to the safe state, and when, simulated time; "" it did
// not.
func (v View) Safe() (why string, since float64) {
	reason := rt.Reason(v.Page.SafeReason.Load())
	if reason == rt.NotEnded {
		return "", 0
	}
	why = reason.String()
	if reason == rt.MissedTick || reason == rt.MissedLimit {
		why += " (" + v.Handover.Bench.Overrun.String() + ")"
	}
	return why, float64(int64(v.Page.SafeTick.Load())*v.Handover.Tables.PeriodNs) / 1e9
}

// Behind tells for an instant, ns on CLOCK_MONOTONIC, how long a tick has been due
// that has not come, and how many grid points have passed since the last one.
// The clock decides: a target that stands still cannot count what it misses.
func (v View) Behind(now int64) (still time.Duration, points int64) {
	start, ticks := int64(v.Page.StartNs.Load()), int64(v.Page.Ticks.Load())
	grid := sched.Grid{Start: start, Period: v.Handover.Tables.PeriodNs}
	last := v.Handover.Loop.Ticks
	if start == 0 || now <= grid.Due(ticks+1) || last > 0 && ticks >= last {
		return 0, 0
	}
	points = (now-start)/grid.Period - ticks
	if last > 0 {
		points = min(points, last-ticks)
	}
	return time.Duration(now - grid.Due(ticks+1)), points
}

// Silent lists the received messages that have been away, or too short, for longer
// than quiet; one that drives nothing and has no cycle is not waited for.
func (v View) Silent() (list []Silence) {
	tick, period := int64(v.Page.Ticks.Load()), v.Handover.Tables.PeriodNs
	i := 0
	for b, m := range v.Handover.Maps {
		for _, rx := range m.Rx {
			last := int64(v.Page.LastRx[i].Load())
			awaited := len(rx.Fields) > 0 || rx.CycleTicks > 0 || rx.TimeoutTicks > 0
			if i++; awaited && (tick-last)*period >= int64(quiet) {
				bus, name := v.Handover.Bench.Buses[b].Name.Text, rx.Name
				if len(v.Handover.Maps) > 1 {
					name += " on " + bus
				}
				list = append(list, Silence{
					Bus: bus, Message: name, Last: float64(last*period) / 1e9, For: float64((tick-last)*period) / 1e9,
					Substituted: len(rx.OnTimeout.Values) > 0 && v.Page.Rx[i-1].Load().Late,
				})
			}
		}
	}
	return list
}

// quiet is how long a received message may stay away before the display and the
// report say so.
const quiet = 500 * time.Millisecond

// Standstill is how late a tick may be before the display says so.
const Standstill = 100 * time.Millisecond

// MessageTrouble is what is wrong with a received message right now, in at most 60 columns;
// "" nothing. With now only of one whose last frame was bad.
func (v View) MessageTrouble(now bool) string {
	at := 0
	for _, m := range v.Handover.Maps {
		for i := range m.Rx {
			w := &v.Page.Rx[at]
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

// State says how a run is doing.
func (v View) State() string {
	p := v.Page
	still, _ := v.Behind(sched.Now())
	switch {
	case rt.State(p.State.Load()) == rt.Preparing:
		return "preparing"
	case rt.Reason(p.Reason.Load()) != rt.NotEnded:
		return "over: " + rt.Reason(p.Reason.Load()).String()
	case rt.Reason(p.SafeReason.Load()) != rt.NotEnded:
		return "safe: " + rt.Reason(p.SafeReason.Load()).String()
	case still > Standstill:
		return fmt.Sprintf("stands still for %.1f s", still.Seconds())
	}
	return "running"
}

// Ended says why a run whose target has ended by itself is over, and whether that is as it
// should be. stop is the signal that asked it to end, overdue why the supervisor did; "" neither.
func (v View) Ended(stop, overdue string) (why string, clean bool) {
	reason := rt.Reason(v.Page.Reason.Load())
	unsafe, since := v.Safe()
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
		return fmt.Sprintf("state %s of the plant is no longer finite", v.Handover.Tables.StateName[v.Page.BrokenState.Load()]), false
	case reason == rt.MissedTick:
		return fmt.Sprintf("%s (%s)", reason, v.Handover.Bench.Overrun), false
	}
	return reason.String(), false
}

// FromPage is the part of a report that the page and the tables know.
func FromPage(p *rt.Page, h *bench.Handover) *Report {
	v := &Report{
		Plant: h.Tables.Name, StepNs: h.Tables.PeriodNs,
		Ticks: p.Ticks.Load(), Missed: p.Missed.Load(), Late: Quantiles(&p.Late), Tick: Quantiles(&p.Work),
		Events: p.Events.Load(), Transitions: p.Transitions.Load(), LagMax: p.LagMax(),
		RxFrames: p.RxFrames.Load(), TxFrames: p.TxFrames.Load(),
		RxUnknown: p.RxUnknown.Load(), RxShort: p.RxShort.Load(), RxRange: p.RxRange.Load(),
		RxInvalid: p.RxInvalid.Load(), RxBad: p.RxBad.Load(), TxAgain: p.TxAgain.Load(),
		RxOverflow: p.RxOverflow.Load(), RxBadSize: p.RxBadSize.Load(), RxBound: p.RxBound.Load(), RxStale: p.RxStale.Load(),
		TxDropped: p.TxDropped.Load(), TxLost: p.TxLost.Load(), TxRefused: p.TxRefused.Load(), Saturated: p.Saturated.Load(),
		BusDown: p.BusDown.Load(), BusErrors: p.BusErrors.Load(), BusOffs: p.BusOffs.Load(),
		SimTime: float64(p.SimNs.Load()) / 1e9, BestEffortWhy: []string{},
	}
	if p.Response.N() > 0 {
		s := Quantiles(&p.Response)
		v.Response = &s
		for _, c := range p.Response.Classes(8) {
			v.Responses = append(v.Responses, Class{c.Upper, int64(c.N)})
		}
	}
	y := make([]float64, len(h.Tables.Outputs))
	if _, ok := p.Outputs(y); ok && h.Loop.Watch.Lag >= 0 {
		v.Lag = y[h.Loop.Watch.Lag]
	}
	if rt.State(p.State.Load()) == rt.Ended {
		v.Usage = &Usage{p.Allocs.Load(), p.GCCycles.Load(), p.MinorFaults.Load(), p.MajorFaults.Load()}
		if n := float64(max(1, v.Ticks)); p.Voluntary.Load()+p.Involuntary.Load() > 0 {
			v.Switches = &Switches{float64(p.Voluntary.Load()) / n, float64(p.Involuntary.Load()) / n}
		}
	}
	return v
}

// Quantiles returns the spread of a histogram, ns.
func Quantiles(h *sched.Histogram) Spread {
	return Spread{P50: h.Quantile(0.5), P99: h.Quantile(0.99), P999: h.Quantile(0.999), Max: h.Max()}
}
