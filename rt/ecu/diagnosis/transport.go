package diagnosis

import "time"

// Types of protocol control information, ISO 15765-2, and states of a flow control frame.
const (
	singleFrame = iota
	firstFrame
	consecutiveFrame
	flowControl

	continueToSend = 0
	waitFrame      = 1
	overflow       = 2
)

const (
	blockSize      = 8                // consecutive frames between two flow controls that the unit asks for
	padding        = 0xCC             // unused bytes of a frame
	networkTimeout = time.Second      // N_Bs and N_Cr
	mostWaits      = 10               // consecutive wait frames that the unit accepts
	reaction       = time.Millisecond // from a frame to the frame that answers it
)

// never is an instant that does not come.
const never = time.Duration(1<<63 - 1)

// transport is the server's end of an ISO-TP connection with normal addressing and classic CAN frames.
// It has no clock; time runs by the instants of its calls.
type transport struct {
	send func(data [8]byte) error

	// reception
	buffer   []byte // message at hand
	missing  int    // bytes that the message lacks; 0: no reception under way
	sequence byte   // of the next consecutive frame
	block    int    // consecutive frames until the next flow control
	expires  time.Duration
	control  time.Duration // instant of the flow control to send; never: none
	state    byte          // its flow state

	// transmission
	rest      []byte        // bytes to send; empty: no transmission under way
	next      byte          // sequence number of the next consecutive frame
	room      int           // frames until a flow control must come; -1: no limit
	waiting   bool          // for a flow control
	waits     int           // consecutive wait frames
	first     bool          // the next frame is the first of the message
	separated time.Duration // STmin of the tester
	due       time.Duration // instant of the next frame or, while waiting, of the timeout
}

func newTransport(send func(data [8]byte) error) *transport {
	return &transport{send: send, control: never, due: never, expires: never}
}

// receive takes a frame from the tester. It returns a message when one is complete. A functional request is
// always a single frame.
func (l *transport) receive(data []byte, functional bool, now time.Duration) []byte {
	if len(data) == 0 {
		return nil
	}
	if l.missing > 0 && now >= l.expires {
		l.abandon()
	}
	switch kind := data[0] >> 4; {
	case kind == singleFrame:
		n := int(data[0] & 15)
		if n == 0 || n > 7 || len(data) < n+1 {
			return nil
		}
		if !functional { // another message of the same tester replaces one under way
			l.abandon()
		}
		return append([]byte{}, data[1:n+1]...)
	case functional:
	case kind == firstFrame:
		l.begin(data, now)
	case kind == consecutiveFrame:
		return l.collect(data, now)
	case kind == flowControl:
		l.proceed(data, now)
	}
	return nil
}

// abandon ends a reception.
func (l *transport) abandon() { l.missing, l.control, l.expires = 0, never, never }

// begin handles a first frame. The escape sequence, a length of 32 bits, is always longer than the buffer.
func (l *transport) begin(data []byte, now time.Duration) {
	if len(data) != 8 {
		return
	}
	length := int(data[0]&15)<<8 | int(data[1])
	switch {
	case length > 0 && length < 8:
		return
	case length == 0:
		l.abandon()
		l.control, l.state = now+reaction, overflow
		return
	}
	l.buffer = append(make([]byte, 0, length), data[2:]...)
	l.missing, l.sequence, l.block = length-6, 1, blockSize
	l.control, l.state, l.expires = now+reaction, continueToSend, now+reaction+networkTimeout
}

// collect handles a consecutive frame. A wrong sequence number ends the reception.
func (l *transport) collect(data []byte, now time.Duration) []byte {
	n := min(l.missing, 7)
	if n == 0 {
		return nil
	}
	if data[0]&15 != l.sequence || len(data) < n+1 {
		l.abandon()
		return nil
	}
	l.buffer = append(l.buffer, data[1:n+1]...)
	l.sequence = (l.sequence + 1) & 15
	if l.missing -= n; l.missing == 0 {
		l.abandon()
		return l.buffer
	}
	l.expires = now + networkTimeout
	if l.block--; l.block == 0 {
		l.block, l.control, l.state = blockSize, now+reaction, continueToSend
		l.expires += reaction
	}
	return nil
}

// sending reports whether a transmission is under way.
func (l *transport) sending() bool { return len(l.rest) > 0 }

// transmit begins to send a message of 1 to 4095 bytes.
func (l *transport) transmit(message []byte, now time.Duration) {
	l.rest, l.first, l.due, l.waiting, l.waits = message, true, now, false, 0
}

// proceed handles a flow control frame; without a transmission that waits for one it means nothing.
func (l *transport) proceed(data []byte, now time.Duration) {
	if !l.waiting || len(data) < 3 {
		return
	}
	switch data[0] & 15 {
	case continueToSend:
		l.waiting, l.waits, l.separated, l.due = false, 0, separation(data[2]), now+reaction
		if l.room = int(data[1]); l.room == 0 {
			l.room = -1
		}
	case waitFrame:
		l.due = now + networkTimeout
		if l.waits++; l.waits > mostWaits {
			l.stop()
		}
	default: // overflow, and the invalid states
		l.stop()
	}
}

// stop ends a transmission.
func (l *transport) stop() { l.rest, l.due, l.waiting = nil, never, false }

// separation decodes STmin; reserved values mean the longest time.
func separation(raw byte) time.Duration {
	switch {
	case raw <= 0x7F:
		return time.Duration(raw) * time.Millisecond
	case raw >= 0xF1 && raw <= 0xF9:
		return time.Duration(raw-0xF0) * 100 * time.Microsecond
	}
	return 127 * time.Millisecond
}

// wake returns the instant at which advance has work.
func (l *transport) wake() time.Duration { return min(l.control, l.due) }

// advance sends the frames that are due. Each frame makes the rest of the message shorter; at its end nothing is due.
func (l *transport) advance(now time.Duration) error {
	if now >= l.control {
		l.control = never
		if err := l.put(flowControl<<4|l.state, blockSize, 0); err != nil {
			return err
		}
	}
	for now >= l.due {
		if l.waiting { // N_Bs
			l.stop()
			return nil
		}
		if err := l.sendFrame(now); err != nil {
			return err
		}
	}
	return nil
}

// sendFrame sends the next frame of the message.
func (l *transport) sendFrame(now time.Duration) error {
	n := len(l.rest)
	switch {
	case l.first && n <= 7:
		message := l.rest
		l.stop()
		return l.put(append([]byte{byte(n)}, message...)...)
	case l.first:
		frame := append([]byte{firstFrame<<4 | byte(n>>8), byte(n)}, l.rest[:6]...)
		l.first, l.rest, l.next, l.waiting, l.due = false, l.rest[6:], 1, true, now+networkTimeout
		return l.put(frame...)
	}
	n = min(n, 7)
	frame := append([]byte{consecutiveFrame<<4 | l.next}, l.rest[:n]...)
	l.rest, l.next, l.due = l.rest[n:], (l.next+1)&15, now+l.separated
	if l.room--; l.room == 0 {
		l.waiting, l.due = true, now+networkTimeout
	}
	if len(l.rest) == 0 {
		l.stop()
	}
	return l.put(frame...)
}

// put sends a frame of 8 bytes.
func (l *transport) put(bytes ...byte) error {
	data := [8]byte{padding, padding, padding, padding, padding, padding, padding, padding}
	copy(data[:], bytes)
	return l.send(data)
}
