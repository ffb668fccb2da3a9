package main

import (
	"math"
	"time"

	"lockstep/model/kernel"
)

// fineStep is the step of the nonlinear vehicle, s. The phase of its fastest motion advances by
// 0.14 rad per step; half the step changes no printed digit.
const fineStep = 2e-4

// angleError is the error of a treatment of the lean of the body, against the nonlinear vehicle in
// case 1, at points 5 ms apart, as a part of the range.
type angleError struct {
	name   string // treatment of the lean
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

// largeAngles compares the treatments of the lean over a time, s.
func largeAngles(until float64) (list []angleError) {
	const h = 5e-3
	truth, frozen := newJudder(&case1), newJudder(&case1)
	treatments := []struct {
		name string
		step func() judderPoint
	}{
		{"linear, loads on struts that do not lean", leaning(5*time.Millisecond, rigid...)},
		{"linear about the standing vehicle", leaning(5*time.Millisecond, straight...)},
		{"linear, with second order as laws (the plant judder)", leaning(5 * time.Millisecond)},
		{"the plant judder at 1 ms", leaning(time.Millisecond)},
		{"geometry of the last point, held over 5 ms", func() judderPoint {
			frozen.held = poseOf(&frozen.z.q, &frozen.z.v)
			frozen.advance(frozen.t+h, fineStep)
			return frozen.point()
		}},
	}
	list = make([]angleError, len(treatments))
	var ranges [len(judderColumns)]span
	for j, v := range truth.point() {
		ranges[j] = span{v, v}
	}
	for tick := range int(math.Round(until / h)) {
		truth.advance(float64(tick+1)*h, fineStep)
		want := truth.point()
		for j, v := range want {
			ranges[j].add(v)
		}
		for i, treatment := range treatments {
			for j, v := range treatment.step() {
				list[i].errors[j] = max(list[i].errors[j], math.Abs(v-want[j]))
			}
		}
	}

	for i := range list {
		list[i].name = treatments[i].name
		for j := range ranges {
			list[i].errors[j] /= ranges[j].width()
		}
	}

	return list
}

// leaning returns a function that steps the plant with edits by 5 ms.
func leaning(period time.Duration, edits ...edit) func() judderPoint {
	d := newDrive("judder", period, edits...)
	d.reset(case1.engine)
	return func() judderPoint {
		for range 5 * time.Millisecond / period {
			d.Step(d.Y, d.U)
		}
		return d.point()
	}
}

// stribeckRun is case 2 at 100 N·m with one friction law.
type stribeckRun struct {
	name    string
	sticks  int     // number of times that the clutch locks
	last    float64 // time of the last transition, s
	end     outcome
	most    float64   // slip at the end, rad/s
	swing   float64   // range of the acceleration of the body in the last second, m/s²
	t, s    []float64 // slip over time
	differs float64   // relative difference of the nonlinear vehicle's slip at the end
}

func runStribeck(c *juddering, until float64) stribeckRun {
	edits := loads100
	if c.stribeck > 0 {
		edits = append(edits[:len(edits):len(edits)], stribeck(c))
	}
	d := newDrive("judder", 5*time.Millisecond, edits...)
	d.U[1] = c.slides
	d.reset(c.engine)
	r := stribeckRun{name: c.name}
	swing, mode := newSpan(), kernel.Stuck
	for at := range d.steps(until) {
		for e := range d.changes("clutch") {
			if r.last, mode = e.Time, e.To; mode == kernel.Stuck {
				r.sticks++
			}
		}

		r.t, r.s = append(r.t, at), append(r.s, d.get("slip_clutch"))
		if at > until-1 {
			swing.add(d.get("a_x"))
		}
	}

	r.most, r.swing = d.get("slip_clutch"), swing.width()
	if r.end = endOf(mode == kernel.Stuck); r.last > until-quiet {
		r.end = lasts
	}

	m := newJudder(c)
	m.advance(until, fineStep)
	r.differs = math.Abs(m.slip[clutch]-r.most) / math.Abs(m.slip[clutch])
	return r
}

// harmonicRun is the driveline under the harmonics of the engine, T_0 = 60 N·m.
type harmonicRun struct {
	t, torque, twist []float64 // s, N·m, rad/s: engine less driven wheel
	swing, calm      float64   // range of the twist in the last second with and without harmonics, rad/s
	differs          float64   // largest difference of the nonlinear vehicle, as a part of swing
}

func runHarmonics(until float64) (r harmonicRun) {
	c := with(case1, func(c *juddering) { c.engine, c.harmonics = 60, true })
	m := newJudder(&c)
	d, calm := newDrive("judder", 5*time.Millisecond, harmonics), newDrive("judder", 5*time.Millisecond)
	d.reset(c.engine)
	calm.reset(c.engine)
	harmonic, plain := newSpan(), newSpan()
	for at := range d.steps(until) {
		m.advance(at, fineStep)
		calm.Step(calm.Y, calm.U)
		twist := d.get("w_e") - d.get("w_1")
		r.t, r.torque, r.twist = append(r.t, at), append(r.torque, c.torque(m.z.q[qEngine])), append(r.twist, twist)
		r.differs = max(r.differs, math.Abs(twist-(m.z.v[qEngine]-m.z.v[qWheel1])))
		if at > until-1 {
			harmonic.add(twist)
			plain.add(calm.get("w_e") - calm.get("w_1"))
		}
	}

	r.swing, r.calm = harmonic.width(), plain.width()
	r.differs /= r.swing
	return r
}
