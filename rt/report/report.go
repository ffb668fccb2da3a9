package report

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"
)

// Report is what a run or a simulation says at its end. The JSON keys are a
// contract (`lockstep run -report FILE.json`): add to them, never rename one.
// Times are simulated unless said otherwise; counters are the ticking process's
// own, from its first tick to its last.
type Report struct {
	Plant  string `json:"plant"`
	Bench  string `json:"bench,omitempty"`
	Kernel string `json:"kernel,omitempty"` // of the target: "table", or "generated"
	StepNs int64  `json:"step_ns"`          // period of the grid, ns

	Ticks  uint64 `json:"ticks"`   // grid points stepped
	Missed uint64 `json:"missed"`  // grid points nobody was there for in time
	Late   Spread `json:"late_ns"` // of every tick, missed ones included

	// Of a target that had to be killed or died: what the clock passed without it.
	Unserved uint64  `json:"unserved"` // grid points since its last tick, in neither Ticks nor Missed
	Still    float64 `json:"still_s"`  // how long no tick came although one was due, real time

	Tick Spread `json:"tick_ns"`

	// bus to bus: from the arrival of a valid frame, by the kernel's stamp, until the frames of its
	// tick were out; nil: no frame had a stamp
	Response *Spread `json:"response_ns,omitempty"`

	// the same, eight classes per octave; those that are empty are left out
	Responses []Class `json:"response_histogram,omitempty"`

	// entries of the overrun ledger: wake-ups that found points lost, and ticks over their budget
	LateTicks uint64 `json:"late_ticks"`

	// a tick whose frames are out later than this after it was due is late
	BudgetNs int64 `json:"tick_budget_ns"`

	Ledger     []LateTick `json:"ledger,omitempty"`      // the first thousand of them
	LedgerLost uint64     `json:"ledger_lost,omitempty"` // of them overwritten before the supervisor had read them
	Switches   *Switches  `json:"switches,omitempty"`    // of the loop's thread
	Safe       string     `json:"safe,omitempty"`        // why the bus carried the safe values, or none, before the end
	SafeSince  float64    `json:"safe_since_s"`          // simulated time at which that began
	SafeFrames int        `json:"safe_frames,omitempty"` // sent by the supervisor in a dead target's place

	// from the last grid point that the target served to the first of them
	SafeAfter float64 `json:"safe_after_s,omitempty"`

	Events      uint64  `json:"events"`      // instants at which elements changed their state, or a law its branch
	Transitions uint64  `json:"transitions"` // changes of a friction element's state
	LagMax      float64 `json:"lag_max_s"`
	Lag         float64 `json:"lag_s"` // owed at the last tick

	*Usage // nil: the ticking process died before it could say

	RxFrames   uint64 `json:"rx_frames"`
	TxFrames   uint64 `json:"tx_frames"`
	RxUnknown  uint64 `json:"rx_unknown"`  // identifier not in the map
	RxShort    uint64 `json:"rx_short"`    // fewer bytes than the message has in the database
	RxRange    uint64 `json:"rx_range"`    // a signal outside its range: it kept its last value
	RxInvalid  uint64 `json:"rx_invalid"`  // a signal that said it has no value: it kept its last one
	RxBad      uint64 `json:"rx_bad"`      // not decoded: their protection was not as it should be
	RxOverflow uint64 `json:"rx_overflow"` // lost in the receive buffer
	RxBadSize  uint64 `json:"rx_bad_size"` // of no frame's size
	RxBound    uint64 `json:"rx_bound"`    // ticks that left frames for the next one: they had read as many as a tick may
	RxStale    uint64 `json:"rx_stale"`    // from before the first tick, thrown away and not in rx_frames

	// not taken by the bus: its send buffer, of about 25 frames, was full, or it was down
	TxDropped uint64 `json:"tx_dropped"`

	TxAgain   uint64 `json:"tx_again"`   // tried again at the next tick, with newer values, after that
	TxLost    uint64 `json:"tx_lost"`    // due at a missed grid point and not sent
	TxRefused uint64 `json:"tx_refused"` // not sent because a signal was no number
	Saturated uint64 `json:"saturated"`  // signals sent at the border of their range
	BusDown   uint64 `json:"bus_down"`   // ticks that found a bus down
	BusErrors uint64 `json:"bus_errors"` // calls to a bus that failed for another reason
	BusOffs   uint64 `json:"bus_offs"`   // how often a controller has said that it goes off its bus

	Buses []BusState `json:"buses,omitempty"` // those that are interfaces of this host

	Virtual bool `json:"virtual,omitempty"` // of a bench in virtual time: nothing is late, and there is nothing to measure

	BestEffort     bool     `json:"besteffort"`
	BestEffortWhy  []string `json:"besteffort_why"`            // what was missing
	BestEffortHelp []string `json:"besteffort_help,omitempty"` // what helps

	Overrun     string          `json:"overrun,omitempty"`        // the policy
	SimTime     float64         `json:"sim_time_s"`               // ticks · period
	Ended       string          `json:"ended"`                    // why, in words
	Clean       bool            `json:"clean"`                    // no policy was broken, and the target and the unit were there
	Silent      []Silence       `json:"silent,omitempty"`         // received messages that had stopped, or came too short
	Messages    []Received      `json:"messages,omitempty"`       // received
	Dropped     []Dropped       `json:"dropped,omitempty"`        // tx_dropped by message
	Soak        *Verdict        `json:"soak,omitempty"`           // of a soak
	Scenario    *ScenarioResult `json:"scenario,omitempty"`       // what became of the scenario
	Record      string          `json:"record,omitempty"`         // file of the record
	RecordError string          `json:"record_trouble,omitempty"` // what is missing in it, and why
	Monitored   []MonitoredBus  `json:"record_others,omitempty"`  // what the record has besides, by bus
	Addresses   []string        `json:"addresses,omitempty"`      // of J1939: how each stands, and who has it
	Played      []string        `json:"played,omitempty"`         // what became of the logs that stood in for buses

	// what the virtual control unit said last, or how it ended before the run did
	Unit string `json:"unit,omitempty"`
}

// Usage is what the ticking process used between its first and its last tick, by
// the runtime's and the kernel's own counters.
type Usage struct {
	Allocs      uint64 `json:"allocs"`
	GCCycles    uint64 `json:"gc_cycles"`
	MinorFaults uint64 `json:"page_faults_minor"`
	MajorFaults uint64 `json:"page_faults_major"`
}

// Switches are the context switches of the loop's thread per tick: it slept, or
// something else was given its CPU.
type Switches struct {
	Voluntary   float64 `json:"voluntary_per_tick"`
	Involuntary float64 `json:"involuntary_per_tick"`
}

// Spread is a distribution in nanoseconds of real time.
type Spread struct {
	P50  int64 `json:"p50"`
	P99  int64 `json:"p99"`
	P999 int64 `json:"p999"`
	Max  int64 `json:"max"`
}

// Silence is a message that did not come any more, in its full length, when the
// run ended.
type Silence struct {
	Bus     string  `json:"bus"`
	Message string  `json:"message"` // "Speeds"; "Speeds on drive" where there are several buses
	Last    float64 `json:"last_s"`  // simulated time of the last one; 0 when none came
	For     float64 `json:"for_s"`   // from then to the end

	Substituted bool `json:"substituted,omitempty"` // inputs had taken the values declared for that
}

// JSON writes the report as one object.
func (r *Report) JSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// printer writes the lines of a report, aligned, one per subject.
type printer struct{ to io.Writer }

func (p printer) line(head, format string, args ...any) {
	fmt.Fprintf(p.to, "  %-13s%s\n", head, fmt.Sprintf(format, args...))
}

// lineIf writes a line that is there only when there is something to say.
func (p printer) lineIf(when bool, head, format string, args ...any) {
	if when {
		p.line(head, format, args...)
	}
}

// list writes a line for each text; the first one has the head.
func (p printer) list(head string, texts []string) {
	for _, text := range texts {
		p.line(head, "%s", text)
		head = ""
	}
}

// Text writes the report for people.
func (r *Report) Text(w io.Writer) {
	p := printer{w}
	fmt.Fprintf(w, "%s: %s, after %.3f s\n\n", cmp.Or(r.Bench, r.Plant), r.Ended, r.SimTime)
	policy := ""
	if r.Overrun != "" {
		policy = " (policy " + r.Overrun + ")"
	}
	real := r.Bench != "" && !r.Virtual
	p.line("ticks", "%d of %g ms, missed %d%s", r.Ticks, float64(r.StepNs)/1e6, r.Missed, policy)
	p.lineIf(real, "lateness", "%s", r.Late)
	p.lineIf(r.Unserved > 0, "stood still", "%.3f s before the end; %d grid points were not served", r.Still, r.Unserved)
	p.line("tick time", "%s", r.Tick)
	if r.Response != nil {
		p.line("bus to bus", "%s", *r.Response)
		p.list("", histogram(r.Responses))
	}

	p.lineIf(real, "late ticks", "%d, over the budget of %g ms or after lost points%s",
		r.LateTicks, float64(r.BudgetNs)/1e6, r.worstLateTick())
	if r.Bench != "" {
		p.line("frames in", "%d; unknown %d, short %d, out of range %d, lost %d",
			r.RxFrames, r.RxUnknown, r.RxShort+r.RxBadSize, r.RxRange, r.RxOverflow)
		for i := range r.Messages {
			p.line("", "%s", &r.Messages[i])
		}
		missed := fmt.Sprintf("not sent at missed ticks %d", r.TxLost)
		if r.catchesUp() && r.Missed > 0 && r.TxLost == 0 {
			missed = "sent late for missed ticks"
		}
		p.line("frames out", "%d; dropped %d, %s", r.TxFrames, r.TxDropped, missed)
		for _, d := range r.Dropped {
			p.line("", "%s: %d not taken by the bus; the newest values are sent at the next tick, once", d.Message, d.Frames)
		}
	}

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

// worstLateTick is the latest of the late ticks.
func (r *Report) worstLateTick() string {
	if len(r.Ledger) == 0 {
		return ""
	}
	worst := slices.MaxFunc(r.Ledger, func(a, b LateTick) int { return cmp.Compare(a.LateNs, b.LateNs) })
	return "\n" + strings.Repeat(" ", 15) + "worst: " + worst.String()
}

// printRights are the lines about what the host has granted.
func (r *Report) printRights(p printer) {
	p.lineIf(r.Virtual, "virtual time", "the bench's loop and its control unit in one process, as fast as they go")
	p.lineIf(!r.Virtual && r.Bench != "" && !r.BestEffort, "best effort", "no: all rights were there")
	p.list("best effort", r.BestEffortWhy)
	for _, help := range r.BestEffortHelp {
		p.line("", "-> %s", help)
	}
}

// printNotes are the lines that are there only when there is something to say.
func (r *Report) printNotes(p printer) {
	p.lineIf(r.Safe != "", "safe state", "since %.3f s: %s", r.SafeSince, r.Safe)
	p.lineIf(r.SafeFrames > 0, "safe state",
		"%d frames sent by the supervisor, the first %.3f ms after the target's last grid point", r.SafeFrames, r.SafeAfter*1e3)
	p.lineIf(r.BusDown+r.BusErrors+r.BusOffs > 0, "bus trouble",
		"%d ticks found it down, %d calls failed otherwise, %d times a controller went off", r.BusDown, r.BusErrors, r.BusOffs)
	for i := range r.Buses {
		p.list("bus", r.Buses[i].Lines())
	}
	p.lineIf(r.RxBound+r.RxStale > 0, "backlog in",
		"%d ticks left frames for the next one; %d frames from before the first tick were thrown away", r.RxBound, r.RxStale)
	p.lineIf(r.TxDropped > 0 && r.Missed > 0 && r.catchesUp(), "",
		"-> late frames of more than about 25 at once do not fit the send buffer; what is dropped is counted above")
	p.lineIf(r.Saturated+r.TxRefused > 0, "signals out",
		"%d held at the border of their range; %d frames not sent for a value that is no number", r.Saturated, r.TxRefused)
	p.list("addresses", r.Addresses)
	for _, played := range r.Played {
		p.line("played", "%s", played)
	}
	if r.Record != "" {
		trouble := ""
		if r.RecordError != "" {
			trouble = "; INCOMPLETE: " + r.RecordError
		}
		p.line("record", "%s%s", r.Record, trouble)
		for _, v := range r.Monitored {
			p.line("", "%s", v)
		}
	}

	p.lineIf(r.Unit != "", "control unit", "%s", r.Unit)
	for _, s := range r.Silent {
		p.line("silent", "%s", s)
	}
}

// String is the silence in the report.
func (s Silence) String() string {
	switch {
	case s.Substituted:
		return fmt.Sprintf("%s for %.3f s; the plant went on with the values declared for that", s.Message, s.For)
	case s.Last == 0:
		return fmt.Sprintf("no valid frame of %s ever came; the plant kept the values it started with", s.Message)
	}

	return fmt.Sprintf("%s after %.3f s; the plant went on with the last valid command for %.3f s", s.Message, s.Last, s.For)
}

// String is the spread in microseconds.
func (s Spread) String() string {
	us := func(ns int64) string { return fmt.Sprintf("%.1f", float64(ns)/1e3) }
	return fmt.Sprintf("p50 %-8s p99 %-8s p99.9 %-8s max %s us", us(s.P50), us(s.P99), us(s.P999), us(s.Max))
}

// Save writes the report so that a host that loses its power now has it.
func Save(report *Report, file *os.File) error {
	if err := report.JSON(file); err != nil {
		return err
	}
	if err := file.Sync(); !errors.Is(err, syscall.EINVAL) { // a pipe and a device have nothing to sync
		return err
	}
	return nil
}

// MonitoredBus is what was heard on a bus beside the frames that the target received and
// sent, for the record.
type MonitoredBus struct {
	Bus   string `json:"bus"`
	Heard uint64 `json:"heard"` // frames, in the record
	Lost  uint64 `json:"lost"`  // frames that are not; some may be the target's own
}

// String is it in words.
func (v MonitoredBus) String() string {
	text := fmt.Sprintf("with %d frames on %s beside those that the bench receives and sends", v.Heard, v.Bus)
	if v.Lost > 0 {
		text += fmt.Sprintf("; %d came too fast and are not in it", v.Lost)
	}
	return text
}

// Line is the silence as the status line says it.
func (s Silence) Line() string {
	name := cutName(s.Message)
	if s.Last == 0 {
		return fmt.Sprintf("no valid frame from %s yet", name)
	}
	if s.For >= 100 {
		return fmt.Sprintf("no valid frame from %s for %.0f s", name, s.For)
	}
	return fmt.Sprintf("no valid frame from %s for %.1f s", name, s.For)
}
