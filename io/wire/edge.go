package wire

import "math"

// NextEdge returns the time to the next edge of a tone wheel, s, and the direction of rotation at that edge, +1 or -1.
// The wheel stands at angle, rad, turns at speed, rad/s, and accelerates at accel, rad/s². Edges lie at the
// whole multiples of pitch, rad, > 0. An edge at angle itself has passed. Without an edge ahead, as at
// standstill, or with an argument that is not finite, the time is +Inf and the direction 0.
func NextEdge(angle, speed, accel, pitch float64) (t float64, direction int32) {
	if !(pitch > 0) || math.IsInf(pitch, 1) || math.IsNaN(angle-angle) || math.IsNaN(speed-speed) || math.IsNaN(accel-accel) {
		return math.Inf(1), 0
	}
	direction = 1
	if speed < 0 || speed == 0 && accel < 0 {
		angle, speed, accel, direction = -angle, -speed, -accel, -1
	}
	if speed == 0 && accel == 0 {
		return math.Inf(1), 0
	}
	passed := math.Floor(angle/pitch) * pitch
	behind := math.Max(angle-passed, 0)
	ahead := pitch - behind
	if d := speed*speed + 2*accel*ahead; d > 0 {
		// This form of the root does not cancel when accel is small.
		return 2 * ahead / (speed + math.Sqrt(d)), direction
	}
	// The wheel turns back before the edge ahead, and meets the edge behind.
	return (speed + math.Sqrt(speed*speed-2*accel*behind)) / -accel, -direction
}
