package sigmap

import "math/bits"

// Status is what is known of a protected group after a frame, or after a cycle
// without one.
type Status struct {
	Frame  State
	Window Window
}

// State is the judgement on one frame, named as the AUTOSAR E2E library names it.
type State uint8

const (
	FrameNoNewData     State = iota // NONEWDATA: no frame came
	FrameOK                         // OK: the checksum is right, the counter one further
	FrameSomeLost                   // OK_SOMELOST: further by more, but not by more than MaxDeltaCounter
	FrameRepeated                   // REPEATED: the counter of the last frame again
	FrameWrongSequence              // WRONGSEQUENCE: further by more than MaxDeltaCounter, or back
	FrameError                      // ERROR (profiles 1 and 2: WRONGCRC): wrong checksum, too short, or a counter that does not exist
	FrameInitial                    // INITIAL: the first valid frame, with nothing to compare its counter with
	FrameSync                       // SYNC (profiles 1 and 2): valid again, but not long enough
)

func (s State) String() string {
	return [...]string{"NONEWDATA", "OK", "OK_SOMELOST", "REPEATED", "WRONGSEQUENCE", "ERROR", "INITIAL", "SYNC"}[s]
}

// Good tells whether the window counts s as E2E_P_OK.
//
//go:nosplit
func (s State) Good() bool { return s == FrameOK || s == FrameSomeLost || s == FrameSync }

// Window is the judgement on the last frames, the state of E2E_SM.
type Window uint8

const (
	WindowNoData  Window = iota // NODATA: nothing valid yet
	WindowInit                  // INIT: something, not enough yet
	WindowValid                 // VALID
	WindowInvalid               // INVALID
)

func (w Window) String() string { return [...]string{"NODATA", "INIT", "VALID", "INVALID"}[w] }

// WindowLimits are a messages.WindowSpec as the tick reads it; the fields are the same.
type WindowLimits struct {
	WindowSize           int // frames, 1 to 64
	MinOkStateInit       int
	MaxErrorStateInit    int
	MinOkStateValid      int
	MaxErrorStateValid   int
	MinOkStateInvalid    int
	MaxErrorStateInvalid int
}

// Check judges a received frame of n bytes; id is its identifier, without marks.
//
// The counters follow the AUTOSAR E2E library, written from knowledge of it, not
// from its text: E2E_P05Check, E2E_P11Check and E2E_P22Check compare with the last
// frame whose checksum was right, at first with the counter before 0, so that a
// receiver that starts in the middle says WRONGSEQUENCE once. E2E_P01Check and
// E2E_P02Check (R4.2 on) say INITIAL to the first; MaxDeltaCounter grows by one
// with every call until a frame is valid; after more than MaxNoNewOrRepeatedData
// cycles without a new frame and after a WRONGSEQUENCE, SyncCounterInit frames are
// SYNC. What has no profile is compared as in profile 5, and the first frame is
// INITIAL.
//
//go:nosplit
func (p *Protection) Check(data *[64]byte, n int, id uint32) Status {
	p.n, p.id = byte(n), id
	p.grow()
	s := FrameError
	if p.intact(data) {
		s = p.sequence(p.Counter.load(data))
	}
	return p.slide(s)
}

// Miss is to be called once for every expected cycle without a frame.
//
//go:nosplit
func (p *Protection) Miss() Status {
	p.grow()
	p.Stale = min(p.Stale+1, p.Modulus-1)
	return p.slide(FrameNoNewData)
}

// grow lets the step that is allowed grow with the time without a valid frame.
//
//go:nosplit
func (p *Protection) grow() { p.Delta = min(p.Delta+1, p.Modulus-1) }

// intact tells whether length, checksum, data identifier and counter can be.
//
//go:nosplit
func (p *Protection) intact(data *[64]byte) bool {
	switch {
	case p.n < p.Need:
	case p.Algorithm != NoChecksum && p.Checksum.load(data) != p.value(data):
	case p.Nibble.N > 0 && p.Nibble.load(data) != uint32(p.DataID>>8):
	case p.Modulus > 0 && p.Counter.load(data) >= p.Modulus:
	default:
		return true
	}
	return false
}

// sequence judges the counter of an intact frame.
//
//go:nosplit
func (p *Protection) sequence(counter uint32) State {
	if p.Modulus == 0 {
		return FrameOK
	}
	delta := counter + p.Modulus - p.Last
	if delta >= p.Modulus {
		delta -= p.Modulus
	}
	switch {
	case !p.Seen:
		p.Seen = true
		p.Last, p.Delta = counter, p.MaxDelta
		return FrameInitial
	case delta == 0:
		p.Stale = min(p.Stale+1, p.Modulus-1)
		return FrameRepeated
	case !p.Classic:
		p.Last = counter
		if delta > p.MaxDelta {
			return FrameWrongSequence
		}
	case delta > p.Delta:
		p.Stale, p.Sync = 0, p.SyncInit
		if p.Sync > 0 {
			p.Last, p.Delta = counter, p.MaxDelta
		}
		return FrameWrongSequence
	default:
		p.Last, p.Delta = counter, p.MaxDelta
		if p.synchronises() {
			return FrameSync
		}
	}
	if delta > 1 {
		return FrameSomeLost
	}
	return FrameOK
}

// synchronises tells whether a frame of profile 1 or 2 with a valid counter is one
// of those after an irregularity.
//
//go:nosplit
func (p *Protection) synchronises() bool {
	stale := p.Stale > p.MaxStale
	p.Stale = 0
	if stale {
		p.Sync = p.SyncInit
		return true
	}
	if p.Sync > 0 {
		p.Sync--
		return true
	}
	return false
}

// slide moves the window on by one judgement: E2E_SMCheck of R4.2 to R19-11, with
// one window size for all states, from knowledge. Later releases add a size for
// each state and ways to clear the window; without these they do the same.
//
//go:nosplit
func (p *Protection) slide(s State) Status {
	if p.Window == WindowNoData {
		if s != FrameError && s != FrameNoNewData {
			p.Window = WindowInit
		}
		return Status{s, p.Window}
	}
	p.OKs, p.Errors = p.OKs<<1, p.Errors<<1
	if s.Good() {
		p.OKs |= 1
	}
	if s == FrameError {
		p.Errors |= 1
	}
	spare := uint(64 - p.Limits.WindowSize)
	p.judge(bits.OnesCount64(p.OKs<<spare), bits.OnesCount64(p.Errors<<spare))
	return Status{s, p.Window}
}

// judge goes to the next state of the window by what is in it.
//
//go:nosplit
func (p *Protection) judge(good, wrong int) {
	l := &p.Limits
	switch {
	case p.Window == WindowValid:
		if wrong > l.MaxErrorStateValid || good < l.MinOkStateValid {
			p.Window = WindowInvalid
		}
	case p.Window == WindowInvalid:
		if wrong <= l.MaxErrorStateInvalid && good >= l.MinOkStateInvalid {
			p.Window = WindowValid
		}
	case wrong > l.MaxErrorStateInit:
		p.Window = WindowInvalid
	case good >= l.MinOkStateInit:
		p.Window = WindowValid
	}
}
