package main

import (
	"math"
	"time"

	"lockstep/model/kernel"
)

// fineStep is that of the nonlinear vehicle, s: its fastest motion turns by 0.14 rad in
// it, and half of it changes nothing that is printed.
const fineStep = 2e-4

// angleError is how far a way to treat the lean of the body is from the nonlinear vehicle
// in case 1, at points 5 ms apart, as a part of the range.
type angleError struct {
	name   string
	errors [len(judderColumns)]float64
}

const judderColumns = "pNnvT" // pitch, both normal forces, speed, clutch torque

type judderPoint [len(judderColumns)]float64

func (m *judderModel) point() judderPoint {
	return judderPoint{m.z.q[qPhi], m.load[0], m.load[1], m.z.v[qX], m.friction[clutch]}
}

func (d *drive) point() (p judderPoint) {
	for i, name := range []string{"pitch", "F_N1", "F_N2", "v_x", "T_f"} {
		p[i] = d.get(name)
	}
	return p
}

// leaner is a plant with a way to treat the lean.
type leaner struct {
	name string
	*drive
}

func leaning() []leaner {
	return []leaner{
		{"linear, loads on legs that do not lean", newDrive("judder", 5*time.Millisecond, rigid...)},
		{"linear about the standing vehicle", newDrive("judder", 5*time.Millisecond, straight...)},
		{"the same, second order as laws (the plant judder)", newDrive("judder", 5*time.Millisecond)},
		{"that at 1 ms", newDrive("judder", time.Millisecond)},
	}
}

// largeAngles compares ways to treat the lean over a time, s.
func largeAngles(until float64) (list []angleError) {
	const h = 5e-3
	truth := newJudder(&case1, anyAngle)
	frozen := newJudder(&case1, perStep)
	kernels := leaning()
	errors := make([]judderPoint, len(kernels)+1)
	low, high := truth.point(), truth.point()
	for _, k := range kernels {
		k.reset(case1.engine)
	}
	for tick := range int(math.Round(until / h)) {
		truth.walk(float64(tick+1)*h, fineStep)
		frozen.hold()
		frozen.walk(float64(tick+1)*h, fineStep)
		want := truth.point()
		for j, v := range want {
			low[j], high[j] = min(low[j], v), max(high[j], v)
		}
		note := func(i int, have judderPoint) {
			for j := range want {
				errors[i][j] = max(errors[i][j], math.Abs(have[j]-want[j]))
			}
		}
		for i, k := range kernels {
			for range 5000000 / k.tables.PeriodNs {
				k.k.Step(k.y, k.u)
			}
			note(i, k.point())
		}
		note(len(kernels), frozen.point())
	}
	for i, e := range errors {
		a := angleError{name: "geometry of the last point, held over 5 ms"}
		if i < len(kernels) {
			a.name = kernels[i].name
		}
		for j := range e {
			a.errors[j] = e[j] / (high[j] - low[j])
		}
		list = append(list, a)
	}
	return list
}

// stribeckRun is case 2 at 100 N·m with one friction law.
type stribeckRun struct {
	name    string
	sticks  int     // of the clutch
	last    float64 // s, the last time it stuck or broke away
	end     outcome
	most    float64   // slip, rad/s, at the end
	swing   float64   // largest less smallest acceleration of the body in the last second, m/s²
	t, s    []float64 // slip over time
	differs float64   // of the nonlinear vehicle's slip at the end, as a part of it
}

func runStribeck(c *juddering, until float64) stribeckRun {
	edits := loads100
	if c.stribeck > 0 {
		edits = append(edits[:len(edits):len(edits)], stribeck(c))
	}
	d := newDrive("judder", 5*time.Millisecond, edits...)
	d.u[1] = c.slides
	d.reset(c.engine)
	r := stribeckRun{name: c.name}
	low, high := math.Inf(1), math.Inf(-1)
	mode := kernel.Stuck
	for tick := range int(math.Round(until / 5e-3)) {
		d.k.Step(d.y, d.u)
		for _, e := range d.k.Events() {
			if e.Friction == d.named["clutch"] {
				if r.last, mode = e.Time, e.To; mode == kernel.Stuck {
					r.sticks++
				}
			}
		}
		at := float64(tick+1) * 5e-3
		r.t, r.s = append(r.t, at), append(r.s, d.get("slip_clutch"))
		if at > until-1 {
			low, high = min(low, d.get("a_x")), max(high, d.get("a_x"))
		}
	}
	r.most, r.swing = d.get("slip_clutch"), high-low
	switch {
	case r.last > until-quiet:
		r.end = lasts
	case mode != kernel.Stuck:
		r.end = slips
	}
	m := newJudder(c, anyAngle)
	m.walk(until, fineStep)
	r.differs = math.Abs(m.slip[clutch]-r.most) / math.Abs(m.slip[clutch])
	return r
}

// harmonicRun is the driveline under the harmonics of the engine, T_0 = 60 N·m.
type harmonicRun struct {
	t, torque, twist []float64 // s, N·m, rad/s: engine less driven wheel
	swing, calm      float64   // rad/s: largest less smallest twist in the last second, with and without harmonics
	differs          float64   // of the nonlinear vehicle, largest, as a part of the swing
}

func runHarmonics(until float64) (r harmonicRun) {
	c := with(case1, func(c *juddering) { c.engine, c.harmonics = 60, true })
	m := newJudder(&c, anyAngle)
	d, calm := newDrive("judder", 5*time.Millisecond, harmonics), newDrive("judder", 5*time.Millisecond)
	d.reset(c.engine)
	calm.reset(c.engine)
	var span, still [2]float64
	for i := range span {
		span[i] = math.Inf(1 - 2*i)
		still[i] = span[i]
	}
	stretch := func(s *[2]float64, v float64) { s[0], s[1] = min(s[0], v), max(s[1], v) }
	for tick := range int(math.Round(until / 5e-3)) {
		at := float64(tick+1) * 5e-3
		m.walk(at, fineStep)
		d.k.Step(d.y, d.u)
		calm.k.Step(calm.y, calm.u)
		twist := d.get("w_e") - d.get("w_1")
		r.t, r.torque, r.twist = append(r.t, at), append(r.torque, c.torque(m.z.q[qEngine])), append(r.twist, twist)
		r.differs = max(r.differs, math.Abs(twist-(m.z.v[qEngine]-m.z.v[qWheel1])))
		if at > until-1 {
			stretch(&span, twist)
			stretch(&still, calm.get("w_e")-calm.get("w_1"))
		}
	}
	r.swing, r.calm = span[1]-span[0], still[1]-still[0]
	r.differs /= r.swing
	return r
}
