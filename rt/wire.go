package rt

import "lockstep/io/can"

// wireClock estimates on the kernel's clock when a frame was on the bus. The controller's stamp has
// no delay by the host, but its clock has another origin and rate. The smallest difference of the
// two stamps is the offset of the clocks. It may grow by 1/4096 of the time passed, which is more
// than the drift between two quartz clocks.
type wireClock struct {
	offset int64 // kernel clock minus controller clock, ns
	last   int64 // previous stamp of the kernel, ns since 1970; 0: none yet
}

// maxDelay is the largest delay of a host's stamp, ns; a larger difference means that a clock was
// set.
const maxDelay = 10e6

// busTime returns when the frame with this stamp was on the bus, ns since 1970; 0: unknown.
//
//go:nosplit
func (c *wireClock) busTime(s *can.Stamp) int64 {
	if s.Hard == 0 || s.Soft == 0 {
		return s.Soft
	}
	off := s.Soft - s.Hard
	if most := c.offset + (s.Soft-c.last)>>12; c.last != 0 && off > most && off-most < maxDelay {
		off = most
	}
	c.offset, c.last = off, s.Soft
	return s.Hard + off
}
