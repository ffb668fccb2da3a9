package traffic

import (
	"math"
	"slices"

	"lockstep/io/can"
	"lockstep/io/messages"
	"lockstep/io/sigmap"
	"lockstep/io/strictjson"
	"lockstep/rt"
	"lockstep/rt/bench"
)

// Buses is the answer to GET /buses: the messages that the bench sends and receives. It does not change
// during a run.
type Buses struct {
	Buses    []Bus      `json:"buses"`
	Messages []*Message `json:"messages"` // bus after bus, the received ones first

	byKey map[Key]*Message
}

// Bus is a bus of the bench.
type Bus struct {
	Name      string  `json:"name"`
	Interface string  `json:"interface"`             // interface of the host, "pair", or "file:" and the log that it plays
	BitRate   float64 `json:"bit_rate,omitempty"`    // of the bench file, bit/s; 0: not given
	DataRate  float64 `json:"data_rate,omitempty"`   // of the data phase of CAN FD, bit/s; 0: not given
	Log       bool    `json:"plays_a_log,omitempty"` // the frames received come from a log
}

// Message is a message with the layout of its frames.
type Message struct {
	Name       string          `json:"name"` // with several buses, "NAME on BUS"
	Bus        string          `json:"bus"`
	Direction  string          `json:"direction"`            // "in": received; "out": sent by the bench
	ID         uint32          `json:"id"`                   // identifier without the extended flag
	Extended   bool            `json:"extended,omitempty"`   // 29-bit identifier
	FD         bool            `json:"fd,omitempty"`         // CAN FD
	Length     int             `json:"length"`               // bytes of a frame; of a longer message those that are read
	Senders    []string        `json:"senders"`              // nodes that send it, by the database
	Cycle      float64         `json:"cycle_s,omitempty"`    // wanted time between two frames, s
	Timeout    float64         `json:"timeout_s,omitempty"`  // longest time without a valid frame, s
	Protection []string        `json:"protection,omitempty"` // profiles of its counters and checksums
	About      string          `json:"about,omitempty"`
	Signals    []MessageSignal `json:"signals"`

	Key        Key               `json:"-"`
	Definition *messages.Message `json:"-"` // of the database; its signals are in the order of Signals
}

// MessageSignal is a signal of a message and its bits. Bit b of byte B is 8·B+b.
type MessageSignal struct {
	Name      string     `json:"name"`             // within the message
	Signal    string     `json:"signal,omitempty"` // name in GET /description; "": beyond the first 64 bytes of a long message, which the ring does not carry
	Start     int        `json:"start"`            // its lowest bit, or with BigEndian its highest
	Length    int        `json:"length"`           // bits
	BigEndian bool       `json:"big_endian,omitempty"`
	Unit      string     `json:"unit"`
	Carries   string     `json:"carries,omitempty"`  // "counter of PROFILE", "checksum of PROFILE"
	Selector  bool       `json:"selector,omitempty"` // its value selects other signals
	MuxedBy   string     `json:"muxed_by,omitempty"` // signal whose value selects it; "" in every frame
	Ranges    [][]uint64 `json:"ranges,omitempty"`   // raw values of that signal, lowest and highest
}

// Key identifies a message of the bench.
type Key struct {
	Bus  int
	Sent bool
	At   int // index in sigmap.Map.Tx if it is sent, else in Rx; -1: the bench has no such message
}

// KeyOf returns the key of the message of a frame of the ring.
func KeyOf(e *rt.Entry) Key { return Key{e.Bus, e.Fate != rt.Received, e.Message} }

// NewBuses returns the buses and messages of a bench. A message that its database does not have is left out.
func NewBuses(h *bench.Handover) (*Buses, error) {
	list := &Buses{Buses: []Bus{}, Messages: []*Message{}, byKey: map[Key]*Message{}}
	for i, m := range h.Maps {
		db, err := h.Database(i)
		if err != nil {
			return nil, err
		}
		b := &h.Bench.Buses[i]
		list.Buses = append(list.Buses, Bus{b.Name.Text, b.Interface.Text, b.BitRate, b.DataRate, bench.IsLog(b.Interface.Text)})
		add := func(name string, key Key) {
			at := slices.IndexFunc(db.Messages, func(e messages.Message) bool { return e.Name == name })
			if at >= 0 {
				v := newMessage(h, &db.Messages[at], key)
				list.byKey[key], list.Messages = v, append(list.Messages, v)
			}
		}
		for at := range m.Rx {
			add(m.Rx[at].Name, Key{i, false, at})
		}
		for at := range m.Tx {
			add(m.Tx[at].Name, Key{i, true, at})
		}
	}
	return list, nil
}

// newMessage returns the layout of a message.
func newMessage(h *bench.Handover, m *messages.Message, key Key) *Message {
	bus, on := h.Bench.Buses[key.Bus].Name.Text, ""
	if len(h.Maps) > 1 {
		on = " on " + bus
	}
	v := &Message{Name: m.Name + on, Bus: bus, Direction: "in", ID: m.ID & can.MaskEFF,
		Extended: m.ID&can.EFF != 0, FD: m.IsFD(), Length: min(m.Len, 64), Senders: []string{}, About: m.Comment,
		Signals: []MessageSignal{}, Key: key, Definition: m}
	var protect []sigmap.Protection
	cycle, timeout := int64(0), int64(0)
	if key.Sent {
		t := &h.Maps[key.Bus].Tx[key.At]
		v.Direction, v.ID, protect = "out", t.ID&can.MaskEFF, t.Protect
		if t.Send != sigmap.OnChange {
			cycle = t.CycleTicks
		}
	} else {
		r := &h.Maps[key.Bus].Rx[key.At]
		protect, cycle, timeout = r.Protect, r.CycleTicks, r.TimeoutTicks
	}
	v.Cycle, v.Timeout = float64(cycle*h.Tables.PeriodNs)/1e9, float64(timeout*h.Tables.PeriodNs)/1e9
	if m.Sender != "" {
		v.Senders = append(append(v.Senders, m.Sender), m.OtherSenders...)
	}
	for i := range protect {
		v.Protection = append(v.Protection, protect[i].Profile)
	}
	for i := range m.Signals {
		s := &m.Signals[i]
		of := MessageSignal{Name: s.Name, Start: s.Start, Length: s.Len, BigEndian: s.BigEndian, Unit: s.Unit,
			Carries: bench.ProtectionOf(s, protect, ""), Selector: m.Selects(s), MuxedBy: s.MuxedBy}
		for _, r := range s.Ranges {
			of.Ranges = append(of.Ranges, r[:])
		}
		if _, ok := s.Bits(); ok {
			of.Signal = m.Name + "." + s.Name + on
		}
		v.Signals = append(v.Signals, of)
	}
	return v
}

// decodeFrame returns the values of the signals of a frame, in the order of the message; NaN: the frame does
// not hold the signal.
func (m *Message) decodeFrame(f *can.Frame) strictjson.Numbers {
	list := make(strictjson.Numbers, len(m.Definition.Signals))
	for i := range m.Definition.Signals {
		s := &m.Definition.Signals[i]
		list[i] = math.NaN()
		if bits, ok := s.Bits(); ok && int(f.Len) >= bits.Bytes() && m.Definition.Present(s, &f.Data) {
			list[i] = s.Value(s.Raw(&f.Data))
		}
	}
	return list
}
