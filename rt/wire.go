package rt

import "lockstep/io/can"

// wireClock tells on the kernel's clock when a controller saw a frame. The controller's
// stamp lacks the delay of the host, but counts from somewhere and at a rate of its own.
// So the least difference of the two stamps is the distance of the clocks. It may grow by
// a part of 4096 of the time, which is more than two quartz clocks part.
type wireClock struct {
	off  int64 // the kernel's clock less the controller's, ns
	last int64 // the kernel's stamp before, ns since 1970; 0: none yet
}

// maxDelay is how late a host can be to stamp a frame, ns: beyond, the clock was set.
const maxDelay = 10e6

// at is when the frame of a stamp was on the bus, ns since 1970; 0 unknown.
//
//go:nosplit
func (c *wireClock) at(s *can.Stamp) int64 {
	if s.Hard == 0 || s.Soft == 0 {
		return s.Soft
	}
	off := s.Soft - s.Hard
	if most := c.off + (s.Soft-c.last)>>12; c.last != 0 && off > most && off-most < maxDelay {
		off = most
	}
	c.off, c.last = off, s.Soft
	return s.Hard + off
}
