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

// Received counts the frames of a received message.
type Received struct {
	Bus     string `json:"bus"`
	Message string `json:"message"`            // "Speeds"; "Speeds on drive" in a bench of several buses
	ID      uint32 `json:"id"`                 // identifier without the extended flag
	EFF     bool   `json:"extended,omitempty"` // 29-bit identifier
	Frames  uint64 `json:"frames"`             // frames received

	// Frames of a protected message by state, in the names of AUTOSAR E2E; OK includes INITIAL
	// and SYNC. NONEWDATA counts cycles without a frame, also of an unprotected message.
	Protected bool   `json:"protected"`
	OK        uint64 `json:"ok"`
	SomeLost  uint64 `json:"ok_somelost"`
	Repeated  uint64 `json:"repeated"`
	Sequence  uint64 `json:"wrongsequence"`
	Errors    uint64 `json:"error"`
	NoNew     uint64 `json:"nonewdata"`
	State     string `json:"state,omitempty"`  // E2E state of the last frame or empty cycle
	Window    string `json:"window,omitempty"` // E2E state of the message: NODATA, INIT, VALID, INVALID

	Length   uint64 `json:"wrong_length"` // frames of a wrong length
	Format   uint64 `json:"wrong_format"` // classic frames for CAN FD, 11 bits for 29, remote frames, or the opposite
	Beyond   uint64 `json:"bytes_beyond"` // bytes beyond the length of the message, in longer frames
	BRS      uint64 `json:"brs"`          // CAN FD frames with bit rate switch
	ESI      uint64 `json:"esi"`          // CAN FD frames whose sender is error passive
	Range    uint64 `json:"out_of_range"` // frames with a value out of range; its input keeps the last value
	Invalid  uint64 `json:"invalid"`      // frames with a raw value that means "not available"
	Timeouts uint64 `json:"timeouts"`
	Late     bool   `json:"late"` // timeout active at the end

	Cycle  *Cycle `json:"cycle_ns,omitempty"` // nil: fewer than two frames
	AgeMax int64  `json:"age_max_ns"`         // largest age of the last valid frame at a tick, ns
}

// Cycle is the time from one frame to the next, ns: from kernel time stamps, or in whole ticks
// without them.
type Cycle struct {
	Min    int64 `json:"min"`
	Mean   int64 `json:"mean"`
	Max    int64 `json:"max"`
	Jitter int64 `json:"jitter"` // standard deviation
}

// messageLabel returns the name of a message; with several buses, its bus is added.
func messageLabel(h *bench.Handover, bus int, message string) string {
	if len(h.Maps) > 1 {
		message += " on " + h.Bench.Buses[bus].Name.Text
	}
	return message
}

// ReceivedMessages returns the counts of all received messages from the status block.
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
		NoNew: c.NoNew, Length: c.Length, Format: c.Format, Beyond: c.Beyond, BRS: c.BRS, ESI: c.ESI, Range: c.Range, Invalid: c.Invalid, Timeouts: c.Timeouts,
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

// count is a number of occurrences.
type count struct {
	name string
	n    uint64
}

// nonZero formats the counts above 0: "repeated 1".
func nonZero(counts ...count) (list []string) {
	for _, c := range counts {
		if c.n > 0 {
			list = append(list, fmt.Sprintf("%s %d", c.name, c.n))
		}
	}

	return list
}

// Problems formats the counts of faulty frames: "wrong checksum 12", "repeated 1".
func (v *Received) Problems() []string {
	return nonZero(
		count{"wrong checksum", v.wrongChecksum()}, count{"wrong sequence", v.Sequence}, count{"repeated", v.Repeated},
		count{"wrong format", v.Format}, count{"wrong length", v.Length}, count{"timeouts", v.Timeouts}, count{"some lost", v.SomeLost},
		count{"out of range", v.Range}, count{"no value", v.Invalid}, count{"bytes beyond the message", v.Beyond},
		count{"error passive sender", v.ESI},
	)
}

// wrongChecksum counts the frames in state ERROR that have the right format and length.
func (v *Received) wrongChecksum() uint64 { return v.Errors - min(v.Errors, v.Format+v.Length) }

// String formats the message for the text report.
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
	if list := v.Problems(); len(list) > 0 {
		text += "; " + strings.Join(list, ", ")
	}
	return text
}

// shortName cuts a name to 24 letters.
func shortName(text string) string {
	const most = 24
	name := []rune(text)
	if len(name) > most {
		name = append(name[:most-3:most-3], []rune("...")...)
	}
	return string(name)
}

// Dropped counts the frames of a message that the bus did not take.
type Dropped struct {
	Message string `json:"message"`
	Frames  uint64 `json:"frames"`
}

// droppedFrames lists the messages with dropped frames.
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

// SendProblems formats the counts of a sent message, numbered over all buses: "not taken by the bus 3".
func (v View) SendProblems(sent int) []string {
	return nonZero(count{"not taken by the bus", v.Status.TxDrops[sent].Load()},
		count{"sent by another node", v.Status.TxConflicts[sent].Frames.Load()})
}
