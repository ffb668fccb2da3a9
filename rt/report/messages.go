package report

import (
	"fmt"
	"math"
	"strings"

	"lockstep/io/can"
	"lockstep/io/sigmap"
	"lockstep/rt"
	"lockstep/rt/bench"
)

// Received is what a run says of a message it receives.
type Received struct {
	Bus     string `json:"bus"`
	Message string `json:"message"` // "Speeds"; "Speeds on drive" where there are several buses
	ID      uint32 `json:"id"`      // without the flag of 29 bits, see extended
	EFF     bool   `json:"extended,omitempty"`
	Frames  uint64 `json:"frames"`

	// Of a protected one, frames by state, as AUTOSAR names them; OK includes INITIAL
	// and SYNC. NONEWDATA are cycles without a frame, of an unprotected one too.
	Protected bool   `json:"protected"`
	OK        uint64 `json:"ok"`
	SomeLost  uint64 `json:"ok_somelost"`
	Repeated  uint64 `json:"repeated"`
	Sequence  uint64 `json:"wrongsequence"`
	Errors    uint64 `json:"error"`
	NoNew     uint64 `json:"nonewdata"`
	State     string `json:"state,omitempty"`  // of the last frame, or cycle without one
	Window    string `json:"window,omitempty"` // NODATA, INIT, VALID, INVALID

	Length   uint64 `json:"wrong_length"`
	Range    uint64 `json:"out_of_range"` // frames with a value that was; it kept its last one
	Invalid  uint64 `json:"invalid"`      // frames with a raw value that says that there is none
	Timeouts uint64 `json:"timeouts"`
	Late     bool   `json:"late"` // at the end

	Cycle  *Cycle `json:"cycle_ns,omitempty"` // nil: there were no two frames
	AgeMax int64  `json:"age_max_ns"`         // at a tick, of the last valid frame; from the first on
}

// Cycle is the time from one frame to the next, ns: by the kernel's stamps, or in whole
// ticks where there are none.
type Cycle struct {
	Min    int64 `json:"min"`
	Mean   int64 `json:"mean"`
	Max    int64 `json:"max"`
	Jitter int64 `json:"jitter"` // standard deviation
}

// messageLabel is the name of a message, with that of its bus where there are several.
func messageLabel(h *bench.Handover, bus int, message string) string {
	if len(h.Maps) > 1 {
		message += " on " + h.Bench.Buses[bus].Name.Text
	}
	return message
}

// ReceivedMessages says what the page knows of the received messages.
func (v View) ReceivedMessages() (list []Received) {
	p, h := v.Status, v.Handover
	for b, m := range h.Maps {
		for i := range m.Rx {
			got := receivedMessage(&p.Rx[len(list)], &m.Rx[i])
			got.Bus, got.Message = h.Bench.Buses[b].Name.Text, messageLabel(h, b, m.Rx[i].Name)
			list = append(list, got)
		}
	}

	return list
}

func receivedMessage(w *rt.RxWords, rx *sigmap.Rx) Received {
	s, c := w.Load(), w.Counts()
	v := Received{
		ID: rx.ID & can.MaskEFF, EFF: rx.ID&can.EFF != 0, Protected: len(rx.Protect) > 0,
		Frames: c.Frames, OK: c.OK, SomeLost: c.SomeLost, Repeated: c.Repeated, Sequence: c.Sequence, Errors: c.Errors,
		NoNew: c.NoNew, Length: c.Length, Range: c.Range, Invalid: c.Invalid, Timeouts: c.Timeouts,
		Late: s.Late, AgeMax: int64(w.AgeMax.Load()),
	}
	if v.Protected {
		v.State, v.Window = s.Frame.String(), s.Window.String()
	}
	if n := float64(w.Cycles.Load()); n > 0 {
		mean := float64(w.CycleSum.Load()) / n
		spread := math.Sqrt(max(0, math.Float64frombits(w.CycleSquare.Load())/n-mean*mean))
		v.Cycle = &Cycle{int64(w.CycleMin.Load()), int64(math.Round(mean)), int64(w.CycleMax.Load()),
			int64(math.Round(spread))}
	}

	return v
}

// count is how often something happened.
type count struct {
	what string
	n    uint64
}

// nonZero lists counts in words, but for those that are 0: "repeated 1".
func nonZero(counts ...count) (list []string) {
	for _, c := range counts {
		if c.n > 0 {
			list = append(list, fmt.Sprintf("%s %d", c.what, c.n))
		}
	}

	return list
}

// wrong lists in words what was wrong with a message: "wrong checksum 12, repeated 1".
func (v *Received) wrong() []string {
	return nonZero(
		count{"wrong checksum", v.wrongSum()}, count{"wrong sequence", v.Sequence}, count{"repeated", v.Repeated},
		count{"wrong length", v.Length}, count{"timeouts", v.Timeouts}, count{"some lost", v.SomeLost},
		count{"out of range", v.Range}, count{"no value", v.Invalid},
	)
}

// wrongSum are the errors of a protected message but those of a wrong length.
func (v *Received) wrongSum() uint64 { return v.Errors - min(v.Errors, v.Length) }

// String is a line of the report.
func (v *Received) String() string {
	text := fmt.Sprintf("%s: %d frames", v.Message, v.Frames)
	if c := v.Cycle; c != nil {
		ms := func(ns int64) string { return fmt.Sprintf("%.3f", float64(ns)/1e6) }
		text += fmt.Sprintf(" every %s ms (%s to %s), jitter %s ms", ms(c.Mean), ms(c.Min), ms(c.Max), ms(c.Jitter))
		if v.AgeMax > 0 {
			text += fmt.Sprintf(", age at most %s ms", ms(v.AgeMax))
		}
	}

	if v.Protected {
		text += ", " + v.Window
	}
	if list := v.wrong(); len(list) > 0 {
		text += "; " + strings.Join(list, ", ")
	}
	return text
}

// cutName is a name in at most 24 letters.
func cutName(text string) string {
	const most = 24
	name := []rune(text)
	if len(name) > most {
		name = append(name[:most-3:most-3], []rune("...")...)
	}
	return string(name)
}

// Dropped is how many frames of a message the bus did not take.
type Dropped struct {
	Message string `json:"message"`
	Frames  uint64 `json:"frames"`
}

// droppedFrames lists the messages of which some were dropped.
func (v View) droppedFrames() (list []Dropped) {
	at := 0
	for b, m := range v.Handover.Maps {
		for i := range m.Tx {
			if n := v.Status.TxDrops[at].Load(); n > 0 {
				list = append(list, Dropped{messageLabel(v.Handover, b, m.Tx[i].Name), n})
			}
			at++
		}
	}

	return list
}
