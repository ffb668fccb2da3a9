package plants_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"lockstep/hil_test/truth"
)

const (
	atRest  = 1e-9  // slip or rebound that counts as zero, m/s or rad/s
	nothing = 1e-13 // force that counts as zero, N or N·m
	soon    = 1e-6  // time after an event at which misfit compares modes, s
)

// chooseModes tries every combination of contacts and locks at rest and takes the best fit.
func (s *second) chooseModes() {
	var rubs []*rub
	var stops []*stop
	cases := 1
	for i := range s.rubs {
		if r := &s.rubs[i]; math.Abs(dot(r.row, s.x)) < atRest {
			rubs, cases = append(rubs, r), 3*cases
		}
	}
	for i := range s.stops {
		if p := &s.stops[i]; p.gap(s.x) < 1e-12 && math.Abs(dot(p.row, s.x)) < atRest {
			stops, cases = append(stops, p), 2*cases
		}
	}
	take := func(c int) {
		for _, p := range stops {
			p.touches, c = c%2 == 1, c/2
		}
		for _, r := range rubs {
			r.way, c = []int{0, 1, -1}[c%3], c/3
		}
		s.bind()
	}
	best, least := 0, math.Inf(1)
	for c := range cases {
		take(c)
		if bad := s.misfit(rubs, stops); bad < least-10*nothing {
			best, least = c, bad
		}
	}
	take(best)
	s.hold(s.x[:len(s.inertia)]) // takes out rounding
}

// misfit returns the largest violation by the forces of locks and contacts, or by the accelerations
// of the others. It computes them soon after the event, since they may be zero at the event.
func (s *second) misfit(rubs []*rub, stops []*stop) (bad float64) {
	defer s.back(s.t, append([]float64(nil), s.x...))
	s.advance(soon)
	d := make([]float64, len(s.x))
	s.rate(s.t, s.x, d)
	for _, p := range stops {
		if p.touches {
			bad = max(bad, -p.force)
		} else {
			bad = max(bad, -dot(p.row, d))
		}
	}
	for _, r := range rubs {
		if r.way == 0 {
			bad = max(bad, math.Abs(r.force)-r.capacity(s.t, s.x))
		} else {
			bad = max(bad, -float64(r.way)*dot(r.row, d))
		}
	}
	return bad
}

// ended returns the change of modes that is due in the present state; nil: none.
func (s *second) ended() (follow func()) {
	for i := range s.borders {
		b := &s.borders[i]
		z := b.value(s.x)
		if q := b.region; q > 0 && z < b.at[q-1] {
			return func() { s.cross(b, -1) }
		} else if q < len(b.at) && z > b.at[q] {
			return func() { s.cross(b, 1) }
		}
	}
	s.rate(s.t, s.x, make([]float64, len(s.x)))
	for i := range s.stops {
		p := &s.stops[i]
		if p.touches && !(p.force >= -nothing) {
			return s.chooseModes
		} else if gap := p.gap(s.x); !p.touches && (gap < 0 && dot(p.row, s.x) < 0 || gap < -1e-9) {
			return func() { s.applyImpact(p) }
		}
	}
	for i := range s.rubs {
		r := &s.rubs[i]
		if r.way == 0 && !(math.Abs(r.force) <= r.capacity(s.t, s.x)+nothing) || float64(r.way)*dot(r.row, s.x) < -atRest/1e4 {
			return s.chooseModes
		}
	}
	return nil
}

// cross changes the region by 1 or -1.
func (s *second) cross(b *border, by int) {
	b.region += by
	if b.name != "" {
		s.events = append(s.events, happening{s.t, fmt.Sprintf("%s%d", b.name, max(b.region-len(b.at)/2, len(b.at)/2-b.region))})
	}
	s.bind()
}

// applyImpact applies an impact (Reiter, eq. 107, 108). Friction transmits no impulse and may slip
// afterwards.
func (s *second) applyImpact(p *stop) {
	rate, e := dot(p.row, s.x), p.e
	if rate < -atRest {
		s.events = append(s.events, happening{s.t, "impact"})
	}
	if -e*rate < atRest/10 {
		e = 0
	}
	push := s.pushed(p.row)
	for i, a := range push {
		s.x[i] -= (1 + e) * rate / dot(p.row, push) * a
	}
	for i := range s.rubs {
		if v := dot(s.rubs[i].row, s.x); math.Abs(v) >= atRest {
			s.rubs[i].way = int(math.Copysign(1, v))
		}
	}
	s.chooseModes()
}

// solveUntil solves up to a time, s.
func (s *second) solveUntil(end float64) error {
	for tries := 0; s.t < end-1e-13; tries++ {
		if tries > 1e4 {
			return fmt.Errorf("the second solver makes no progress at %g s", s.t)
		}
		for len(s.corners) > 0 && s.corners[0] <= s.t+1e-13 {
			s.corners = s.corners[1:]
		}
		h := min(s.next, end-s.t)
		if len(s.corners) > 0 {
			h = min(h, s.corners[0]-s.t)
		}
		t, x := s.t, append([]float64(nil), s.x...)
		s.advance(h)
		if s.ended() == nil {
			s.hold(s.x[:len(s.inertia)]) // takes out rounding
			s.next = min(s.step, 2*s.next)
			continue
		}
		low, high := 0.0, h
		for range 60 {
			mid := (low + high) / 2
			if t+mid == t+low || t+mid == t+high {
				break
			}
			s.back(t, x)
			if s.advance(mid); s.ended() == nil {
				low = mid
			} else {
				high = mid
			}
		}
		s.back(t, x)
		s.advance(high)
		s.changeModes(s.ended())
		s.next = soon / 100
	}
	return nil
}

// back restores time t and state x.
func (s *second) back(t float64, x []float64) {
	s.t = t
	copy(s.x, x)
}

// changeModes applies a change of modes and records its events.
func (s *second) changeModes(follow func()) {
	rubs, stops := append([]rub(nil), s.rubs...), append([]stop(nil), s.stops...)
	follow()
	record := func(name string) { s.events = append(s.events, happening{s.t, name}) }
	for i, p := range s.stops {
		if was := stops[i].touches; p.touches && !was {
			record("contact_begin")
		} else if was && !p.touches {
			record("separation")
		}
	}
	for i, r := range s.rubs {
		if was := rubs[i].way; was == r.way || r.capacity(s.t, s.x) <= 0 {
			continue
		}
		if r.way == 0 {
			record(r.lock)
		} else {
			record(r.slip)
		}
	}
}

// The second solver agrees with the truth files, which come from independent programs.
func TestSecondSolverAgreesWithTheTruthFiles(t *testing.T) {
	all := rows(t)
	for name, c := range map[string]struct {
		file string
		tol  float64 // tolerance as part of the range
	}{
		"table 2":                          {"A2_pwa_spring_T2_continuous", 1e-10},
		"table 6":                          {"A4_pwa_spring_T6", 1e-10},
		"table 9":                          {"A7_static_friction_T9", 1e-10},
		"table 13, case 1":                 {"B1_collision", 1e-10},
		"table 13, case 3":                 {"B3_collision", 1e-10},
		"table 13, case 7":                 {"B7_collision", 1e-10},
		"table 12, case 1":                 {"D2_spring_case1", 1e-10},
		"table 16, case 1":                 {"D3_clearance_case1", 1e-10},
		"chapter 5, comparison 1, clutch":  {"D4_tyre1_high_speed_start_clutch", 1e-9},
		"chapter 5, comparison 1, formula": {"D4_tyre1_high_speed_start_pacejka", 1e-7}, // accuracy of the file
	} {
		s := all[slices.IndexFunc(all, func(r row) bool { return r.name == name })].other
		tr, worst := truth.Read(t, "testdata/"+c.file+".csv").AfterEvents(), map[string]float64{}
		span := tr.Spans()
		for i, at := range tr.Time {
			if err := s.solveUntil(at); err != nil {
				t.Fatal(err)
			}
			names, values := s.seen()
			for k, column := range tr.Names {
				if j := slices.Index(names, column); j >= 0 {
					worst[column] = max(worst[column], math.Abs(values[j]-tr.Rows[i][k])/span[k])
				}
			}
		}
		g, want := grid{tol: c.tol, late: 1e-9}, readNonlinear(t, "testdata/"+c.file+"_events.csv")
		t.Log(c.file)
		within(t, g, tr.Names, worst)
		have := slices.DeleteFunc(piled(s.events), func(e happening) bool {
			return !slices.ContainsFunc(want, func(w happening) bool { return w.name == e.name })
		})
		t.Logf("%d events within %.1e s", len(want), inOrder(t, g, piled(want), have))
	}
}
