package rt

import (
	"encoding/binary"
	"math"
	"testing"

	"lockstep/io/can"
	"lockstep/io/messages"
	"lockstep/io/sigmap"
	"lockstep/model/units"
	"lockstep/rt/fault"
	"lockstep/sched"
)

// guarded has the command of database, and at every tick Guarded: x in byte 0 to 3, the
// steps in 4 and 5, a counter in the lower half of 6, in 7 the CRC-8 0x1D of the others.
func guarded(t testing.TB) *sigmap.Map {
	t.Helper()
	db := &messages.Database{File: "disturb_test.dbc", Messages: []messages.Message{
		{Name: "Command", ID: 0x110, Len: 4, Signals: []messages.Signal{{Name: "u", Len: 16, Signed: true, Factor: 0.01, Min: -100, Max: 100, Unit: "m/s"}}},
		{Name: "Guarded", ID: 0x300, Len: 8, Signals: []messages.Signal{
			{Name: "x", Len: 32, Signed: true, Factor: 1e-6, Min: -1000, Max: 1000, Unit: "m"},
			{Name: "steps", Start: 32, Len: 16, Factor: 1, Unit: "1"},
			{Name: "n", Start: 48, Len: 4, Factor: 1}, {Name: "crc", Start: 56, Len: 8, Factor: 1},
		}},
	}}
	port := func(name, unit string) units.Port {
		return units.Port{Name: name, Unit: unit, Min: math.Inf(-1), Max: math.Inf(1)}
	}
	m, err := sigmap.Bind(db, sigmap.Spec{
		Receive: []sigmap.Link{{Message: "Command", Signal: "u", Port: "u"}},
		Send:    []sigmap.Link{{Message: "Guarded", Signal: "x", Port: "x"}, {Message: "Guarded", Signal: "steps", Port: "steps"}},
		Sendings: []sigmap.Sending{{Message: "Guarded", CycleNs: int64(period), Protect: []sigmap.ProtectionSpec{
			{Profile: "crc8", Poly: 0x1D, Init: 0xFF, XorOut: 0xFF, Counter: []string{"n"}, Checksum: []string{"crc"}},
		}}},
		PeriodNs: int64(period),
	}, []units.Port{port("u", "m/s")}, []units.Port{port("x", "m"), port("steps", "1")})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func newGuarded(t testing.TB, o Overrun, faults []fault.Fault, change ...func(*Config, *integrator)) *bench {
	t.Helper()
	b := &bench{plant: &integrator{h: period.Seconds()}, ticker: sched.NewVirtual(period), page: new(StatusBlock)}
	target, unit := pair(t)
	b.unit = unit
	cfg := Config{Period: period, Overrun: o, Start: []float64{0}, Watch: unwatched(), Faults: fault.Plan{Faults: faults}}
	for _, c := range change {
		c(&cfg, b.plant)
	}
	var err error
	if b.Loop, err = New(cfg, b.plant, []*can.Bus{target}, []*sigmap.Map{guarded(t)}, b.ticker, b.page); err != nil {
		t.Fatal(err)
	}
	return b
}

// unitSide is the result of an independent check of the Guarded frames, as in a control unit.
type unitSide struct {
	frames, wrong, short, repeated, lost int

	tick  []int // tick of each frame
	steps []int // steps in each frame
	sums  []byte
	right []byte // expected checksums
	last  int    // counter of the last correct frame; -1: none yet
}

// crc8 is the checksum of the first seven bytes, bit by bit.
func crc8(data []byte) byte {
	crc := byte(0xFF)
	for _, d := range data[:7] {
		for bit := 7; bit >= 0; bit-- {
			top := crc>>7 ^ d>>bit&1
			crc <<= 1
			if top == 1 {
				crc ^= 0x1D
			}
		}
	}
	return ^crc
}

func (s *unitSide) hear(tick int, f *can.Frame) {
	s.frames++
	s.tick = append(s.tick, tick)
	s.steps = append(s.steps, int(binary.LittleEndian.Uint16(f.Data[4:])))
	s.sums, s.right = append(s.sums, f.Data[7]), append(s.right, crc8(f.Data[:]))
	if f.Len != 8 {
		s.short++
		return
	}
	if f.Data[7] != crc8(f.Data[:]) {
		s.wrong++
		return
	}
	n := int(f.Data[6] & 15)
	if s.last >= 0 {
		switch step := (n - s.last + 16) % 16; step {
		case 0:
			s.repeated++
		default:
			s.lost += step - 1
		}
	}
	s.last = n
}

// drive runs n wake-ups.
func (b *bench) drive(n int) *unitSide {
	s := &unitSide{last: -1}
	frames := make([]can.Frame, 256)
	for range n {
		b.turn(1)
		for _, f := range frames[:b.unit.Recv(frames)] {
			if f.ID == 0x300 {
				s.hear(int(b.page.Ticks.Load()), &f)
			}
		}
	}
	return s
}
