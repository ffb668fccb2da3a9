package report

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"lockstep/rt"
	"lockstep/rt/bench"
)

// maxLateTicks is how many late ticks a report lists; all are counted.
const maxLateTicks = 1000

// Ledger collects what the loop enters, before it is overwritten, and what the
// host tells about that time.
type Ledger struct {
	CPU     int // of the loop
	Entries []LateTick
	Lost    uint64 // entries that were overwritten before they were read
	next    uint64
	irqs    map[string]uint64 // interrupts of the loop's CPU when it last looked
}

// Collect reads what is new of a run. It is called several times per second, often enough
// for a ledger of 512 entries to lose none at a period of 1 ms.
func (l *Ledger) Collect(v View) {
	now := interrupts("/", l.CPU)
	since := map[string]uint64{}
	for name, n := range now {
		if d := n - l.irqs[name]; l.irqs != nil && d > 0 {
			since[name] = d
		}
	}

	l.irqs = now
	l.Lost += v.Status.ReadLedger(&l.next, func(e *rt.LateTick) {
		if len(l.Entries) < maxLateTicks {
			l.Entries = append(l.Entries, NewLateTick(v.Handover, e, since))
		}
	})
}

// interrupts reads how many interrupts a CPU has had, by number and device, from
// /proc/interrupts below root; none where that cannot be read.
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

// LateTick is one entry of the overrun ledger in a report. Times are real time.
type LateTick struct {
	Tick int64   `json:"tick"`   // index of the grid point, the first of those lost
	Time float64 `json:"time_s"` // simulated time of it

	// grid points that passed before the wake-up, besides the one it served
	Lost int64 `json:"lost"`

	LateNs      int64    `json:"late_ns"`           // from its due time to the wake-up
	Phase       string   `json:"phase"`             // which part took the most time
	Spent       Phases   `json:"spent_ns"`          // how long each part took
	Late        []string `json:"frames_late"`       // messages that went out at this wake-up
	Unsent      []string `json:"frames_unsent"`     // messages due at lost points that did not go out
	Minor       int64    `json:"page_faults_minor"` // of the loop's thread since the tick before
	Major       int64    `json:"page_faults_major"`
	Voluntary   int64    `json:"switches_voluntary"`
	Involuntary int64    `json:"switches_involuntary"`

	// of the loop's CPU around that time, between two looks of the supervisor, 100 ms apart
	IRQs map[string]uint64 `json:"interrupts"`
}

// Phases is the time that each part of a tick took, ns.
type Phases struct {
	Before  int64 `json:"tick_before"`
	WakeUp  int64 `json:"wake_up"`
	Receive int64 `json:"receive"`
	Step    int64 `json:"step"`
	Send    int64 `json:"send"`
}

// NewLateTick puts an entry of the loop into words; irqs are the interrupts that its CPU had
// between two looks of the supervisor, by name.
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

// String is the entry in one line of the report for people.
func (v *LateTick) String() string {
	text := fmt.Sprintf("tick %d at %.3f s: %.3f ms late", v.Tick, v.Time, float64(v.LateNs)/1e6)
	if v.Lost > 0 {
		text += fmt.Sprintf(", %d points lost", v.Lost)
	}
	text += ", most in " + v.Phase
	if v.Involuntary > 0 {
		text += fmt.Sprintf("; its CPU was taken %d times", v.Involuntary)
	}
	if n := v.Minor + v.Major; n > 0 {
		text += fmt.Sprintf("; %d page faults", n)
	}
	return text
}
