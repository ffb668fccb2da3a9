package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"

	"lockstep/io/wire"
)

// Report is the report of a run or a simulation. The JSON keys are a contract
// (`lockstep run -report FILE.json`): keys may be added, never renamed. Times are simulated unless
// the comment says real time. The ticking process counts, from its first tick to its last.
type Report struct {
	Plant  string `json:"plant"`            // name of the plant
	Bench  string `json:"bench,omitempty"`  // name of the bench; "": a plant alone
	Set    string `json:"set,omitempty"`    // parameters of the plant set on the command line: "m_car=2000kg, mu=0.2"
	Start  string `json:"start,omitempty"`  // start presets of the plant: "v=80 km/h, gear=5"
	Kernel string `json:"kernel,omitempty"` // kernel in use: "table" or "generated"
	StepNs int64  `json:"step_ns"`          // period of the grid, ns

	Ticks  uint64 `json:"ticks"`   // grid points stepped
	Missed uint64 `json:"missed"`  // grid points without a wake-up in time
	Late   Spread `json:"late_ns"` // wake-up latency of every tick, including missed ones

	// Grid points and time after the last tick of a target that died or was killed.
	Unserved uint64  `json:"unserved"` // grid points since the last tick, neither in Ticks nor in Missed
	Still    float64 `json:"still_s"`  // time for which the next tick was overdue, real time, s

	Tick Spread `json:"tick_ns"` // duration of a tick

	// response time from bus to bus: from the kernel time stamp of a valid frame until the frames
	// of its tick are sent; nil: no frame had a time stamp
	Response *Spread `json:"response_ns,omitempty"`

	// histogram of the response time, eight classes per octave, without empty classes
	Responses []Class `json:"response_histogram,omitempty"`

	// entries of the overrun ledger: wake-ups after lost grid points, and ticks over the budget
	LateTicks uint64 `json:"late_ticks"`

	// budget of a tick: longest time from its due time until its frames are sent, ns
	BudgetNs int64 `json:"tick_budget_ns"`

	Ledger     []LateTick `json:"ledger,omitempty"`      // first 1000 late ticks
	LedgerLost uint64     `json:"ledger_lost,omitempty"` // late ticks overwritten before the supervisor read them
	Switches   *Switches  `json:"switches,omitempty"`    // context switches of the loop's thread

	ClockSteps []ClockStep `json:"clock_steps,omitempty"` // steps of CLOCK_REALTIME, which the loop does not follow

	Safe       string  `json:"safe,omitempty"`        // reason for the safe state; "": not reached
	SafeSince  float64 `json:"safe_since_s"`          // start of the safe state, s
	SafeFrames int     `json:"safe_frames,omitempty"` // safe frames sent by the supervisor for a dead target

	// real time from the last grid point of a dead target to the first safe frame, s
	SafeAfter float64 `json:"safe_after_s,omitempty"`

	Changes  uint64 `json:"parameter_changes,omitempty"`  // changes of parameters by param
	Refusals uint64 `json:"parameter_refusals,omitempty"` // changes by param that the plant refused
	Resets   uint64 `json:"resets,omitempty"`             // resets of the plant by reset

	Events      uint64  `json:"events"`      // instants at which elements changed state or laws changed region
	Transitions uint64  `json:"transitions"` // changes of state of friction elements
	LagMax      float64 `json:"lag_max_s"`   // largest lag of the plant behind the grid, s
	Lag         float64 `json:"lag_s"`       // lag at the last tick, s

	*Usage // nil: the ticking process died and left no counts

	RxFrames   uint64 `json:"rx_frames"`   // frames received
	TxFrames   uint64 `json:"tx_frames"`   // frames sent
	RxUnknown  uint64 `json:"rx_unknown"`  // frames with an identifier that the bench neither receives nor sends
	RxShort    uint64 `json:"rx_short"`    // frames shorter than the message in the database
	RxFormat   uint64 `json:"rx_format"`   // frames of another format than the message: classic or CAN FD, 11 or 29 bits, remote
	RxRange    uint64 `json:"rx_range"`    // frames with a signal out of range; its input keeps the last value
	RxInvalid  uint64 `json:"rx_invalid"`  // signals "not available"; the input keeps the last value
	RxBad      uint64 `json:"rx_bad"`      // frames not decoded because a counter or checksum was wrong
	RxOverflow uint64 `json:"rx_overflow"` // frames lost in the receive buffer
	RxBadSize  uint64 `json:"rx_bad_size"` // reads that returned no whole CAN frame
	RxBound    uint64 `json:"rx_bound"`    // ticks that reached the limit of frames per tick and left frames unread
	RxStale    uint64 `json:"rx_stale"`    // frames from before the first tick, dropped and not in rx_frames

	// With inputs_at: arrival: valid frames whose stamp was not between the last tick and its reading,
	// valid frames without a stamp, and instants beyond those that a step takes.
	InputsMoved     uint64 `json:"inputs_moved,omitempty"`
	InputsUnstamped uint64 `json:"inputs_unstamped,omitempty"`
	InputsMerged    uint64 `json:"inputs_merged,omitempty"`

	// frames not taken by the bus: its send buffer of about 25 frames was full, or the bus was down
	TxDropped uint64 `json:"tx_dropped"`

	TxAgain   uint64 `json:"tx_again"`   // dropped frames sent again at the next tick with newer values
	TxLost    uint64 `json:"tx_lost"`    // frames due at missed grid points and not sent
	TxRefused uint64 `json:"tx_refused"` // frames not sent because a signal was not a number
	Saturated uint64 `json:"saturated"`  // signals limited to their range
	BusDown   uint64 `json:"bus_down"`   // ticks that found a bus down
	BusErrors uint64 `json:"bus_errors"` // other failed calls to a bus
	BusOffs   uint64 `json:"bus_offs"`   // bus-off reports of the controllers

	Wire *wire.Counts `json:"wire,omitempty"` // images of the buses by wire; nil: there are none

	Buses []BusState `json:"buses,omitempty"` // buses on interfaces of this host

	Conflicts []IDConflict `json:"id_conflicts,omitempty"` // sent messages that other nodes send, too

	Virtual bool    `json:"virtual,omitempty"` // bench in virtual time: nothing is late, no time is measured
	Real    float64 `json:"real_s,omitempty"`  // duration of a simulation, real time, s; 0: not measured

	BestEffort     bool     `json:"besteffort"`                // run without all real-time rights
	BestEffortWhy  []string `json:"besteffort_why"`            // rights and settings that were missing
	BestEffortHelp []string `json:"besteffort_help,omitempty"` // remedies

	Overrun     string          `json:"overrun,omitempty"`        // overrun policy
	SimTime     float64         `json:"sim_time_s"`               // ticks · period, s
	Ended       string          `json:"ended"`                    // reason for the end
	Clean       bool            `json:"clean"`                    // no policy broken, target and control unit lasted
	Silent      []Silence       `json:"silent,omitempty"`         // received messages missing or too short at the end
	Messages    []Received      `json:"messages,omitempty"`       // received messages
	Dropped     []Dropped       `json:"dropped,omitempty"`        // tx_dropped by message
	Soak        *Verdict        `json:"soak,omitempty"`           // verdict of a soak
	Scenario    *ScenarioResult `json:"scenario,omitempty"`       // result of the scenario
	Record      string          `json:"record,omitempty"`         // files of the records
	Records     []RecordFile    `json:"records,omitempty"`        // the same with their ticks
	RecordError string          `json:"record_trouble,omitempty"` // why records are incomplete; "": all are complete

	// file of the last record on that was accepted and did not happen, and why; "": none, or a later one did
	RecordRefused string `json:"record_refused,omitempty"`

	Monitored []MonitoredBus `json:"record_others,omitempty"` // monitored frames in the record, by bus
	Addresses []string       `json:"addresses,omitempty"`     // J1939 addresses: state and owner
	Ports     []string       `json:"ports,omitempty"`         // what the ports of the buses have done
	Played    []string       `json:"played,omitempty"`        // results of the logs played as buses

	// last line of the virtual control unit, or how the unit ended before the run
	Unit string `json:"unit,omitempty"`

	// output of a program that is the control unit: its first 64 KiB and last 4 KiB
	UnitOutput string `json:"unit_output,omitempty"`
}

// RecordFile is a record of a run.
type RecordFile struct {
	File  string `json:"file"`
	First int64  `json:"first_tick"`
	Last  int64  `json:"last_tick"` // less than First: it has no tick
}

// String returns the file with its ticks.
func (f *RecordFile) String() string {
	if f.Last < f.First {
		return fmt.Sprintf("%s, without a tick", f.File)
	}
	return fmt.Sprintf("%s, ticks %d to %d", f.File, f.First, f.Last)
}

// writeRecords prints the records. Their ticks stand there if a record does not cover the whole run.
func (r *Report) writeRecords(p printer) {
	list := []string{r.Record}
	if n := len(r.Records); n > 1 || n == 1 && (r.Records[0].First > 1 || r.Records[0].Last < int64(r.Ticks)) {
		list = nil
		for i := range r.Records {
			list = append(list, r.Records[i].String())
		}
	}
	if r.Record != "" {
		if r.RecordError != "" {
			list[len(list)-1] += "; INCOMPLETE: " + r.RecordError
		}
		p.list("record", list)
		for _, v := range r.Monitored {
			p.line("", "%s", v)
		}
	}
	p.lineIf(r.RecordRefused != "", "no record", "%s", r.RecordRefused)
}

// Usage counts the resources used by the ticking process from its first tick to its last, from
// the counters of the Go runtime and of the kernel.
type Usage struct {
	Allocs      uint64 `json:"allocs"`
	GCCycles    uint64 `json:"gc_cycles"`
	MinorFaults uint64 `json:"page_faults_minor"`
	MajorFaults uint64 `json:"page_faults_major"`
}

// Switches counts the context switches of the loop's thread per tick: voluntary ones to sleep,
// involuntary ones by preemption.
type Switches struct {
	Voluntary   float64 `json:"voluntary_per_tick"`
	Involuntary float64 `json:"involuntary_per_tick"`
}

// Spread holds quantiles of a distribution of real time, ns.
type Spread struct {
	P50  int64 `json:"p50"`
	P99  int64 `json:"p99"`
	P999 int64 `json:"p999"`
	Max  int64 `json:"max"`
}

// Silence is a received message without a valid frame since Last.
type Silence struct {
	Bus     string  `json:"bus"`
	Message string  `json:"message"` // "Speeds"; "Speeds on drive" in a bench of several buses
	Last    float64 `json:"last_s"`  // simulated time of the last valid frame, s; 0: no valid frame
	For     float64 `json:"for_s"`   // simulated time since then, s

	Substituted bool `json:"substituted,omitempty"` // the inputs have their substitute values
}

// JSON writes the report as one object.
func (r *Report) JSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// headColumns is the width of the subject of a line of the text report, columns.
const headColumns = 17

// printer writes the lines of a report, one or more per subject.
type printer struct{ to io.Writer }

func (p printer) line(head, format string, args ...any) {
	fmt.Fprintf(p.to, "  %-*s%s\n", headColumns, head, fmt.Sprintf(format, args...))
}

// lineIf writes a line if when holds.
func (p printer) lineIf(when bool, head, format string, args ...any) {
	if when {
		p.line(head, format, args...)
	}
}

// list writes a line for each text, the head before the first.
func (p printer) list(head string, texts []string) {
	for _, text := range texts {
		p.line(head, "%s", text)
		head = ""
	}
}

// Text writes the report as text.
func (r *Report) Text(w io.Writer) {
	p := printer{w}
	fmt.Fprintf(w, "%s: %s, after %.3f s\n\n", cmp.Or(r.Bench, r.Plant), r.Ended, r.SimTime)
	policy := ""
	if r.Overrun != "" {
		policy = " (policy " + r.Overrun + ")"
	}
	real := r.Bench != "" && !r.Virtual
	p.lineIf(r.Set != "", "parameters", "%s", r.Set)
	p.lineIf(r.Start != "", "start", "%s", r.Start)
	p.line("ticks", "%d of %g ms, missed %d%s", r.Ticks, float64(r.StepNs)/1e6, r.Missed, policy)
	p.lineIf(real, "wake-up latency", "%s", r.Late)
	p.lineIf(r.Unserved > 0, "stalled", "%.3f s before the end; %d grid points were not served", r.Still, r.Unserved)
	p.line("tick time", "%s", r.Tick)
	if r.Response != nil {
		p.line("bus to bus", "%s", *r.Response)
		p.list("", histogram(r.Responses))
	}

	p.lineIf(real, "late ticks", "%d, over the budget of %g ms or after lost grid points",
		r.LateTicks, float64(r.BudgetNs)/1e6)
	if real && len(r.Ledger) > 0 {
		worst := slices.MaxFunc(r.Ledger, func(a, b LateTick) int { return cmp.Compare(a.LateNs, b.LateNs) })
		p.line("", "worst: %s", &worst)
	}
	if r.Bench != "" {
		p.line("frames in", "%d; unknown %d, wrong format %d, short %d, out of range %d, lost %d",
			r.RxFrames, r.RxUnknown, r.RxFormat, r.RxShort+r.RxBadSize, r.RxRange, r.RxOverflow)
		for i := range r.Messages {
			p.line("", "%s", &r.Messages[i])
		}
		missed := fmt.Sprintf("not sent at missed ticks %d", r.TxLost)
		if r.catchesUp() && r.Missed > 0 && r.TxLost == 0 {
			missed = "sent late for missed ticks"
		}
		p.line("frames out", "%d; dropped %d, %s", r.TxFrames, r.TxDropped, missed)
		if w := r.Wire; w != nil {
			p.line("images by wire", "%d in, lost %d, out of order %d, twice %d, foreign %d, delayed %d; %d out",
				w.Received, w.Lost, w.Reordered, w.Duplicate, w.Foreign, w.Delayed, w.Sent)
		}
		for _, d := range r.Dropped {
			p.line("", "%s: %d not taken by the bus; the next tick sends the newest values, once", d.Message, d.Frames)
		}
	}

	p.lineIf(r.Resets > 0, "resets", "%d", r.Resets)
	p.lineIf(r.Changes+r.Refusals > 0, "parameters", "changed %d times, refused %d times", r.Changes, r.Refusals)
	p.line("transitions", "%d, at %d events", r.Transitions, r.Events)
	p.line("lag", "largest %.3f ms, now %.3f ms", r.LagMax*1e3, r.Lag*1e3)
	if u := r.Usage; u != nil {
		p.line("memory", "allocations %d, GC cycles %d, page faults %d minor, %d major",
			u.Allocs, u.GCCycles, u.MinorFaults, u.MajorFaults)
	}

	if s := r.Switches; s != nil {
		p.line("switches", "per tick %.2f voluntary, %.4f involuntary", s.Voluntary, s.Involuntary)
	}
	r.printRights(p)
	r.printNotes(p)
}

// catchesUp reports whether missed ticks were stepped later, with their frames.
func (r *Report) catchesUp() bool { return strings.HasPrefix(r.Overrun, "catchup") }

// printRights writes the lines about real-time rights.
func (r *Report) printRights(p printer) {
	if r.Real > 0 {
		p.line("virtual time", "%.6g s in %.3g s of real time: %.3g times real time", r.SimTime, r.Real, r.SimTime/r.Real)
	}
	p.lineIf(r.Virtual && r.Real == 0, "virtual time", "loop and control unit in step, not in real time")
	p.lineIf(!r.Virtual && r.Bench != "" && !r.BestEffort, "best effort", "no: the host granted all rights")
	p.list("best effort", r.BestEffortWhy)
	for _, help := range r.BestEffortHelp {
		p.line("", "-> %s", help)
	}
}

// printNotes writes the lines about the safe state, errors, addresses, logs, the record and the
// control unit.
func (r *Report) printNotes(p printer) {
	for _, s := range r.ClockSteps {
		p.line("clock", "%s", s)
	}
	p.lineIf(r.Safe != "", "safe state", "since %.3f s: %s", r.SafeSince, r.Safe)
	p.lineIf(r.SafeFrames > 0, "safe state",
		"%d frames sent by the supervisor, the first %.3f ms after the target's last grid point", r.SafeFrames, r.SafeAfter*1e3)
	p.lineIf(r.BusDown+r.BusErrors+r.BusOffs > 0, "bus errors",
		"%d ticks with a bus down, %d other failed calls, %d times bus-off", r.BusDown, r.BusErrors, r.BusOffs)
	for i := range r.Buses {
		p.list("bus", r.Buses[i].Lines())
	}
	for i := range r.Conflicts {
		p.line("id conflict", "%s", &r.Conflicts[i])
	}
	p.lineIf(r.RxBound+r.RxStale > 0, "receive backlog",
		"%d ticks left frames for the next tick; %d frames from before the first tick dropped", r.RxBound, r.RxStale)
	p.lineIf(r.InputsMoved+r.InputsUnstamped+r.InputsMerged > 0, "arrivals",
		"%d frames with a stamp outside of their step; %d without a stamp, as on the grid; %d beyond the instants of a step",
		r.InputsMoved, r.InputsUnstamped, r.InputsMerged)
	p.lineIf(r.TxDropped > 0 && r.Missed > 0 && r.catchesUp(), "",
		"-> the send buffer takes about 25 frames at once; dropped late frames are counted above")
	p.lineIf(r.Saturated+r.TxRefused > 0, "signals out",
		"%d limited to their range; %d frames not sent because a value was not a number", r.Saturated, r.TxRefused)
	p.list("addresses", r.Addresses)
	p.list("ports", r.Ports)
	for _, played := range r.Played {
		p.line("played", "%s", played)
	}
	r.writeRecords(p)

	p.lineIf(r.Unit != "", "control unit", "%s", r.Unit)
	p.list("its output", LastLines(r.UnitOutput))
	for _, s := range r.Silent {
		p.line("silent", "%s", s)
	}
}

// shownLines is how many lines of the output of the control unit the text report has.
const shownLines = 20

// LastLines returns the last lines of an output, each at most 200 characters, without control
// characters.
func LastLines(text string) []string {
	if text = strings.TrimSpace(text); text == "" {
		return nil
	}
	lines := strings.Split(text, "\n")
	if n := len(lines) - shownLines; n > 0 {
		lines = append([]string{fmt.Sprintf("(%d lines before)", n)}, lines[n:]...)
	}
	for i, line := range lines {
		line = strings.Map(func(c rune) rune {
			if unicode.IsPrint(c) {
				return c
			}
			return ' '
		}, line)
		if letters := []rune(line); len(letters) > 200 {
			line = string(letters[:200]) + " ..."
		}
		lines[i] = strings.TrimRight(line, " ")
	}
	return lines
}

// String formats the silence for the report.
func (s Silence) String() string {
	switch {
	case s.Substituted:
		return fmt.Sprintf("%s for %.3f s; substitute values used", s.Message, s.For)
	case s.Last == 0:
		return fmt.Sprintf("no valid frame of %s; start values kept", s.Message)
	}

	return fmt.Sprintf("%s after %.3f s; last valid command kept for %.3f s", s.Message, s.Last, s.For)
}

// String formats the quantiles in microseconds.
func (s Spread) String() string {
	us := func(ns int64) string { return fmt.Sprintf("%.1f", float64(ns)/1e3) }
	return fmt.Sprintf("p50 %-8s p99 %-8s p99.9 %-8s max %s us", us(s.P50), us(s.P99), us(s.P999), us(s.Max))
}

// MonitoredBus counts the frames of a bus that the bench neither receives nor sends.
type MonitoredBus struct {
	Bus    string `json:"bus"`   // name of the bus
	Frames uint64 `json:"heard"` // monitored frames in the record
	Lost   uint64 `json:"lost"`  // frames missing in the record; frames of the target may be among them
}

// String formats the counts for the text report.
func (v MonitoredBus) String() string {
	text := fmt.Sprintf("with %d monitored frames on %s", v.Frames, v.Bus)
	if v.Lost > 0 {
		text += fmt.Sprintf("; %d came too fast and are not recorded", v.Lost)
	}
	return text
}

// Line formats the silence for the status line.
func (s Silence) Line() string {
	name := shortName(s.Message)
	if s.Last == 0 {
		return fmt.Sprintf("no valid %s yet", name)
	}
	if s.For >= 100 {
		return fmt.Sprintf("no valid %s for %.0f s", name, s.For)
	}
	return fmt.Sprintf("no valid %s for %.1f s", name, s.For)
}
