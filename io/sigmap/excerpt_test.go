package sigmap

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"lockstep/io/can"
	"lockstep/io/messages"
)

// placed is a signal with the bits that a DBC file means, the lowest first.
type placed struct {
	messages.Signal
	bits []int
}

// longMessage returns a message of n bytes with signals that do not overlap, and the signals.
func longMessage(random *rand.Rand, n int) (msg messages.Message, list []placed) {
	taken := map[int]bool{}
	for range 400 {
		s := placed{Signal: messages.Signal{Name: fmt.Sprintf("s%d", len(list)), Len: 1 + random.IntN(20), BigEndian: random.IntN(2) == 0, Factor: 1}}
		for at := random.IntN(8 * n); len(s.bits) < s.Len; at++ {
			v := at
			if s.BigEndian { // counted from the highest bit of each byte
				v = at/8*8 + 7 - at%8
			}
			s.bits = append(s.bits, v)
		}
		s.Start = s.bits[0]
		if s.BigEndian {
			slices.Reverse(s.bits)
		}
		if slices.ContainsFunc(s.bits, func(at int) bool { return taken[at] || at >= 8*n }) {
			continue
		}
		for _, at := range s.bits {
			taken[at] = true
		}
		list = append(list, s)
		msg.Signals = append(msg.Signals, s.Signal)
	}
	msg.Name, msg.ID, msg.Len, msg.J1939, msg.Line = "Far", 0x18EF8003|can.EFF, n, true, 1
	return msg, list
}

// raw returns the raw value of a signal.
func (s *placed) raw(data []byte) (v uint64) {
	for i, at := range s.bits {
		v |= uint64(data[at/8]>>(at%8)&1) << i
	}
	return v
}

// Messages of 65 to 1785 bytes with random signals are received and sent. The reference reads and writes
// them bit by bit.
func TestSignalsAnywhereInALongMessageAreBound(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 22))
		n := 65 + random.IntN(messages.MaxLong-64)
		if seed == 0 {
			n = messages.MaxLong
		}
		msg, list := longMessage(random, n)
		start := &list[len(list)-1]
		msg.Signals[len(list)-1].HasInitial, msg.Signals[len(list)-1].Initial = true, 1
		random.Shuffle(len(list)-1, func(i, j int) { list[i], list[j] = list[j], list[i] })
		bound := list[:12] // 12 signals of 3 bytes or 4 take 48 at most
		var names []string
		receive := Spec{PeriodNs: period}
		send := Spec{PeriodNs: period, Sendings: []Sending{{Message: "Far", CycleNs: 1e11, PhaseNs: 0}}}
		for i, s := range bound {
			names = append(names, fmt.Sprintf("p%d", i))
			receive.Receive = append(receive.Receive, Link{"Far", s.Name, names[i]})
			send.Send = append(send.Send, Link{"Far", s.Name, names[i]})
		}
		db := &messages.Database{File: "far.dbc", Messages: []messages.Message{msg}}
		all := ports("1", names...)
		in, err := Bind(db, Spec{PeriodNs: period, Receive: receive.Receive, Receptions: noInvalid(bound)}, all, nil)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		data := make([]byte, n)
		for i := range data {
			data[i] = byte(random.Uint32())
		}
		f := can.Frame{ID: msg.ID, Flags: can.FlagLong}
		f.Len = uint8(in.Rx[0].Excerpt.Cut(&f.Data, data))
		u := make([]float64, len(bound))
		if i, result := in.Decode(u, &f); i != 0 || result != OK {
			t.Fatalf("seed %d: message %d, result %d", seed, i, result)
		}
		for i := range bound {
			if want := bound[i].raw(data); u[i] != float64(want) {
				t.Fatalf("seed %d: %d|%d of %d bytes is %g, want %d", seed, bound[i].Start, bound[i].Len, n, u[i], want)
			}
		}
		for _, short := range []int{n - 1, n / 2, 0} {
			f.Len = uint8(in.Rx[0].Excerpt.Cut(&f.Data, data[:short]))
			if _, result := in.Decode(u, &f); result != Short {
				t.Errorf("seed %d: %d bytes of %d: result %d", seed, short, n, result)
			}
		}
		f.Len = uint8(in.Rx[0].Excerpt.Cut(&f.Data, append(data, 1, 2)))
		before := in.Rx[0].Counts.Beyond
		if _, result := in.Decode(u, &f); result != OK || in.Rx[0].Counts.Beyond != before+2 {
			t.Errorf("seed %d: two bytes beyond: result %d, %d counted", seed, result, in.Rx[0].Counts.Beyond-before)
		}

		out, err := Bind(db, send, nil, all)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if !out.Encode(&f, 0, 0, u, false) {
			t.Fatal("not encoded")
		}
		whole := out.Tx[0].Excerpt.Whole(f.Data[:f.Len])
		ones := make([]bool, 8*n)
		for i := range bound {
			if got := bound[i].raw(whole); float64(got) != u[i] {
				t.Fatalf("seed %d: sent %d|%d of %d bytes is %d, want %g", seed, bound[i].Start, bound[i].Len, n, got, u[i])
			}
			for _, at := range bound[i].bits {
				ones[at] = true
			}
		}
		if got := start.raw(whole); got != 1 {
			t.Errorf("seed %d: the start value is %d", seed, got)
		}
		for _, at := range start.bits {
			ones[at] = true
		}
		for at := range ones {
			if !ones[at] && whole[at/8]>>(at%8)&1 == 0 {
				t.Fatalf("seed %d: bit %d of no signal with a value is 0", seed, at)
			}
		}
	}
}

// noInvalid takes every raw value of the signals as a value.
func noInvalid(list []placed) []Reception {
	r := Reception{Message: "Far"}
	for _, s := range list {
		r.Invalid = append(r.Invalid, InvalidSpec{Signal: s.Name})
	}
	return []Reception{r}
}

// 64 bytes are the last byte and 63 others.
func TestMoreThanTheBytesOfAFrameAreRefused(t *testing.T) {
	msg := messages.Message{Name: "Far", ID: 0x18EF8003 | can.EFF, Len: 200, J1939: true, Line: 1}
	spec, names := Spec{PeriodNs: period}, []string{}
	for i := range 64 {
		name := fmt.Sprintf("s%d", i)
		msg.Signals = append(msg.Signals, messages.Signal{Name: name, Start: 16 * i, Len: 8, Factor: 1})
		names = append(names, name)
		spec.Receive = append(spec.Receive, Link{"Far", name, name})
	}
	db := &messages.Database{File: "far.dbc", Messages: []messages.Message{msg}}
	_, err := Bind(db, spec, ports("1", names...), nil)
	if err == nil || !strings.Contains(err.Error(), "200 bytes; its bound signals and its last byte take 65, and 64 are possible") {
		t.Error(err)
	}
	spec.Receive = spec.Receive[:63]
	if m, err := Bind(db, spec, ports("1", names...), nil); err != nil || m.Rx[0].Len != 64 {
		t.Error(err)
	}
	spec.Receptions = []Reception{{Message: "Far", Protect: []ProtectionSpec{{Profile: "j1939-tsc1"}}}}
	if _, err := Bind(db, spec, ports("1", names...), nil); err == nil || !strings.Contains(err.Error(), "it has 200 bytes; a protection is possible up to 64") {
		t.Error(err)
	}
}
