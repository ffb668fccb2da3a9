package sigmap

import (
	"errors"
	"fmt"
)

// Why a Spec, a messages.ProtectionSpec or a Course is refused. A SpecError wraps one of them, or
// an error of another package where that says more.
var (
	ErrUnknown     = errors.New("there is no such message, signal, port or profile")
	ErrUnit        = errors.New("a unit or a quantity does not fit")
	ErrValue       = errors.New("a text is no value of the signal")
	ErrRange       = errors.New("a value is beyond what the signal or the port can carry")
	ErrTaken       = errors.New("a message, a signal, a port or a bit is used twice")
	ErrTime        = errors.New("a time is not positive or does not fit the grid")
	ErrSendType    = errors.New("how a message is sent is not said, or it has no such time")
	ErrReaction    = errors.New("a reaction has no cause, or nothing to do")
	ErrLength      = errors.New("a frame of this length is impossible or too short")
	ErrKind        = errors.New("the signal cannot be used for this")
	ErrMultiplexor = errors.New("a multiplexor that selects a sent signal is not constant")
	ErrProtection  = errors.New("a protection is impossible")
	ErrCourse      = errors.New("a course is impossible")
)

// problem is an error of a kind, with the values at hand.
type problem struct {
	kind error // one of the errors above
	err  error
}

func (p *problem) Error() string   { return p.err.Error() }
func (p *problem) Unwrap() []error { return []error{p.kind, p.err} }

// problemf returns a problem with a formatted text, which may wrap another error.
func problemf(kind error, format string, values ...any) error {
	return &problem{kind, fmt.Errorf(format, values...)}
}
