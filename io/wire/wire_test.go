package wire

import (
	"bytes"
	"encoding/binary"
	"math"
	"testing"
)

func TestNextEdge(t *testing.T) {
	for _, c := range []struct {
		angle, speed, accel, want float64
		direction                 int32
	}{
		{0.25, 3, 0, 0.25, 1},
		{0.25, -1, 0, 0.25, -1},
		{0, 0, 2, 1, 1},
		{0, 0, -2, 1, -1},
		{0, 1, -1, 2, -1},                        // turns back to the edge just passed
		{0.5, 1, -2, (1 + math.Sqrt(3)) / 2, -1}, // turns back before the edge ahead
		{0, 0, 0, math.Inf(1), 0},
		{math.NaN(), 1, 0, math.Inf(1), 0},
	} {
		got, direction := NextEdge(c.angle, c.speed, c.accel, 1)
		if got != c.want && !(math.Abs(got-c.want) <= 1e-14*c.want) || direction != c.direction {
			t.Errorf("%+v: got %g s, direction %d", c, got, direction)
		}
	}
}

var le = binary.LittleEndian

func TestCodecDoesNotAllocate(t *testing.T) {
	var m, back Image
	var b [Size]byte
	m.Analog[31], m.PWM[15].Frequency, m.Wheel[7].Direction = 1.5, 2000, -1
	if n := testing.AllocsPerRun(100, func() { m.Encode(&b); back.Decode(b[:]) }); n != 0 {
		t.Errorf("%g allocations", n)
	}
	if back != m {
		t.Error("the decoded image differs from the encoded one")
	}
}

func FuzzDecode(f *testing.F) {
	var b [Size]byte
	new(Image).Encode(&b)
	f.Add(b[:])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, in []byte) {
		var m Image
		if !m.Decode(in) {
			return
		}
		var out [Size]byte
		if m.Encode(&out); !bytes.Equal(in, out[:]) {
			t.Error("the encoded image differs from the decoded bytes")
		}
	})
}

// The wheel turns at 10 rad/s from 0.3 of a pitch on.
func motion() Motion {
	return Motion{Angle: 0.3 * 2 * math.Pi / 48, Speed: 10, Teeth: 48, State: Working, Field: 7}
}

func TestWheelHasItsNextEdge(t *testing.T) {
	turn := 2 * math.Pi
	pitch := turn / 48
	at := func(s float64) int64 { return int64(math.Round(s * 1e9)) }
	for _, c := range []struct {
		name   string
		change func(m *Motion)
		want   Wheel
	}{
		{"rolls", func(m *Motion) {}, Wheel{Speed: 10, Next: at(0.7 * pitch / 10), Period: pitch / 10, Pitch: pitch, Teeth: 48, Tooth: 1, Direction: 1, Word: 0x0E8, State: Working}},
		{"has the wrong direction", func(m *Motion) { m.Reversed = true },
			Wheel{Speed: -10, Next: at(0.7 * pitch / 10), Period: pitch / 10, Pitch: pitch, Teeth: 48, Tooth: 47, Direction: -1, Word: 0x1F8, State: Working}},
		{"rolls back", func(m *Motion) { m.Speed = -10 },
			Wheel{Speed: -10, Next: at(0.3 * pitch / 10), Period: pitch / 10, Pitch: pitch, Teeth: 48, Tooth: 0, Direction: -1, Word: 0x1F8, State: Working}},
		{"stands still", func(m *Motion) { m.Speed = 0 },
			Wheel{Next: math.MaxInt64, Period: math.Inf(1), Pitch: pitch, Teeth: 48, Word: 0x1E0, State: Working}},
		{"has no tooth 3", func(m *Motion) { m.Missing = 3 },
			Wheel{Speed: 10, Next: at(0.7 * pitch / 10), Period: pitch / 10, Pitch: pitch, Teeth: 48, Tooth: 1, Direction: 1, Word: 0x0E8, State: Working, Lost: 1<<1 | 1<<49}},
		{"has a wide air gap", func(m *Motion) { m.Weak, m.Field = 32, 0 },
			Wheel{Speed: 10, Next: at(0.7 * pitch / 10), Period: pitch / 10, Pitch: pitch, Teeth: 48, Tooth: 1, Direction: 1, Word: 0x009, State: Working, Lost: 0xAAAAAAAAAAAAAAAA}},
		{"has no teeth", func(m *Motion) { m.Teeth = 0 }, Wheel{Next: math.MaxInt64, Period: math.Inf(1), State: Working}},
		{"is broken off", func(m *Motion) { m.Speed, m.Teeth, m.State = math.NaN(), 48, OpenLine },
			Wheel{Speed: math.NaN(), Next: math.MaxInt64, Period: math.NaN(), Pitch: pitch, Teeth: 48, Word: 0x1E0, State: OpenLine}},
	} {
		m, got := motion(), Wheel{}
		c.change(&m)
		m.Wheel(&got)
		same := math.Float64bits(got.Speed) == math.Float64bits(c.want.Speed) || got.Speed == c.want.Speed
		if got.Next-c.want.Next < -1 || got.Next-c.want.Next > 1 || !same && !math.IsNaN(got.Speed) {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
		got.Next, got.Speed, got.Period = c.want.Next, 0, 0
		want := c.want
		want.Speed, want.Period = 0, 0
		if got != want {
			t.Errorf("%s: %+v, want %+v", c.name, got, want)
		}
	}
}

func TestSwappedSensorsCarryTheMotionOfTheOtherWheel(t *testing.T) {
	var o Outgoing
	var data [64]byte
	for i := range 2 {
		le.PutUint64(data[8:], math.Float64bits(float64(10+i)))
		le.PutUint16(data[24:], 48)
		data[30], data[31] = 1, byte(1-i)
		if !o.Put(uint32(Tone+i), &data) {
			t.Fatal("the message is refused")
		}
	}
	o.Finish()
	if o.Wheel[0].Speed != 11 || o.Wheel[1].Speed != 10 || o.Wheel[0].State != Working {
		t.Errorf("speeds %g and %g, want 11 and 10 rad/s", o.Wheel[0].Speed, o.Wheel[1].Speed)
	}
	for signal, state := range []uint8{ShortToGround, Working, ShortToSupply, OpenLine} {
		data[30] = byte(signal)
		o.Put(Tone, &data)
		if o.Finish(); o.Wheel[0].State != state {
			t.Errorf("signal %d: state %d, want %d", signal, o.Wheel[0].State, state)
		}
	}
	if n := testing.AllocsPerRun(100, func() { o.Put(Tone, &data); o.Finish() }); n != 0 {
		t.Errorf("%g allocations", n)
	}
}

// A motion that is not new in an image is that of an earlier tick: its edges stay where they are.
func TestWheelWithoutNewMotionGoesOnAtConstantAcceleration(t *testing.T) {
	put := func(o *Outgoing, speed, accel float64) {
		var data [64]byte
		le.PutUint64(data[0:], math.Float64bits(motion().Angle))
		le.PutUint64(data[8:], math.Float64bits(speed))
		le.PutUint64(data[16:], math.Float64bits(accel))
		le.PutUint16(data[24:], 48)
		data[30] = 1
		o.Put(Tone, &data)
	}
	for _, c := range []struct{ speed, accel, later, want float64 }{
		{10, 0, 0.005, 10}, {10, 20, 0.005, 10.1}, {-10, -20, 0.005, -10.1}, {0, 20, 0.1, 2}, {10, -20, 10, 0}, {-10, 20, 10, 0}, {0, 0, 10, 0},
	} {
		var o Outgoing
		put(&o, c.speed, c.accel)
		o.Tick = 1e15
		o.Finish()
		if o.Wheel[0].Speed != c.speed {
			t.Fatalf("speed %g rad/s, want %g rad/s", o.Wheel[0].Speed, c.speed)
		}
		o.Tick += int64(c.later * 1e9 / 2)
		o.Finish() // the rest in a second step
		o.Tick += int64(c.later * 1e9 / 2)
		o.Finish()
		if got := o.Wheel[0].Speed; !(math.Abs(got-c.want) <= 1e-12) {
			t.Errorf("%+v: speed %g rad/s, want %g rad/s", c, got, c.want)
		}
		moved := (c.want + c.speed) / 2 * c.later
		if c.want == 0 && c.accel != 0 {
			moved = -c.speed * c.speed / (2 * c.accel)
		}
		if got := o.motions[0].Angle - motion().Angle; !(math.Abs(got-moved) <= 1e-12*(1+math.Abs(moved))) {
			t.Errorf("%+v: moved by %g rad, want %g rad", c, got, moved)
		}
	}
}

func TestImagesAreJudgedByCounterAndTime(t *testing.T) {
	c := Check{LimitNs: 5e6}
	const box = 1e12 // its clock is behind
	var list []bool
	for _, m := range []struct {
		counter   uint64
		sent, got int64 // ms
	}{
		{0, 0, 1}, {1, 5, 6}, {1, 5, 7}, {3, 15, 16}, {2, 10, 17}, {6, 30, 31}, {7, 35, 46}, {2, 10, 47}, {0, 50, 51}, {1, 55, 57},
	} {
		image := Image{Counter: m.counter, Tick: m.sent * 1e6}
		list = append(list, c.Accept(&image, box+m.got*1e6))
	}
	want := []bool{true, true, false, true, false, true, true, false, false, false}
	for i := range want {
		if list[i] != want[i] {
			t.Errorf("image %d: accepted %v, want %v", i, list[i], want[i])
		}
	}
	if got, want := c.Counts, (Counts{Received: 5, Lost: 2, Reordered: 1, Duplicate: 4, Delayed: 1}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}

	c = Check{}
	for n := range uint64(20) {
		c.Accept(&Image{Counter: 100 + n}, 0)
	}
	if !c.Accept(&Image{Counter: 0}, 0) || !c.Accept(&Image{Counter: 1}, 0) || c.Lost != 0 {
		t.Errorf("a box that has started anew is refused: %+v", c.Counts)
	}
	if !c.Accept(&Image{Counter: 1e9}, 0) || c.Lost != 0 {
		t.Errorf("another sender is refused, or counted as a loss: %+v", c.Counts)
	}
}

// The first image of a box that has started anew may be lost, also within the window of images out of order.
func TestRestartedBoxIsHeardSoon(t *testing.T) {
	for _, before := range []uint64{9, 50, 500, 999} {
		var c Check
		for n := range before {
			c.Accept(&Image{Counter: n}, 0)
		}
		dropped := 0
		for n := uint64(1); !c.Accept(&Image{Counter: n}, 0); n++ {
			dropped++
		}
		if dropped >= restartRun || c.Lost != 0 {
			t.Errorf("after %d images %d are dropped, %+v", before, dropped, c.Counts)
		}
	}
	// A single late image is no restart, nor is one that is older than all others.
	var c Check
	list := []uint64{20, 21, 25, 22, 26, 23, 27, 24, 19, 28}
	for _, n := range list {
		c.Accept(&Image{Counter: n}, 0)
	}
	if want := (Counts{Received: 6, Reordered: 4}); c.Counts != want {
		t.Errorf("%+v, want %+v", c.Counts, want)
	}
}
