package metrics

import (
	"slices"
	"strconv"

	"lockstep/rt"
	"lockstep/rt/fault"
	"lockstep/rt/report"
	"lockstep/sched"
)

// Run is the run whose figures are stated. The functions are called at each request, from other goroutines.
type Run struct {
	report.View
	BestEffort bool
	Previous   *End            // how the run before this one ended; nil: not known
	Buses      func() []Bus    // present states of the buses on interfaces of this host
	Record     func() *Record  // state of the record; nil: there is none
	Ended      func() (e *End) // how the run has ended; nil: it has not
}

// End is how a run has ended.
type End struct {
	Bench string `json:"bench"`
	Why   string `json:"ended"`
	Clean bool   `json:"clean"` // no policy was broken
}

// Bus is the state of a bus on an interface of this host.
type Bus struct {
	Name, Interface string
	State           string // as in report.BusState
	ErrorFrames     uint64 // error frames so far
	HasCounters     bool   // Tx and Rx are known
	Tx, Rx          uint8  // transmit and receive error counters
}

// Record is the state of a record.
type Record struct {
	Free       uint64 // bytes free for this user on the disk of the record
	FreeKnown  bool   // the disk has answered
	Incomplete bool   // the record lacks a part of the run
}

// counts are the counters of the status block.
var counts = []struct {
	name, help string
	value      func(p *rt.StatusBlock) uint64
}{
	{"lockstep_ticks_total", "Grid points served, missed ones included", func(p *rt.StatusBlock) uint64 { return p.Ticks.Load() }},
	{"lockstep_ticks_missed_total", "Grid points whose tick came after the next one was due", func(p *rt.StatusBlock) uint64 { return p.Missed.Load() }},
	{"lockstep_ticks_late_total", "Ticks over the budget, or after missed grid points", func(p *rt.StatusBlock) uint64 { return p.LateCount() }},
	{"lockstep_plant_events_total", "Instants at which elements changed state or laws changed region", func(p *rt.StatusBlock) uint64 { return p.Events.Load() }},
	{"lockstep_plant_transitions_total", "Changes of state of friction elements", func(p *rt.StatusBlock) uint64 { return p.Transitions.Load() }},
	{"lockstep_frames_received_total", "Frames received", func(p *rt.StatusBlock) uint64 { return p.RxFrames.Load() }},
	{"lockstep_frames_lost_total", "Frames lost in the receive buffer of the kernel", func(p *rt.StatusBlock) uint64 { return p.RxOverflow.Load() }},
	{"lockstep_frames_sent_total", "Frames sent", func(p *rt.StatusBlock) uint64 { return p.TxFrames.Load() }},
	{"lockstep_frames_dropped_total", "Frames that a bus did not take", func(p *rt.StatusBlock) uint64 { return p.TxDropped.Load() }},
	{"lockstep_frames_unsent_total", "Frames due at missed grid points and not sent", func(p *rt.StatusBlock) uint64 { return p.TxLost.Load() }},
	{"lockstep_bus_down_ticks_total", "Ticks that found a bus down", func(p *rt.StatusBlock) uint64 { return p.BusDown.Load() }},
	{"lockstep_bus_call_errors_total", "Calls that failed to read or write a bus for another reason", func(p *rt.StatusBlock) uint64 { return p.BusErrors.Load() }},
	{"lockstep_bus_offs_total", "Bus-off reports of the controllers", func(p *rt.StatusBlock) uint64 { return p.BusOffs.Load() }},
	{"lockstep_record_entries_lost_total", "Entries for which the ring to the record had no room", func(p *rt.StatusBlock) uint64 { return p.LostEntries() }},
	{"lockstep_parameter_changes_total", "Changes of parameters of the plant", func(p *rt.StatusBlock) uint64 { n, _ := p.ParameterChanges(); return n }},
}

// rejections are the reasons for which a frame is not decoded.
var rejections = []struct {
	reason string
	value  func(p *rt.StatusBlock) uint64
}{
	{"unknown", func(p *rt.StatusBlock) uint64 { return p.RxUnknown.Load() }},
	{"short", func(p *rt.StatusBlock) uint64 { return p.RxShort.Load() + p.RxBadSize.Load() }},
	{"format", func(p *rt.StatusBlock) uint64 { return p.RxFormat.Load() }},
	{"protection", func(p *rt.StatusBlock) uint64 { return p.RxBad.Load() }},
}

// Text returns the present figures in the text format of Prometheus.
func (r *Run) Text() []byte {
	t := &text{}
	p, h := r.Status, r.Handover
	t.family("lockstep_run_info", gauge, "The run by its labels, always 1")
	t.sample(1, "bench", h.Bench.Name, "plant", h.Tables.Name, "overrun", h.Bench.Overrun.String(), "kernel", h.KernelInUse())
	t.only("lockstep_period_seconds", gauge, "Period of the grid", float64(h.Tables.PeriodNs)/1e9)
	t.only("lockstep_best_effort", gauge, "1 if the run lacks what real time needs", bit(r.BestEffort))
	if start := int64(p.StartNs.Load()); start != 0 {
		t.only("lockstep_start_time_seconds", gauge, "Begin of the grid, since 1970", float64(start+sched.Realtime()-sched.Now())/1e9)
	}
	r.addState(t)
	for _, c := range counts {
		t.only(c.name, counter, c.help, float64(c.value(p)))
	}
	t.family("lockstep_frames_rejected_total", counter, "Frames received and not decoded, by reason")
	for _, c := range rejections {
		t.sample(float64(c.value(p)), "reason", c.reason)
	}
	t.histogram("lockstep_wakeup_latency_seconds", "Wake-up latency of each grid point, missed ones included", &p.Late)
	t.histogram("lockstep_tick_time_seconds", "Time from the wake-up until the frames were out", &p.Work)
	t.histogram("lockstep_response_seconds", "Time from the arrival of a frame until the frames of its tick were out", &p.Response)
	r.addBuses(t)
	r.addMessages(t)
	r.addRecord(t)
	return t.Bytes()
}

// bit returns 1 for true.
func bit(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// addState adds the state of the run, of the plant and of the faults.
func (r *Run) addState(t *text) {
	p := r.Status
	state := rt.State(p.State.Load())
	overdue, _ := r.Behind(sched.Now())
	end := r.Ended()
	if end != nil || state == rt.Ended {
		overdue = 0
	}
	t.only("lockstep_running", gauge, "1 while the loop ticks", bit(end == nil && state == rt.Running))
	t.only("lockstep_safe_state", gauge, "1 in the safe state", bit(p.SafeReason.Load() != 0))
	t.only("lockstep_tick_overdue_seconds", gauge, "Time by which the next tick is overdue", overdue.Seconds())
	if end == nil && rt.Reason(p.Reason.Load()) != rt.NotEnded {
		why, clean := r.View.Ended("", "") // the safe values are still sent
		end = &End{Why: why, Clean: clean}
	}
	if end != nil {
		t.family("lockstep_run_end_clean", gauge, "How the run has ended: 1 if it broke no policy, else 0; the label is the reason")
		t.sample(bit(end.Clean), "reason", end.Why)
	}
	if r.Previous != nil {
		t.family("lockstep_previous_run_end_clean", gauge, "How the previous run ended by its report: 1 if it broke no policy, else 0; the label is the reason")
		t.sample(bit(r.Previous.Clean), "reason", r.Previous.Why)
	}
	t.only("lockstep_lag_max_seconds", gauge, "Largest lag of the plant behind the grid", p.LagMax())
	y := make([]float64, len(r.Handover.Tables.Outputs))
	if at := r.Handover.Loop.Watch.Lag; at >= 0 {
		if _, ok := p.Outputs(y); ok {
			t.only("lockstep_lag_seconds", gauge, "Lag of the plant behind the grid", y[at])
		}
	}
	var active, armed int
	for slot := range fault.Max {
		switch state, _ := p.FaultState(slot); state {
		case fault.Active:
			active++
		case fault.Armed:
			armed++
		}
	}
	t.only("lockstep_faults_active", gauge, "Faults that act", float64(active))
	t.only("lockstep_faults_armed", gauge, "Faults that wait for their instant or conditions", float64(armed))
}

// addBuses adds the states of the buses on interfaces of this host.
func (r *Run) addBuses(t *text) {
	buses := r.Buses()
	if len(buses) == 0 {
		return
	}
	t.family("lockstep_bus_state", gauge, "State of a bus by its label, always 1")
	for _, b := range buses {
		t.sample(1, "bus", b.Name, "interface", b.Interface, "state", b.State)
	}
	t.family("lockstep_bus_error_frames_total", counter, "Error frames of a bus")
	for _, b := range buses {
		t.sample(float64(b.ErrorFrames), "bus", b.Name, "interface", b.Interface)
	}
	t.family("lockstep_bus_error_counter", gauge, "Error counters of the controller of a bus, 0 to 255")
	for _, b := range buses {
		if b.HasCounters {
			t.sample(float64(b.Tx), "bus", b.Name, "interface", b.Interface, "counter", "transmit")
			t.sample(float64(b.Rx), "bus", b.Name, "interface", b.Interface, "counter", "receive")
		}
	}
}

// addMessages adds the received messages.
func (r *Run) addMessages(t *text) {
	list := r.ReceivedMessages()
	if len(list) == 0 {
		return
	}
	label := func(m *report.Received, more ...string) []string {
		id := strconv.FormatUint(uint64(m.ID), 16)
		return append([]string{"bus", m.Bus, "message", m.Message, "id", "0x" + id}, more...)
	}
	t.family("lockstep_message_frames_total", counter, "Frames of a received message")
	for i := range list {
		t.sample(float64(list[i].Frames), label(&list[i])...)
	}
	t.family("lockstep_message_timeouts_total", counter, "Timeouts of a received message")
	for i := range list {
		t.sample(float64(list[i].Timeouts), label(&list[i])...)
	}
	t.family("lockstep_message_late", gauge, "1 while the timeout of a received message has passed")
	for i := range list {
		t.sample(bit(list[i].Late), label(&list[i])...)
	}
	t.family("lockstep_message_faulty_frames_total", counter, "Frames of a received message that were wrong, by reason")
	for i := range list {
		m := &list[i]
		for _, c := range []struct {
			reason string
			n      uint64
		}{{"repeated", m.Repeated}, {"wrongsequence", m.Sequence}, {"error", m.Errors}, {"length", m.Length}, {"format", m.Format}, {"range", m.Range}} {
			t.sample(float64(c.n), label(m, "reason", c.reason)...)
		}
	}
	if !slices.ContainsFunc(list, func(m report.Received) bool { return m.Protected }) {
		return
	}
	t.family("lockstep_message_e2e_state", gauge, "State of a protected message in the names of AUTOSAR E2E by its label, always 1")
	for i := range list {
		if list[i].Protected {
			t.sample(1, label(&list[i], "state", list[i].Window)...)
		}
	}
}

// addRecord adds the state of the record.
func (r *Run) addRecord(t *text) {
	c := r.Record()
	if c == nil {
		return
	}
	t.only("lockstep_record_incomplete", gauge, "1 if the record lacks a part of the run", bit(c.Incomplete))
	if c.FreeKnown {
		t.only("lockstep_record_disk_free_bytes", gauge, "Bytes free on the disk of the record", float64(c.Free))
	}
}
