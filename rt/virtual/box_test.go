package virtual

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
	x := &box{period: 5 * time.Millisecond}
	pitch := 2 * math.Pi / teeth
	var times []float64
	for k := range int64(620) {
		at := float64(k) * 0.005
		var data [64]byte
		for i, v := range []float64{amplitude * math.Sin(omega*at), amplitude * omega * math.Cos(omega*at), -amplitude * omega * omega * math.Sin(omega*at)} {
			binary.LittleEndian.PutUint64(data[8*i:], math.Float64bits(v))
		}
		data[24], data[30] = teeth, 1
		x.image.Put(wire.Tone, &data)
		x.image.Tick, x.tick = k*5e6, time.Duration(k)*x.period
		x.image.Finish()
		x.wheels[0].follow(&x.image.Wheel[0])
		x.edges = x.edges[:0]
		x.collect(0)
		for _, e := range x.edges {
			times = append(times, e.at.Seconds())
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

// The car by wire is as stable with the virtual unit as over CAN, and the run can be repeated from its record.
func TestEscUnitKeepsTheCarStableByWire(t *testing.T) {
	record := t.TempDir() + "/wire.rec"
	r, err := Simulation{Plant: "esc-wire-bench", Scenario: "esc-dwell", Every: 1, Record: record}.Run()
	if err != nil {
		t.Fatal(err)
	}
	if r.Scenario == nil || !r.Clean || r.TxFrames != 6000 || r.RxFrames != 4999 {
		t.Errorf("%+v", r)
	}
	if same, err := (Replay{Record: record}).Run(); err != nil || same.Ticks != 1000 {
		t.Errorf("replay: %+v, %v", same, err)
	}
}
