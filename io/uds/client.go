package uds

import (
	"errors"
	"fmt"
	"slices"

	"lockstep/io/can"
	"lockstep/io/isotp"
)

// Timing has the times of a client, ns; 0: the default of ISO 14229-2, or our own.
type Timing struct {
	P2     int64 // from the request to the answer; default 50 ms. The unit may change it with its session
	P2Star int64 // from "response pending" to the answer; default 5 s. The unit may change it with its session
	Delta  int64 // added to both for the bus and the gateways; default 200 ms
	S3     int64 // from one "tester present" to the next, outside the default session; default 2 s
	Limit  int64 // from the request to the last answer, however often the unit answers "response pending"; default 60 s
}

func (t *Timing) setDefaults() {
	for _, v := range []struct {
		time *int64
		ns   int64
	}{{&t.P2, 50e6}, {&t.P2Star, 5e9}, {&t.Delta, 200e6}, {&t.S3, 2e9}, {&t.Limit, 60e9}} {
		if *v.time == 0 {
			*v.time = v.ns
		}
	}
}

// Exchange is a request and how it ended.
type Exchange struct {
	Request []byte
	Answer  []byte // positive or negative; nil: none
	Pending int    // "response pending" before it
	Start   int64  // instant of the request, ns
	End     int64  // instant of the end, ns
	Err     error  // *Negative, ErrSilent or another fault of the unit; nil: a positive answer, or none is due
}

// String returns the exchange as a line: request and answer as bytes.
func (e *Exchange) String() string {
	text := "request " + Bytes(e.Request)
	if e.Answer != nil {
		text += ", answer " + Bytes(e.Answer)
	} else {
		text += ", no answer"
	}
	if e.Pending > 0 {
		text += fmt.Sprintf(" after %d times response pending", e.Pending)
	}
	return text
}

// Client is a tester's side of the diagnosis of one unit: one request at a time. Use NewClient.
type Client struct {
	timing  Timing
	p2, p2s int64 // of the session, with Delta
	link    *isotp.Link

	open     bool
	exchange Exchange
	quiet    bool   // no positive answer is due
	coming   bool   // the first frame of an answer has come
	deadline int64  // of the answer, ns; isotp.Never while the request is being sent or the answer comes
	missed   []byte // the last request that had no answer in time; nil: none, or its answer has come late

	session   byte  // session of the unit; 1: the default
	keepAlive int64 // next "tester present", ns; isotp.Never: none
	alive     bool  // "tester present" is being sent

	ended  []Exchange
	strays []Exchange
}

// NewClient returns a client on a transport.
func NewClient(transport isotp.Config, timing Timing) (*Client, error) {
	link, err := isotp.NewLink(transport)
	if err != nil {
		return nil, err
	}
	timing.setDefaults()
	c := &Client{timing: timing, link: link, deadline: isotp.Never}
	c.enterSession(1, timing.P2, timing.P2Star, 0)
	return c, nil
}

// enterSession notes the session of the unit and its times, ns.
func (c *Client) enterSession(session byte, p2, p2Star, now int64) {
	c.session, c.p2, c.p2s = session, p2+c.timing.Delta, p2Star+c.timing.Delta
	c.keepAlive = isotp.Never
	if session != 1 {
		c.keepAlive = now + c.timing.S3
	}
}

// Idle reports whether the client can take a request.
func (c *Client) Idle() bool { return !c.open && !c.alive }

// Session returns the session of the unit: 1 is the default session.
func (c *Client) Session() byte { return c.session }

// Request begins a request; the client must be idle. Take returns its exchange.
func (c *Client) Request(data []byte, now int64) error {
	if !c.Idle() {
		return errors.New("uds: the request before is still open")
	}
	if err := c.link.Send(data, now); err != nil {
		return err
	}
	s := services[data[0]]
	c.open, c.coming, c.deadline = true, false, isotp.Never
	c.quiet = s.function && len(data) > 1 && data[1]&suppress != 0
	c.exchange = Exchange{Request: slices.Clone(data), Start: now}
	return nil
}

// Receive processes a frame of the bus at an instant, ns; false: it is not of the client.
func (c *Client) Receive(f *can.Frame, now int64) bool {
	c.Poll(now)
	ours := c.link.Receive(f, now)
	c.collect(now)
	return ours
}

// Next returns the frame that is to be sent now: isotp.Link.Next.
func (c *Client) Next(now int64) (can.Frame, bool) {
	c.Poll(now)
	return c.link.Next(now)
}

// Sent confirms that the bus has taken the frame of Next.
func (c *Client) Sent(now int64) {
	c.link.Sent(now)
	c.collect(now)
}

// Deadline returns the instant, ns, at which Poll or Next has work; isotp.Never: none.
func (c *Client) Deadline() int64 {
	next := min(c.link.Deadline(), c.deadline)
	if c.open {
		return min(next, c.exchange.Start+c.timing.Limit)
	}
	return min(next, c.keepAlive)
}

// Poll ends a request whose time is over, and keeps a session alive.
func (c *Client) Poll(now int64) {
	c.link.Poll(now)
	c.collect(now)
	switch {
	case c.open && now >= c.exchange.Start+c.timing.Limit:
		c.link.Abort()
		c.end(nil, fmt.Errorf("%w within %d s: response pending %d times", ErrSilent, c.timing.Limit/1e9, c.exchange.Pending), now)
	case c.open && now >= c.deadline:
		c.endSilent(now)
	case c.Idle() && now >= c.keepAlive:
		c.alive = c.link.Send([]byte{TesterPresent, suppress}, now) == nil
		c.keepAlive = now + c.timing.S3
	}
}

// endSilent ends a request that has no answer in time.
func (c *Client) endSilent(now int64) {
	if c.quiet && c.exchange.Pending == 0 {
		c.end(nil, nil, now)
		return
	}
	c.missed = c.exchange.Request
	switch {
	case c.exchange.Pending > 0:
		c.end(nil, fmt.Errorf("%w within %d ms after response pending", ErrSilent, c.p2s/1e6), now)
	default:
		c.end(nil, fmt.Errorf("%w %s within %d ms", ErrSilent, ServiceName(c.exchange.Request[0]), c.p2/1e6), now)
	}
}

// Take removes and returns the exchanges that have ended since the last call.
func (c *Client) Take() []Exchange {
	list := c.ended
	c.ended = nil
	return list
}

// Strays removes and returns the messages of the unit that no request had asked for, each with the request before.
func (c *Client) Strays() []Exchange {
	list := c.strays
	c.strays = nil
	return list
}

// Abort drops the open request without an exchange.
func (c *Client) Abort() {
	c.link.Abort()
	c.open, c.alive, c.deadline = false, false, isotp.Never
}

// collect processes the events of the link.
func (c *Client) collect(now int64) {
	for _, e := range c.link.Take() {
		switch {
		case e.Kind == isotp.Sent && c.alive:
			c.alive = false
		case e.Kind == isotp.SendFailed && c.alive:
			c.alive = false
		case e.Kind == isotp.Received && !c.open:
			c.stray(e.Data, e.At)
		case !c.open:
		case e.Kind == isotp.Sent && c.deadline == isotp.Never && !c.coming:
			c.deadline = e.At + c.p2
		case e.Kind == isotp.Started:
			c.coming, c.deadline = true, isotp.Never
		case e.Kind == isotp.Received:
			c.coming = false
			c.receive(e.Data, e.At)
		case e.Kind == isotp.SendFailed:
			c.end(nil, fmt.Errorf("the request was not sent: %v", e.Result), e.At)
		case e.Kind == isotp.ReceiveFailed && e.Result != isotp.Unexpected:
			c.end(nil, fmt.Errorf("the answer was not complete: %v", e.Result), e.At)
		}
	}
}

// maxStrays bounds the messages kept that no request had asked for.
const maxStrays = 100

func (c *Client) stray(data []byte, at int64) {
	err := fmt.Errorf("the unit sent %s, for which no request was open; the last request was %s", Bytes(data), Bytes(c.exchange.Request))
	if c.isLate(data) {
		err = fmt.Errorf("the unit sent %s too late, the answer to %s", Bytes(data), Bytes(c.missed))
		if data[0] != negative || data[2] != pendingAnswer { // after "response pending" the answer is still to come
			c.missed = nil
		}
	}
	if len(c.strays) < maxStrays {
		c.strays = append(c.strays, Exchange{Request: c.exchange.Request, Answer: data, Start: at, End: at, Err: err})
	}
}

// isLate reports whether a message answers the last request that had no answer in time.
func (c *Client) isLate(data []byte) bool {
	if c.missed == nil || data[0] != negative {
		return c.missed != nil && checkAnswer(c.missed, data) == nil
	}
	return len(data) == 3 && data[1] == c.missed[0]
}

// receive processes an answer.
func (c *Client) receive(data []byte, now int64) {
	request := c.exchange.Request
	if !fits(request, data) && c.isLate(data) {
		c.stray(data, now)
		c.deadline = now + c.p2
		return
	}
	c.missed = nil
	if data[0] != negative {
		err := checkAnswer(request, data)
		if err == nil && request[0] == SessionControl {
			c.noteSession(data, now)
		}
		if err == nil && request[0] == ECUReset {
			c.enterSession(1, c.timing.P2, c.timing.P2Star, now)
		}
		c.end(data, err, now)
		return
	}
	switch {
	case len(data) != 3:
		c.end(data, errWrong(request, data, "a negative response has 3 bytes"), now)
	case data[1] != request[0]:
		c.end(data, errWrong(request, data, "it refuses another service"), now)
	case data[2] == pendingAnswer:
		c.exchange.Pending++
		c.deadline = now + c.p2s
	default:
		c.end(data, &Negative{data[1], data[2]}, now)
	}
}

// fits reports whether a message may answer a request: it is a negative response to its service, or a right answer.
func fits(request, data []byte) bool {
	if data[0] == negative {
		return len(data) == 3 && data[1] == request[0]
	}
	return checkAnswer(request, data) == nil
}

// noteSession notes the session of the unit, and the times that it sends: P2 in ms and P2* in 10 ms.
func (c *Client) noteSession(answer []byte, now int64) {
	p2, p2Star := c.timing.P2, c.timing.P2Star
	if len(answer) == 6 {
		p2 = max(c.timing.P2, (int64(answer[2])<<8|int64(answer[3]))*1e6)
		p2Star = max(c.timing.P2Star, (int64(answer[4])<<8|int64(answer[5]))*10e6)
	}
	c.enterSession(answer[1], p2, p2Star, now)
}

// end ends the open request.
func (c *Client) end(answer []byte, err error, now int64) {
	c.exchange.Answer, c.exchange.Err, c.exchange.End = answer, err, now
	c.open, c.coming, c.deadline = false, false, isotp.Never
	c.ended = append(c.ended, c.exchange)
	if c.session != 1 {
		c.keepAlive = now + c.timing.S3
	}
}
