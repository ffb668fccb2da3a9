// Package isotp owns the transport of messages of more than one frame between a tester and a control unit:
// ISO 15765-2 (ISO-TP), classic and CAN FD, as a state machine.
//
// A Link has no goroutine, no clock and no bus. Instants are ns on any one clock. The caller gives it
// received frames and the time, sends the frames of Next, confirms each with Sent, and calls Poll no later
// than Deadline:
//
//	link.Receive(&frame, now)
//	for f, ok := link.Next(now); ok && bus.Send(&f); f, ok = link.Next(now) {
//		link.Sent(now)
//	}
//	events := link.Take()
//
// A Link sends one message and receives one message at the same time. Links are independent of each other: a
// caller with several sessions gives each frame to all its links.
//
// Reading order: isotp.go (Link, its configuration and events), address.go (how frames are addressed), send.go,
// receive.go, pdu.go (frames to protocol data units and back).
package isotp

import (
	"fmt"
	"math"
	"slices"

	"lockstep/io/can"
)

// Times of a link, ns: ISO 15765-2, 9.7, with 1 s for each timeout.
const (
	DefaultTimeout = 1e9   // N_As, N_Ar, N_Bs, N_Cr
	DefaultHold    = 200e6 // N_Br: from one wait frame to the next
)

// DefaultMaxMessage is the length of the longest message received if Config.MaxMessage is 0, bytes: the longest
// with a 12-bit length.
const DefaultMaxMessage = 4095

// Never is the Deadline of a link that waits for nothing.
const Never = int64(math.MaxInt64)

// Config configures a link.
type Config struct {
	Address

	// Functional limits the link to single frames: requests to all units, ISO 15765-2, 9.8.1. It neither
	// sends nor receives longer messages.
	Functional bool

	FD     bool  // sends CAN FD frames
	BRS    bool  // sends the data of CAN FD frames at the higher bit rate
	Length uint8 // TX_DL, bytes of the longest frame sent: 8, or with FD 12 to 64; 0: 8, with FD 64

	Pad     bool  // fills frames of fewer than 8 bytes up to 8
	PadByte uint8 // value of bytes without content; without Pad 0xCC, in CAN FD frames of more than 8 bytes

	BlockSize  uint8 // consecutive frames received for one flow control; 0: all
	STmin      uint8 // separation time asked of the sender, coded as in a flow control: SeparationTime
	MaxMessage int   // length of the longest message received, bytes; 0: DefaultMaxMessage
	MaxWaits   int   // N_WFTmax, wait frames in a row: accepted when sending, sent while Hold; 0: none

	// Timeouts, ns; 0: DefaultTimeout.
	As int64 // N_As and N_Ar: from Next to Sent
	Bs int64 // N_Bs: from a frame to its flow control
	Cr int64 // N_Cr: from a frame to the next consecutive frame

	// Own times, ns. ISO 15765-2 sets no timeout for them; a longer one is counted in Counts.Late.
	Br int64 // N_Br: from one wait frame to the next; 0: DefaultHold
	Cs int64 // N_Cs: from the instant at which a consecutive frame may be sent until Next; 0: 90 % of Cr
}

// Kind is what an Event reports.
type Kind uint8

// The kinds of events: the indications and confirmations of ISO 15765-2, 8.3.
const (
	Received      Kind = iota // a message is complete: Data
	Started                   // the first frame of a message of Size bytes has come
	ReceiveFailed             // the message being received is lost: Result
	Sent                      // the message is sent
	SendFailed                // the message being sent is lost: Result
)

// Event is a result of a link.
type Event struct {
	Kind   Kind
	Result Result
	At     int64  // instant, ns
	Size   int    // of Started: bytes of the message
	Data   []byte // of Received
}

// Result says why a message was lost: ISO 15765-2, 8.3.7.
type Result uint8

// The results. OK is that of Received, Started and Sent.
const (
	OK            Result = iota
	TimeoutA             // N_TIMEOUT_A
	TimeoutBs            // N_TIMEOUT_Bs
	TimeoutCr            // N_TIMEOUT_Cr
	WrongSequence        // N_WRONG_SN
	InvalidStatus        // N_INVALID_FS
	Unexpected           // N_UNEXP_PDU
	TooManyWaits         // N_WFT_OVRN
	Overflow             // N_BUFFER_OVFLW
)

var resultText = [...]string{
	OK:            "ok",
	TimeoutA:      "the bus did not take a frame in time (N_TIMEOUT_A)",
	TimeoutBs:     "no flow control in time (N_TIMEOUT_Bs)",
	TimeoutCr:     "no consecutive frame in time (N_TIMEOUT_Cr)",
	WrongSequence: "wrong sequence number (N_WRONG_SN)",
	InvalidStatus: "invalid flow status (N_INVALID_FS)",
	Unexpected:    "another message began before the end of this one (N_UNEXP_PDU)",
	TooManyWaits:  "too many wait frames (N_WFT_OVRN)",
	Overflow:      "the receiver has no room for the message (N_BUFFER_OVFLW)",
}

// String returns the result in words, with its name in the standard.
func (r Result) String() string {
	if int(r) < len(resultText) {
		return resultText[r]
	}
	return fmt.Sprintf("result %d", uint8(r))
}

// Counts counts the work of a link.
type Counts struct {
	Received, Sent uint64 // messages
	Failed         uint64 // messages of either direction that were lost
	Ignored        uint64 // frames with the address of the link that were no valid or no expected protocol data unit
	Late           uint64 // consecutive frames later than N_Cs
}

// Link is one session between two nodes: it sends and receives messages. Use NewLink.
type Link struct {
	Counts Counts

	cfg    Config
	hold   bool
	out    sender
	in     receiver
	events []Event
}

// NewLink returns a link. An error names the part of the configuration that is wrong.
func NewLink(cfg Config) (*Link, error) {
	if cfg.Length == 0 {
		cfg.Length = 8
		if cfg.FD {
			cfg.Length = 64
		}
	}
	switch {
	case !slices.Contains(can.Lengths[8:], cfg.Length):
		return nil, fmt.Errorf("isotp: frames of %d bytes; use 8, 12, 16, 20, 24, 32, 48 or 64", cfg.Length)
	case cfg.Length > 8 && !cfg.FD:
		return nil, fmt.Errorf("isotp: frames of %d bytes need CAN FD", cfg.Length)
	case cfg.MaxMessage < 0 || cfg.MaxMessage > math.MaxUint32:
		return nil, fmt.Errorf("isotp: messages of %d bytes; a length has 32 bits", cfg.MaxMessage)
	case cfg.MaxWaits < 0:
		return nil, fmt.Errorf("isotp: %d wait frames is negative", cfg.MaxWaits)
	}
	for _, t := range []*int64{&cfg.As, &cfg.Bs, &cfg.Cr, &cfg.Br, &cfg.Cs} {
		if *t < 0 {
			return nil, fmt.Errorf("isotp: a time of %d ns is negative", *t)
		}
	}
	setDefault(&cfg.As, DefaultTimeout)
	setDefault(&cfg.Bs, DefaultTimeout)
	setDefault(&cfg.Cr, DefaultTimeout)
	setDefault(&cfg.Br, DefaultHold)
	setDefault(&cfg.Cs, cfg.Cr/10*9)
	if cfg.MaxMessage == 0 {
		cfg.MaxMessage = DefaultMaxMessage
	}
	if !cfg.Pad {
		cfg.PadByte = 0xCC
	}
	return &Link{cfg: cfg}, nil
}

// setDefault sets a time that is 0.
func setDefault(t *int64, ns int64) {
	if *t == 0 {
		*t = ns
	}
}

// Take removes and returns the events since the last call, in their order.
func (l *Link) Take() []Event {
	list := l.events
	l.events = nil
	return list
}

// Next returns the frame that is to be sent now; false: no frame is due. It returns the same frame until Sent
// confirms it or its time N_As is over.
func (l *Link) Next(now int64) (can.Frame, bool) {
	l.Poll(now)
	if l.in.flow.waiting {
		return l.in.flow.frame, true
	}
	l.prepareConsecutive(now)
	return l.out.pending.frame, l.out.pending.waiting
}

// Sent confirms that the bus has taken the frame of Next.
func (l *Link) Sent(now int64) {
	if l.in.flow.waiting {
		l.in.flow.waiting = false
		l.flowSent(now)
		return
	}
	if l.out.pending.waiting {
		l.out.pending.waiting = false
		l.frameSent(now)
	}
}

// Deadline returns the instant, ns, at which Poll or Next has work; Never: only a frame or a message makes some.
// A frame that Next has returned is to be retried when the bus has room.
func (l *Link) Deadline() int64 { return min(l.in.deadline(), l.out.due()) }

// Poll ends the messages whose time is over.
func (l *Link) Poll(now int64) {
	l.pollReceiver(now)
	l.pollSender(now)
}

// Abort drops the messages in both directions without an event.
func (l *Link) Abort() { l.out, l.in = sender{}, receiver{} }

// Sending reports whether a message is being sent.
func (l *Link) Sending() bool { return l.out.state != sendIdle }

// Receiving reports whether a message is being received.
func (l *Link) Receiving() bool { return l.in.open }

// pending is a frame that waits for the bus.
type pending struct {
	waiting  bool
	frame    can.Frame
	deadline int64 // end of N_As, ns
}

// push adds an event and counts it.
func (l *Link) push(e Event) {
	switch e.Kind {
	case Received:
		l.Counts.Received++
	case Sent:
		l.Counts.Sent++
	case ReceiveFailed, SendFailed:
		l.Counts.Failed++
	}
	l.events = append(l.events, e)
}
