// Package port owns the bench's port on each bus: all that is not the plant's signals. It serves SAE J1939:
// it answers requests for parameter groups, and sends and receives messages of more than 8 bytes. And it has
// the tester of the unit on the bus (package diagnosis).
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
// # Delay
//
// The frames of a port and those of the plant share the queue of an interface. A Delay measures what this
// costs the plant's frames.
//
// # Record
//
// The frames that a port has sent are in the record as frames of the bench that are not the plant's:
// record.Frame.Other and Sent.
package port

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"lockstep/io/can"
	"lockstep/io/j1939"
	"lockstep/io/sigmap"
	"lockstep/rt"
	"lockstep/rt/bench"
	"lockstep/rt/diagnosis"
)

// Port is the port on one bus. Only one goroutine uses it, except for TakeSent and Counts.
type Port struct {
	bus     int // index of the bus
	m       *sigmap.Map
	firstTx int // index of the first message of the bus among those of all buses
	status  *rt.StatusBlock

	// Stamp returns the time of a message, ns since 1970; nil in virtual time, in which none has one.
	Stamp func() int64

	// Tester has the jobs of the diagnosis of the unit; nil: the bus has no diagnosis file.
	Tester *diagnosis.Station

	silent    bool              // the tester sends nothing more
	agenda    *diagnosis.Agenda // of the scenario; nil: none
	transport j1939.Transport
	queue     []queued        // frames that the bus has not taken yet
	asking    map[int][]uint8 // nodes that wait for message i of Map.Tx, of several frames

	mu       sync.Mutex // guards the fields below
	outcomes []diagnosis.Result
	sent     []Sent
	counts   Counts
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

// maxQueued bounds the frames that wait for the bus: more than all sessions of the transport protocol make.
const maxQueued = 1 << 10

// maxSent bounds the frames that wait for TakeSent; without a record nobody takes them.
const maxSent = 1 << 12

// Counts counts the work of a port.
type Counts struct {
	Frames   uint64 // frames sent
	Dropped  uint64 // frames that the bus did not take
	Messages j1939.TransportCounts
	Requests uint64 // requests to an address of the bench or to all, except for claims
	Refused  uint64 // requests refused
	WaitMax  int64  // longest time from the instant at which a frame was due until the bus took it, ns
	Burst    int    // most bits that the bus took at once
	Delay    DelayCounts
}

// IsNeeded reports whether a bus of a bench needs a port.
func IsNeeded(h *bench.Handover, bus int) bool { return h.Loop.Ports>>bus&1 == 1 }

// New returns the port of a bus.
func New(h *bench.Handover, status *rt.StatusBlock, bus int) (*Port, error) {
	p := &Port{bus: bus, m: h.Maps[bus], status: status, asking: map[int][]uint8{}}
	for _, m := range h.Maps[:bus] {
		p.firstTx += len(m.Tx)
	}
	s, err := h.Bench.ReadDiagnosis(bus)
	if s != nil {
		p.Tester, err = diagnosis.NewStation(s)
	}
	return p, err
}

// Phases returns the phases, ticks, of the messages that the bench sends on the bus, as the loop has them.
func (p *Port) Phases() []atomic.Uint64 { return p.status.TxPhase[p.firstTx:][:len(p.m.Tx)] }

// UseAgenda sets what a scenario asks of the unit.
func (p *Port) UseAgenda(a *diagnosis.Agenda) { p.agenda = a }

// Receive processes a frame of the bus at an instant, ns; owns reports whether the bench holds an
// address.
func (p *Port) Receive(f *can.Frame, now int64, owns func(address uint8) bool) {
	if p.Tester != nil && p.Tester.Receive(f, now) || f.ID&can.EFF == 0 {
		return
	}
	if owns(j1939.ParseID(f.ID).Source) {
		return // a frame of the bench
	}
	if pgn, ok := j1939.Requested(f); ok && pgn != j1939.PGNClaim {
		p.answer(f, pgn, now, owns)
	}
	p.transport.Receive(f, now, func(address uint8) bool { // what goes to the tester is not for the bench
		return owns(address) && (p.Tester == nil || !p.Tester.Owns(address))
	})
	p.collect(now)
}

// SendLong sends a message of several frames that the loop has made: to its destination, and to each node
// that has requested it from one address, SAE J1939-21, 5.4.2. A message that only answers a request goes to
// the nodes that wait for it.
func (p *Port) SendLong(f *rt.PortFrame, now int64) {
	i := p.txIndex(f.Frame.ID)
	if i < 0 {
		return
	}
	m := j1939.Message{ID: j1939.ParseID(f.Frame.ID), Data: p.m.Tx[i].Excerpt.Whole(f.Frame.Data[:f.Frame.Len])}
	to := p.asking[i]
	delete(p.asking, i)
	if !f.Answer && !slices.Contains(to, m.ID.Destination) {
		to = append(to, m.ID.Destination)
	}
	for _, m.ID.Destination = range to {
		_ = p.transport.Send(m, now) // it counts what it refuses
	}
	p.collect(now)
}

// txIndex returns the index of a sent message of several frames, -1 if there is none.
func (p *Port) txIndex(id uint32) int {
	for i := range p.m.Tx {
		if t := &p.m.Tx[i]; t.ID == id && t.Flags&can.FlagLong != 0 {
			return i
		}
	}
	return -1
}

// Poll serves the timers of the port at an instant, ns.
func (p *Port) Poll(now int64) {
	p.transport.Poll(now)
	p.collect(now)
	if p.Tester != nil {
		tick := int64(p.status.Ticks.Load())
		p.agenda.Begin(p.bus, p.Tester, tick)
		p.Tester.Step(now)
		p.noteOutcomes(tick)
	}
}

// SilenceTester ends the jobs of the tester, each with the error why. The tester sends nothing from then on. Called
// again, it ends the jobs that were added since.
func (p *Port) SilenceTester(now int64, why error) {
	if p.silent = true; p.Tester != nil {
		p.Tester.Stop(now, why)
		p.noteOutcomes(int64(p.status.Ticks.Load()))
	}
}

// noteOutcomes takes the outcomes of the tester.
func (p *Port) noteOutcomes(tick int64) {
	list := p.Tester.Take()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, o := range list {
		if len(p.outcomes) < maxSent {
			p.outcomes = append(p.outcomes, diagnosis.Result{Bus: p.bus, Tick: tick, Outcome: o})
		}
	}
}

// TakeOutcomes removes and returns the outcomes of the diagnosis since the last call, in their order.
func (p *Port) TakeOutcomes() []diagnosis.Result {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := p.outcomes
	p.outcomes = nil
	return list
}

// collect takes the frames and messages of the transport protocol. A message that the plant does not
// receive is dropped.
func (p *Port) collect(now int64) {
	for _, f := range p.transport.TakeFrames() {
		p.Queue(f, now)
	}
	for _, m := range p.transport.TakeMessages() {
		v := rt.PortFrame{Bus: int32(p.bus), Frame: can.Frame{ID: m.ID.Bits(), Flags: can.FlagLong}}
		i := p.m.Find(v.Frame.ID)
		if i < 0 || !p.m.Rx[i].Long {
			continue
		}
		v.Frame.Len = uint8(p.m.Rx[i].Excerpt.Cut(&v.Frame.Data, m.Data))
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
	from, to := j1939.ParseID(request.ID).Source, j1939.ParseID(request.ID).Destination
	if to != j1939.Global && !owns(to) {
		return
	}
	supported := false
	for i := range p.m.Tx {
		id := j1939.ParseID(p.m.Tx[i].ID)
		if p.m.Tx[i].ID&can.EFF == 0 || id.PGN != pgn || to != j1939.Global && id.Source != to || !owns(id.Source) {
			continue
		}
		if p.m.Tx[i].Flags&can.FlagLong != 0 {
			if to == j1939.Global {
				from = id.Destination
			}
			if !slices.Contains(p.asking[i], from) {
				p.asking[i] = append(p.asking[i], from)
			}
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

// Queue adds a frame to be sent, due at an instant, ns. A bus that takes nothing loses frames: they are
// counted.
func (p *Port) Queue(f can.Frame, due int64) {
	if len(p.queue) < maxQueued {
		p.queue = append(p.queue, queued{f, due})
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.counts.Dropped++
}

// DropQueue removes the frames that the bus has not taken yet, and the sessions of the transport protocol.
func (p *Port) DropQueue() {
	p.queue, p.transport = p.queue[:0], j1939.Transport{Counts: p.transport.Counts}
	clear(p.asking)
}

// Queued returns how many frames the bus has not taken yet.
func (p *Port) Queued() int { return len(p.queue) }

// Flush sends the queued frames in their order, as far as the bus takes them, and returns how many.
func (p *Port) Flush(now int64, send func(*can.Frame) bool) (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	bits := 0
	for ; n < len(p.queue) && send(&p.queue[n].frame); n++ {
		p.counts.Frames++
		bits += bitsOf(&p.queue[n].frame)
		p.counts.WaitMax = max(p.counts.WaitMax, now-p.queue[n].due)
		if len(p.sent) < maxSent {
			p.sent = append(p.sent, Sent{p.bus, now, p.queue[n].frame})
		}
	}
	p.queue = append(p.queue[:0], p.queue[n:]...)
	if p.Tester != nil && !p.silent && len(p.queue) == 0 {
		bits += p.flushTester(now, send)
	}
	p.counts.Burst = max(p.counts.Burst, bits)
	return n
}

// maxTesterFrames bounds the frames of the tester that one call of Flush sends: they share the queue of the interface
// with the frames of the tick, and a queue of a CAN interface has 10 places by default (txqueuelen).
const maxTesterFrames = 4

// flushTester sends the frames of the tester as far as the bus takes them, and returns their bits.
func (p *Port) flushTester(now int64, send func(*can.Frame) bool) (bits int) {
	for range maxTesterFrames {
		f, ok := p.Tester.Next(now)
		if !ok || !send(&f) {
			break
		}
		p.Tester.Sent(now)
		p.counts.Frames++
		bits += bitsOf(&f)
		if len(p.sent) < maxSent {
			p.sent = append(p.sent, Sent{p.bus, now, f})
		}
	}
	return bits
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
	if m := c.Messages; c.Frames+c.Dropped == 0 && c.Requests == 0 && m.Received+m.Broken == 0 {
		return ""
	}
	text := ""
	if c.Dropped > 0 {
		text = fmt.Sprintf(", %d not taken by the bus", c.Dropped)
	}
	return fmt.Sprintf("%d frames sent, each within %.1f ms, at most %d bits at once%s; %d requests, %d refused; messages of several frames: "+
		"%d received, %d sent, %d broken, %d replaced", c.Frames, float64(c.WaitMax)/1e6, c.Burst, text, c.Requests, c.Refused,
		c.Messages.Received, c.Messages.Sent, c.Messages.Broken, c.Messages.Replaced) + c.Delay.String()
}

// Counts returns the counts so far.
func (p *Port) Counts() Counts {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.counts
}
