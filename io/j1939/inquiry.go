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
	begun     bool  // packets of the answer have come
	to        uint8 // destination of the packets
	deadline  int64 // ns
	answer    Reply
}

// Reply is the end of a request.
type Reply struct {
	Data []byte // of the group, or of the acknowledgement; nil: there was no answer
	Err  error
	At   int64 // ns
}

// AnswerTime is how long a tester waits for an answer, or for its next packet, ns: SAE J1939-21, appendix C, T3.
const AnswerTime = answerTimeout

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
	q.pgn, q.clears, q.open, q.begun, q.deadline, q.answer = pgn, clears, true, false, now+AnswerTime, Reply{}
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
	case id.PGN == PGNAck && f.Len == 8:
		q.acknowledge(f.Data[:8], now)
	case id.PGN == q.pgn && !q.clears:
		q.end(Reply{Data: slices.Clone(f.Data[:f.Len])}, now)
	case id.PGN == PGNConnection && f.Len == 8:
		q.noteConnection(f.Data[:8], id.Destination, now)
	case id.PGN == PGNPacket && q.begun && id.Destination == q.to:
		q.deadline = now + AnswerTime
	}
	q.transport.Receive(f, now, q.Owns)
	q.collect(now)
}

// noteConnection processes connection management of the node. Packets of another message, which follow its
// announcement, do not prolong the time for the answer.
func (q *Inquirer) noteConnection(b []byte, to uint8, now int64) {
	switch same := pgnAt(b[5:]) == q.pgn; {
	case b[0] == controlAbort && same && to == q.Address && q.begun && q.to == to:
		q.end(Reply{Err: errors.New("the unit has aborted its answer")}, now)
	case b[0] != controlBAM && b[0] != controlRTS:
	case same:
		q.begun, q.to, q.deadline = true, to, now+AnswerTime
	case to == q.to:
		q.begun = false
	}
}

// acknowledge processes an acknowledgement. Byte 4 is the address that it is meant for, or 255.
func (q *Inquirer) acknowledge(b []byte, now int64) {
	switch control := int(b[0]); {
	case pgnAt(b[5:]) != q.pgn || b[4] != q.Address && b[4] != Global:
	case control == 0:
		q.end(Reply{Data: slices.Clone(b)}, now)
	case control < len(acknowledgements):
		q.end(Reply{Data: slices.Clone(b), Err: fmt.Errorf("the unit refuses it: %s", acknowledgements[control])}, now)
	}
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
	if ParseID(q.frames[0].ID).PGN == PGNRequest && q.open && !q.begun {
		q.deadline = now + AnswerTime
	}
	q.frames = q.frames[1:]
}

// Poll serves the times.
func (q *Inquirer) Poll(now int64) {
	q.transport.Poll(now)
	q.collect(now)
	switch {
	case !q.open || now < q.deadline:
	case q.begun:
		q.end(Reply{Err: errors.New("the answer was not complete: a packet did not come, or came out of its order")}, now)
	default:
		q.dropRequests()
		q.end(Reply{Err: fmt.Errorf("%w within %d ms", ErrSilent, int(AnswerTime/1e6))}, now)
	}
}

// dropRequests removes requests that the bus has not taken: they must not come when nobody waits for their answers.
func (q *Inquirer) dropRequests() {
	q.frames = slices.DeleteFunc(q.frames, func(f can.Frame) bool { return ParseID(f.ID).PGN == PGNRequest })
}

// Deadline returns the instant, ns, at which Poll has work; false: none.
func (q *Inquirer) Deadline() (int64, bool) { return q.deadline, q.open }

// Done returns the end of the request; false: it is open.
func (q *Inquirer) Done() (Reply, bool) { return q.answer, !q.open }

// Abort drops the open request.
func (q *Inquirer) Abort() {
	q.open = false
	q.dropRequests()
}
