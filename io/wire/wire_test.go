package wire

import (
	"bytes"
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
