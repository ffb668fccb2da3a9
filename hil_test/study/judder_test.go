package main

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// Independent code made the file, with 13 digits.
func TestJudderVehicleAgreesWithTheFile(t *testing.T) {
	want := readFile(t, "E1_case1")
	m := newJudder(&case1)
	columns := map[string]func() float64{
		"x": func() float64 { return m.z.q[qX] }, "y": func() float64 { return m.z.q[qY] }, "pitch": func() float64 { return m.z.q[qPhi] },
		"v_x": func() float64 { return m.z.v[qX] }, "pitch_rate": func() float64 { return m.z.v[qPhi] },
		"stroke1": func() float64 { return m.z.q[qS1] }, "stroke2": func() float64 { return m.z.q[qS2] },
		"a_x": func() float64 { return m.rate.v[qX] }, "a_pitch": func() float64 { return m.rate.v[qPhi] },
		"w_e": func() float64 { return m.z.v[qEngine] }, "w_1": func() float64 { return m.z.v[qWheel1] }, "w_2": func() float64 { return m.z.v[qWheel2] },
		"F_N1": func() float64 { return m.load[0] }, "F_N2": func() float64 { return m.load[1] },
		"F_f1": func() float64 { return m.friction[front] }, "F_f2": func() float64 { return m.friction[rear] }, "T_f": func() float64 { return m.friction[clutch] },
	}
	worst, span := map[string]float64{}, map[string][2]float64{}
	for i, at := range want["t"] {
		m.advance(at, 1e-4)
		for name, get := range columns {
			v := want[name][i]
			if i == 0 {
				span[name] = [2]float64{v, v}
			}
			span[name] = [2]float64{min(span[name][0], v), max(span[name][1], v)}
			worst[name] = max(worst[name], math.Abs(get()-v))
		}
	}
	most := 0.0
	for name, e := range worst {
		e /= span[name][1] - span[name][0]
		if !(e <= 1e-6) {
			t.Errorf("%s: error %.2g of its range", name, e)
		}
		most = max(most, e)
	}
	if len(want["t"]) != 360 || m.changes != 0 {
		t.Errorf("%d rows and %d transitions, want 360 and none", len(want["t"]), m.changes)
	}
	t.Logf("%d columns within %.1e of their range over 20 s", len(worst), most)
}

// shortJudder are the parameters of a short study of judder.
var shortJudder = judderExtent{until: 3, fine: 0.1, variants: 2, lives: 3, longest: 2}

// foundJudder returns the result of the short study, which runs once.
var foundJudder = sync.OnceValue(func() *judderResult { return doJudder(shortJudder) })

// The windows of the kernel and of the vehicle at any angle, which shares no code with the kernel,
// agree within a part of their width.
func TestStickSlipOccursInANarrowWindow(t *testing.T) {
	r := foundJudder()
	for _, s := range r.cases {
		for j, w := range s.windows {
			name := s.name + ", " + judderVariants[j].name
			if width := w.width(); !(width > 0.5 && width < 10) {
				t.Errorf("%s: the window is %g N·m wide", name, width)
			}
			if !(w.period > 0.01 && w.period < 0.1) || !(w.slip > 0) || !(w.sticks > 0 && w.sticks < 1) || !(w.otherSlip <= 1e-6) {
				t.Errorf("%s: %+v", name, w.cycle)
			}
		}
		w, far := s.windows[0], s.second
		if !(math.Abs(w.low-far[0]) <= 2*r.fine) || !(math.Abs(w.high-far[1]) <= 2*r.fine) {
			t.Errorf("%s: window %g to %g N·m, of the vehicle at any angle %g to %g N·m", s.name, w.low, w.high, far[0], far[1])
		}
		if l := s.printed; l.end != lasts {
			t.Errorf("%s: at the torque of the paper the contact %v after %g s", s.name, l.end, l.last)
		}
	}
	if one, two := r.cases[0].windows[0], r.cases[0].windows[1]; !(math.Abs(one.low-two.low) < 50) {
		t.Errorf("without the engine's reaction the window moves from %g to %g N·m", one.low, two.low)
	}
}

// The windows in the comments of the plants and in README.md are exact to 0.01 N·m.
func TestStickSlipLasts20SecondsInThePublishedWindow(t *testing.T) {
	for _, c := range []struct {
		*stickSlip
		inside, outside [2]float64
	}{
		{&stickSlips[0], [2]float64{322.61, 323.40}, [2]float64{322.60, 323.41}},
		{&stickSlips[1], [2]float64{-168.23, -168.57}, [2]float64{-168.22, -168.58}},
	} {
		d := newDrive(c.plant, 5*time.Millisecond)
		for i, want := range []outcome{holds, slips} {
			if l := d.life(c.contact, c.inside[i], 20); l.end != lasts {
				t.Errorf("%s: at %g N·m it %v after %g s, want stick-slip for 20 s", c.name, c.inside[i], l.end, l.last)
			}
			if l := d.life(c.contact, c.outside[i], 20); l.end != want {
				t.Errorf("%s: at %g N·m it %v after %g s, want: %v", c.name, c.outside[i], l.end, l.last, want)
			}
		}
	}
}

func TestLinearStrutsAndAngleLawsReduceTheError(t *testing.T) {
	a := foundJudder().angles
	rigid, straight, laws := a[0].errors, a[1].errors, a[2].errors
	for j := range 3 { // pitch and normal forces
		if !(straight[j] < rigid[j]/3) || !(laws[j] < straight[j]/5) || !(laws[j] < 1e-3) {
			t.Errorf("%c: rigid struts %.1e, linear %.1e, with laws %.1e", judderColumns[j], rigid[j], straight[j], laws[j])
		}
	}
}

func TestStribeckFrictionIncreasesJudder(t *testing.T) {
	s := foundJudder().stribeck
	if !(s[1].swing > 2*s[0].swing) || !(s[0].differs <= 1e-6) || !(s[1].differs <= 2e-2) {
		t.Errorf("range of acceleration: Coulomb %g m/s², difference %.1e; Stribeck %g m/s², difference %.1e", s[0].swing, s[0].differs, s[1].swing, s[1].differs)
	}
	if h := foundJudder().engine; !(h.swing > h.calm) || !(h.differs <= 0.05) {
		t.Errorf("harmonics: range %g rad/s, without %g rad/s, difference %.1e", h.swing, h.calm, h.differs)
	}
}

func TestJudderFilesAreWritten(t *testing.T) {
	dir := t.TempDir()
	if err := foundJudder().files().write(dir); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"judder.md": "| case 2: at 323.47 N·m", "judder-windows.csv": "as in the judder paper", "judder-lives.csv": "case 3",
		"judder-life-2.svg": "<svg", "judder-life-3.svg": "<svg", "judder-figure13.svg": "Stribeck", "judder-figure18.svg": "<svg",
	}
	for _, f := range judderFigures {
		for _, one := range f.list {
			want["judder-figure"+one.number+".svg"] = f.name + ", " + one.columns[0]
		}
	}
	for name, part := range want {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || !strings.Contains(string(data), part) || strings.Contains(string(data), "NaN") {
			t.Errorf("%s: error %v, want %q and no NaN", name, err, part)
		}
	}
}
