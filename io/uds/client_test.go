package uds

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"lockstep/io/can"
	"lockstep/io/isotp"
)

// unit is a unit of the test. answer returns what it sends for a request, one after the other.
type unit struct {
	link   *isotp.Link
	answer func(request []byte) []reply
	queue  []reply
	alter  func(n int, f *can.Frame) bool // changes frame n of the unit; false: it is lost
	sent   int
	asked  [][]byte
}

// reply is a message of a unit after a delay.
type reply struct {
	after time.Duration
	data  []byte
}

func now(data ...byte) []reply { return []reply{{0, data}} }

// rig connects a client with a unit in virtual time.
type rig struct {
	t      *testing.T
	client *Client
	unit   *unit
	now    int64
	task   *Task
}

var address = isotp.Normal(0x7E1, 0x7E9)

func newRig(t *testing.T, answer func([]byte) []reply) *rig {
	t.Helper()
	c, err := NewClient(isotp.Config{Address: address, Pad: true, PadByte: 0xCC}, Timing{})
	link, err2 := isotp.NewLink(isotp.Config{Address: address.Peer(), Pad: true, PadByte: 0xAA})
	if err = errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	return &rig{t: t, client: c, unit: &unit{link: link, answer: answer}}
}

// exchange moves frames between both ends at an instant.
func (r *rig) exchange() {
	for moved := true; moved; {
		moved = false
		if f, ok := r.client.Next(r.now); ok {
			r.client.Sent(r.now)
			r.unit.link.Receive(&f, r.now)
			moved = true
		}
		if f, ok := r.unit.link.Next(r.now); ok {
			r.unit.link.Sent(r.now)
			n := r.unit.sent
			r.unit.sent++
			if r.unit.alter == nil || r.unit.alter(n, &f) {
				r.client.Receive(&f, r.now)
			}
			moved = true
		}
		for _, e := range r.unit.link.Take() {
			if e.Kind == isotp.Received {
				r.unit.asked = append(r.unit.asked, e.Data)
				for _, a := range r.unit.answer(e.Data) {
					r.unit.queue = append(r.unit.queue, reply{time.Duration(r.now) + a.after, a.data})
				}
			}
		}
		if q := r.unit.queue; len(q) > 0 && int64(q[0].after) <= r.now && !r.unit.link.Sending() {
			_ = r.unit.link.Send(q[0].data, r.now)
			r.unit.queue = q[1:]
			moved = true
		}
		if r.task != nil {
			n := len(r.task.Exchanges)
			_, _ = r.task.Step(r.now)
			moved = moved || len(r.task.Exchanges) > n
		}
	}
}

// next returns the next instant at which something happens.
func (r *rig) next() int64 {
	next := min(r.client.Deadline(), r.unit.link.Deadline())
	if r.task != nil {
		next = min(next, r.task.Deadline())
	}
	if len(r.unit.queue) > 0 {
		next = min(next, max(r.now, int64(r.unit.queue[0].after)))
	}
	return next
}

// run runs a procedure to its end and returns its error.
func (r *rig) run(procedure func(*Tester) error) error {
	r.t.Helper()
	r.task = Begin(r.client, procedure)
	defer func() { r.task.End(); r.task = nil }()
	_, _ = r.task.Step(r.now)
	for range 100000 {
		r.exchange()
		if done, err := r.task.Step(r.now); done {
			return err
		}
		next := r.next()
		if next == isotp.Never {
			r.t.Fatal("the procedure waits for nothing")
		}
		r.now = max(r.now, next)
	}
	r.t.Fatal("the procedure never ends")
	return nil
}

// until lets the time pass.
func (r *rig) until(at int64) {
	for r.exchange(); r.next() <= at; r.exchange() {
		r.now = max(r.now, r.next())
	}
	r.now = at
}

// Each wrong answer of a unit ends with one clear error, at a bounded time.
func TestEachWrongAnswerEndsWithAClearError(t *testing.T) {
	long := append([]byte{0x62, 0x10, 0x01}, make([]byte, 100)...)
	ever := func([]byte) (list []reply) {
		for i := range 1000 {
			list = append(list, reply{time.Duration(i) * time.Second, []byte{0x7F, 0x22, 0x78}})
		}
		return list
	}
	only := func(data ...byte) func([]byte) []reply { return func([]byte) []reply { return now(data...) } }
	for _, c := range []struct {
		name   string
		answer func([]byte) []reply
		alter  func(int, *can.Frame) bool
		want   string
		within time.Duration
	}{
		{"silence", func([]byte) []reply { return nil }, nil, "the unit does not answer 0x22 ReadDataByIdentifier within 250 ms", 250 * time.Millisecond},
		{"too short", only(0x62, 0x10, 0x01), nil, "answer 62 10 01 to request 22 10 01: 3 bytes are too short for 0x22 ReadDataByIdentifier, which has at least 4", 0},
		{"other identifier", only(0x62, 0x10, 0x02, 5), nil, "answer 62 10 02 05 to request 22 10 01: byte 2 is 0x02, want 0x01 of the request", 0},
		{"other service", only(0x59, 0x02, 0xFF), nil, "answer 59 02 FF to request 22 10 01: it answers another service", 0},
		{"negative of another service", only(0x7F, 0x19, 0x31), nil, "answer 7F 19 31 to request 22 10 01: it refuses another service", 0},
		{"negative of two bytes", only(0x7F, 0x22), nil, "answer 7F 22 to request 22 10 01: a negative response has 3 bytes", 0},
		{"negative", only(0x7F, 0x22, 0x33), nil, "the unit refuses 0x22 ReadDataByIdentifier: negative response 0x33 securityAccessDenied", 0},
		{"negative without a name", only(0x7F, 0x22, 0xFA), nil, "negative response 0xFA a code without a name", 0},
		{"endless pending", ever, nil, "the unit does not answer within 60 s: response pending 60 times", time.Minute},
		{"silence after pending", only(0x7F, 0x22, 0x78), nil, "the unit does not answer within 5200 ms after response pending", 5200 * time.Millisecond},
		{"silence within the transfer", only(long...), func(n int, _ *can.Frame) bool { return n < 3 }, "the answer was not complete: no consecutive frame in time (N_TIMEOUT_Cr)", time.Second},
		{"wrong sequence number", only(long...), func(n int, f *can.Frame) bool { f.Data[0] += uint8(n / 4 % 2); return true }, "the answer was not complete: wrong sequence number (N_WRONG_SN)", 0},
		{"segmented garbage", only(long...), func(n int, f *can.Frame) bool {
			if n > 0 {
				f.Data = [64]byte{0x2F, 0x13, 0x37}
			}
			return true
		}, "the answer was not complete: wrong sequence number (N_WRONG_SN)", 0},
		{"garbage in place of frames", only(long...), func(n int, f *can.Frame) bool { f.Data = [64]byte{0xEE, 1, 2, 3}; return true },
			"the unit does not answer 0x22 ReadDataByIdentifier within 250 ms", 250 * time.Millisecond},
		{"more than the client takes", only(make([]byte, 5000)...), nil, "the answer was not complete: the receiver has no room for the message (N_BUFFER_OVFLW)", 0},
		{"first frames without end", only(long...), func(n int, f *can.Frame) bool {
			if n > 0 {
				f.Data = [64]byte{0x10, 100, 0x62, 0x10, 0x01}
			}
			return true
		}, "the answer was not complete: no consecutive frame in time (N_TIMEOUT_Cr)", time.Second},
	} {
		r := newRig(t, c.answer)
		r.unit.alter = c.alter
		err := r.run(func(t *Tester) error {
			_, err := t.ReadData(0x1001)
			return err
		})
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
		if r.now != int64(c.within) {
			t.Errorf("%s: ended after %v, want %v", c.name, time.Duration(r.now), c.within)
		}
	}
}

func TestSecondAnswerIsReported(t *testing.T) {
	r := newRig(t, func([]byte) []reply { return []reply{{0, []byte{0x62, 0x10, 1, 7}}, {0, []byte{0x62, 0x10, 1, 8}}} })
	err := r.run(func(t *Tester) error { _, err := t.ReadData(0x1001); return err })
	r.until(r.now + 1e9)
	strays := r.client.Strays()
	if err != nil || len(strays) != 1 || strays[0].Err.Error() != "the unit sent 62 10 01 08, for which no request was open; the last request was 22 10 01" {
		t.Errorf("%v, %v", err, strays)
	}
}

// The unit answers "response pending" within P2, then every 2 s, and at last the value.
func TestResponsePendingExtendsTheTime(t *testing.T) {
	r := newRig(t, func([]byte) []reply {
		pending := []byte{0x7F, 0x22, 0x78}
		return []reply{{200 * time.Millisecond, pending}, {2 * time.Second, pending}, {7 * time.Second, []byte{0x62, 0x10, 1, 0x5A}}}
	})
	var got []byte
	err := r.run(func(t *Tester) (err error) { got, err = t.ReadData(0x1001); return err })
	if err != nil || !bytes.Equal(got, []byte{0x5A}) || r.now != 7e9 {
		t.Errorf("% X, %v, at %v", got, err, time.Duration(r.now))
	}
}

func TestSessionIsKeptAliveAndItsTimesApply(t *testing.T) {
	r := newRig(t, func(q []byte) []reply {
		switch q[0] {
		case SessionControl:
			return now(0x50, q[1], 0, 100, 0x02, 0x58) // 100 ms, 6 s
		case ECUReset:
			return now(0x51, q[1])
		}
		return nil
	})
	if err := r.run(func(t *Tester) error { return t.Session(3) }); err != nil || r.client.Session() != 3 {
		t.Fatal(err)
	}
	r.until(7e9)
	presents := 0
	for _, q := range r.unit.asked[1:] {
		if !bytes.Equal(q, []byte{0x3E, 0x80}) {
			t.Errorf("the client sent % X", q)
		}
		presents++
	}
	if presents != 3 {
		t.Errorf("%d times tester present within 7 s, want 3", presents)
	}
	begin := r.now
	if err := r.run(func(t *Tester) error { _, err := t.ReadData(1); return err }); !errors.Is(err, ErrSilent) || r.now-begin != 300e6 {
		t.Errorf("%v after %v, want 300 ms", err, time.Duration(r.now-begin))
	}
	if err := r.run(func(t *Tester) error { return t.Reset(HardReset) }); err != nil || r.client.Session() != 1 {
		t.Error(err, r.client.Session())
	}
	n := len(r.unit.asked)
	if r.until(60e9); len(r.unit.asked) != n {
		t.Error("the default session is kept alive")
	}
}

func TestSuppressedAnswerIsNotAwaitedAsAnError(t *testing.T) {
	r := newRig(t, func(q []byte) []reply {
		if q[1] == 0x81 {
			return now(0x7F, q[0], 0x12)
		}
		return nil
	})
	if err := r.run(func(t *Tester) error { return t.Present() }); err != nil {
		t.Error(err)
	}
	var refused *Negative
	if err := r.run(func(t *Tester) error { _, err := t.Ask(TesterPresent, 0x81); return err }); !errors.As(err, &refused) || refused.Code != 0x12 {
		t.Error(err)
	}
}

// full is a unit that knows all services.
func full(q []byte) []reply {
	switch fmt.Sprintf("% X", q[:min(len(q), 4)]) {
	case "10 03":
		return now(0x50, 3, 0, 50, 1, 0xF4)
	case "11 01":
		return now(0x51, 1)
	case "14 FF FF FF":
		return now(0x54)
	case "19 01 08":
		return now(0x59, 1, 0xFF, 1, 0, 2)
	case "19 02 08":
		return now(0x59, 2, 0xFF, 0x07, 0x30, 0, 0x2F, 0xC1, 0x23, 0x1A, 0x08)
	case "19 04 07 30":
		return now(0x59, 4, 0x07, 0x30, 0, 0x2F, 1, 2, 0x10, 1, 90, 0x10, 2, 0x01, 0x02, 2, 1, 0x77, 0x77, 9, 9)
	case "19 06 07 30":
		return now(0x59, 6, 0x07, 0x30, 0, 0x2F, 1, 3)
	case "19 0A":
		return now(0x59, 0x0A, 0xFF, 0x07, 0x30, 0, 0x40)
	case "22 10 01":
		return now(0x62, 0x10, 1, 90)
	case "27 01":
		return now(0x67, 1, 1, 2, 3, 4)
	case "27 02 FE FD":
		return now(0x67, 2)
	case "28 03 01":
		return now(0x68, 3)
	case "2E 10 02 AB":
		return now(0x6E, 0x10, 2)
	case "2F 20 00 03":
		return now(0x6F, 0x20, 0, 3, 1)
	case "31 01 FF 00":
		return now(0x71, 1, 0xFF, 0, 0x10)
	case "3E 80":
		return nil
	case "85 02":
		return now(0xC5, 2)
	case "85 01":
		return now(0xC5, 1)
	}
	return now(0x7F, q[0], 0x11)
}

func TestEveryServiceIsAskedAndItsAnswerRead(t *testing.T) {
	r := newRig(t, full)
	err := r.run(func(t *Tester) error {
		check := func(what string, ok bool, err error) error {
			if err != nil || !ok {
				return fmt.Errorf("%s: %t, %v", what, ok, err)
			}
			return nil
		}
		n, err := t.CountDTCs(Confirmed)
		list, err2 := t.DTCs(Confirmed)
		all, err3 := t.SupportedDTCs()
		d, records, err4 := t.Snapshots(0x073000, func(id uint16) int { return map[uint16]int{0x1001: 1, 0x1002: 2}[id] })
		_, extended, err5 := t.Extended(0x073000)
		value, err6 := t.ReadData(0x1001)
		state, err7 := t.Control(0x2000, 3, []byte{1})
		status, err8 := t.Routine(1, 0xFF00, []byte{1, 2})
		return errors.Join(
			t.Session(3), check("count", n == 2, err),
			check("codes", slices.Equal(list, []DTC{{0x073000, 0x2F}, {0xC1231A, 8}}) && FormatDTC(0xC1231A) == "U0123-1A" && FormatDTC(0x073000) == "P0730", err2),
			check("all", slices.Equal(all, []DTC{{0x073000, 0x40}}), err3),
			check("snapshots", d.Status == 0x2F && len(records) == 2 && records[0].Values[1].ID == 0x1002 && bytes.Equal(records[0].Values[1].Data, []byte{1, 2}) &&
				bytes.Equal(records[1].Rest, []byte{0x77, 0x77, 9, 9}), err4),
			check("extended", bytes.Equal(extended, []byte{1, 3}), err5), check("value", bytes.Equal(value, []byte{90}), err6),
			check("control", bytes.Equal(state, []byte{1}), err7), check("routine", bytes.Equal(status, []byte{0x10}), err8),
			t.Unlock(1, func(level byte, seed []byte) ([]byte, error) { return []byte{^seed[0], ^seed[1]}, nil }),
			t.Communication(3, 1), t.WriteData(0x1002, []byte{0xAB}), t.DTCSetting(false), t.DTCSetting(true), t.Present(), t.Clear(AllDTCs), t.Reset(HardReset))
	})
	if err != nil {
		t.Error(err)
	}
}

func TestWrongReportsOfCodesAreRefused(t *testing.T) {
	for name, answer := range map[string][]byte{
		"a part of a code": {0x59, 2, 0xFF, 7, 0x30, 0}, "another code": {0x59, 4, 7, 0x31, 0, 0x2F}, "a record without end": {0x59, 4, 7, 0x30, 0, 0x2F, 1, 1, 0x10},
		"no count": {0x59, 1, 0xFF}, "an identifier without data": {0x59, 4, 7, 0x30, 0, 0x2F, 1, 1, 0x10, 1},
	} {
		r := newRig(t, func([]byte) []reply { return now(answer...) })
		err := r.run(func(t *Tester) (err error) {
			switch answer[1] {
			case 1:
				_, err = t.CountDTCs(1)
			case 2:
				_, err = t.DTCs(1)
			default:
				_, _, err = t.Snapshots(0x073000, func(uint16) int { return 1 })
			}
			return err
		})
		if err == nil || !strings.HasPrefix(err.Error(), "answer 59") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestProcedureThatIsDroppedEnds(t *testing.T) {
	r := newRig(t, func([]byte) []reply { return nil })
	ended := false
	task := Begin(r.client, func(t *Tester) error {
		defer func() { ended = true }()
		_, err := t.ReadData(1)
		return err
	})
	_, _ = task.Step(0)
	task.End()
	if !ended || !r.client.Idle() {
		t.Error("the procedure or its request is still open")
	}
}

// FuzzClient gives a client any frames; every request ends.
func FuzzClient(f *testing.F) {
	f.Add([]byte{1, 4, 0x62, 0x10, 1, 5})
	f.Add([]byte{1, 3, 0x7F, 0x22, 0x78, 9, 8, 0x10, 20, 1, 2})
	f.Fuzz(func(t *testing.T, script []byte) {
		c, err := NewClient(isotp.Config{Address: address}, Timing{})
		if err != nil {
			t.Fatal(err)
		}
		now := int64(0)
		for len(script) >= 2 {
			if c.Idle() {
				_ = c.Request([]byte{0x19, 0x02, script[0]}, now)
			}
			for _, ok := c.Next(now); ok; _, ok = c.Next(now) {
				c.Sent(now)
			}
			now += int64(script[0]) * 1e6
			fr := can.Frame{ID: 0x7E9, Len: script[1] % 9}
			script = script[2:]
			script = script[copy(fr.Data[:fr.Len], script):]
			c.Receive(&fr, now)
			c.Take()
		}
		for end := now + 100e9; !c.Idle(); {
			if now = max(now, c.Deadline()); now > end {
				t.Fatal("a request never ends")
			}
			if _, ok := c.Next(now); ok {
				c.Sent(now)
			}
		}
	})
}

// "Response pending" that comes after its time is not the last message of the request before.
func TestLatePendingAnswerIsFollowedByItsAnswer(t *testing.T) {
	r := newRig(t, func(q []byte) []reply {
		if q[0] == 0x22 {
			return []reply{{300 * time.Millisecond, []byte{0x7F, 0x22, 0x78}}, {350 * time.Millisecond, []byte{0x62, 0x10, 0x01, 7}}}
		}
		return []reply{{200 * time.Millisecond, []byte{0x6E, 0x10, 0x02}}}
	})
	err := r.run(func(t *Tester) error {
		if _, err := t.ReadData(0x1001); !errors.Is(err, ErrSilent) {
			return fmt.Errorf("first request: %w", err)
		}
		_, err := t.Ask(0x2E, 0x10, 0x02, 8)
		return err
	})
	if list := r.client.Strays(); err != nil || len(list) != 2 {
		t.Errorf("%v, %v", err, list)
	}
}

// An answer that comes after its time is not taken for the answer to the next request.
func TestLateAnswerDoesNotEndTheNextRequest(t *testing.T) {
	for name, late := range map[string][]byte{"positive": {0x62, 0x10, 0x01, 7}, "long": append([]byte{0x62, 0x10, 0x01}, make([]byte, 20)...), "negative": {0x7F, 0x22, 0x22}} {
		second := []byte{0x2E, 0x10, 0x02, 8}
		r := newRig(t, func(q []byte) []reply {
			if q[0] == 0x22 {
				return []reply{{300 * time.Millisecond, late}}
			}
			return []reply{{100 * time.Millisecond, []byte{0x6E, 0x10, 0x02}}}
		})
		err := r.run(func(t *Tester) error {
			_, err := t.ReadData(0x1001)
			if !errors.Is(err, ErrSilent) {
				return fmt.Errorf("first request: %w", err)
			}
			_, err = t.Ask(second...)
			return err
		})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		strays := r.client.Strays()
		if want := fmt.Sprintf("the unit sent %s too late, the answer to 22 10 01", Bytes(late)); len(strays) != 1 || strays[0].Err.Error() != want {
			t.Errorf("%s: %v, want %s", name, strays, want)
		}
	}
}
