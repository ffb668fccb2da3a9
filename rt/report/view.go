package report

import (
	"fmt"
	"math/bits"
	"reflect"
	"strings"
	"sync/atomic"
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
	Status   *rt.StatusBlock
}

// Safe says why the run went to the safe state, and when, simulated time; "" it did
// not.
func (v View) Safe() (why string, since float64) {
	reason := rt.Reason(v.Status.SafeReason.Load())
	if reason == rt.NotEnded {
		return "", 0
	}
	why = reason.String()
	if reason == rt.MissedTick || reason == rt.MissedLimit {
		why += " (" + v.Handover.Bench.Overrun.String() + ")"
	}
	return why, float64(int64(v.Status.SafeTick.Load())*v.Handover.Tables.PeriodNs) / 1e9
}

// Behind tells for an instant, ns on CLOCK_MONOTONIC, how long a tick has been due
// that has not come, and how many grid points have passed since the last one.
// The clock decides: a target that stands still cannot count what it misses.
func (v View) Behind(now int64) (still time.Duration, points int64) {
	start, ticks := int64(v.Status.StartNs.Load()), int64(v.Status.Ticks.Load())
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
	tick, period := int64(v.Status.Ticks.Load()), v.Handover.Tables.PeriodNs
	i := 0
	for b, m := range v.Handover.Maps {
		for _, rx := range m.Rx {
			last := int64(v.Status.LastRx[i].Load())
			awaited := len(rx.Fields) > 0 || rx.CycleTicks > 0 || rx.TimeoutTicks > 0
			if i++; awaited && (tick-last)*period >= int64(silenceLimit) {
				list = append(list, Silence{
					Bus: v.Handover.Bench.Buses[b].Name.Text, Message: messageLabel(v.Handover, b, rx.Name),
					Last: float64(last*period) / 1e9, For: float64((tick-last)*period) / 1e9,
					Substituted: len(rx.OnTimeout.Values) > 0 && v.Status.Rx[i-1].Load().Late,
				})
			}
		}
	}

	return list
}

// silenceLimit is how long a received message may stay away before the display and the
// report say so.
const silenceLimit = 500 * time.Millisecond

// Standstill is how late a tick may be before the display says so.
const Standstill = 100 * time.Millisecond

// MessageProblem is what is wrong with a received message right now, in at most 60 columns;
// "" nothing. With now only of one whose last frame was bad.
func (v View) MessageProblem(now bool) string {
	at := 0
	for _, m := range v.Handover.Maps {
		for i := range m.Rx {
			w := &v.Status.Rx[at]
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
	p := v.Status
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
	reason := rt.Reason(v.Status.Reason.Load())
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
		return fmt.Sprintf("state %s of the plant is no longer finite",
			v.Handover.Tables.StateName[v.Status.BrokenState.Load()]), false
	case reason == rt.MissedTick:
		return fmt.Sprintf("%s (%s)", reason, v.Handover.Bench.Overrun), false
	}

	return reason.String(), false
}

// copyCounts copies the counts of the page to the fields of dst, a pointer to a struct, that have their names.
func copyCounts(dst any, p *rt.StatusBlock) {
	to, from := reflect.ValueOf(dst).Elem(), reflect.ValueOf(p).Elem()
	for i := range to.NumField() {
		if f := from.FieldByName(to.Type().Field(i).Name); f.IsValid() {
			if n, ok := f.Addr().Interface().(*atomic.Uint64); ok {
				to.Field(i).SetUint(n.Load())
			}
		}
	}
}

// SetSpreads sets what the histograms of a page say: lateness, tick time and, of frames that
// had a stamp, the time to the answer.
func (r *Report) SetSpreads(late, work, response *sched.Histogram) {
	r.Late, r.Tick = quantiles(late), quantiles(work)
	if response.N() == 0 {
		return
	}
	s := quantiles(response)
	r.Response = &s
	for _, c := range response.Classes(8) {
		r.Responses = append(r.Responses, Class{c.Upper, int64(c.N)})
	}
}

// Report is what the status block and the plan say of a run.
func (v View) Report() *Report {
	p, h := v.Status, v.Handover
	r := &Report{
		Plant: h.Tables.Name, StepNs: h.Tables.PeriodNs, LagMax: p.LagMax(),
		SimTime: float64(p.SimNs.Load()) / 1e9, BestEffortWhy: []string{},
		Silent: v.Silent(), Messages: v.ReceivedMessages(), Dropped: v.droppedFrames(),
	}
	r.Safe, r.SafeSince = v.Safe()
	copyCounts(r, p)
	r.SetSpreads(&p.Late, &p.Work, &p.Response)
	y := make([]float64, len(h.Tables.Outputs))
	if _, ok := p.Outputs(y); ok && h.Loop.Watch.Lag >= 0 {
		r.Lag = y[h.Loop.Watch.Lag]
	}
	if rt.State(p.State.Load()) == rt.Ended {
		r.Usage = &Usage{}
		copyCounts(r.Usage, p)
		if n := float64(max(1, r.Ticks)); p.Voluntary.Load()+p.Involuntary.Load() > 0 {
			r.Switches = &Switches{float64(p.Voluntary.Load()) / n, float64(p.Involuntary.Load()) / n}
		}
	}

	return r
}

// quantiles returns the spread of a histogram, ns.
func quantiles(h *sched.Histogram) Spread {
	return Spread{P50: h.Quantile(0.5), P99: h.Quantile(0.99), P999: h.Quantile(0.999), Max: h.Max()}
}

// Class is a class of a histogram: the longest time that belongs to it, ns, and how
// many do. In the JSON it is a pair.
type Class [2]int64

// barColumns is how many columns the bar of the largest class takes.
const barColumns = 40

// histogram draws classes, one row per octave: a class of a million beside one of
// three, and the worst case in the last row.
func histogram(list []Class) (rows []string) {
	var octaves []Class
	for _, c := range list {
		upper := int64(1)<<bits.Len64(uint64(c[0])) - 1
		if n := len(octaves); n == 0 || octaves[n-1][0] != upper {
			octaves = append(octaves, Class{upper})
		}
		octaves[len(octaves)-1][1] += c[1]
	}

	most := int64(1)
	for _, c := range octaves {
		most = max(most, c[1])
	}
	for _, c := range octaves {
		bar := strings.Repeat("#", int((c[1]*barColumns+most-1)/most)) // what is there has one at least
		rows = append(rows, fmt.Sprintf("to %9.1f us %9d %s", float64(c[0]+1)/1e3, c[1], bar))
	}

	return rows
}
