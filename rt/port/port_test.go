package port_test

import (
	"encoding/binary"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"lockstep/io/can"
	"lockstep/model/kernel"
	"lockstep/model/plants"
	"lockstep/rt"
	"lockstep/rt/bench"
	"lockstep/rt/port"
	"lockstep/sched"
)

// rig is a bench in virtual time with its port; the test is the other node of the bus.
type rig struct {
	t      *testing.T
	h      *bench.Handover
	status *rt.StatusBlock
	loop   *rt.Loop
	clock  *sched.Virtual
	bus    *can.Bus
	other  *os.File
	port   *port.Port
	now    int64
}

// newRig starts the truck bench with replacements in its file: old text, new text, ...
func newRig(t *testing.T, replace ...string) *rig {
	t.Helper()
	text, err := plants.Read("truck-bench")
	if err != nil {
		t.Fatal(err)
	}
	b, err := bench.Parse("b.yaml", t.TempDir(), []byte(strings.NewReplacer(replace...).Replace(string(text))))
	if err != nil {
		t.Fatal(err)
	}
	return startRig(t, b)
}

func startRig(t *testing.T, b *bench.Bench) *rig {
	t.Helper()
	h, err := bench.Prepare(b)
	if err != nil {
		t.Fatal(err)
	}
	ours, other, err := can.Pair()
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, h: h, status: new(rt.StatusBlock), other: other, clock: sched.NewVirtual(time.Duration(h.Tables.PeriodNs))}
	t.Cleanup(func() { other.Close() })
	if r.bus, err = can.Inherit(ours); err != nil {
		t.Fatal(err)
	}
	h.Loop.Virtual, h.Loop.Ticks = true, 1e6
	if r.loop, err = rt.New(h.Loop, kernel.New(h.Tables), []*can.Bus{r.bus}, h.Maps, r.clock, r.status); err != nil {
		t.Fatal(err)
	}
	if r.port, err = port.New(h, r.status, 0); err != nil {
		t.Fatal(err)
	}
	return r
}

// owns reports whether the bench has an address.
func (r *rig) owns(address uint8) bool {
	return slices.ContainsFunc(r.h.Bench.Buses[0].J1939.Addresses, func(a bench.Address) bool { return a.Address == address })
}

// tick serves one grid point and the port, and returns the frames that the bench has sent.
func (r *rig) tick() (list []can.Frame) {
	r.t.Helper()
	r.loop.Tick(r.clock.Wait())
	r.now += r.h.Tables.PeriodNs
	var f rt.PortFrame
	for r.status.NextPortFrame(&f) {
		if f.Frame.Flags&can.FlagLong != 0 {
			r.port.SendLong(&f, r.now)
		} else {
			r.port.Receive(&f.Frame, r.now, r.owns)
		}
	}
	r.port.Poll(r.now)
	r.port.Flush(r.now, r.bus.Send)
	b := make([]byte, 72)
	for {
		r.other.SetReadDeadline(time.Now().Add(time.Millisecond))
		n, err := r.other.Read(b)
		if err != nil || n != 16 {
			return list
		}
		f := can.Frame{ID: binary.NativeEndian.Uint32(b), Len: b[4]}
		copy(f.Data[:8], b[8:16])
		list = append(list, f)
	}
}

func (r *rig) send(f can.Frame) {
	r.t.Helper()
	b := make([]byte, 16)
	binary.NativeEndian.PutUint32(b, f.ID)
	b[4] = f.Len
	copy(b[8:], f.Data[:8])
	if _, err := r.other.Write(b); err != nil {
		r.t.Fatal(err)
	}
}

// request sends a request from address 0x21.
func (r *rig) request(to uint8, pgn uint32) {
	f := can.Frame{ID: 0x18EA0021 | uint32(to)<<8 | can.EFF, Len: 3}
	f.Data[0], f.Data[1], f.Data[2] = byte(pgn), byte(pgn>>8), byte(pgn>>16)
	r.send(f)
}

// count returns how many frames have an identifier.
func count(list []can.Frame, id uint32) (n int) {
	for _, f := range list {
		if f.ID == id|can.EFF {
			n++
		}
	}
	return n
}

// CCVS1 from address 0 and EBC1 from address 11 have a cycle of ten ticks.
func TestRequestIsAnsweredAtTheNextTick(t *testing.T) {
	const ccvs1, ebc1, refusal = 0x18FEF100, 0x18F0010B, 0x18E8FF00
	r := newRig(t)
	due := 0
	for k := 1; due == 0; k++ {
		if count(r.tick(), ccvs1) == 1 {
			due = k
		}
	}
	for name, c := range map[string]struct {
		to     uint8
		pgn    uint32
		answer uint32 // 0: none
	}{
		"of the sender": {0, 65265, ccvs1}, "of all": {255, 65265, ccvs1}, "of all, from another address": {255, 61441, ebc1},
		"of another node": {3, 65265, 0}, "of all, not supported": {255, 65262, 0},
		"not supported": {0, 65262, refusal}, "no group at all": {0, 0x452301, refusal}, "supported by another address of the bench": {0, 61441, refusal},
	} {
		r := newRig(t)
		for range due + 3 { // the frames in their cycle are not near
			r.tick()
		}
		r.request(c.to, c.pgn)
		list := append(r.tick(), r.tick()...)
		for _, id := range []uint32{ccvs1, ebc1, refusal} {
			if got, want := count(list, id), map[bool]int{true: 1}[id == c.answer]; got != want {
				t.Errorf("%s: %d frames %08X, want %d", name, got, id, want)
			}
		}
		if c.answer == refusal {
			i := slices.IndexFunc(list, func(f can.Frame) bool { return f.ID == refusal|can.EFF })
			want := [8]byte{1, 0xFF, 0xFF, 0xFF, 0x21, byte(c.pgn), byte(c.pgn >> 8), byte(c.pgn >> 16)}
			if i < 0 || list[i].Len != 8 || [8]byte(list[i].Data[:8]) != want {
				t.Errorf("%s: refusal % X, want % X", name, list, want)
			}
			if sent := r.port.TakeSent(); len(sent) != 1 || sent[0].Frame.ID != refusal|can.EFF || sent[0].At == 0 {
				t.Errorf("%s: for the record: %+v", name, sent)
			}
		}
	}
}

// Requests from the bench's own addresses, short ones and remote frames are no requests to it.
func TestMalformedRequestsAreIgnored(t *testing.T) {
	r := newRig(t)
	for _, f := range []can.Frame{
		{ID: 0x18EA0021 | can.EFF, Len: 2}, {ID: 0x18EA0021 | can.EFF | can.RTR, Len: 3}, {ID: 0x18EA000B | can.EFF, Len: 3},
		{ID: 0x18EA0021 | can.EFF, Len: 3, Data: [64]byte{0, 0xEE, 0}}, // claims are the nodes' matter
	} {
		r.port.Receive(&f, 1, r.owns)
	}
	if n := r.port.Queued(); n != 0 || r.port.Counts() != (port.Counts{}) {
		t.Errorf("%d frames are queued, counts %+v", n, r.port.Counts())
	}
}
