package rt

import (
	"sync/atomic"
	"unsafe"

	"lockstep/io/can"
)

// Frames between the loop and the supervisor's ports (package port) cross the status block in two
// queues. A frame with can.FlagLong is a message of several frames.
type portQueues struct {
	toLoop frameQueue // messages received, for the plant
	toPort frameQueue // messages to be sent, and frames received that are not the plant's

	sendNow [MaxTx / 64]atomic.Uint64 // bit i: send message i of Map.Tx, bus after bus, at the next tick
}

// portSlots is how many frames a queue holds; maxLong bounds how many messages a tick takes.
const (
	portSlots = 256
	maxLong   = 16
)

// PortFrame is a frame of a queue.
type PortFrame struct {
	Bus    int32
	Answer bool  // of a message to be sent: only a request has asked for it
	Stamp  int64 // arrival, ns since 1970; 0: unknown
	Frame  can.Frame
}

type portWords [unsafe.Sizeof(PortFrame{}) / 8]uint64

// frameQueue has one writer and one reader. A frame that finds no room is dropped and counted.
type frameQueue struct {
	head, tail, lost atomic.Uint64 // frames written, read and dropped
	slots            [portSlots]portWords
}

// push appends a frame; false: there is no room.
//
//go:nosplit
func (q *frameQueue) push(f *PortFrame) bool {
	at := q.head.Load()
	if at-q.tail.Load() >= portSlots {
		q.lost.Add(1)
		return false
	}
	q.slots[at%portSlots] = *(*portWords)(unsafe.Pointer(f))
	q.head.Store(at + 1)
	return true
}

// pop removes the oldest frame; false: there is none.
//
//go:nosplit
func (q *frameQueue) pop(f *PortFrame) bool {
	at := q.tail.Load()
	if at == q.head.Load() {
		return false
	}
	*(*portWords)(unsafe.Pointer(f)) = q.slots[at%portSlots]
	q.tail.Store(at + 1)
	return true
}

// PostLong hands a message of several frames to the loop, which decodes it at the start of one tick;
// false: the loop has not taken the messages before. Only one goroutine of one process may post.
func (p *StatusBlock) PostLong(f *PortFrame) bool { return p.ports.toLoop.push(f) }

// NextPortFrame reads the oldest frame for a port; false: there is none.
func (p *StatusBlock) NextPortFrame(f *PortFrame) bool { return p.ports.toPort.pop(f) }

// PortLost returns how many frames found no room in a queue.
func (p *StatusBlock) PortLost() uint64 {
	return p.ports.toLoop.lost.Load() + p.ports.toPort.lost.Load()
}

// SendNow asks the loop to send message i of Map.Tx, bus after bus, at its next tick.
func (p *StatusBlock) SendNow(i int) { p.ports.sendNow[i/64].Or(1 << (i % 64)) }

// takeSendNow reports whether message i was asked for, once.
//
//go:nosplit
func (p *StatusBlock) takeSendNow(i int) bool {
	w, bit := &p.ports.sendNow[i/64], uint64(1)<<(i%64)
	if w.Load()&bit == 0 {
		return false
	}
	w.And(^bit)
	return true
}

// receiveLong decodes the messages of several frames that the ports have assembled before grid point k.
//
//go:nosplit
func (l *Loop) receiveLong(k int64) {
	for range maxLong {
		if !l.status.ports.toLoop.pop(&l.portFrame) {
			return
		}
		b := int(l.portFrame.Bus)
		if uint(b) >= uint(len(l.buses)) || l.portFrame.Frame.Len > 64 {
			continue
		}
		l.frames[0], l.stamps[0] = l.portFrame.Frame, can.Stamp{Soft: l.portFrame.Stamp}
		l.receiveFrame(b, 0, k)
	}
}

// forward hands a frame that is not the plant's to the port of its bus; false: the bus has no port, or its port does
// not take the frame.
//
//go:nosplit
func (l *Loop) forward(b, at int) bool {
	if l.cfg.Ports>>b&1 == 0 || len(l.cfg.Taken) > 0 && len(l.cfg.Taken[b]) > 0 && !l.matches(l.cfg.Taken[b], at) {
		return false
	}
	l.handOver(b, at)
	return true
}

// handOver hands a frame to the port of its bus.
//
//go:nosplit
func (l *Loop) handOver(b, at int) {
	l.portFrame.Bus, l.portFrame.Stamp, l.portFrame.Frame = int32(b), l.stamps[at].Soft, l.frames[at]
	l.status.ports.toPort.push(&l.portFrame)
}

// copyToTester hands a frame of the plant to the port of its bus, too, if the tester waits for frames like it.
//
//go:nosplit
func (l *Loop) copyToTester(b, at int) {
	if b < len(l.cfg.Tested) && l.frames[at].Flags&can.FlagLong == 0 && l.matches(l.cfg.Tested[b], at) {
		l.handOver(b, at)
	}
}

// matches reports whether one of the filters passes a frame.
//
//go:nosplit
func (l *Loop) matches(list []can.Filter, at int) bool {
	for _, f := range list {
		if l.frames[at].ID&f.Mask == f.ID&f.Mask {
			return true
		}
	}
	return false
}

// put sends the frame to its bus, or a message of several frames to the port; false: it was not taken.
//
//go:nosplit
func (l *Loop) put(b int) bool {
	if l.frame.Flags&can.FlagLong == 0 {
		return l.buses[b].Send(&l.frame)
	}
	l.portFrame.Bus, l.portFrame.Stamp, l.portFrame.Frame = int32(b), 0, l.frame
	l.portFrame.Answer = l.onlyAsked
	return l.status.ports.toPort.push(&l.portFrame)
}

// supplyQueue carries the last changes of the supply from the loop to the supervisor.
type supplyQueue struct {
	n    atomic.Uint64     // changes so far
	list [16]atomic.Uint64 // network.Supply by number of the change
}

// push enters a change.
//
//go:nosplit
func (q *supplyQueue) push(value uint16) {
	n := q.n.Load()
	q.list[n%uint64(len(q.list))].Store(uint64(value))
	q.n.Store(n + 1)
}

// SupplyChanges returns the number of changes of the supply so far.
func (p *StatusBlock) SupplyChanges() uint64 { return p.supply.n.Load() }

// NextSupply returns change n of the supply, from 0, as a network.Supply; false: there is none so far. A reader that
// is more than 16 changes behind gets a later one.
func (p *StatusBlock) NextSupply(n uint64) (supply uint16, ok bool) {
	if n >= p.supply.n.Load() {
		return 0, false
	}
	return uint16(p.supply.list[n%uint64(len(p.supply.list))].Load()), true
}
