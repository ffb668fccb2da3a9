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
	ID      uint32 `json:"id"`      // without its mark, see extended
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

// ReceivedMessages says what the page knows of the received messages.
func ReceivedMessages(p *rt.Page, h *bench.Handover) (list []Received) {
	at := 0
	for b, m := range h.Maps {
		bus := h.Bench.Buses[b].Name.Text
		for i := range m.Rx {
			v := receivedMessage(&p.Rx[at], &m.Rx[i])
			v.Bus, v.Message = bus, m.Rx[i].Name
			if len(h.Maps) > 1 {
				v.Message += " on " + bus
			}
			list = append(list, v)
			at++
		}
	}
	return list
}

func receivedMessage(w *rt.RxWords, rx *sigmap.Rx) Received {
	s := w.Load()
	v := Received{
		ID: rx.ID & can.MaskEFF, EFF: rx.ID&can.EFF != 0, Frames: w.Frames.Load(), Protected: len(rx.Protect) > 0,
		OK: w.OK.Load(), SomeLost: w.SomeLost.Load(), Repeated: w.Repeated.Load(), Sequence: w.Sequence.Load(),
		Errors: w.Errors.Load(), NoNew: w.NoNew.Load(), Length: w.Length.Load(), Range: w.Range.Load(), Invalid: w.Invalid.Load(),
		Timeouts: w.Timeouts.Load(), Late: s.Late, AgeMax: int64(w.AgeMax.Load()),
	}
	if v.Protected {
		v.State, v.Window = s.Frame.String(), s.Window.String()
	}
	if n := float64(w.Cycles.Load()); n > 0 {
		mean := float64(w.CycleSum.Load()) / n
		spread := math.Sqrt(max(0, math.Float64frombits(w.CycleSquare.Load())/n-mean*mean))
		v.Cycle = &Cycle{int64(w.CycleMin.Load()), int64(math.Round(mean)), int64(w.CycleMax.Load()), int64(math.Round(spread))}
	}
	return v
}

// wrong lists in words what was wrong with a message: "wrong checksum 12, repeated 1".
func (v *Received) wrong() []string {
	var list []string
	for _, c := range []struct {
		what string
		n    uint64
	}{
		{"wrong checksum", v.wrongSum()}, {"wrong sequence", v.Sequence}, {"repeated", v.Repeated}, {"wrong length", v.Length},
		{"timeouts", v.Timeouts}, {"some lost", v.SomeLost}, {"out of range", v.Range}, {"no value", v.Invalid},
	} {
		if c.n > 0 {
			list = append(list, fmt.Sprintf("%s %d", c.what, c.n))
		}
	}
	return list
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

// DroppedFrames lists the messages of which some were dropped.
func DroppedFrames(p *rt.Page, h *bench.Handover) (list []Dropped) {
	at := 0
	for b, m := range h.Maps {
		for i := range m.Tx {
			name := m.Tx[i].Name
			if len(h.Maps) > 1 {
				name += " on " + h.Bench.Buses[b].Name.Text
			}
			if n := p.TxDrops[at].Load(); n > 0 {
				list = append(list, Dropped{name, n})
			}
			at++
		}
	}
	return list
}
