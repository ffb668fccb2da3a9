package isotp

import (
	"slices"

	"lockstep/io/can"
)

// receiver is the message that is received.
type receiver struct {
	open     bool
	flow     pending // flow control to be sent
	status   uint8   // flow status of flow
	size     int
	data     []byte
	length   uint8 // RX_DL, bytes of the first frame
	sequence uint8
	block    int   // consecutive frames until the next flow control
	waits    int   // wait frames sent in a row
	holding  bool  // a wait frame is sent
	timeout  int64 // end of N_Cr, or the instant of the next flow control while holding, ns
}

// Hold makes the receiver answer first frames and blocks with wait frames, N_Br apart, until Hold(false). After
// MaxWaits wait frames it gives up the message.
func (l *Link) Hold(on bool) { l.hold = on }

// Receive processes a frame of the bus at an instant, ns; false: the frame is not of the link.
func (l *Link) Receive(f *can.Frame, now int64) bool {
	if !l.cfg.Rx.matches(f) || f.Len > 64 {
		return false
	}
	l.Poll(now)
	offset := l.cfg.Rx.offset()
	p := f.Data[offset:max(int(f.Len), offset)]
	if len(p) == 0 || !l.receivePDU(f, p, now) {
		l.Counts.Ignored++
	}
	return true
}

// receivePDU processes a protocol data unit; false: it is invalid or not expected.
func (l *Link) receivePDU(f *can.Frame, p []byte, now int64) bool {
	switch kind := p[0] >> 4; {
	case kind == pciSingle:
		data := parseSingle(p, f.Len > 8)
		if data == nil {
			return false
		}
		l.interrupt(now)
		l.push(Event{Kind: Received, At: now, Data: slices.Clone(data)})
		return true
	case l.cfg.Functional:
		return false
	case kind == pciFirst:
		return l.receiveFirst(f, p, now)
	case kind == pciConsecutive:
		return l.receiveConsecutive(f, p, now)
	case kind == pciFlow:
		return l.receiveFlow(p, now)
	}
	return false
}

// interrupt ends the message being received because another one begins.
func (l *Link) interrupt(now int64) {
	if l.in.open {
		l.endReceive(Event{Kind: ReceiveFailed, Result: Unexpected, At: now})
	}
}

// receiveFirst begins a message.
func (l *Link) receiveFirst(f *can.Frame, p []byte, now int64) bool {
	size, data := parseFirst(p, f.Len, l.cfg.Rx.offset())
	if size == 0 {
		return false
	}
	l.interrupt(now)
	l.in = receiver{open: true, length: f.Len}
	if size > int64(l.cfg.MaxMessage) {
		l.sendFlow(flowOverflow, now)
		return true
	}
	l.in.size, l.in.sequence = int(size), 1
	l.in.data = append(make([]byte, 0, min(l.in.size, DefaultMaxMessage)), data...)
	l.push(Event{Kind: Started, At: now, Size: l.in.size})
	l.answer(now)
	return true
}

// receiveConsecutive continues a message.
func (l *Link) receiveConsecutive(f *can.Frame, p []byte, now int64) bool {
	r := &l.in
	if !r.open || r.flow.waiting || r.holding {
		return false
	}
	rest := r.size - len(r.data)
	if f.Len > r.length || f.Len < r.length && len(p)-1 < rest {
		return false // only the last frame may be shorter: ISO 15765-2, 9.6.4.2
	}
	if p[0]&0xF != r.sequence&0xF {
		l.endReceive(Event{Kind: ReceiveFailed, Result: WrongSequence, At: now})
		return true
	}
	r.data = append(r.data, p[1:1+min(len(p)-1, rest)]...)
	if r.sequence++; len(r.data) == r.size {
		l.endReceive(Event{Kind: Received, At: now, Data: r.data})
		return true
	}
	r.timeout = now + l.cfg.Cr
	if r.block > 0 {
		if r.block--; r.block == 0 {
			l.answer(now)
		}
	}
	return true
}

// answer sends a flow control: wait while the receiver is held, else continue.
func (l *Link) answer(now int64) {
	r := &l.in
	r.holding = false
	switch {
	case !l.hold:
		l.sendFlow(flowContinue, now)
	case r.waits == l.cfg.MaxWaits:
		l.endReceive(Event{Kind: ReceiveFailed, Result: TooManyWaits, At: now})
	default:
		r.waits++
		l.sendFlow(flowWait, now)
	}
}

// sendFlow gives a flow control to the bus.
func (l *Link) sendFlow(status uint8, now int64) {
	l.in.status, l.in.flow = status, pending{true, l.cfg.flow(status), now + l.cfg.As}
}

// flowSent continues after the bus has taken a flow control.
func (l *Link) flowSent(now int64) {
	r := &l.in
	switch r.status {
	case flowContinue:
		r.block, r.waits, r.timeout = int(l.cfg.BlockSize), 0, now+l.cfg.Cr
	case flowWait:
		r.holding, r.timeout = true, now+l.cfg.Br
	case flowOverflow:
		l.endReceive(Event{Kind: ReceiveFailed, Result: Overflow, At: now})
	}
}

// deadline returns the next instant of the receiver, ns.
func (r *receiver) deadline() int64 {
	switch {
	case r.flow.waiting:
		return r.flow.deadline
	case r.open:
		return r.timeout
	}
	return Never
}

// pollReceiver ends a message whose time is over, and sends the next flow control of a held one.
func (l *Link) pollReceiver(now int64) {
	switch r := &l.in; {
	case now < r.deadline() || !r.open:
	case r.flow.waiting:
		l.endReceive(Event{Kind: ReceiveFailed, Result: TimeoutA, At: now})
	case r.holding:
		l.answer(now)
	default:
		l.endReceive(Event{Kind: ReceiveFailed, Result: TimeoutCr, At: now})
	}
}

// endReceive ends the message that is received.
func (l *Link) endReceive(e Event) {
	l.in = receiver{}
	l.push(e)
}
