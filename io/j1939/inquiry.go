package j1939

import (
	"errors"
	"fmt"
	"slices"

	"lockstep/io/can"
)

// Inquirer asks one node for parameter groups, one after the other: a request, and the group or an
// acknowledgement as the answer. It has no clock and no bus, like Transport.
type Inquirer struct {
	Address uint8 // of the tester
	Node    uint8 // address of the node that is asked

	transport Transport
	frames    []can.Frame
	pgn       uint32
	clears    bool // the answer is an acknowledgement
	open      bool
	sent      bool  // the bus has taken the request
	begun     bool  // packets of the answer have come
	to        uint8 // destination of the packets
	deadline  int64 // of the answer or its next packet, ns
	limit     int64 // of the whole answer, ns
	answer    Reply
	strays    []Reply
}

// Reply is the end of a request.
type Reply struct {
	Data []byte // of the group, or of the acknowledgement; nil: there was no answer
	Err  error
	At   int64 // ns
}

// AnswerTime is how long a tester waits for an answer, or for its next packet, ns: SAE J1939-21, appendix C, T3.
const AnswerTime = answerTimeout

// answerLimit is how long a tester waits for a whole answer, ns. The longest one takes 51 s: 255 packets to all, 200 ms
// apart. It ends a unit that announces its answer again and again.
const answerLimit = 60e9

// maxStrays bounds the acknowledgements kept that no request had asked for.
const maxStrays = 100

// ErrSilent is the error of a request that the node has not answered in time.
var ErrSilent = errors.New("the unit does not answer")

// acknowledgements are the control bytes of an acknowledgement after 0, the positive one.
var acknowledgements = []string{1: "negative acknowledgement", "access denied", "cannot respond"}

// Request begins a request; Done reports its end. With clears the answer is an acknowledgement. An answer of several
// frames to an earlier request is aborted: the node could not open a second session with the tester.
func (q *Inquirer) Request(pgn uint32, clears bool, now int64) {
	q.transport.abortFrom(q.Node, q.Address)
	q.frames = append(q.frames, q.transport.TakeFrames()...)
	f := can.Frame{ID: ID{Priority: 6, PGN: PGNRequest, Destination: q.Node, Source: q.Address}.Bits(), Len: 3}
	f.Data[0], f.Data[1], f.Data[2] = byte(pgn), byte(pgn>>8), byte(pgn>>16)
	q.frames = append(q.frames, f)
	q.pgn, q.clears, q.open, q.sent, q.begun, q.answer = pgn, clears, true, false, false, Reply{}
	q.deadline, q.limit = now+AnswerTime, now+answerLimit
	if i := q.transport.incoming(q.Node, Global); i >= 0 && q.transport.receiving[i].pgn == pgn {
		q.begun, q.to = true, Global // the group is on its way already
	}
}

// Owns reports whether an address is the tester's.
func (q *Inquirer) Owns(address uint8) bool { return address == q.Address }

// Receive processes a frame of the bus at an instant, ns.
func (q *Inquirer) Receive(f *can.Frame, now int64) {
	id := ParseID(f.ID)
	if !isData(f) || id.Source != q.Node || id.Destination != Global && id.Destination != q.Address {
		return
	}
	switch {
	case id.PGN == PGNAck:
		q.acknowledge(f.Data[:f.Len], now)
	case id.PGN == q.pgn && !q.clears:
		q.end(Reply{Data: slices.Clone(f.Data[:f.Len])}, now)
	case id.PGN == PGNConnection && f.Len == 8:
		q.announce(f.Data[:8], id.Destination, now)
	case id.PGN == PGNPacket && q.begun && id.Destination == q.to:
		q.deadline = now + AnswerTime
	}
	q.transport.Receive(f, now, q.Owns)
	q.collect(now)
}

// announce processes connection management of the node. Packets of another message, which follow its announcement, do
// not prolong the time for the answer.
func (q *Inquirer) announce(b []byte, to uint8, now int64) {
	size, same := int(b[1])|int(b[2])<<8, pgnAt(b[5:]) == q.pgn && !q.clears
	switch control := b[0]; {
	case control == controlAbort && same && to == q.Address:
		q.end(Reply{Err: fmt.Errorf("the unit aborts its answer: reason %d", b[1])}, now)
	case control != controlBAM && control != controlRTS:
	case !same:
		q.begun = q.begun && to != q.to
	case size <= 8 || size > MaxMessage || Packets(size) != int(b[3]):
		q.end(Reply{Err: fmt.Errorf("the unit announces %d bytes in %d packets; a message has 9 to %d bytes, 7 in each packet", size, b[3], MaxMessage)}, now)
	default:
		q.begun, q.to, q.deadline = true, to, now+AnswerTime
	}
}

// acknowledge processes an acknowledgement. Byte 4 is the address that it is meant for, or 255.
func (q *Inquirer) acknowledge(b []byte, now int64) {
	if len(b) != 8 {
		q.end(Reply{Data: slices.Clone(b), Err: fmt.Errorf("the unit sends an acknowledgement of %d bytes, want 8", len(b))}, now)
		return
	}
	switch control := int(b[0]); {
	case b[4] == q.Address && (!q.open || pgnAt(b[5:]) != q.pgn) && len(q.strays) < maxStrays:
		q.strays = append(q.strays, Reply{Data: slices.Clone(b), At: now,
			Err: fmt.Errorf("the unit sent an acknowledgement of PGN 0x%04X, for which no request was open", pgnAt(b[5:]))})
	case pgnAt(b[5:]) != q.pgn || b[4] != q.Address && b[4] != Global:
	case control == 0:
		q.end(Reply{Data: slices.Clone(b)}, now)
	case control < len(acknowledgements):
		q.end(Reply{Data: slices.Clone(b), Err: fmt.Errorf("the unit refuses it: %s", acknowledgements[control])}, now)
	default:
		q.end(Reply{Data: slices.Clone(b), Err: fmt.Errorf("the unit sends an acknowledgement with the control byte %d, want 0 to 3", control)}, now)
	}
}

// Strays removes and returns the acknowledgements for the tester that no request had asked for, each with its error.
func (q *Inquirer) Strays() []Reply {
	list := q.strays
	q.strays = nil
	return list
}

// end ends the open request.
func (q *Inquirer) end(a Reply, now int64) {
	if q.open {
		a.At = now
		q.open, q.answer = false, a
	}
}

// collect takes what the transport protocol has made.
func (q *Inquirer) collect(now int64) {
	q.frames = append(q.frames, q.transport.TakeFrames()...)
	for _, m := range q.transport.TakeMessages() {
		if m.ID.PGN == q.pgn && m.ID.Source == q.Node && !q.clears {
			q.end(Reply{Data: m.Data}, now)
		}
	}
}

// Next returns the frame that is to be sent now; Sent confirms that the bus has taken it.
func (q *Inquirer) Next(int64) (can.Frame, bool) {
	if len(q.frames) == 0 {
		return can.Frame{}, false
	}
	return q.frames[0], true
}

// Sent removes the frame of Next. The time for the answer begins with the request.
func (q *Inquirer) Sent(now int64) {
	isRequest := ParseID(q.frames[0].ID).PGN == PGNRequest
	if isRequest && q.open && !q.sent {
		q.sent, q.limit = true, now+answerLimit
		if !q.begun {
			q.deadline = now + AnswerTime
		}
	}
	q.frames = q.frames[1:]
}

// Poll serves the times.
func (q *Inquirer) Poll(now int64) {
	q.transport.Poll(now)
	q.collect(now)
	switch {
	case !q.open || now < min(q.deadline, q.limit):
	case !q.sent:
		q.dropRequests()
		q.end(Reply{Err: fmt.Errorf("the request was not sent: the bus takes no frame within %d ms", int(AnswerTime/1e6))}, now)
	case now >= q.limit:
		q.end(Reply{Err: fmt.Errorf("the answer was not complete within %d s, though the unit announces it again and again", int(answerLimit/1e9))}, now)
	case q.begun:
		q.end(Reply{Err: errors.New("the answer was not complete: a packet did not come, or came out of its order")}, now)
	default:
		q.end(Reply{Err: fmt.Errorf("%w within %d ms", ErrSilent, int(AnswerTime/1e6))}, now)
	}
}

// dropRequests removes requests that the bus has not taken: they must not come when nobody waits for their answers.
func (q *Inquirer) dropRequests() {
	q.frames = slices.DeleteFunc(q.frames, func(f can.Frame) bool { return ParseID(f.ID).PGN == PGNRequest })
}

// Deadline returns the instant, ns, at which Poll has work; false: none.
func (q *Inquirer) Deadline() (int64, bool) { return min(q.deadline, q.limit), q.open }

// Done returns the end of the request; false: it is open.
func (q *Inquirer) Done() (Reply, bool) { return q.answer, !q.open }

// Abort drops the open request.
func (q *Inquirer) Abort() {
	q.open = false
	q.dropRequests()
}
