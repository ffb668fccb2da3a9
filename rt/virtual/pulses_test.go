package virtual

import (
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"lockstep/io/record"
	"lockstep/io/record/recordtest"
	"lockstep/rt/report"
)

// A wheel of 48 teeth accelerates from 4 rad/s to 84 rad/s, turns at that speed, is braked to rest
// in 0.8 s, stands, and turns back. Its frame holds w and the pulses.
const pulsesPlant = `plant: wheel
elements:
  wheel: {type: inertia, J: 2, w_start: 4}
  push: {type: torque, flange: wheel, tau: {table: [[0, 80], [2, 80], [2, 0], [2.8, 0], [2.8, -210], [3.6, -210], [3.6, 0], [4.2, 0], [4.2, -30], [9, -30]]}}
outputs:
  w: {speed: wheel}
  n: {pulses: wheel, teeth: 48}
`

const pulsesBus = `VERSION ""

NS_ :

BS_:

BU_: ABS Bench

BO_ 256 Wheel: 8 Bench
 SG_ n : 0|8@1+ (1,0) [0|0] "" ABS
 SG_ age : 8|16@1+ (1,0) [0|65535] "us" ABS
 SG_ period : 24|16@1+ (1,0) [0|65535] "us" ABS
 SG_ w : 40|16@1- (0.01,0) [0|0] "rad/s" ABS
`

const pulsesBench = `bench: pulses
plant: wheel.yaml
period: 5 ms
safe: {time: 100 ms, values: {w: 0, n: 0, n.age: 0, n.period: 0}}
buses:
  abs:
    interface: can0
    database: wheel.dbc
    frames: {Wheel: {cycle: 5 ms}}
    send:
      - n -> Wheel.n
      - n.age -> Wheel.age
      - n.period -> Wheel.period
      - w -> Wheel.w
`

// pulsesRun runs the bench in virtual time and returns its report and record.
func pulsesRun(t *testing.T, scheme string) (*report.Report, string) {
	t.Helper()
	dir := t.TempDir()
	text := strings.Replace(pulsesBench, "period:", "scheme: "+scheme+"\nperiod:", 1)
	for name, text := range map[string]string{"wheel.yaml": pulsesPlant, "wheel.dbc": pulsesBus, "bench.yaml": text} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(dir, "a.rec")
	r, err := Simulation{Plant: filepath.Join(dir, "bench.yaml"), For: 6 * time.Second, Every: 1, Record: file}.Run()
	if err != nil {
		t.Fatal(err)
	}
	return r, file
}

// A receiver computes the mean speed between the last edges of two frames. It agrees with the wheel
// within the error of half a microsecond at each edge. Frames have many edges or none, and the
// count of 8 bits wraps.
func TestPulsesGiveAReceiverTheSpeedOfTheWheel(t *testing.T) {
	report, file := pulsesRun(t, "complete")
	if report.Saturated != 0 || report.TxFrames < 1200 {
		t.Errorf("%d values limited to their range, %d frames", report.Saturated, report.TxFrames)
	}
	const pitch, tick = 2 * math.Pi / 48, 5e-3
	// The angle of the wheel in closed form, by intervals of constant acceleration.
	starts, rates := []float64{0, 2, 2.8, 3.6, 4.2}, []float64{40, 0, -105, 0, -15}
	angle := func(at float64) (phi float64) {
		w := 4.0
		for i, from := range starts {
			to := at
			if i+1 < len(starts) {
				to = min(at, starts[i+1])
			}
			if d := to - from; d > 0 {
				phi += w*d + rates[i]*d*d/2
				w += rates[i] * d
			}
		}
		return phi
	}
	var n uint8
	var edge, worst float64
	known, compared, wraps, still := false, 0, 0, 0
	for _, e := range recordtest.Entries(t, file) {
		if e.Kind != record.FrameEntry || !e.Frame.Sent || e.Frame.Safe {
			continue
		}
		d := e.Frame.Data[:]
		count, age := d[0], float64(binary.LittleEndian.Uint16(d[1:]))*1e-6
		if age > 0.065 { // the timer has run out: the wheel stands
			known, still = false, still+1
			continue
		}
		if count == 0 && edge == 0 { // there was no edge yet
			continue
		}
		at := float64(e.Frame.Tick)*tick - age
		if known && count != n {
			got := float64(count-n) * pitch / (at - edge)
			want := math.Abs(angle(at)-angle(edge)) / (at - edge)
			limit := want*1.01e-6/(at-edge) + 1e-9
			if !(math.Abs(got-want) <= limit) {
				t.Errorf("at %.6f s: %d edges since %.6f s are %.9g rad/s, want %.9g within %.2g", at, count-n, edge, got, want, limit)
			}
			worst, compared = max(worst, math.Abs(got-want)/limit), compared+1
			if count < n {
				wraps++
			}
		}
		n, edge, known = count, at, true
	}
	if compared < 800 || wraps < 5 || still < 50 {
		t.Errorf("%d speeds compared, %d wraps, %d frames at rest", compared, wraps, still)
	}
	t.Logf("%d speeds, worst %.3f of what the signals resolve", compared, worst)
}

func TestBenchWithPulsesReplays(t *testing.T) {
	for _, scheme := range []string{"complete", "papers"} {
		_, file := pulsesRun(t, scheme)
		same, err := Replay{Record: file}.Run()
		if err != nil || same.Ticks != 1200 || same.Frames == 0 {
			t.Errorf("%s: %+v, %v", scheme, same, err)
		}
	}
}

// On both brake benches the pulses of the first sensor agree with the frames of speeds: the mean
// speed between two edges is within the speeds of the ticks around them.
func TestPulsesOfTheBrakeBenchesAgreeWithTheirSpeeds(t *testing.T) {
	const room = 0.3 // rad/s: what a wheel does between ticks, and the pitch of the body
	for _, b := range []struct {
		name           string
		speeds, pulses uint32
		teeth          float64
	}{{"abs-bench", 416, 419, 48}, {"wsp-bench", 424, 427, 80}} {
		file := filepath.Join(t.TempDir(), "a.rec")
		if _, err := (Simulation{Plant: b.name, For: 4 * time.Second, Every: 1, Record: file}).Run(); err != nil {
			t.Fatal(err)
		}
		var w []float64 // by tick
		var n uint8
		var edge float64 // in ticks
		compared, known := 0, false
		for _, e := range recordtest.Entries(t, file) {
			if e.Kind != record.FrameEntry || !e.Frame.Sent || e.Frame.Safe {
				continue
			}
			d := e.Frame.Data[:]
			switch e.Frame.ID {
			case b.speeds:
				for int64(len(w)) <= e.Frame.Tick {
					w = append(w, math.NaN())
				}
				w[e.Frame.Tick] = math.Abs(float64(int16(binary.LittleEndian.Uint16(d)<<1)>>1)) / 100
			case b.pulses:
				at := float64(e.Frame.Tick) - float64(binary.LittleEndian.Uint16(d[1:]))*1e-6/5e-3
				if known && d[0] != n && !(edge <= 1) {
					got := float64(d[0]-n) * 2 * math.Pi / b.teeth / ((at - edge) * 5e-3)
					near := w[int(edge) : e.Frame.Tick+1]
					if low, high := slices.Min(near), slices.Max(near); !(got > low-room && got < high+room) {
						t.Errorf("%s: tick %d: %.3f rad/s by the edges, %.2f to %.2f by the speeds", b.name, e.Frame.Tick, got, low, high)
					}
					compared++
				}
				n, edge, known = d[0], at, true
			}
		}
		if compared < 500 {
			t.Errorf("%s: %d speeds compared", b.name, compared)
		}
	}
}
