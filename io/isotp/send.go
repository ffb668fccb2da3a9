package isotp

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// sendState is what a sender waits for.
type sendState uint8

const (
	sendIdle   sendState = iota
	sendSingle           // the bus takes the single frame
	sendFirst            // the bus takes the first frame
	sendFlow             // flow control
	sendGap              // the separation time is over
	sendNext             // the bus takes the consecutive frame
)

// sender is the message that is sent.
type sender struct {
	state    sendState
	pending  pending
	data     []byte // bytes that no frame has carried yet
	sequence uint8
	block    int   // consecutive frames until the next flow control; 0: no more flow control
	gap      int64 // separation time, ns
	waits    int   // wait frames in a row
	deadline int64 // end of N_Bs, or of the separation time, ns
}

// ErrBusy says that a link still sends the message before.
var ErrBusy = errors.New("isotp: the message before is still being sent")

// Send begins to send a message. The link keeps a copy of data. Take reports Sent or SendFailed.
func (l *Link) Send(data []byte, now int64) error {
	switch {
	case l.Sending():
		return ErrBusy
	case len(data) == 0:
		return errors.New("isotp: a message has at least one byte")
	case len(data) > math.MaxUint32:
		return fmt.Errorf("isotp: a message of %d bytes; a length has 32 bits", len(data))
	}
	f, ok := l.cfg.single(data)
	switch {
	case ok:
		l.out = sender{state: sendSingle}
	case l.cfg.Functional:
		return fmt.Errorf("isotp: a request to all of %d bytes does not fit a single frame", len(data))
	default:
		var n int
		f, n = l.cfg.first(data)
		l.out = sender{state: sendFirst, data: slices.Clone(data[n:]), sequence: 1}
	}
	l.out.pending = pending{true, f, now + l.cfg.As}
	return nil
}

// due returns the next instant of the sender, ns.
func (s *sender) due() int64 {
	switch {
	case s.pending.waiting:
		return s.pending.deadline
	case s.state == sendFlow || s.state == sendGap:
		return s.deadline
	}
	return Never
}

// frameSent continues after the bus has taken a frame.
func (l *Link) frameSent(now int64) {
	s := &l.out
	switch {
	case s.state == sendFirst:
		l.awaitFlow(now)
	case len(s.data) == 0: // the single frame, or the last consecutive frame
		l.endSend(Sent, OK, now)
	default:
		if s.block > 0 {
			if s.block--; s.block == 0 {
				l.awaitFlow(now)
				return
			}
		}
		s.state, s.deadline = sendGap, now+s.gap
	}
}

// awaitFlow waits for a flow control.
func (l *Link) awaitFlow(now int64) { l.out.state, l.out.deadline = sendFlow, now+l.cfg.Bs }

// prepareConsecutive makes the next consecutive frame if its separation time is over.
func (l *Link) prepareConsecutive(now int64) {
	s := &l.out
	if s.state != sendGap || now < s.deadline {
		return
	}
	if now-s.deadline > l.cfg.Cs {
		l.Counts.Late++
	}
	f, n := l.cfg.consecutive(s.sequence, s.data)
	s.data, s.sequence, s.state = s.data[n:], s.sequence+1, sendNext
	s.pending = pending{true, f, now + l.cfg.As}
}

// receiveFlow processes a flow control; false: none is expected, or it is incomplete.
func (l *Link) receiveFlow(p []byte, now int64) bool {
	s := &l.out
	if s.state != sendFlow || len(p) < 3 {
		return false
	}
	switch p[0] & 0xF {
	case flowContinue:
		s.block, s.gap, s.waits = int(p[1]), SeparationTime(p[2]).Nanoseconds(), 0
		s.state, s.deadline = sendGap, now
	case flowWait:
		if s.waits++; s.waits > l.cfg.MaxWaits {
			l.endSend(SendFailed, TooManyWaits, now)
			return true
		}
		l.awaitFlow(now)
	case flowOverflow:
		l.endSend(SendFailed, Overflow, now)
	default:
		l.endSend(SendFailed, InvalidStatus, now)
	}
	return true
}

// pollSender ends a message whose time is over.
func (l *Link) pollSender(now int64) {
	switch s := &l.out; {
	case s.pending.waiting && now >= s.pending.deadline:
		l.endSend(SendFailed, TimeoutA, now)
	case s.state == sendFlow && now >= s.deadline:
		l.endSend(SendFailed, TimeoutBs, now)
	}
}

// endSend ends the message that is sent.
func (l *Link) endSend(kind Kind, result Result, now int64) {
	l.out = sender{}
	l.push(Event{Kind: kind, Result: result, At: now})
}
