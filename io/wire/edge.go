package wire

import (
	"math"
	"math/bits"
)

// Motion is a tone wheel at a tick, and the faults of its sensor.
type Motion struct {
	Angle, Speed, Accel float64 // rad, rad/s, rad/s²
	Teeth               uint16  // edges per turn; 0: no wheel
	Missing             uint16  // tooth without an edge, from 1; 0: none
	Weak                uint8   // edges lost by a wide air gap, of 64
	Field               uint8   // strength of the magnetic field in the data word, 0 to 7
	State               uint8   // as in Wheel
	Reversed            bool    // the direction is the wrong one
}

// Wheel returns the wheel of an image at a tick. Edges lie at the whole multiples of 2π/Teeth. The function is
// pure: equal motions have equal bits.
//
//go:nosplit
func (m *Motion) Wheel(w *Wheel) {
	*w = Wheel{Next: math.MaxInt64, State: m.State, Period: math.Inf(1)}
	if m.Teeth == 0 {
		return
	}
	angle, speed, accel := m.Angle, m.Speed, m.Accel
	if m.Reversed {
		angle, speed, accel = -angle, -speed, -accel
	}
	w.Speed, w.Accel, w.Teeth = speed, accel, uint32(m.Teeth)
	w.Pitch = 2 * math.Pi / float64(m.Teeth)
	if speed != 0 {
		w.Period = math.Abs(w.Pitch / speed)
	}
	t, direction, edge := nextEdge(angle, speed, accel, w.Pitch)
	w.Direction = direction
	if ns := float64(t*1e9) + 0.5; ns < 1<<63 {
		w.Next = int64(ns)
	}
	if direction != 0 {
		m.edges(w, edge)
	}
	w.Word = AKWord(m.Field, direction)
}

// advance moves the wheel on by a time, s, at constant acceleration. A wheel that brakes to standstill stays there.
//
//go:nosplit
func (m *Motion) advance(t float64) {
	speed, accel := m.Speed+float64(m.Accel*t), m.Accel
	if m.Speed > 0 && speed <= 0 || m.Speed < 0 && speed >= 0 {
		t, speed, accel = -m.Speed/m.Accel, 0, 0
	}
	m.Angle += float64((m.Speed + speed) / 2 * t)
	m.Speed, m.Accel = speed, accel
}

// edges sets the number of the next edge and the edges that are lost.
//
//go:nosplit
func (m *Motion) edges(w *Wheel, edge float64) {
	if !(math.Abs(edge) < 1<<62) {
		return
	}
	n, teeth := int64(edge), int64(m.Teeth)
	w.Tooth = uint32(modulo(n, teeth))
	if m.Missing == 0 && m.Weak == 0 {
		return
	}
	for i := range int64(64) {
		j := n + i*int64(w.Direction)
		spread := uint32(uint8(j)&63) * uint32(m.Weak) % 64 // evenly over 64 edges
		if m.Missing > 0 && modulo(j, teeth) == int64(m.Missing)-1 || spread < uint32(m.Weak) {
			w.Lost |= 1 << i
		}
	}
}

// modulo returns n modulo m, 0 to m-1.
//
//go:nosplit
func modulo(n, m int64) int64 {
	if n %= m; n < 0 {
		n += m
	}
	return n
}

// AKWord returns the data word of the AK protocol (wheel-speed sensors with a current interface of 7, 14 and 28 mA):
// bit 0 LR, reserve of the air gap used up (field 0); bit 3 GDR, the direction is valid; bit 4 DR, 1 is backward;
// bits 5 to 7 LM, the strength of the field; bit 8 P, which makes the number of ones even. Bits 1 and 2 are 0.
//
//go:nosplit
func AKWord(field uint8, direction int32) uint16 {
	w := uint16(field&7) << 5
	if field == 0 {
		w |= 1
	}
	if direction != 0 {
		w |= 1 << 3
	}
	if direction < 0 {
		w |= 1 << 4
	}
	return w | uint16(bits.OnesCount16(w)&1)<<8
}

// NextEdge returns the time to the next edge of a tone wheel, s, and the direction of rotation at that edge, +1 or -1.
// The wheel stands at angle, rad, turns at speed, rad/s, and accelerates at accel, rad/s². Edges lie at the
// whole multiples of pitch, rad, > 0. An edge at angle itself has passed. Without an edge ahead, as at
// standstill, or with an argument that is not finite, the time is +Inf and the direction 0.
//
//go:nosplit
func NextEdge(angle, speed, accel, pitch float64) (t float64, direction int32) {
	t, direction, _ = nextEdge(angle, speed, accel, pitch)
	return t, direction
}

// nextEdge is NextEdge with the number of the edge: its angle over pitch.
//
//go:nosplit
func nextEdge(angle, speed, accel, pitch float64) (t float64, direction int32, edge float64) {
	if !(pitch > 0) || !finite(pitch) || !finite(angle) || !finite(speed) || !finite(accel) {
		return math.Inf(1), 0, 0
	}
	sign := 1.0
	direction = 1
	if speed < 0 || speed == 0 && accel < 0 {
		angle, speed, accel, sign, direction = -angle, -speed, -accel, -1, -1
	}
	if speed == 0 && accel == 0 {
		return math.Inf(1), 0, 0
	}
	passed := floor(angle / pitch)
	behind := max(angle-float64(passed*pitch), 0)
	ahead := pitch - behind
	square := float64(speed * speed)
	if d := square + float64(accel*(2*ahead)); d > 0 {
		// This form of the root does not cancel when accel is small.
		return 2 * ahead / (speed + math.Sqrt(d)), direction, float64(sign * (passed + 1))
	}
	// The wheel turns back before the edge ahead, and meets the edge behind.
	return (speed + math.Sqrt(square-float64(accel*(2*behind)))) / -accel, -direction, float64(sign * passed)
}

//go:nosplit
func finite(v float64) bool { return math.Abs(v) <= math.MaxFloat64 }

// floor is math.Floor, which may grow the stack.
//
//go:nosplit
func floor(x float64) float64 {
	if !(math.Abs(x) < 1<<52) {
		return x // it is whole
	}
	if f := float64(int64(x)); f <= x {
		return f
	}
	return float64(int64(x)) - 1
}
