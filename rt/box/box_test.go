package box

import (
	"encoding/binary"
	"math"
	"testing"
	"time"

	"lockstep/io/wire"
)

// A wheel that brakes, stands, turns back and rolls backward has each of its edges once, at the time of the closed
// form, although each image extrapolates the one before.
func TestBoxMakesEachEdgeOnceAtItsTime(t *testing.T) {
	const teeth, amplitude, omega = 48, 6.0, 2.0 // angle amplitude·sin(omega·t), rad
	const period = 5 * time.Millisecond
	var x Box
	var image wire.Outgoing
	pitch := 2 * math.Pi / teeth
	var times []float64
	for k := range int64(620) {
		at := float64(k) * 0.005
		var data [64]byte
		for i, v := range []float64{amplitude * math.Sin(omega*at), amplitude * omega * math.Cos(omega*at), -amplitude * omega * omega * math.Sin(omega*at)} {
			binary.LittleEndian.PutUint64(data[8*i:], math.Float64bits(v))
		}
		data[24], data[30] = teeth, 1
		image.Put(wire.Tone, &data)
		tick := time.Duration(k) * period
		image.Tick = int64(tick)
		image.Finish()
		x.Take(&image.Image, tick)
		for _, e := range x.Edges(tick + period) {
			times = append(times, e.At.Seconds())
		}
	}
	// From 0 up to edge 45 below the amplitude, back through all down to edge -45, and up again.
	most := int(amplitude / pitch)
	n := 0
	for quarter, edges := range []int{most, most + 1, most, most + 1} {
		for i := range edges {
			if n == len(times) {
				break
			}
			level := float64(i+1) * pitch // rising from 0
			if quarter%2 == 1 {
				level = float64(most-i) * pitch // falling to 0
			}
			phase := math.Asin(level / amplitude)
			want := [4]float64{phase, math.Pi - phase, math.Pi + phase, 2*math.Pi - phase}[quarter] / omega
			// Within a period the extrapolation is wrong by the third derivative of the angle over the speed.
			speed := math.Max(omega*math.Sqrt(amplitude*amplitude-level*level), 0.5)
			if tol := 1e-6/speed + 1e-8; !(math.Abs(times[n]-want) <= tol) {
				t.Fatalf("edge %d of %d at %.9f s, want %.9f s within %.1e s", n, len(times), times[n], want, tol)
			}
			n++
		}
	}
	if n < 3*most || n != len(times) {
		t.Errorf("%d edges, %d of them compared", len(times), n)
	}
}

// turning returns the image of wheel 0 at an angle, rad, with a constant speed, rad/s.
func turning(angle, speed float64) *wire.Image {
	m := &wire.Image{}
	(&wire.Motion{Angle: angle, Speed: speed, Teeth: 48, Field: 7}).Wheel(&m.Wheel[0])
	return m
}

// A reset of the plant, or the sensor of another wheel, moves the wheel to another angle at once. The edges go on from
// there, one each pitch over speed; an image late or twice repeats none.
func TestEdgesGoOnAfterAWheelIsElsewhere(t *testing.T) {
	pitch, speed := 2*math.Pi/48, 100.0
	for _, jump := range []float64{0, -20 * pitch, 20 * pitch, 1234 * pitch} {
		var x Box
		var times []float64
		for k := range 40 {
			tick := time.Duration(k) * 5 * time.Millisecond
			angle := speed*tick.Seconds() + 0.3*pitch
			if k >= 20 {
				angle += jump
			}
			x.Take(turning(angle, speed), tick)
			for _, until := range []time.Duration{2, 2, 5} {
				for _, e := range x.Edges(tick + until*time.Millisecond) {
					times = append(times, e.At.Seconds())
				}
			}
		}
		if n := int(math.Floor(0.2 * speed / pitch)); len(times) < n || len(times) > n+1 {
			t.Fatalf("jump of %.3g edges: %d edges in 0.2 s, want %d", jump/pitch, len(times), n)
		}
		for i := 1; i < len(times); i++ {
			if gap := times[i] - times[i-1]; !(math.Abs(gap-pitch/speed) < 1e-8) {
				t.Fatalf("jump of %.3g edges: edge %d comes %.9f s after the one before, want %.9f", jump/pitch, i, gap, pitch/speed)
			}
		}
	}
}

// Without images the wheel goes on for a while and then makes no edges. A speed that no wheel has ends, too.
func TestEdgesOfAnImageAreLimited(t *testing.T) {
	const pitch = 2 * math.Pi / 48
	var x Box
	x.Take(turning(0, 100), 0)
	if n, want := len(x.Edges(time.Hour)), int(hold.Seconds()*100/pitch); n != want {
		t.Errorf("%d edges without a new image, want %d", n, want)
	}
	for _, speed := range []float64{1e9, 1e200, -1e300, math.MaxFloat64} {
		var x Box
		x.Take(turning(0.01, speed), 0)
		if n := len(x.Edges(5 * time.Millisecond)); n > mostEdges {
			t.Errorf("%d edges at %g rad/s", n, speed)
		}
	}
}

// An image that comes late may have edges before those made from the one before. The unit gets them in the order of
// time.
func TestEdgesOfALateImageComeInOrder(t *testing.T) {
	var x Box
	x.Take(turning(0, 100), 0)
	last := time.Duration(0)
	for _, until := range []time.Duration{12 * time.Millisecond, 20 * time.Millisecond} {
		for _, e := range x.Edges(until) {
			if e.At < last {
				t.Errorf("an edge at %v after one at %v", e.At, last)
			}
			last = e.At
		}
		x.Take(turning(100*0.005, 110), 5*time.Millisecond) // faster since 5 ms, known at 12 ms
	}
}

// Images that come two periods late repeat no edge.
func TestLateImagesRepeatNoEdge(t *testing.T) {
	const pitch, speed = 2 * math.Pi / 48, 100.0
	var x Box
	n := 0
	for k := range 40 {
		tick := time.Duration(k) * 5 * time.Millisecond
		x.Take(turning(speed*tick.Seconds()+0.3*pitch, speed), tick)
		n += len(x.Edges(tick + 15*time.Millisecond))
	}
	if want := 160; n < want-1 || n > want+1 {
		t.Errorf("%d edges, want %d", n, want)
	}
}
