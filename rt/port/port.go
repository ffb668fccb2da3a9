// Package port owns the bench's port on each bus: all that is not the plant's signals. Today it serves
// SAE J1939: it answers requests for parameter groups, and sends and receives messages of more than 8
// bytes. Another protocol of the kind would have its frames and timers here.
//
// A port does not belong to the tick, and the tick never waits for it. On an interface of the host the
// supervisor reads a socket of its own for the port. On a pair and in virtual time the loop passes on
// the frames that are not the plant's (rt.Config.Ports). In virtual time the port steps after each
// tick. Its caller gives it the frames and the time: CLOCK_MONOTONIC in real time, the virtual clock
// otherwise.
//
// # The way of a message
//
//	received  packets -> Port.Receive -> j1939.Transport -> StatusBlock.PostLong -> Loop, at one tick
//	sent      Loop -> StatusBlock.NextPortFrame -> Port.SendLong -> j1939.Transport -> packets
//	request   Port.Receive -> StatusBlock.SendNow -> Loop, at the next tick; or a refusal at once
//
// The loop decodes a received message as it decodes a frame, with the faults, timeouts and counts of its
// message, and enters it in the record with can.FlagLong. A replay decodes it again at the same tick.
//
// # Record
//
// The frames that a port has sent are in the record as frames of the bench that are not the plant's:
// record.Frame.Other and Sent.
package port

import (
	"fmt"
	"sync"

	"lockstep/io/can"
	"lockstep/io/j1939"
	"lockstep/io/sigmap"
	"lockstep/rt"
	"lockstep/rt/bench"
)

// Port is the port on one bus. Only one goroutine uses it, except for TakeSent and Counts.
type Port struct {
	bus     int // index of the bus
	m       *sigmap.Map
	firstTx int // index of the first message of the bus among those of all buses
	status  *rt.StatusBlock

	// Stamp returns the time of a message, ns since 1970; nil in virtual time, in which none has one.
	Stamp func() int64

	transport j1939.Transport
	queue     []queued // frames that the bus has not taken yet

	mu     sync.Mutex // guards the fields below
	sent   []Sent
	counts Counts
}

// queued is a frame to be sent, and the instant at which it became due, ns.
type queued struct {
	frame can.Frame
	due   int64
}

// Sent is a frame that a port has sent.
type Sent struct {
	Bus   int
	At    int64 // instant, ns, on the clock of the port
	Frame can.Frame
}

// maxSent bounds the frames that wait for TakeSent; without a record nobody takes them.
const maxSent = 1 << 12

// Counts counts the work of a port.
type Counts struct {
	Frames   uint64 // frames sent
	Messages j1939.TransportCounts
	Requests uint64 // requests to an address of the bench or to all, except for claims
	Refused  uint64 // requests refused
	WaitMax  int64  // longest time from the instant at which a frame was due until the bus took it, ns
}

// IsNeeded reports whether a bus of a bench needs a port.
func IsNeeded(h *bench.Handover, bus int) bool { return h.Loop.Ports>>bus&1 == 1 }

// New returns the port of a bus.
func New(h *bench.Handover, status *rt.StatusBlock, bus int) *Port {
	p := &Port{bus: bus, m: h.Maps[bus], status: status}
	for _, m := range h.Maps[:bus] {
		p.firstTx += len(m.Tx)
	}
	return p
}

// Receive processes a frame of the bus at an instant, ns; owns reports whether the bench holds an
// address.
func (p *Port) Receive(f *can.Frame, now int64, owns func(address uint8) bool) {
	if owns(j1939.ParseID(f.ID).Source) {
		return // a frame of the bench
	}
	if pgn, ok := j1939.Requested(f); ok && pgn != j1939.PGNClaim {
		p.answer(f, pgn, now, owns)
	}
	p.transport.Receive(f, now, owns)
	p.collect(now)
}

// SendLong sends a message of several frames that the loop has made.
func (p *Port) SendLong(f *can.Frame, now int64) {
	_ = p.transport.Send(j1939.Message{ID: j1939.ParseID(f.ID), Data: f.Data[:f.Len]}, now) // it counts what it refuses
	p.collect(now)
}

// Poll serves the timers of the port at an instant, ns.
func (p *Port) Poll(now int64) {
	p.transport.Poll(now)
	p.collect(now)
}

// collect takes the frames and messages of the transport protocol. A message that the plant does not
// receive is dropped.
func (p *Port) collect(now int64) {
	for _, f := range p.transport.TakeFrames() {
		p.Queue(f, now)
	}
	for _, m := range p.transport.TakeMessages() {
		v := rt.PortFrame{Bus: int64(p.bus), Frame: can.Frame{ID: m.ID.Bits(), Flags: can.FlagLong}}
		v.Frame.Len = uint8(copy(v.Frame.Data[:], m.Data))
		if i := p.m.Find(v.Frame.ID); i < 0 || !p.m.Rx[i].Long {
			continue
		}
		if p.Stamp != nil {
			v.Stamp = p.Stamp()
		}
		p.status.PostLong(&v) // the status block counts what finds no room
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.counts.Messages = p.transport.Counts
}

// answer answers a request. A node answers a request to all only if it supports the group.
func (p *Port) answer(request *can.Frame, pgn uint32, now int64, owns func(address uint8) bool) {
	to := j1939.ParseID(request.ID).Destination
	if to != j1939.Global && !owns(to) {
		return
	}
	supported := false
	for i := range p.m.Tx {
		id := j1939.ParseID(p.m.Tx[i].ID)
		if p.m.Tx[i].ID&can.EFF == 0 || id.PGN != pgn || to != j1939.Global && id.Source != to || !owns(id.Source) {
			continue
		}
		p.status.SendNow(p.firstTx + i)
		supported = true
	}

	refused := !supported && to != j1939.Global
	if refused {
		p.Queue(j1939.Refusal(request, to), now)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.counts.Requests++
	if refused {
		p.counts.Refused++
	}
}

// Queue adds a frame to be sent, due at an instant, ns.
func (p *Port) Queue(f can.Frame, due int64) { p.queue = append(p.queue, queued{f, due}) }

// DropQueue removes the frames that the bus has not taken yet, and the sessions of the transport protocol.
func (p *Port) DropQueue() {
	p.queue, p.transport = p.queue[:0], j1939.Transport{Counts: p.transport.Counts}
}

// Queued returns how many frames the bus has not taken yet.
func (p *Port) Queued() int { return len(p.queue) }

// Flush sends the queued frames in their order, as far as the bus takes them.
func (p *Port) Flush(now int64, send func(*can.Frame) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for ; n < len(p.queue) && send(&p.queue[n].frame); n++ {
		p.counts.Frames++
		p.counts.WaitMax = max(p.counts.WaitMax, now-p.queue[n].due)
		if len(p.sent) < maxSent {
			p.sent = append(p.sent, Sent{p.bus, now, p.queue[n].frame})
		}
	}
	p.queue = append(p.queue[:0], p.queue[n:]...)
}

// TakeSent removes and returns the frames sent since the last call, in their order.
func (p *Port) TakeSent() []Sent {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := p.sent
	p.sent = nil
	return list
}

// String returns the counts as a line of the report; "" if the port has done nothing.
func (c Counts) String() string {
	if m := c.Messages; c.Frames == 0 && c.Requests == 0 && m.Received+m.Broken == 0 {
		return ""
	}
	return fmt.Sprintf("%d frames sent, each within %.1f ms; %d requests, %d refused; messages of several frames: "+
		"%d received, %d sent, %d broken, %d replaced", c.Frames, float64(c.WaitMax)/1e6, c.Requests, c.Refused,
		c.Messages.Received, c.Messages.Sent, c.Messages.Broken, c.Messages.Replaced)
}

// Counts returns the counts so far.
func (p *Port) Counts() Counts {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.counts
}
