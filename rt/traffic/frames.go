package traffic

import (
	"encoding/hex"
	"fmt"
	"slices"

	"lockstep/io/can"
	"lockstep/io/strictjson"
	"lockstep/rt"
)

// Bounds of streams of frames.
const (
	MaxFrames  = 1 << 12 // frames that the queue of a stream holds
	maxForeign = 256     // frames of messages that the bench does not have, in an interval of a stream
)

// Stream is a stream of frames for one client. It has a bounded queue, drops its oldest frame when the queue is full,
// and counts what it has dropped.
type Stream struct {
	Wake chan struct{} // holds a token when the queue has frames

	traffic  *Traffic
	messages []string // names of the messages wanted; nil: all frames
	every    int64    // ticks of an interval, with the last frame of each message; 0: every frame

	// The mutex of traffic guards these.
	open      map[frameKey]*Frame
	order     []frameKey
	queue     []Frame
	lost      int64 // frames that the next one lacks before it
	lostTicks int64
}

// frameKey identifies frames: an interval keeps the last frame of each key.
type frameKey struct {
	Key
	id uint32 // of a frame without a message
}

// Frame is a line of a stream of frames.
type Frame struct {
	Tick      int64              `json:"tick"`   // tick that sent or read the frame
	Time      float64            `json:"time_s"` // simulated time of Tick, s
	Bus       string             `json:"bus"`
	Message   string             `json:"message,omitempty"`    // "": the bench has no such message
	Direction string             `json:"direction"`            // "in": received; "out": sent
	ID        uint32             `json:"id"`                   // identifier without the extended flag
	Extended  bool               `json:"extended,omitempty"`   // 29-bit identifier
	FD        bool               `json:"fd,omitempty"`         // CAN FD
	Data      string             `json:"data"`                 // bytes in hexadecimal
	Values    strictjson.Numbers `json:"values,omitempty"`     // of the signals of the message, in the order of GET /buses; null: not in this frame
	Dropped   bool               `json:"dropped,omitempty"`    // the bus did not take it
	Withheld  bool               `json:"withheld,omitempty"`   // a fault kept it from the bus, or from the plant
	Again     bool               `json:"again,omitempty"`      // a fault sent or read it late or again
	Safe      bool               `json:"safe,omitempty"`       // with the safe values
	Count     int64              `json:"count"`                // frames of this message in the interval
	Lost      int64              `json:"lost,omitempty"`       // frames before this one that the client did not read in time
	LostTicks int64              `json:"lost_ticks,omitempty"` // ticks before this frame that the ring had no room for
}

// FrameStart is the first line of a stream of frames.
type FrameStart struct {
	Messages []string `json:"messages"` // messages wanted; none: all frames
	Period   float64  `json:"period_s"` // of the grid, s
	Every    int64    `json:"every"`    // ticks of an interval
}

// newFrame returns the line of a frame.
func (t *Traffic) newFrame(e *rt.Entry, key Key) *Frame {
	f := &Frame{
		Tick: e.Tick, Time: t.time(e.Tick), Bus: t.Handover.Bench.Buses[e.Bus].Name.Text,
		Direction: "in", ID: e.Frame.ID & can.MaskEFF, Extended: e.Frame.ID&can.EFF != 0, FD: e.Frame.FD(),
		Data:    hex.EncodeToString(e.Frame.Data[:min(int(e.Frame.Len), len(e.Frame.Data))]),
		Dropped: e.Fate == rt.Dropped, Withheld: e.Withheld, Again: e.Copy, Safe: e.Safe, Count: 1,
	}
	if key.Sent {
		f.Direction = "out"
	}
	if m := t.buses.byKey[key]; m != nil {
		f.Message, f.Values = m.Name, m.decodeFrame(&e.Frame)
	}
	return f
}

// take takes a frame of the buses.
func (c *Stream) take(f *Frame, of Key) {
	if c.messages != nil && !slices.Contains(c.messages, f.Message) {
		return
	}
	if c.every == 0 {
		c.enqueue(*f)
		return
	}
	key := frameKey{Key: of}
	if of.At < 0 {
		key.id = f.ID
	}
	old := c.open[key]
	if old == nil && len(c.order) >= maxForeign+len(c.traffic.buses.Messages) {
		c.lost++
		return
	}
	own := *f
	if old == nil {
		c.order = append(c.order, key)
	} else {
		own.Count += old.Count
	}
	c.open[key] = &own
}

// flush queues the frames of an interval.
func (c *Stream) flush() {
	for _, key := range c.order {
		c.enqueue(*c.open[key])
	}
	clear(c.open)
	c.order = c.order[:0]
}

// enqueue queues a frame. A full queue drops its oldest frame, which the next one reports as lost.
func (c *Stream) enqueue(f Frame) {
	f.Lost, f.LostTicks, c.lost, c.lostTicks = c.lost, c.lostTicks, 0, 0
	if c.queue = append(c.queue, f); len(c.queue) > MaxFrames {
		c.queue[1].Lost += c.queue[0].Lost + c.queue[0].Count
		c.queue[1].LostTicks += c.queue[0].LostTicks
		c.queue = c.queue[1:]
	}
	select {
	case c.Wake <- struct{}{}:
	default: // it is awake
	}
}

// Open opens a stream of the frames of messages, or of all frames if none is named. every is the interval in ticks, with
// the last frame of each message; 0: every frame. The caller closes the stream.
func (t *Traffic) Open(messages []string, every int64) (*Stream, error) {
	for _, name := range messages {
		if !slices.ContainsFunc(t.buses.Messages, func(m *Message) bool { return m.Name == name }) {
			return nil, fmt.Errorf("there is no message %.60q; GET /buses names all", name)
		}
	}
	c := &Stream{Wake: make(chan struct{}, 1), traffic: t, messages: messages, every: every, open: map[frameKey]*Frame{}}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.streams = append(t.streams, c)
	return c, nil
}

// Start returns the first line of the stream.
func (c *Stream) Start() FrameStart {
	return FrameStart{Messages: append([]string{}, c.messages...), Period: c.traffic.time(1), Every: max(1, c.every)}
}

// Close ends the stream.
func (c *Stream) Close() {
	t := c.traffic
	t.mu.Lock()
	defer t.mu.Unlock()
	t.streams = slices.DeleteFunc(t.streams, func(o *Stream) bool { return o == c })
}

// Next takes the oldest frame from the queue; false: it is empty. end: the run has ended, and the open interval is the
// last one.
func (c *Stream) Next(end bool) (f Frame, ok bool) {
	c.traffic.mu.Lock()
	defer c.traffic.mu.Unlock()
	if end {
		c.flush()
	}
	if len(c.queue) == 0 {
		return f, false
	}
	f, c.queue = c.queue[0], c.queue[1:]
	return f, true
}
