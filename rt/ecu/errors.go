package ecu

import (
	"errors"
	"fmt"
)

// What the host may lack; the errors of Open and Run wrap them.
var (
	ErrNoCAN       = errors.New("this kernel has no CAN sockets (AF_CAN)")
	ErrNoInterface = errors.New("no such CAN interface")
	ErrDown        = errors.New("the CAN interface is down")
)

// What can be wrong with the name of a control unit or with its settings.
var (
	ErrUnknown   = errors.New("no such control unit")
	ErrSetting   = errors.New("not NAME=VALUE")
	ErrParameter = errors.New("no such parameter, or set twice")
	ErrRange     = errors.New("a value out of its range")
)

// problem is an error of a kind, with the values at hand.
type problem struct {
	kind error // one of the errors above
	text string
}

func (p *problem) Error() string { return p.text }
func (p *problem) Unwrap() error { return p.kind }

// problemf returns a problem with a formatted text.
func problemf(kind error, format string, values ...any) error {
	return &problem{kind, fmt.Sprintf(format, values...)}
}
