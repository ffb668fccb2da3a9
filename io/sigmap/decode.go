package sigmap

import "lockstep/io/can"

// Rx is a received message.
type Rx struct {
	Name   string
	ID     uint32 // with can.EFF if it is extended
	Len    int    // length by the database, or Reception.DLC, bytes; a shorter frame is Short
	Exact  bool   // a longer frame is Short, too
	Strict bool   // frames are judged by their format; false only in records of earlier versions
	FD     bool   // the frames are CAN FD frames, not classic ones
	BRS    bool   // a frame without bit rate switch is WrongFormat
	Size   int    // length by the database, bytes; further bytes of a frame are counted
	Paired bool   // the database has a message with this number and the other length of the identifier
	Whole  bool   // a frame with a signal out of its range is Rejected; else the signal alone is
	Long   bool   // several frames carry the message
	Fields []Field

	Also   int   // 1 + index of a further message for which a J1939 frame to all nodes is; 0: none
	AlsoTo uint8 // destination by which Find finds that message

	Excerpt Excerpt // of a message of more than 64 bytes: Len and Size are those of its frame

	CycleTicks   int64 // expected cycle, ticks; 0: none
	TimeoutTicks int64 // longest time without a valid frame, ticks; 0: no limit
	FirstTicks   int64 // timeout of the first valid frame, ticks from the start
	Protect      []Protection
	OnTimeout    Reaction
	OnError      Reaction

	Counts   Counts
	Frame    State  // state of the last frame, or missing frame; the worst of all protections
	Window   Window // worst window of all protections; valid only if there are any
	Late     bool   // the timeout has expired
	Last     int64  // tick of the last valid frame; 0: none yet
	Changed  bool   // a field from Counts to Late has changed; the reader sets it to false
	NextMiss int64  // tick at which a missing frame is counted next

	received bool // a frame has come since the last Tick
	valid    bool // a valid frame has come since the last Tick
}

// Counts counts the frames of a message by their fate.
type Counts struct {
	Frames   uint64 // all frames received
	OK       uint64 // protected frames with state OK, INITIAL or SYNC
	SomeLost uint64 // protected frames with state OK_SOMELOST
	Repeated uint64 // protected frames with state REPEATED
	Sequence uint64 // protected frames with state WRONGSEQUENCE
	Errors   uint64 // protected frames with state ERROR, mostly a wrong checksum
	Length   uint64 // frames of the wrong length
	Format   uint64 // frames of the wrong format
	Beyond   uint64 // bytes beyond the length of the message, in longer frames
	BRS      uint64 // CAN FD frames with bit rate switch
	ESI      uint64 // CAN FD frames whose sender is error passive
	Range    uint64 // frames with a value out of its range
	Invalid  uint64 // frames with a raw value that means "no value"
	NoNew    uint64 // cycles without a frame
	Timeouts uint64 // expired timeouts
}

// Action is the kind of reaction to a message that is missing or not valid.
type Action uint8

const (
	Hold       Action = iota // the inputs keep their last values
	Substitute               // declared inputs take substitute values
	SafeState                // the run goes to its safe state
)

func (a Action) String() string { return [...]string{"hold", "substitute", "safe"}[a] }

// Reaction is a compiled ReactionSpec.
type Reaction struct {
	Action Action
	Values []SubstituteValue
}

// SubstituteValue is the substitute value of an input.
type SubstituteValue struct {
	Index int     // index in u
	Value float64 // value in the unit of the port
}

// Result is the outcome of Decode for a received frame.
type Result uint8

const (
	OK          Result = iota
	Unknown            // not a message of Map.Rx
	Short              // wrong length: nothing decoded
	Range              // a signal is out of its range and keeps its last value; the others are decoded
	Invalid            // a signal has a "no value" code and keeps its last value; the others are decoded
	Bad                // wrong protection: nothing decoded
	WrongFormat        // classic for CAN FD, 11 bits for 29, remote, or the opposite: nothing decoded
	Rejected           // a signal is out of its range, and Rx.Whole is set: nothing decoded
)

// Valid reports whether a frame with this result ends a timeout.
//
//go:nosplit
func (r Result) Valid() bool { return r == OK || r == Range || r == Invalid }

// Decode writes the values of a received frame into u and returns the index of
// its message in m.Rx, -1 if it is Unknown. It does not allocate.
//
// A frame with state ERROR, REPEATED or WRONGSEQUENCE is not decoded. While the window is
// INVALID and OnError sets substitutes, no frame is decoded.
//
//go:nosplit
func (m *Map) Decode(u []float64, f *can.Frame) (int, Result) {
	i := m.Find(f.ID)
	if i < 0 {
		return m.DecodeOther(f)
	}
	rx := &m.Rx[i]
	if result := rx.CheckFrame(f); result != OK {
		return i, result
	}
	return i, rx.decode(u, f)
}

// DecodeOther is Decode for a frame whose identifier is not in m.Rx: it is Unknown, or WrongFormat if
// only its format keeps it from being a frame of a message.
//
//go:nosplit
func (m *Map) DecodeOther(f *can.Frame) (int, Result) {
	i := m.FindNumber(f.ID)
	if i < 0 {
		return -1, Unknown
	}
	return i, m.Rx[i].CheckFrame(f)
}

// CheckFrame counts a frame of this message and checks its format, its length and its
// protection. OK means that its values may be decoded; Finish must follow.
//
//go:nosplit
func (r *Rx) CheckFrame(f *can.Frame) Result {
	r.Counts.Frames++
	r.received, r.Changed = true, true
	result := r.checkForm(f)
	if len(r.Protect) > 0 && !r.checkProtection(f, result != OK) && result == OK {
		return Bad
	}
	if result == OK && r.Window == WindowInvalid && r.OnError.Action == Substitute {
		r.valid = true
		return Bad
	}
	return result
}

// checkForm counts and checks format and length of a frame.
//
//go:nosplit
func (r *Rx) checkForm(f *can.Frame) Result {
	if f.Flags&can.FlagBRS != 0 {
		r.Counts.BRS++
	}
	if f.Flags&can.FlagESI != 0 {
		r.Counts.ESI++
	}

	n := int(f.Len)
	switch {
	case r.Strict && ((f.ID^r.ID)&(can.EFF|can.RTR) != 0 || f.FD() != r.FD || r.BRS && f.Flags&can.FlagBRS == 0):
		r.Counts.Format++
		return WrongFormat
	case n < r.Len || r.Exact && n > r.Len:
		r.Counts.Length++
		return Short
	}
	r.Counts.Beyond += uint64(max(0, n-r.Size))
	return OK
}

// checkProtection checks the protection of a frame and reports whether the frame is good. wrong
// says that format or length are wrong.
//
//go:nosplit
func (r *Rx) checkProtection(f *can.Frame, wrong bool) bool {
	r.Frame, r.Window = FrameOK, WindowValid
	for j := range r.Protect {
		var s Status
		if p := &r.Protect[j]; wrong {
			s = p.CheckWrong(!r.Strict)
		} else {
			s = p.Check(&f.Data, int(f.Len), f.ID&can.MaskEFF)
		}
		if s.Frame.rank() > r.Frame.rank() {
			r.Frame = s.Frame
		}
		r.Window = worseWindow(r.Window, s.Window)
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

// rank orders states from good to bad.
//
//go:nosplit
func (s State) rank() uint8 {
	return [8]uint8{
		FrameOK: 0, FrameSync: 1, FrameInitial: 2, FrameSomeLost: 3,
		FrameRepeated: 4, FrameWrongSequence: 5, FrameNoNewData: 6, FrameError: 7,
	}[s&7]
}

// worseWindow returns the worse of two windows.
//
//go:nosplit
func worseWindow(v, w Window) Window {
	rank := [4]uint8{WindowValid: 0, WindowInit: 1, WindowNoData: 2, WindowInvalid: 3}
	if rank[w&3] > rank[v&3] {
		return w
	}
	return v
}

// decode writes the values of a good frame into u.
//
//go:nosplit
func (r *Rx) decode(u []float64, f *can.Frame) Result {
	result := OK
	if r.Whole && !r.inRange(f) {
		return r.Finish(Rejected)
	}
	for j := range r.Fields {
		d := &r.Fields[j]
		if !d.isPresent(&f.Data) {
			continue
		}
		raw := d.load(&f.Data)
		if len(d.Invalid) > 0 && within(d.Invalid, raw) {
			if result == OK {
				result = Invalid
			}
			continue
		}

		v := d.rawNumber(raw)
		if !(v >= d.Lo && v <= d.Hi) {
			result = Range
			continue
		}

		u[d.Index] = float64(v*d.Factor) + d.Offset
	}

	return r.Finish(result)
}

// inRange reports whether each signal of a frame is in its range or has a "no value" code.
//
//go:nosplit
func (r *Rx) inRange(f *can.Frame) bool {
	for j := range r.Fields {
		d := &r.Fields[j]
		raw := d.load(&f.Data)
		if v := d.rawNumber(raw); !(v >= d.Lo && v <= d.Hi) && d.isPresent(&f.Data) && !within(d.Invalid, raw) {
			return false
		}
	}

	return true
}

// Finish counts a frame that CheckFrame found OK by the result of its values, and returns that.
//
//go:nosplit
func (r *Rx) Finish(result Result) Result {
	switch result {
	case Range, Rejected:
		r.Counts.Range++
	case Invalid:
		r.Counts.Invalid++
	}
	r.valid = r.valid || result.Valid()
	return result
}

// Request is a request of Tick to the run.
type Request uint8

const (
	NoRequest     Request = iota
	SafeByTimeout         // safe state: a message timed out
	SafeByError           // safe state: the window of a message is INVALID
)

// Tick checks at tick k, after Decode of the frames before it, which messages are missing,
// and applies their reactions to u. k must rise; call Tick only for ticks in real time, not
// for missed ticks that are computed later.
//
// A frame counts as missing when it is more than half a cycle late. A message times out
// when no valid frame has come for TimeoutTicks, or for FirstTicks from the start before
// the first valid frame. OnTimeout takes precedence over OnError.
//
//go:nosplit
func (m *Map) Tick(u []float64, k int64) (d Request) {
	for i := range m.Rx {
		r := &m.Rx[i]
		r.updateTimeouts(k)
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

// updateTimeouts updates the timeout state of r at tick k.
//
//go:nosplit
func (r *Rx) updateTimeouts(k int64) {
	if r.valid {
		r.Last, r.Late = k, false // Changed is set
	}
	switch {
	case r.received:
		r.NextMiss = k + r.CycleTicks + r.CycleTicks/2 + 1
	case r.CycleTicks > 0 && k >= r.NextMiss:
		r.NextMiss = k + r.CycleTicks
		r.countMiss()
	}

	r.received, r.valid = false, false
	limit := r.TimeoutTicks
	if r.Last == 0 {
		limit = r.FirstTicks
	}
	if limit > 0 && !r.Late && k-r.Last > limit {
		r.Late, r.Changed = true, true
		r.Counts.Timeouts++
	}
}

// countMiss counts a cycle without a frame.
//
//go:nosplit
func (r *Rx) countMiss() {
	r.Counts.NoNew++
	r.Changed = true
	if len(r.Protect) == 0 {
		return
	}
	r.Frame, r.Window = FrameNoNewData, WindowValid
	for j := range r.Protect {
		r.Window = worseWindow(r.Window, r.Protect[j].CheckMissing().Window)
	}
}

// apply writes the substitute values into u; true requests the safe state.
//
//go:nosplit
func (r *Reaction) apply(u []float64) bool {
	for i := range r.Values {
		u[r.Values[i].Index] = r.Values[i].Value
	}
	return r.Action == SafeState
}
