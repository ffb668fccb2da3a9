package j1939

import (
	"fmt"
	"slices"

	"lockstep/io/can"
)

// Message is a message of more than 8 bytes.
type Message struct {
	ID   ID // of a received message, the priority is 6: its packets do not have it
	Data []byte
}

// Sizes of the transport protocol: SAE J1939-21, 5.10. The number of sessions is our own limit.
const (
	MaxMessage  = 1785 // bytes, 255 packets
	packetSize  = 7    // bytes
	maxWindow   = 16   // packets for one "clear to send"
	maxRepeats  = 2    // requests in a row for packets that did not come
	maxSessions = 32   // messages received at once, and messages to be sent
)

// PacketInterval and the other times of the transport protocol, ns: SAE J1939-21, 5.10.2.4 and appendix C. A receiver that announced
// to all gets packets 50 to 200 ms apart.
const (
	PacketInterval = 60e6   // between two packets to all
	packetTimeout  = 750e6  // T1: from a packet to the next
	dataTimeout    = 1250e6 // T2: from "clear to send" to the packet
	answerTimeout  = 1250e6 // T3: from the last packet to its answer
	holdTimeout    = 1050e6 // T4: from "hold the connection" to the next "clear to send"
)

// The control bytes of connection management.
const (
	controlRTS   = 16  // request to send
	controlCTS   = 17  // clear to send
	controlEnd   = 19  // end of message acknowledged
	controlBAM   = 32  // broadcast announce
	controlAbort = 255 // connection abort
)

// Reasons of an abort.
const (
	abortBusy    = 1 // a session with that node is open
	abortRoom    = 2 // no room for the message
	abortTimeout = 3
	abortRepeats = 5 // packets were requested too often
)

// Transport sends and receives messages of more than 8 bytes for the addresses of a bench. It has no
// clock and no bus: instants are ns on any one clock. After each call of Receive, Send or Poll the caller
// sends the frames of TakeFrames and takes the messages of TakeMessages.
//
//	to all      announce (BAM), packets 60 ms apart; a lost packet loses the message
//	to a node   request to send, "clear to send" for up to 16 packets, packets, acknowledgement;
//	            a receiver requests lost packets twice, then it aborts
//
// A sender has one session with each receiver at a time, and one to all. A message that waits is replaced
// by a newer one with the same ID.
type Transport struct {
	Counts TransportCounts

	receiving []*incoming
	sending   []*outgoing
	frames    []can.Frame
	messages  []Message
}

// TransportCounts counts the messages of a Transport.
type TransportCounts struct {
	Received uint64 // messages received
	Sent     uint64 // messages sent, and acknowledged if they went to one node
	Broken   uint64 // messages of either direction that a loss, a timeout or an abort has ended
	Replaced uint64 // messages that a newer one replaced before they were sent
}

// session is what a message in either direction has.
type session struct {
	from, to uint8
	pgn      uint32
	size     int   // bytes
	next     int   // number of the next packet, from 1
	window   int   // last packet that may be sent now; to all: the last one
	repeats  int   // requests for lost packets
	deadline int64 // ns: the session is broken, or the next packet to all is due
}

// incoming is a message that is received.
type incoming struct {
	session
	limit int // packets that the sender accepts for one "clear to send"
	data  []byte
}

// outgoing is a message that is sent.
type outgoing struct {
	session
	priority uint8
	open     bool // announced; else it waits
	data     []byte
}

// Packets returns the number of packets of a message of n bytes.
func Packets(n int) int { return (n + packetSize - 1) / packetSize }

func (s *session) packets() int { return Packets(s.size) }

// TakeFrames removes and returns the frames to be sent.
func (t *Transport) TakeFrames() []can.Frame {
	list := t.frames
	t.frames = nil
	return list
}

// TakeMessages removes and returns the messages received.
func (t *Transport) TakeMessages() []Message {
	list := t.messages
	t.messages = nil
	return list
}

// Send sends a message, or lets it wait until the session before is over. A directed group goes to the
// destination of its ID, any other one to all.
func (t *Transport) Send(m Message, now int64) error {
	if n := len(m.Data); n <= 8 || n > MaxMessage {
		return fmt.Errorf("j1939: a message of %d bytes; the transport protocol carries 9 to %d", n, MaxMessage)
	}
	o := &outgoing{priority: m.ID.Priority, data: slices.Clone(m.Data)}
	o.session = session{from: m.ID.Source, to: m.ID.Destination, pgn: m.ID.PGN, size: len(m.Data), next: 1}
	i := slices.IndexFunc(t.sending, func(w *outgoing) bool {
		return !w.open && w.from == o.from && w.to == o.to && w.pgn == o.pgn
	})
	switch {
	case i >= 0:
		t.sending[i] = o
		t.Counts.Replaced++
	case len(t.sending) == maxSessions:
		t.Counts.Broken++
		return fmt.Errorf("j1939: %d messages wait to be sent already", maxSessions)
	default:
		t.sending = append(t.sending, o)
	}
	t.openNext(now)
	return nil
}

// openNext opens the sessions of messages that wait for no other one.
func (t *Transport) openNext(now int64) {
	for i, o := range t.sending {
		busy := func(w *outgoing) bool { return w.from == o.from && w.to == o.to }
		if o.open || slices.ContainsFunc(t.sending[:i], busy) {
			continue
		}
		o.open = true
		size, n := len(o.data), o.packets()
		if o.to == Global {
			o.window, o.deadline = n, now+PacketInterval
			t.connection(o.from, o.to, o.pgn, controlBAM, byte(size), byte(size>>8), byte(n), 0xFF)
		} else {
			o.deadline = now + answerTimeout
			t.connection(o.from, o.to, o.pgn, controlRTS, byte(size), byte(size>>8), byte(n), maxWindow)
		}
	}
}

// connection adds a frame of connection management.
func (t *Transport) connection(from, to uint8, pgn uint32, head ...byte) {
	f := can.Frame{ID: ID{Priority: 7, PGN: PGNConnection, Destination: to, Source: from}.Bits(), Len: 8}
	n := copy(f.Data[:], head)
	for ; n < 5; n++ {
		f.Data[n] = 0xFF
	}
	f.Data[5], f.Data[6], f.Data[7] = byte(pgn), byte(pgn>>8), byte(pgn>>16)
	t.frames = append(t.frames, f)
}

// Receive processes a frame of the bus; owns reports whether the bench holds an address.
func (t *Transport) Receive(f *can.Frame, now int64, owns func(address uint8) bool) {
	id := ParseID(f.ID)
	if !isData(f) || f.Len != 8 || id.Destination != Global && !owns(id.Destination) {
		return
	}
	switch id.PGN {
	case PGNConnection:
		t.manage(f.Data[:8], id.Source, id.Destination, now)
	case PGNPacket:
		t.addPacket(f.Data[:8], id.Source, id.Destination, now)
	}
	t.openNext(now)
}

// manage processes a frame of connection management.
func (t *Transport) manage(b []byte, from, to uint8, now int64) {
	pgn := pgnAt(b[5:])
	out := slices.IndexFunc(t.sending, func(o *outgoing) bool { return o.open && o.from == to && o.to == from && o.pgn == pgn })
	switch control := b[0]; {
	case control == controlBAM && to == Global, control == controlRTS && to != Global:
		t.accept(b, session{from: from, to: to, pgn: pgn, next: 1, size: int(b[1]) | int(b[2])<<8}, now)
	case control == controlAbort && to != Global:
		if i := t.incoming(from, to); i >= 0 && t.receiving[i].pgn == pgn {
			t.breakIncoming(i)
		}
		if out >= 0 {
			t.breakOutgoing(out)
		}
	case out < 0 || to == Global:
	case control == controlCTS:
		t.clearToSend(out, int(b[1]), int(b[2]), now)
	case control == controlEnd && t.sending[out].next > t.sending[out].packets():
		t.Counts.Sent++
		t.sending = slices.Delete(t.sending, out, out+1)
	}
}

// incoming returns the index of the message that a node sends to an address, -1 if there is none.
func (t *Transport) incoming(from, to uint8) int {
	return slices.IndexFunc(t.receiving, func(s *incoming) bool { return s.from == from && s.to == to })
}

// accept opens the session of an announced message.
func (t *Transport) accept(b []byte, s session, now int64) {
	abort := func(reason byte) {
		if t.Counts.Broken++; s.to != Global {
			t.connection(s.to, s.from, s.pgn, controlAbort, reason)
		}
	}
	i := t.incoming(s.from, s.to)
	switch {
	case s.size <= 8 || s.size > MaxMessage || s.packets() != int(b[3]):
		abort(abortRoom)
		return
	case i >= 0 && s.to != Global && t.receiving[i].pgn != s.pgn:
		abort(abortBusy)
		return
	case i >= 0:
		t.breakIncoming(i) // the sender begins again
	case len(t.receiving) == maxSessions:
		abort(abortRoom)
		return
	}

	v := &incoming{session: s, limit: max(1, min(maxWindow, int(b[4]))), data: make([]byte, s.packets()*packetSize)}
	t.receiving = append(t.receiving, v)
	if s.to == Global {
		v.window, v.deadline = v.packets(), now+packetTimeout
		return
	}
	t.requestPackets(v, now)
}

// abortFrom aborts the message that a node sends to an address of the bench.
func (t *Transport) abortFrom(from, to uint8) {
	if i := t.incoming(from, to); i >= 0 && to != Global {
		t.connection(to, from, t.receiving[i].pgn, controlAbort, abortTimeout)
		t.breakIncoming(i)
	}
}

// requestPackets sends "clear to send" for the next packets.
func (t *Transport) requestPackets(s *incoming, now int64) {
	n := min(s.limit, s.packets()-s.next+1)
	s.window, s.deadline = s.next+n-1, now+dataTimeout
	t.connection(s.to, s.from, s.pgn, controlCTS, byte(n), byte(s.next))
}

// requestAgain requests packets that did not come, or aborts session i; false: it has aborted.
func (t *Transport) requestAgain(i int, reason byte, now int64) bool {
	s := t.receiving[i]
	if s.repeats++; s.repeats > maxRepeats {
		t.connection(s.to, s.from, s.pgn, controlAbort, reason)
		t.breakIncoming(i)
		return false
	}
	t.requestPackets(s, now)
	return true
}

// addPacket adds a packet to its message.
func (t *Transport) addPacket(b []byte, from, to uint8, now int64) {
	i := t.incoming(from, to)
	if i < 0 {
		return
	}
	s, number := t.receiving[i], int(b[0])
	switch {
	case number > s.next && to == Global:
		t.breakIncoming(i)
		return
	case number > s.next && number >= s.window:
		t.requestAgain(i, abortRepeats, now)
		return
	case number != s.next || number > s.window:
		return
	}

	copy(s.data[(number-1)*packetSize:], b[1:])
	s.next, s.deadline = number+1, now+packetTimeout
	switch {
	case s.next > s.packets():
		if to != Global {
			t.connection(to, from, s.pgn, controlEnd, byte(s.size), byte(s.size>>8), byte(s.packets()))
		}
		t.Counts.Received++
		id := ID{Priority: 6, PGN: s.pgn & maxPGN, Destination: Global, Source: from}
		if Directed(id.PGN) {
			id.PGN, id.Destination = id.PGN&^0xFF, to
		}
		t.messages = append(t.messages, Message{ID: id, Data: s.data[:s.size]})
		t.receiving = slices.Delete(t.receiving, i, i+1)
	case s.next > s.window:
		s.repeats = 0
		t.requestPackets(s, now)
	}
}

// clearToSend processes "clear to send" for n packets from number on.
func (t *Transport) clearToSend(i, n, number int, now int64) {
	o := t.sending[i]
	switch {
	case n == 0: // hold the connection
		o.deadline = now + holdTimeout
		return
	case number < 1 || number > o.packets():
		return
	case number < o.next:
		if o.repeats++; o.repeats > o.packets() {
			t.connection(o.from, o.to, o.pgn, controlAbort, abortRepeats)
			t.breakOutgoing(i)
			return
		}
	}
	o.next, o.window, o.deadline = number, min(o.packets(), number+min(n, maxWindow)-1), now+answerTimeout
	for o.next <= o.window {
		t.packet(o)
	}
}

// packet adds the next packet of a message; unused bytes are ones.
func (t *Transport) packet(o *outgoing) {
	f := can.Frame{ID: ID{Priority: 7, PGN: PGNPacket, Destination: o.to, Source: o.from}.Bits(), Len: 8}
	f.Data[0] = byte(o.next)
	n := 1 + copy(f.Data[1:8], o.data[(o.next-1)*packetSize:])
	for ; n < 8; n++ {
		f.Data[n] = 0xFF
	}
	o.next++
	t.frames = append(t.frames, f)
}

// Poll sends the packets that are due and ends the sessions whose time is over. Call it every 10 ms or
// so: a packet to all is late by up to that time.
func (t *Transport) Poll(now int64) {
	for i := len(t.receiving) - 1; i >= 0; i-- {
		switch s := t.receiving[i]; {
		case now < s.deadline:
		case s.to == Global:
			t.breakIncoming(i)
		default:
			t.requestAgain(i, abortTimeout, now)
		}
	}

	for i := len(t.sending) - 1; i >= 0; i-- {
		switch o := t.sending[i]; {
		case !o.open || now < o.deadline:
		case o.to != Global:
			t.connection(o.from, o.to, o.pgn, controlAbort, abortTimeout)
			t.breakOutgoing(i)
		default:
			t.packet(o)
			if o.deadline = now + PacketInterval; o.next > o.window {
				t.Counts.Sent++
				t.sending = slices.Delete(t.sending, i, i+1)
			}
		}
	}
	t.openNext(now)
}

func (t *Transport) breakIncoming(i int) {
	t.Counts.Broken++
	t.receiving = slices.Delete(t.receiving, i, i+1)
}

func (t *Transport) breakOutgoing(i int) {
	t.Counts.Broken++
	t.sending = slices.Delete(t.sending, i, i+1)
}
