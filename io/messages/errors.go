package messages

import (
	"errors"
	"fmt"
)

// What can be wrong with a message or a signal; see Error.
var (
	ErrName        = errors.New("a name is given twice")
	ErrIdentifier  = errors.New("an identifier is impossible or given twice")
	ErrLength      = errors.New("no frame has this length")
	ErrPlace       = errors.New("a signal does not fit its message")
	ErrScale       = errors.New("a factor is 0, or a number not finite")
	ErrFloat       = errors.New("a float has neither 32 nor 64 bits")
	ErrOverlap     = errors.New("two signals of a frame share bits")
	ErrMultiplexor = errors.New("a signal has a multiplexor that is none")
	ErrDepth       = errors.New("multiplexors are nested in a circle or too deep")
	ErrSelection   = errors.New("no value of a multiplexor selects the signal")
)

// Error is what Check finds in a database.
type Error struct {
	File    string // of the database
	Line    int    // in File, 0 if the message came from no file
	Message string // name
	Signal  string // name, "" if the error is about the message itself
	Err     error  // wraps one of the errors above
}

func (e *Error) Error() string {
	at, signal := "", ""
	if e.Line != 0 {
		at = fmt.Sprintf("%s:%d: ", e.File, e.Line)
	}
	if e.Signal != "" {
		signal = fmt.Sprintf("signal %q: ", e.Signal)
	}
	return fmt.Sprintf("%smessage %q: %s%v", at, e.Message, signal, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// problem is one of the errors above with the values at hand.
type problem struct {
	kind error
	text string
}

func (p *problem) Error() string { return p.text }
func (p *problem) Unwrap() error { return p.kind }

// problemf returns a problem with a formatted text.
func problemf(kind error, format string, values ...any) error {
	return &problem{kind, fmt.Sprintf(format, values...)}
}
