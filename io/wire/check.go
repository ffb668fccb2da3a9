package wire

// Counts are those of the images of a box.
type Counts struct {
	Received  uint64 `json:"received"`  // images accepted
	Lost      uint64 `json:"lost"`      // images missing by the counter, without those that came later
	Reordered uint64 `json:"reordered"` // images older than one received before; dropped
	Duplicate uint64 `json:"duplicate"` // images received again; dropped
	Foreign   uint64 `json:"foreign"`   // datagrams of another sender, mark, version or size; dropped
	Delayed   uint64 `json:"delayed"`   // images accepted that came later than Check.LimitNs after the fastest one
	Sent      uint64 `json:"sent"`      // images sent
}

// Check judges the images of a box by their counter and their time. The counter of a sender rises by 1 with each
// image. A sender that starts begins with 0, or with a number far above that of any sender before it.
type Check struct {
	Counts
	LimitNs int64 // delay from which an image is delayed, ns; 0: none is

	seen    bool
	first   uint64 // counter of the first image of the sender
	last    uint64 // counter of the last image
	past    uint64 // bit n: the image n before the last one was received
	offset  int64  // smallest difference between the clocks: arrival minus the box's time, ns
	arrived int64  // arrival of the last image, ns; 0: not known
	old     uint64 // counter of the last image, if it was behind
	run     int    // images in a row that were behind, each one after the other
	lost    uint64 // Lost at the begin of the run
}

// window is the largest step back of a counter that is an image out of order; a larger one is a sender that
// has started anew. startWindow is that of an image with counter 0.
const (
	window      = 1000
	startWindow = 8
	restartRun  = 8 // images in a row that were behind, with rising counters: the sender has started anew
)

// Accept judges an image that came in at an instant, ns on a clock of the host; 0: not known. false: it is to be
// dropped.
//
//go:nosplit
func (c *Check) Accept(m *Image, arrival int64) bool {
	ahead := m.Counter - c.last
	switch back := -ahead; {
	case c.seen && back < window && (m.Counter > 0 || back < startWindow) && !c.hasRestarted(m.Counter):
		c.countOld(m.Counter, back)
		return false
	case c.seen && ahead-1 < window:
		c.Lost += ahead - 1
		c.past = c.past<<ahead | 1
	default:
		c.first, c.past, c.arrived = m.Counter, 1, 0 // another sender has another clock
	}
	c.seen, c.last, c.run = true, m.Counter, 0
	c.Received++
	if arrival != 0 {
		c.checkDelay(arrival-m.Tick, arrival)
	}
	return true
}

// hasRestarted reports whether an image that is behind the last one is that of a sender that has started anew: the
// network reorders an image, but not one after the other.
//
//go:nosplit
func (c *Check) hasRestarted(counter uint64) bool {
	if c.run > 0 && counter == c.old+1 {
		c.run++
	} else {
		c.run, c.lost = 1, c.Lost
	}
	c.old = counter
	if c.run < restartRun {
		return false
	}
	c.Lost = c.lost // none of them was one that had been lost
	return true
}

// countOld counts an image whose counter is behind the last one.
//
//go:nosplit
func (c *Check) countOld(counter, back uint64) {
	switch bit := uint64(1) << back; {
	case back >= 64:
		c.Reordered++
	case c.past&bit != 0:
		c.Duplicate++
	default:
		c.past |= bit
		c.Reordered++
		if counter > c.first {
			c.Lost-- // it was counted when a later one came
		}
	}
}

// checkDelay counts an image whose difference of clocks is larger than the smallest one by more than LimitNs. The
// smallest difference may grow by 1/4096 of the time passed, which is more than two quartz clocks drift.
//
//go:nosplit
func (c *Check) checkDelay(offset, arrival int64) {
	least := c.offset + max(0, arrival-c.arrived)>>12
	if c.arrived == 0 || offset < least {
		least = offset
	} else if c.LimitNs > 0 && offset-least > c.LimitNs {
		c.Delayed++
	}
	c.offset, c.arrived = least, arrival
}
