package port

import (
	"fmt"
	"slices"
	"sync/atomic"

	"lockstep/io/can"
	"lockstep/io/sigmap"
)

// Delay measures how long the frames of a port hold up the frames of the plant on an interface. Both are in
// one queue of the driver, first in, first out; the kernel stamps each frame when the controller has sent it.
//
// A frame of the plant is due at a grid point. Frames of the port that the bus carries between the grid point
// and the frame have delayed it, at most until the end of the last of them, and by no more than their bits
// take.
type Delay struct {
	Counts DelayCounts

	m        *sigmap.Map
	phases   []atomic.Uint64 // of m.Tx, ticks, as the loop has them
	periodNs int64
	rate     float64    // bit/s; 0: not known
	sent     []portSent // frames of the port on the bus, the last maxPortSent, by rising end
}

// DelayCounts are the results of a Delay.
type DelayCounts struct {
	Frames uint64 // frames of the plant on the bus
	Behind uint64 // of these, frames that came after frames of the port
	MaxNs  int64  // longest delay of one of these, ns
}

// portSent is a frame of the port on the bus.
type portSent struct {
	end  int64 // ns
	bits int   // most bits of its kind of frame
}

// maxPortSent is how many frames of the port can be ahead of a frame of the plant: a driver's queue.
const maxPortSent = 256

// NewDelay returns the Delay of a bus with a map, on a grid, at a bit rate; 0: not known. phases are those of the
// messages of the map in the status block: a switch-on of the ignition moves them.
func NewDelay(m *sigmap.Map, phases []atomic.Uint64, periodNs int64, rate float64) *Delay {
	return &Delay{m: m, phases: phases, periodNs: periodNs, rate: rate}
}

// Note notes a frame of the bench that was on the bus at an instant, ns after the first grid point. Instants
// rise.
func (d *Delay) Note(f *can.Frame, at int64) {
	i := slices.IndexFunc(d.m.Tx, func(t sigmap.Tx) bool { return t.ID == f.ID && t.Flags&can.FlagLong == 0 })
	if i < 0 {
		d.sent = append(d.sent, portSent{at, bitsOf(f)})
		d.sent = d.sent[max(0, len(d.sent)-maxPortSent):]
		return
	}

	d.Counts.Frames++
	due := d.due(i, at)
	last, bits := due, 0
	for _, p := range d.sent {
		if p.end > due {
			last, bits = p.end, bits+p.bits
		}
	}
	if bits == 0 {
		return
	}
	delay := last - due
	if d.rate > 0 {
		delay = min(delay, int64(float64(bits)/d.rate*1e9))
	}
	d.Counts.Behind++
	d.Counts.MaxNs = max(d.Counts.MaxNs, delay)
}

// due returns the grid point, ns, for which message i was sent that was on the bus at an instant.
func (d *Delay) due(i int, at int64) int64 {
	k, t := at/d.periodNs, &d.m.Tx[i]
	if t.Send == sigmap.Cyclic {
		k -= ((k-int64(d.phases[i].Load()))%t.CycleTicks + t.CycleTicks) % t.CycleTicks
	}
	return k * d.periodNs
}

// bitsOf returns the most bits that a frame of the port takes on the bus.
func bitsOf(f *can.Frame) int {
	t := sigmap.Tx{ID: f.ID, Len: int(f.Len)}
	return t.MaxBits()
}

// String returns the results as a part of a line of the report; "" if nothing was measured.
func (c DelayCounts) String() string {
	if c.Frames == 0 {
		return ""
	}
	return fmt.Sprintf("; of %d frames of the plant on the bus %d came after frames of the port, "+
		"delayed by at most %.2f ms", c.Frames, c.Behind, float64(c.MaxNs)/1e6)
}
