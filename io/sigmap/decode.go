package sigmap

import "lockstep/io/can"

// Rx is a received message.
type Rx struct {
	Name   string
	ID     uint32 // with can.EFF if it is extended
	Len    int    // bytes of the message by the database, or DLC; a frame with fewer is Short
	Exact  bool   // a frame with more is, too
	Fields []Field

	CycleTicks   int64 // expected; 0: nothing is
	TimeoutTicks int64 // without a valid frame; 0: none
	FirstTicks   int64 // the same until the first one has come, from the start on
	Protect      []Protection
	OnTimeout    Reaction
	OnError      Reaction

	Counts  Counts
	Frame   State  // of the last frame, or cycle without one; the worst of all groups
	Window  Window // likewise; only if there are groups
	Late    bool   // the timeout has passed
	Last    int64  // tick of the last valid frame; 0: none yet
	Changed bool   // some of these, since somebody set it to false
	NextNo  int64  // tick at which the next cycle has passed without a frame

	came  bool // some frame since the last Tick
	fresh bool // a valid one
}

// Counts tells what has become of the frames of a message.
type Counts struct {
	Frames   uint64 // all
	OK       uint64 // of them, protected: OK, INITIAL, SYNC
	SomeLost uint64 // OK_SOMELOST
	Repeated uint64
	Sequence uint64 // WRONGSEQUENCE
	Errors   uint64 // ERROR: mostly a wrong checksum
	Length   uint64 // of the wrong length
	Range    uint64 // with a value out of its range
	Invalid  uint64 // with a raw value that says that there is none
	NoNew    uint64 // cycles without a frame
	Timeouts uint64 // how often the timeout has passed
}

// Action is what follows when a message is not to be relied upon.
type Action uint8

const (
	Hold       Action = iota // the inputs keep their last values
	Substitute               // some take declared ones
	SafeState                // the run goes to its safe state
)

func (a Action) String() string { return [...]string{"hold", "substitute", "safe"}[a] }

// Reaction is an Action, compiled.
type Reaction struct {
	Action Action
	Values []SubstituteValue
}

// SubstituteValue is an input, and what it takes.
type SubstituteValue struct {
	Index int     // entry of u
	Value float64 // unit of the port
}

// Result is what became of a received frame.
type Result uint8

const (
	OK      Result = iota
	Unknown        // not one of Map.Rx, or no data frame
	Short          // of the wrong length: nothing decoded, even if the bound signals are in it
	Range          // some signal is out of its range and keeps its last value; the others are decoded
	Invalid        // some signal says that it has no value and keeps its last one; the others are decoded
	Bad            // its protection is not as it should be: nothing decoded
)

// Decode writes the values of a received frame into u and returns the index of
// its message in m.Rx, -1 if it is Unknown. It does not allocate.
//
// A frame whose state is ERROR, REPEATED or WRONGSEQUENCE is not decoded; while the
// window is INVALID, none is where OnError puts substitutes in their place.
//
//go:nosplit
func (m *Map) Decode(u []float64, f *can.Frame) (int, Result) {
	i := m.Find(f.ID)
	if i < 0 {
		return -1, Unknown
	}
	rx := &m.Rx[i]
	if result := rx.Admit(f); result != OK {
		return i, result
	}
	return i, rx.decode(u, f)
}

// Admit is Decode before the values: it counts a frame of this message and checks its
// length and its protection. OK: its values may be taken.
//
//go:nosplit
func (r *Rx) Admit(f *can.Frame) Result {
	r.Counts.Frames++
	r.came, r.Changed = true, true
	n := int(f.Len)
	short := n < r.Len || r.Exact && n > r.Len
	if short {
		r.Counts.Length++
		n = 0
	}
	if len(r.Protect) > 0 && !r.judge(f, n) && !short {
		return Bad
	}
	if short {
		return Short
	}
	r.fresh = true
	if r.Window == WindowInvalid && r.OnError.Action == Substitute {
		return Bad
	}
	return OK
}

// judge checks the protection of a frame of n bytes, 0 if it has the wrong length, and
// tells whether it is good.
//
//go:nosplit
func (r *Rx) judge(f *can.Frame, n int) bool {
	r.Frame, r.Window = FrameOK, WindowValid
	for j := range r.Protect {
		r.worst(r.Protect[j].Check(&f.Data, n, f.ID&can.MaskEFF))
	}
	switch r.Frame {
	case FrameError:
		r.Counts.Errors++
	case FrameRepeated:
		r.Counts.Repeated++
	case FrameWrongSequence:
		r.Counts.Sequence++
	case FrameSomeLost:
		r.Counts.SomeLost++
		return true
	default:
		r.Counts.OK++
		return true
	}
	return false
}

// worst takes in the status of a group.
//
//go:nosplit
func (r *Rx) worst(s Status) {
	if s.Frame.rank() > r.Frame.rank() {
		r.Frame = s.Frame
	}
	if s.Window.rank() > r.Window.rank() {
		r.Window = s.Window
	}
}

// rank orders states from good to bad.
//
//go:nosplit
func (s State) rank() int {
	switch s {
	case FrameOK:
		return 0
	case FrameSync:
		return 1
	case FrameInitial:
		return 2
	case FrameSomeLost:
		return 3
	case FrameRepeated:
		return 4
	case FrameWrongSequence:
		return 5
	case FrameNoNewData:
		return 6
	}
	return 7
}

// rank orders windows from good to bad.
//
//go:nosplit
func (w Window) rank() int {
	switch w {
	case WindowValid:
		return 0
	case WindowInit:
		return 1
	case WindowNoData:
		return 2
	}
	return 3
}

// decode writes the values of a good frame into u.
//
//go:nosplit
func (r *Rx) decode(u []float64, f *can.Frame) Result {
	result := OK
	for j := range r.Fields {
		d := &r.Fields[j]
		if len(d.When) > 0 && !d.present(&f.Data) {
			continue
		}
		raw := d.load(&f.Data)
		if len(d.Invalid) > 0 && within(d.Invalid, raw) {
			if result == OK {
				result = Invalid
			}
			continue
		}
		v := d.number(raw)
		if !(v >= d.Lo && v <= d.Hi) {
			result = Range
			continue
		}
		u[d.Index] = v*d.Factor + d.Offset
	}
	r.Count(result)
	return result
}

// Count counts what became of the values of a frame.
//
//go:nosplit
func (r *Rx) Count(result Result) {
	switch result {
	case Range:
		r.Counts.Range++
	case Invalid:
		r.Counts.Invalid++
	}
}

// Demand is what Tick asks the run to do.
type Demand uint8

const (
	NoDemand      Demand = iota
	SafeByTimeout        // a message is late whose reaction is SafeState
	SafeByError          // the window of one is INVALID
)

// Tick judges at tick k, after the frames that came before it, which messages are
// missing, and does what is declared for it to u. Ticks must rise; those that are
// made up for later are left out.
//
// A cycle has passed without a frame when the frame is more than half a cycle late. A
// message is late when no valid frame has come for its timeout, which is another one
// until the first has come, counted from the start; what is declared for that goes before what is declared for its window.
//
//go:nosplit
func (m *Map) Tick(u []float64, k int64) (d Demand) {
	for i := range m.Rx {
		r := &m.Rx[i]
		r.pass(k)
		switch {
		case r.Late:
			if r.OnTimeout.apply(u) {
				d = SafeByTimeout
			}
		case r.Window == WindowInvalid:
			if r.OnError.apply(u) {
				d = SafeByError
			}
		}
	}
	return d
}

// pass is Tick for what is known of r.
//
//go:nosplit
func (r *Rx) pass(k int64) {
	if r.fresh {
		r.Last, r.Late = k, false // Changed is set
	}
	switch {
	case r.came:
		r.NextNo = k + r.CycleTicks + r.CycleTicks/2 + 1
	case r.CycleTicks > 0 && k >= r.NextNo:
		r.NextNo = k + r.CycleTicks
		r.miss()
	}
	r.came, r.fresh = false, false
	limit := r.TimeoutTicks
	if r.Last == 0 {
		limit = r.FirstTicks
	}
	if limit > 0 && !r.Late && k-r.Last > limit {
		r.Late, r.Changed = true, true
		r.Counts.Timeouts++
	}
}

// miss notes a cycle without a frame.
//
//go:nosplit
func (r *Rx) miss() {
	r.Counts.NoNew++
	r.Changed = true
	if len(r.Protect) == 0 {
		return
	}
	r.Frame, r.Window = FrameNoNewData, WindowValid
	for j := range r.Protect {
		if s := r.Protect[j].Miss(); s.Window.rank() > r.Window.rank() {
			r.Window = s.Window
		}
	}
}

// apply puts the substitutes in their places; true: the run is to go to its safe
// state.
//
//go:nosplit
func (r *Reaction) apply(u []float64) bool {
	for i := range r.Values {
		u[r.Values[i].Index] = r.Values[i].Value
	}
	return r.Action == SafeState
}
