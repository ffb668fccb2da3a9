package report

import (
	"fmt"
	"math/bits"
	"reflect"
	"strings"
	"sync/atomic"
	"time"

	"lockstep/io/sigmap"
	"lockstep/io/wire"
	"lockstep/rt"
	"lockstep/rt/bench"
	"lockstep/rt/checkpoint"
	"lockstep/rt/tableset"
	"lockstep/sched"
)

// View reads a run from outside its loop.
type View struct {
	Handover *bench.Handover // plan of the run; nil: not known, and only State may be called
	Status   *rt.StatusBlock // status block, written by the target

	TableSets *tableset.Memory // memory for tables of other parameters; nil: the parameters of the run are fixed

	Checkpoint *checkpoint.Memory // memory for a copy of the loop's state; nil: not known
}

// Safe returns why the run went to the safe state and when, simulated time in s; "" if the run
// did not.
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

// Behind returns how long the next tick is overdue at the time now, ns on CLOCK_MONOTONIC, and
// how many grid points have passed since the last tick. Both follow from the clock, because a
// stalled target cannot count its missed ticks.
func (v View) Behind(now int64) (overdue time.Duration, points int64) {
	if v.Handover == nil {
		return 0, 0 // the grid is not known
	}
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

// Silent lists the received messages without a frame of full length for silenceLimit. It leaves
// out a message without inputs, cycle and timeout.
func (v View) Silent() (list []Silence) {
	tick, period := int64(v.Status.Ticks.Load()), v.Handover.Tables.PeriodNs
	i := 0
	for b, m := range v.Handover.Maps {
		for _, rx := range m.Rx {
			last := int64(v.Status.LastRx[i].Load())
			expected := len(rx.Fields) > 0 || rx.CycleTicks > 0 || rx.TimeoutTicks > 0
			if i++; expected && (tick-last)*period >= int64(silenceLimit) {
				list = append(list, Silence{
					Bus: v.Handover.Bench.Buses[b].Name.Text, Message: messageLabel(v.Handover, b, rx.Name),
					Last: float64(last*period) / 1e9, For: float64((tick-last)*period) / 1e9,
					Substituted: isSubstituted(&rx, v.Status.Rx[i-1].Load()),
				})
			}
		}
	}

	return list
}

// isSubstituted reports whether the inputs of a message have its substitute values.
func isSubstituted(rx *sigmap.Rx, s rt.RxStatus) bool {
	if s.Late {
		return len(rx.OnTimeout.Values) > 0
	}
	return len(rx.OnError.Values) > 0 && s.Window == sigmap.WindowInvalid
}

// silenceLimit is the time without a valid frame after which the status line and the report name
// a message as silent.
const silenceLimit = 500 * time.Millisecond

// StallLimit is how long a tick may be overdue before the status line shows it.
const StallLimit = 100 * time.Millisecond

// MessageProblem describes a fault of a received message in at most 60 columns; "" if there is
// none. With now, it describes only messages whose last frame was faulty.
func (v View) MessageProblem(now bool) string {
	at := 0
	for _, m := range v.Handover.Maps {
		for i := range m.Rx {
			w := &v.Status.Rx[at]
			at++
			s := w.Load()
			faulty := s.Protected && (s.Frame == sigmap.FrameError || s.Frame == sigmap.FrameRepeated ||
				s.Frame == sigmap.FrameWrongSequence)
			if !faulty && (now || !s.Late && !(s.Protected && s.Window == sigmap.WindowInvalid)) {
				continue
			}
			got := receivedMessage(w, &m.Rx[i])
			if list := got.Problems(); len(list) > 0 && got.Frames > 0 {
				return fmt.Sprintf("%s: %s", shortName(m.Rx[i].Name), list[0])
			}
		}
	}

	return ""
}

// State describes the state of the run, such as "running" or "ended: done".
func (v View) State() string {
	p := v.Status
	overdue, _ := v.Behind(sched.Now())
	switch {
	case rt.State(p.State.Load()) == rt.Preparing:
		return "preparing"
	case rt.Reason(p.Reason.Load()) != rt.NotEnded:
		return "ended: " + rt.Reason(p.Reason.Load()).String()
	case rt.Reason(p.SafeReason.Load()) != rt.NotEnded:
		return "safe: " + rt.Reason(p.SafeReason.Load()).String()
	case overdue > StallLimit:
		return fmt.Sprintf("no tick for %.1f s", overdue.Seconds())
	}

	return "running"
}

// Ended returns why a run ended whose target was not killed, and whether the end was clean. stop is
// the signal that asked for the end, overdue the supervisor's reason to end the run; "" for neither.
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

// copyCounts copies the counters of the status block to the fields of the same names in the struct
// that dst points to.
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

// SetSpreads sets the wake-up latency, the tick time and, if any frame had a time stamp, the
// response time from their histograms.
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

// wire returns the counts of the images by wire; nil: the run has no such bus.
func (v View) wire() *wire.Counts {
	if v.Handover.Loop.Wires == nil || v.Handover.Loop.Virtual {
		return nil
	}
	c := v.Status.WireCounts()
	return &c
}

// Report returns the report of a run as far as the status block and the plan determine it.
func (v View) Report() *Report {
	p, h := v.Status, v.Handover
	r := &Report{
		Plant: h.Tables.Name, Set: h.Bench.SetText(), Start: h.Bench.StartText(), StepNs: h.Tables.PeriodNs, LagMax: p.LagMax(),
		SimTime: float64(p.SimNs.Load()) / 1e9, BestEffortWhy: []string{},
		Silent: v.Silent(), Messages: v.ReceivedMessages(), Dropped: v.droppedFrames(), Conflicts: v.Conflicts(), Wire: v.wire(),
	}
	r.Safe, r.SafeSince = v.Safe()
	r.Changes, r.Refusals = p.ParameterChanges()
	r.Resets = p.Resets()
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

// Class is a class of a histogram: its largest time, ns, and its count. In JSON it is a pair.
type Class [2]int64

// barColumns is the width of the longest bar, columns.
const barColumns = 32

// histogram draws classes, one row per octave; the last row holds the worst case.
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
		bar := strings.Repeat("#", int((c[1]*barColumns+most-1)/most)) // at least one for a count above 0
		rows = append(rows, fmt.Sprintf("to %9.1f us %9d %s", float64(c[0]+1)/1e3, c[1], bar))
	}

	return rows
}
