package control

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"sync"
	"time"

	"lockstep/io/strictjson"
	"lockstep/model/kernel"
	"lockstep/model/network"
	"lockstep/model/plantfile"
	"lockstep/model/units"
	"lockstep/rt"
	"lockstep/rt/report"
	"lockstep/rt/traffic"
)

// Bounds of streams and of values.
const (
	maxSignals   = 1024            // of one request
	maxInterval  = time.Hour       // of a stream
	queueNumbers = 1 << 16         // numbers that the queue of a stream holds: 512 KiB
	maxQueue     = 1 << 12         // samples that it holds
	valueTimeout = 2 * time.Second // longest wait of a request for values until the present tick is read
)

// streams keeps the signals of the last tick that was read from the ring, and passes the ticks to the
// streams of clients. Its entry is the tap of the recorder. No client makes it wait: a stream has a
// bounded queue, drops its oldest sample when the queue is full, and counts what it has dropped.
type streams struct {
	report.View
	description *Description

	mu      sync.Mutex
	tick    int64     // last tick read; 0: none
	begun   bool      // u and y hold the start, at tick 0
	u, y    []float64 // of that tick, SI
	wire    []float64 // bus signals, in their last frames that hold them; NaN: none yet
	lateNs  int64     // wake-up latency of that tick, ns
	workNs  int64     // its tick time, ns
	lost    int64     // ticks before that one which the ring had no room for
	pending bool      // that tick is not passed to the streams yet
	list    []*stream
	traffic *traffic.Traffic

	overridden func(input int) bool // reports whether a fault or a command sets an input at present

	moved bool // the plant has other parameters, or the state of another tick: its own waveforms are not those of the tables

	parameters []float64              // of the plant, at that tick, SI
	phase      int                    // at that tick
	byPhase    [][]float64            // parameters by phase
	byOffer    map[uint64][][]float64 // those by offer that the loop has not decided yet
}

// stream is the stream of one client. The mutex of streams guards it.
type stream struct {
	signals []*Signal
	every   int64 // ticks per sample; 0: every tick, without least and largest values
	open    Sample
	ticks   int64 // ticks in open
	queue   []Sample
	size    int           // largest length of queue
	wake    chan struct{} // holds a token when the queue has samples
}

// Sample is a line of a stream: the signals at a tick, or over an interval of ticks. The numbers are in
// the order of the request and in the units of the first line.
type Sample struct {
	Tick int64              `json:"tick"`           // of Last: the tick, or the last one of the interval
	Time float64            `json:"time_s"`         // simulated time of Tick, s
	Last strictjson.Numbers `json:"last"`           // values at Tick
	Min  strictjson.Numbers `json:"min,omitempty"`  // least values of the interval; not in a stream of every tick
	Max  strictjson.Numbers `json:"max,omitempty"`  // largest values of the interval; not in a stream of every tick
	Lost int64              `json:"lost,omitempty"` // ticks before this sample that the stream lacks

	ticks int64 // ticks that it covers
}

// StreamStart is the first line of a stream.
type StreamStart struct {
	Signals []StreamSignal `json:"signals"`
	Period  float64        `json:"period_s"` // of the grid, s
	Every   int64          `json:"every"`    // ticks per sample
}

// StreamSignal names a signal of a stream and its unit.
type StreamSignal struct {
	Name string `json:"name"`
	Unit string `json:"unit"`
}

// StreamEnd is the last line of a stream whose run has ended.
type StreamEnd struct {
	Ended string  `json:"ended"` // why the run has ended
	Clean bool    `json:"clean"` // no policy was broken
	Tick  int64   `json:"tick"`  // last tick of the run
	Time  float64 `json:"time_s"`
}

func newStreams(r report.View, d *Description) *streams {
	s := &streams{View: r, description: d, overridden: func(int) bool { return false }, traffic: traffic.New(r, d.buses), wire: make([]float64, d.bus),
		u: make([]float64, len(r.Handover.Tables.Inputs)), y: make([]float64, len(r.Handover.Tables.Outputs))}
	for i := range s.wire {
		s.wire[i] = math.NaN()
	}
	return s
}

// readParameters sets the parameters of each phase. set has the values from the changes so far.
func (s *streams) readParameters(set []plantfile.Assignment) (err error) {
	h := s.Handover
	for i := range 1 + len(h.Changes) {
		list, e := h.Parameters(h.SetOfPhase(i, set))
		s.byPhase, err = append(s.byPhase, valuesOf(list)), errors.Join(err, e)
	}
	s.phase, s.byOffer = s.Status.Phase(), map[uint64][][]float64{}
	s.parameters = s.byPhase[s.phase]
	return err
}

// keepParameters keeps the parameters of an offer, by phase, until the loop has decided it.
func (s *streams) keepParameters(offer uint64, list [][]network.Parameter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.byOffer[offer] = nil
	for _, l := range list {
		s.byOffer[offer] = append(s.byOffer[offer], valuesOf(l))
	}
}

// valuesOf returns the values of parameters, SI.
func valuesOf(list []network.Parameter) (values []float64) {
	for _, p := range list {
		values = append(values, p.Value)
	}
	return values
}

// entry takes an entry of the ring.
func (s *streams) entry(e *rt.Entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch e.Kind {
	case rt.KindStep:
		s.pass() // one of several steps in one wake-up
		copy(s.u, e.U)
		copy(s.y, e.Y)
		s.pending, s.lost = true, 0
		if s.tick > 0 {
			s.lost = max(0, e.Tick-s.tick-1) // the ring was full
		}
		s.tick = e.Tick
		s.traffic.BeginTick(s.tick)
	case rt.KindChange:
		s.changeParameters(e)
	case rt.KindState:
		s.moved = s.moved || !e.Refused
	case rt.KindFrame:
		if traffic.OnBus(e) && e.Message >= 0 {
			s.decode(e)
		}
		s.traffic.AddFrame(e)
	case rt.KindTiming:
		s.lateNs, s.workNs = e.Spent[rt.Before]+e.Spent[rt.WakeUp], e.Spent[rt.Receive]+e.Spent[rt.Step]+e.Spent[rt.Send]
		s.pass()
	}
}

// changeParameters takes a change of the scenario or an offer that the loop has decided.
func (s *streams) changeParameters(e *rt.Entry) {
	offer := s.byOffer[e.Batch]
	delete(s.byOffer, e.Batch)
	switch {
	case e.Refused:
		return
	case e.Slot >= 0:
		s.phase = e.Slot + 1
	case offer != nil:
		s.byPhase = offer
	}
	s.moved = true
	s.parameters = s.byPhase[s.phase]
}

// ownInput returns an input that follows the plant's own waveform unless it is set, at the last tick, SI. The loop does
// not have the value of the waveform: its u keeps the start value until a fault or a command sets another one. NaN: the
// value is not known, because a change of the plant or a restored state has changed the waveform.
func (s *streams) ownInput(i int) float64 {
	switch {
	case s.u[i] != s.Handover.Loop.Start[i], s.overridden(i):
		return s.u[i]
	case s.moved:
		return math.NaN()
	}
	t := s.Handover.Tables
	return kernel.SourceAt(&t.Signals[t.InputSignal[i]].Source, float64(s.tick*t.PeriodNs)/1e9+t.Delay[i])
}

// decode reads the signals of a frame.
func (s *streams) decode(e *rt.Entry) {
	for _, w := range s.description.messages[traffic.KeyOf(e)] {
		if int(e.Frame.Len) >= w.bytes && w.message.Present(w.Signal, &e.Frame.Data) {
			s.wire[w.at] = w.Value(w.Raw(&e.Frame.Data))
		}
	}
}

// pass passes the last tick to the streams.
func (s *streams) pass() {
	if !s.pending {
		return
	}
	s.pending = false
	for _, c := range s.list {
		c.take(s)
	}
	s.traffic.EndTick(s.lost)
}

// add adds a stream of signals; every 0: every tick.
func (s *streams) add(signals []*Signal, every int64) *stream {
	numbers := len(signals)
	if every > 0 {
		numbers *= 3
	}
	c := &stream{signals: signals, every: every, size: min(max(queueNumbers/numbers, 8), maxQueue), wake: make(chan struct{}, 1)}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = append(s.list, c)
	return c
}

// remove removes a stream.
func (s *streams) remove(c *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = slices.DeleteFunc(s.list, func(o *stream) bool { return o == c })
}

// take adds the last tick to the open sample, and queues the sample at the end of its interval.
func (c *stream) take(s *streams) {
	o := &c.open
	if c.ticks > 0 && (s.tick-1)/c.every != (o.Tick-1)/c.every { // the end of the interval was lost
		c.enqueue()
	}
	o.Lost += s.lost
	o.Tick, o.Time = s.tick, float64(s.tick*s.Handover.Tables.PeriodNs)/1e9
	if c.ticks == 0 {
		o.Last = make(strictjson.Numbers, len(c.signals))
		if c.every > 0 {
			o.Min, o.Max = make(strictjson.Numbers, len(c.signals)), make(strictjson.Numbers, len(c.signals))
		}
	}
	for i, signal := range c.signals {
		v := signal.value(s)
		if o.Last[i] = v; c.every == 0 {
			continue
		}
		if c.ticks == 0 || !(v >= o.Min[i]) && !math.IsNaN(v) {
			o.Min[i] = v
		}
		if c.ticks == 0 || !(v <= o.Max[i]) && !math.IsNaN(v) {
			o.Max[i] = v
		}
	}
	if c.ticks++; c.every == 0 || s.tick%c.every == 0 {
		c.enqueue()
	}
}

// enqueue queues the open sample. A full queue drops its oldest sample, whose ticks the next one reports
// as lost.
func (c *stream) enqueue() {
	c.open.ticks = c.ticks
	if c.queue = append(c.queue, c.open); len(c.queue) > c.size {
		c.queue[1].Lost += c.queue[0].Lost + c.queue[0].ticks
		c.queue = c.queue[1:]
	}
	c.open, c.ticks = Sample{}, 0
	select {
	case c.wake <- struct{}{}:
	default: // it is awake
	}
}

// next takes the oldest sample from the queue of a stream. end: the run has ended, and the open sample is
// the last one.
func (s *streams) next(c *stream, end bool) (line Sample, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if end && c.ticks > 0 {
		c.enqueue()
	}
	if len(c.queue) == 0 {
		return line, false
	}
	line, c.queue = c.queue[0], c.queue[1:]
	return line, true
}

// Values is the answer to a request for values.
type Values struct {
	Tick   int64   `json:"tick"`   // tick of the values
	Time   float64 `json:"time_s"` // simulated time of Tick, s
	Values []Value `json:"values"` // in the order of the request
}

// Value is the value of a signal.
type Value struct {
	Name  string   `json:"name"`
	Unit  string   `json:"unit"`
	Value *float64 `json:"value"`          // nil: not known: no frame had it yet, see also ownInput
	Text  string   `json:"text,omitempty"` // text of the value
}

// values returns signals at the present tick, or at the last tick that the ring had room for.
func (s *streams) values(signals []*Signal) (*Values, error) {
	now := int64(s.Status.Ticks.Load())
	for end := time.Now().Add(valueTimeout); s.readUntil() < now && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tick == 0 && !s.begun {
		return nil, errors.New("the run has not ticked yet")
	}
	a := &Values{Tick: s.tick, Time: float64(s.tick*s.Handover.Tables.PeriodNs) / 1e9, Values: []Value{}}
	for _, signal := range signals {
		v := signal.value(s)
		a.Values = append(a.Values, Value{signal.Name, signal.Unit, strictjson.Finite(v), signal.text(v)})
	}
	return a, nil
}

// readUntil returns the last tick that is complete.
func (s *streams) readUntil() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pending {
		return s.tick - 1
	}
	return s.tick
}

// parseEvery reads the interval of a stream as ticks, rounded up; 0: every tick.
func parseEvery(text string, periodNs int64) (int64, error) {
	if text == "tick" {
		return 0, nil
	}
	every, ok := parseTicks(text, periodNs)
	if !ok {
		return 0, fmt.Errorf("every: %.60q is neither tick nor a time up to %v, like 100ms", text, maxInterval)
	}
	return every, nil
}

// parseTicks reads a time as ticks, rounded up; false: it is no time up to maxInterval.
func parseTicks(text string, periodNs int64) (int64, bool) {
	d, err := units.Typed(text, "s")
	if err != nil || !(d > 0 && d <= maxInterval.Seconds()) {
		return 0, false
	}
	ns := max(1, int64(math.RoundToEven(d*1e9))) // a decimal time is not a whole number of ns in binary
	return (ns + periodNs - 1) / periodNs, true
}

// serveStream writes a stream as lines of JSON until the client leaves, reads nothing for streamTimeout,
// or the run has ended.
func (c *Server) serveStream(w http.ResponseWriter, r *http.Request) (any, error) {
	signals, err := c.streams.description.find(r.URL.Query()["signal"])
	if err != nil {
		return nil, err
	}
	every, err := parseEvery(r.URL.Query().Get("every"), c.Handover.Tables.PeriodNs)
	if err != nil {
		return nil, err
	}
	start := StreamStart{Period: c.streams.description.Period, Every: max(1, every)}
	for _, s := range signals {
		start.Signals = append(start.Signals, StreamSignal{s.Name, s.Unit})
	}
	samples := c.streams.add(signals, every)
	defer c.streams.remove(samples)
	c.writeLines(w, r, start, samples.wake, func(end bool) (any, bool) { return c.streams.next(samples, end) })
	return nil, nil
}

// serveFrames writes a stream of frames as lines of JSON until the client leaves, reads nothing for
// streamTimeout, or the run has ended.
func (c *Server) serveFrames(w http.ResponseWriter, r *http.Request) (any, error) {
	every, err := parseEvery(r.URL.Query().Get("every"), c.Handover.Tables.PeriodNs)
	if err != nil {
		return nil, err
	}
	frames, err := c.streams.traffic.Open(r.URL.Query()["message"], every)
	if err != nil {
		return nil, err
	}
	defer frames.Close()
	c.writeLines(w, r, frames.Start(), frames.Wake, func(end bool) (any, bool) { return frames.Next(end) })
	return nil, nil
}

// writeLines writes a stream: start, then the lines that next returns each time that wake holds a token, and
// at the end of the run a StreamEnd. end: the ring is read to its end.
func (c *Server) writeLines(w http.ResponseWriter, r *http.Request, start any, wake <-chan struct{}, next func(end bool) (any, bool)) {
	c.waitingClients.Add(1)
	defer c.waitingClients.Add(-1)
	w.Header().Set("Content-Type", "application/x-ndjson")
	lines, conn, timeout := json.NewEncoder(w), http.NewResponseController(w), c.streamTimeout
	write := func(line any) bool {
		_ = conn.SetWriteDeadline(time.Now().Add(timeout))
		return lines.Encode(line) == nil
	}
	ended := false
	for ok := write(start); ok; {
		for ok {
			line, more := next(ended)
			if !more {
				break
			}
			ok = write(line)
		}
		if ended && ok {
			write(StreamEnd{c.ended.Ended, c.ended.Clean, c.ended.Tick, c.ended.Time})
			_ = conn.Flush() // before the connections are closed
			return
		}
		if !ok || conn.Flush() != nil {
			return
		}
		select {
		case <-wake:
		case <-r.Context().Done():
			return
		case <-c.reportReady: // the ring is read to its end
			ended = true
		}
	}
}
