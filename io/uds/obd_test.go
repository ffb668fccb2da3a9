package uds

import (
	"fmt"
	"strings"
	"testing"

	"lockstep/io/can"
	"lockstep/io/isotp"
)

// askGroup runs a request to units that answer at identifiers, in virtual time.
func askGroup(t *testing.T, g *Group, units map[uint32]*unit, request ...byte) (list []UnitAnswer, seen []can.Frame) {
	t.Helper()
	now := int64(0)
	if err := g.Request(request, now); err != nil {
		t.Fatal(err)
	}
	for range 10000 {
		for f, ok := g.Next(now); ok; f, ok = g.Next(now) {
			g.Sent(now)
			seen = append(seen, f)
			for id, u := range units {
				if f.ID == OBDRequest || f.ID == OBDRequest29 {
					u.asked = append(u.asked, f.Data[1:1+f.Data[0]])
					for _, r := range u.answer(f.Data[1 : 1+f.Data[0]]) {
						u.queue = append(u.queue, reply{r.after, r.data})
					}
				} else if f.ID == u.link0(id) {
					u.link.Receive(&f, now)
				}
			}
		}
		next := g.Deadline()
		for id := uint32(0); ; id++ {
			u := units[id]
			if id > 0x7F {
				break
			}
			if u == nil {
				continue
			}
			if len(u.queue) > 0 && int64(u.queue[0].after) <= now && !u.link.Sending() {
				_ = u.link.Send(u.queue[0].data, now)
				u.queue = u.queue[1:]
			}
			for f, ok := u.link.Next(now); ok; f, ok = u.link.Next(now) {
				u.link.Sent(now)
				g.Receive(&f, now)
			}
			next = min(next, u.link.Deadline())
			if len(u.queue) > 0 {
				next = min(next, int64(u.queue[0].after))
			}
		}
		if _, ok := g.Next(now); ok {
			continue
		}
		if list, done := g.Done(now); done {
			return list, seen
		}
		now = max(now, next)
	}
	t.Fatal("the request never ends")
	return nil, nil
}

// link0 returns the identifier at which a unit of the test receives flow controls: unit n of 0x7E8, or address n.
func (u *unit) link0(n uint32) uint32 {
	if u.sent == 29 {
		return 0x18DA00F1 | can.EFF | n<<8
	}
	return 0x7E0 + n
}

func obdUnit(t *testing.T, n uint32, wide bool, answer func([]byte) []reply) *unit {
	t.Helper()
	a, sent := isotp.Normal(0x7E8+n, 0x7E0+n), 0
	if wide {
		a, sent = isotp.NormalFixed(0xF1, uint8(n)), 29
	}
	l, err := isotp.NewLink(isotp.Config{Address: a})
	if err != nil {
		t.Fatal(err)
	}
	return &unit{link: l, answer: answer, sent: sent}
}

func obdAnswers(q []byte) []reply {
	switch fmt.Sprintf("% X", q) {
	case "01 0C":
		return now(0x41, 0x0C, 0x1A, 0xF8)
	case "03":
		return now(0x43, 4, 0x07, 0x30, 0x01, 0x23, 0xC1, 0x01, 0x40, 0x00)
	case "07":
		return now(0x47, 0)
	case "0A":
		return now(0x4A, 1, 0x07, 0x30)
	case "04":
		return []reply{{0, []byte{0x7F, 4, 0x78}}, {2e9, []byte{0x44}}}
	case "02 05 00":
		return now(0x42, 0x05, 0, 0x7B)
	case "02 02 00":
		return now(0x42, 0x02, 0, 0x07, 0x30)
	case "01 01":
		return now(0x41, 1, 0x82, 0, 0, 0)
	case "01 00":
		return now(0x41, 0, 0x18, 0, 0, 1)
	case "09 02":
		return now(append([]byte{0x49, 2, 1}, "WDB12345678901234"...)...)
	}
	return now(0x7F, q[0], 0x12)
}

// Two units answer each mode, on both functional identifiers; long answers come in several frames at once.
func TestEveryModeOfOBDIsAnsweredByAllUnits(t *testing.T) {
	for _, wide := range []bool{false, true} {
		request, first := uint32(OBDRequest), uint32(0x7E9)
		numbers := []uint32{1, 2}
		if wide {
			request, first, numbers = OBDRequest29, 0x18DAF110|can.EFF, []uint32{0x10, 0x18}
		}
		for mode, want := range map[string]string{
			"01 0C": "engine speed 1726 rpm", "03": "P0730 P0123 U0101 C0000", "07": "no codes", "0A": "P0730", "04": "cleared", "02 05 00": "coolant temperature 83 degC",
			"02 02 00": "freeze frame of P0730", "01 01": "warning lamp on, 2 stored codes", "01 00": "supports 04 05 20", "09 02": "VIN WDB12345678901234",
		} {
			g, err := NewGroup(request, isotp.Config{Pad: true}, Timing{})
			if err != nil {
				t.Fatal(err)
			}
			units := map[uint32]*unit{}
			for _, n := range numbers {
				units[n] = obdUnit(t, n, wide, obdAnswers)
			}
			list, seen := askGroup(t, g, units, unhex(mode)...)
			if len(list) != 2 || list[0].ID != first || list[1].ID == first {
				t.Errorf("mode %s at %s: %+v", mode, can.FormatID(request), list)
				continue
			}
			for _, a := range list {
				if got, err := DescribeOBD(a.Data); err != nil || a.Err != nil || got != want {
					t.Errorf("mode %s: %q, %v, %v; want %q", mode, got, err, a.Err, want)
				}
			}
			if seen[0].ID != request {
				t.Errorf("asked at %s", can.FormatID(seen[0].ID))
			}
		}
	}
}

func TestWrongAnswersToAllAreNamed(t *testing.T) {
	for want, answer := range map[string][]byte{
		"negative response 0x12": {0x7F, 3, 0x12}, "another service": {0x47, 0}, "it is no negative response": {0x7F, 4, 0x12}, "the unit does not answer within 5200 ms": {0x7F, 3, 0x78},
	} {
		g, _ := NewGroup(OBDRequest, isotp.Config{}, Timing{})
		list, _ := askGroup(t, g, map[uint32]*unit{0: obdUnit(t, 0, false, func([]byte) []reply { return now(answer...) })}, 3)
		if len(list) != 1 || list[0].Err == nil || !strings.Contains(list[0].Err.Error(), want) {
			t.Errorf("%+v, want %s", list, want)
		}
	}
	if list, _ := askGroup(t, newGroup(t), nil, 3); list != nil {
		t.Errorf("%+v", list)
	}
	if _, err := NewGroup(0x7E0, isotp.Config{}, Timing{}); err == nil {
		t.Error("0x7E0 is a functional identifier")
	}
	for _, a := range [][]byte{{0x43, 2, 7}, {0x41}, {0x41, 0x0C, 1}, {}, {0x03}} {
		if text, err := DescribeOBD(a); err == nil {
			t.Errorf("% X: %s", a, text)
		}
	}
}

func newGroup(t *testing.T) *Group {
	t.Helper()
	g, err := NewGroup(OBDRequest, isotp.Config{}, Timing{})
	if err != nil {
		t.Fatal(err)
	}
	return g
}
