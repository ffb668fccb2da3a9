package sigmap

import "math/bits"

// Status is the state of a protection after a frame, or after a cycle without a frame.
type Status struct {
	Frame  State
	Window Window
}

// State is the check result of one frame, named as in the AUTOSAR E2E library.
type State uint8

const (
	FrameNoNewData     State = iota // NONEWDATA: no frame received
	FrameOK                         // OK: right checksum, counter step 1
	FrameSomeLost                   // OK_SOMELOST: counter step 2 to MaxDeltaCounter
	FrameRepeated                   // REPEATED: counter step 0
	FrameWrongSequence              // WRONGSEQUENCE: counter step above MaxDeltaCounter, or back
	FrameError                      // ERROR (profiles 1 and 2: WRONGCRC): wrong checksum or counter, or too short
	FrameInitial                    // INITIAL: first valid frame, without a counter to compare with
	FrameSync                       // SYNC (profiles 1 and 2): valid again, but too few frames yet
)

func (s State) String() string {
	return [...]string{"NONEWDATA", "OK", "OK_SOMELOST", "REPEATED", "WRONGSEQUENCE", "ERROR", "INITIAL", "SYNC"}[s]
}

// Good reports whether the window counts s as E2E_P_OK.
//
//go:nosplit
func (s State) Good() bool { return s == FrameOK || s == FrameSomeLost || s == FrameSync }

// Window is the check result of the last frames, the state of E2E_SM.
type Window uint8

const (
	WindowNoData  Window = iota // NODATA: no valid frame yet
	WindowInit                  // INIT: too few valid frames yet
	WindowValid                 // VALID
	WindowInvalid               // INVALID
)

func (w Window) String() string { return [...]string{"NODATA", "INIT", "VALID", "INVALID"}[w] }

// WindowLimits holds the limits of the state machine E2E_SM. Of the last WindowSize frames
// and cycles without a frame, at least MinOk must be good and at most MaxError wrong; the
// limits depend on the present state. AUTOSAR requires
//
//	1 <= MinOkStateValid <= MinOkStateInit <= MinOkStateInvalid
//	MaxErrorStateValid >= MaxErrorStateInit >= MaxErrorStateInvalid >= 0
//	MinOk + MaxError <= WindowSize in every state
//
// The tag key names a field in a bench file.
type WindowLimits struct {
	WindowSize           int `key:"window_size"` // 1 to 64 (AUTOSAR: 255)
	MinOkStateInit       int `key:"min_ok_state_init"`
	MaxErrorStateInit    int `key:"max_error_state_init"`
	MinOkStateValid      int `key:"min_ok_state_valid"`
	MaxErrorStateValid   int `key:"max_error_state_valid"`
	MinOkStateInvalid    int `key:"min_ok_state_invalid"`
	MaxErrorStateInvalid int `key:"max_error_state_invalid"`
}

// Check checks a received frame of n bytes; id is its identifier without flags.
//
// The counter checks follow the AUTOSAR E2E library, written from knowledge of it, not from
// its text:
//   - E2E_P04Check to E2E_P08Check, E2E_P11Check, E2E_P22Check and E2E_P44Check compare with the last frame whose checksum
//     was right, at first with the counter before 0. A receiver that starts in the middle
//     therefore reports WRONGSEQUENCE once.
//   - E2E_P01Check and E2E_P02Check (from R4.2) report INITIAL for the first frame.
//     MaxDeltaCounter grows by one with every call until a frame is valid. SyncCounterInit
//     frames are SYNC after a WRONGSEQUENCE, and after more than MaxNoNewOrRepeatedData cycles
//     without a new frame.
//   - Other profiles compare as profile 5 does, and the first frame is INITIAL.
//
//go:nosplit
func (p *Protection) Check(data *[64]byte, n int, id uint32) Status {
	p.n, p.end, p.id = byte(n), 64, id
	p.widenDelta()
	s := FrameError
	if p.isIntact(data) {
		s = p.checkCounter(p.Counter.Load(data))
	}
	return p.advanceWindow(s)
}

// CheckWrong updates the state for a frame of the wrong format or length. Such a frame is an error
// also before the first valid one: the window leaves NODATA, unless keep is set, as it is for
// records of earlier versions.
//
//go:nosplit
func (p *Protection) CheckWrong(keep bool) Status {
	p.widenDelta()
	if p.Window == WindowNoData && !keep {
		p.Window = WindowInit
	}
	return p.advanceWindow(FrameError)
}

// CheckMissing updates the state for a cycle without a frame; call it once for each.
//
//go:nosplit
func (p *Protection) CheckMissing() Status {
	p.widenDelta()
	p.Stale = min(p.Stale+1, p.Modulus-1)
	return p.advanceWindow(FrameNoNewData)
}

// widenDelta increases the allowed counter step with the time without a valid frame.
//
//go:nosplit
func (p *Protection) widenDelta() { p.Delta = min(p.Delta+1, p.Modulus-1) }

// isIntact reports whether length, checksum, data identifier and counter are valid.
//
//go:nosplit
func (p *Protection) isIntact(data *[64]byte) bool {
	switch {
	case p.n < p.Need:
	case p.Length.N > 0 && !p.checkLength(p.Length.Load(data)):
	case p.Algorithm != NoChecksum && p.Checksum.Load(data) != p.checksum(data):
	case p.Nibble.N > 0 && p.Nibble.Load(data) != uint64(p.DataID>>8):
	case p.ID.N > 0 && p.ID.Load(data) != uint64(p.DataID):
	case p.Modulus > 0 && p.Counter.Load(data) >= p.Modulus:
	default:
		return true
	}

	return false
}

// checkLength reports whether a length in a frame is allowed and within the frame, and sets the end of
// the bytes covered by it.
//
//go:nosplit
func (p *Protection) checkLength(length uint64) bool {
	if length < uint64(p.MinLength) || length > uint64(p.MaxLength) || uint64(p.First)+length > uint64(p.n) {
		return false
	}
	p.end = p.First + uint8(length)
	return true
}

// checkCounter checks the counter of an intact frame.
//
//go:nosplit
func (p *Protection) checkCounter(counter uint64) State {
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
		if p.needsSync() {
			return FrameSync
		}
	}

	if delta > 1 {
		return FrameSomeLost
	}
	return FrameOK
}

// needsSync reports whether a frame of profile 1 or 2 with a valid counter is SYNC, that
// is, one of the first frames after an irregularity.
//
//go:nosplit
func (p *Protection) needsSync() bool {
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

// advanceWindow adds a frame state to the window: E2E_SMCheck of R4.2 to R19-11, with one
// window size for all states, written from knowledge. Later releases add a size for each
// state and ways to clear the window, and are the same without these.
//
//go:nosplit
func (p *Protection) advanceWindow(s State) Status {
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
	p.updateWindow(bits.OnesCount64(p.OKs<<spare), bits.OnesCount64(p.Errors<<spare))
	return Status{s, p.Window}
}

// updateWindow sets the next state of the window from its good and wrong frames.
//
//go:nosplit
func (p *Protection) updateWindow(good, wrong int) {
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
