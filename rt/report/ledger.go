package report

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"lockstep/rt"
	"lockstep/rt/bench"
)

// maxLateTicks is how many late ticks a report lists; the report counts all.
const maxLateTicks = 1000

// Ledger collects the late ticks of a run from the overrun ledger of its status block, with the
// interrupts of the loop's CPU and, where the kernel records it, what took that CPU.
type Ledger struct {
	CPU     int               // CPU of the loop
	Entries []LateTick        // at most maxLateTicks
	Lost    uint64            // entries overwritten before they were read
	next    uint64            // index of the first unread entry
	irqs    map[string]uint64 // interrupts of the loop's CPU at the last Collect, by name

	mu     sync.Mutex
	recent []LateTick // at most maxRecent, the latest last; guarded by mu
}

// maxRecent is how many late ticks Recent returns.
const maxRecent = 100

// Recent returns the last late ticks, the latest first. Other goroutines may call it.
func (l *Ledger) Recent() []LateTick {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := slices.Clone(l.recent)
	slices.Reverse(list)
	return list
}

// addRecent adds a late tick to those of Recent.
func (l *Ledger) addRecent(e LateTick) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.recent) == maxRecent {
		l.recent = slices.Delete(l.recent, 0, 1)
	}
	l.recent = append(l.recent, e)
}

// Collect reads the new entries of a run. At a call every 100 ms and a period of 1 ms, a ledger of
// 512 entries loses none.
func (l *Ledger) Collect(v View) {
	now := interrupts("/", l.CPU)
	since := map[string]uint64{}
	for name, n := range now {
		if d := n - l.irqs[name]; l.irqs != nil && d > 0 {
			since[name] = d
		}
	}

	l.irqs = now
	var taken []noise
	if v.Status.LateCount() > l.next && len(l.Entries) < maxLateTicks {
		taken = readNoise("/", l.CPU, int(v.Status.Thread.Load()))
	}
	l.Lost += v.Status.ReadLedger(&l.next, func(e *rt.LateTick) {
		late := NewLateTick(v.Handover, e, since)
		if taken != nil {
			work := e.Spent[rt.Receive] + e.Spent[rt.Step] + e.Spent[rt.Send]
			late.Taken = takenBetween(taken, e.At-e.LateNs, e.At+work)
		}
		if l.addRecent(late); len(l.Entries) < maxLateTicks {
			l.Entries = append(l.Entries, late)
		}
	})
}

// interrupts returns the interrupts of a CPU since boot, by number and device, from
// /proc/interrupts below root; nil if the file cannot be read or lacks the CPU.
func interrupts(root string, cpu int) map[string]uint64 {
	text, _ := os.ReadFile(filepath.Join(root, "proc/interrupts"))
	lines := strings.Split(string(text), "\n")
	column := slices.Index(strings.Fields(lines[0]), "CPU"+strconv.Itoa(cpu))
	if column < 0 {
		return nil
	}
	cpus := len(strings.Fields(lines[0]))
	counts := map[string]uint64{}
	for _, line := range lines[1:] {
		name, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		f := strings.Fields(rest)
		if len(f) <= column {
			continue
		}
		if n, err := strconv.ParseUint(f[column], 10, 64); err == nil {
			if len(f) > cpus {
				name += " " + f[len(f)-1]
			}
			counts[name] = n
		}
	}

	return counts
}

// LateTick is one entry of the overrun ledger in a report. Durations are real time.
type LateTick struct {
	Tick int64   `json:"tick"`   // index of the grid point; the first one if several were lost
	Time float64 `json:"time_s"` // simulated time of that grid point, s

	// grid points that passed before the wake-up, without the one that the wake-up served
	Lost int64 `json:"lost"`

	LateNs      int64    `json:"late_ns"`              // wake-up latency: from the due time to the wake-up, ns
	Phase       string   `json:"phase"`                // phase that took the most time
	Spent       Phases   `json:"spent_ns"`             // duration of each phase, ns
	Late        []string `json:"frames_late"`          // messages sent at this wake-up
	Unsent      []string `json:"frames_unsent"`        // messages due at lost grid points and not sent
	Minor       int64    `json:"page_faults_minor"`    // minor page faults of the loop's thread since the previous tick
	Major       int64    `json:"page_faults_major"`    // major page faults since the previous tick
	Voluntary   int64    `json:"switches_voluntary"`   // voluntary context switches since the previous tick
	Involuntary int64    `json:"switches_involuntary"` // involuntary context switches since the previous tick

	// interrupts of the loop's CPU between two polls of the supervisor, 100 ms apart
	IRQs map[string]uint64 `json:"interrupts"`

	// CPU time that interrupts and other threads took on the loop's CPU from the due time to the last
	// frame, ns, by name; null: the kernel does not record it
	Taken map[string]int64 `json:"taken_ns"`
}

// Phases is the duration of each phase of a tick, ns.
type Phases struct {
	Before  int64 `json:"tick_before"`
	WakeUp  int64 `json:"wake_up"`
	Receive int64 `json:"receive"`
	Step    int64 `json:"step"`
	Send    int64 `json:"send"`
}

// NewLateTick converts an entry of the loop's ledger. irqs are the interrupts of the loop's CPU
// between two polls of the supervisor, by name.
func NewLateTick(h *bench.Handover, e *rt.LateTick, irqs map[string]uint64) LateTick {
	s := e.Spent
	v := LateTick{
		Tick: e.Tick, Time: float64(e.Tick*h.Tables.PeriodNs) / 1e9, Lost: e.Lost, LateNs: e.LateNs, Phase: e.Phase().String(),
		Spent: Phases{s[rt.Before], s[rt.WakeUp], s[rt.Receive], s[rt.Step], s[rt.Send]},
		Minor: e.Minor, Major: e.Major, Voluntary: e.Voluntary, Involuntary: e.Involuntary, IRQs: irqs,
		Late: []string{}, Unsent: []string{},
	}
	at := 0
	for _, m := range h.Maps {
		for i := range m.Tx {
			if e.Sent.Has(at) {
				v.Late = append(v.Late, m.Tx[i].Name)
			}
			if e.Unsent.Has(at) {
				v.Unsent = append(v.Unsent, m.Tx[i].Name)
			}
			at++
		}
	}

	return v
}

// String formats the entry in one line.
func (v *LateTick) String() string {
	text := fmt.Sprintf("tick %d at %.3f s: %.3f ms late", v.Tick, v.Time, float64(v.LateNs)/1e6)
	if v.Lost > 0 {
		text += fmt.Sprintf(", %d grid points lost", v.Lost)
	}
	text += ", most time in " + v.Phase
	if name := mostNoise(v.Taken); name != "" {
		text += fmt.Sprintf("; %s took %.3f ms", name, float64(v.Taken[name])/1e6)
	}
	if v.Involuntary > 0 {
		text += fmt.Sprintf("; preempted %d times", v.Involuntary)
	}
	if n := v.Minor + v.Major; n > 0 {
		text += fmt.Sprintf("; %d page faults", n)
	}
	return text
}
