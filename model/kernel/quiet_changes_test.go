package kernel

import (
	"math"
	"math/rand"
	"slices"
	"testing"
	"time"

	"lockstep/model"
)

// pair is a plant with quiet ticks and the same plant without, on tables that change during the run.
type pair struct {
	quiet, full []*Kernel // by tables
	at          int       // tables in use
	u, y, want  []float64
}

// randomPair prepares a random plant and two others that follow it. It returns nil where one has no
// quiet ticks.
func randomPair(t *testing.T, rnd *rand.Rand, seed int) *pair {
	r := randomRig(rnd)
	source := func(s model.Source) model.Source {
		switch rnd.Intn(8) {
		case 0:
			return randomTable(rnd)
		case 1: // a line that rises by less than a rounding per tick
			return model.Source{T: []float64{0, 1}, V: []float64{1, 1 + 1e-14}}
		case 2: // lines whose sum is constant but for rounding
			a, b := 10*rnd.NormFloat64(), 10*rnd.NormFloat64()
			line := func(from, to float64) []model.Source {
				return []model.Source{{T: []float64{0, 1}, V: []float64{from, to}}}
			}
			return model.Source{Sum: [][]model.Source{line(a, b), line(b, a)}}
		case 3:
			return model.Source{T: []float64{0}, V: []float64{2}, Amplitude: 3, Frequency: 5, Start: 0.2}
		}
		return s
	}
	waveforms := seed%3 > 0
	var p pair
	sources := []model.Source{}
	for range 3 {
		sys := r.system()
		for i := range sys.Signals {
			if len(sources) == i {
				sources = append(sources, sys.Signals[i].Source)
				if waveforms {
					sources[i] = source(sources[i])
				}
			}
			sys.Signals[i].Source = sources[i]
		}
		for i := range sys.Frictions {
			if (seed+i)%4 == 0 {
				sys.Frictions[i].OneWay, sys.Frictions[i].Floor = true, 1e-6
			}
		}
		opt := Options{Period: 2 * time.Millisecond, Scheme: []Scheme{Complete, Papers}[seed/2%2]}
		if seed%2 == 0 {
			opt.Places, opt.Ramped = 3, make([]bool, len(sys.Inputs))
			for i := range opt.Ramped {
				opt.Ramped[i] = (seed+i)%4 == 0
			}
		}
		if seed%5 == 0 {
			opt.Driven = make([]bool, len(sys.Inputs))
			opt.Driven[0] = true
		}
		tables, err := Prepare(sys, opt)
		if err != nil {
			t.Fatal(err)
		}
		if !tables.Quiet {
			return nil
		}
		if len(p.quiet) > 0 {
			if err := tables.Follows(p.quiet[0].t); err != nil {
				t.Fatal(err)
			}
		}
		full := *tables
		full.Quiet = false
		p.quiet, p.full = append(p.quiet, New(tables)), append(p.full, New(&full))
		for i := range r.J {
			r.J[i] *= 1 + 0.3*rnd.Float64()*float64(rnd.Intn(2))
		}
	}
	m, n := p.quiet[0].Dims()
	p.u, p.y, p.want = make([]float64, m), make([]float64, n), make([]float64, n)
	return &p
}

// act calls f for both kernels in use.
func (p *pair) act(f func(k *Kernel)) {
	f(p.quiet[p.at])
	f(p.full[p.at])
}

// step steps both plants; it reports an output or a part of the state that differs.
func (p *pair) step(t *testing.T, seed, tick int) {
	t.Helper()
	p.quiet[p.at].Step(p.y, p.u)
	p.full[p.at].Step(p.want, p.u)
	a, b := p.quiet[p.at], p.full[p.at]
	sameBits := func(a, b float64) bool { return math.Float64bits(a) == math.Float64bits(b) }
	if !slices.EqualFunc(a.x, b.x, sameBits) || !slices.EqualFunc(a.idleShare, b.idleShare, sameBits) ||
		!slices.Equal(a.kappa, b.kappa) || !slices.Equal(a.leavingZero, b.leavingZero) ||
		!sameBits(a.torqueTol, b.torqueTol) || a.timeTol != b.timeTol || a.latest != b.latest || a.places != b.places {
		t.Fatalf("plant %d, tick %d: another state than without quiet ticks", seed, tick)
	}
	for i := range p.y {
		if !sameBits(p.y[i], p.want[i]) {
			t.Fatalf("plant %d, tick %d: output %s is %.17g, want %.17g as without quiet ticks", seed, tick,
				p.quiet[0].t.Outputs[i].Name, p.y[i], p.want[i])
		}
	}
}

// TestQuietTicksHaveTheBitsOfFullTicksAfterAnyChange changes the tables, the driven inputs and the
// commands of random plants, the commands also to values at the ends of the floating-point numbers.
func TestQuietTicksHaveTheBitsOfFullTicksAfterAnyChange(t *testing.T) {
	rnd := rand.New(rand.NewSource(11))
	quiet, ticks, plants, taken := 0, 0, 0, 0
	extremes := []float64{math.Copysign(0, -1), 5e-324, math.MaxFloat64, -math.MaxFloat64, 1e300, math.NaN(), math.Inf(1)}
	for seed := range 150 {
		p := randomPair(t, rnd, seed)
		if p == nil {
			continue
		}
		plants++
		for k := range 500 {
			for i := range p.u {
				switch rnd.Intn(80) {
				case 0:
					p.u[i] = 20 * math.Exp(2*rnd.NormFloat64())
				case 1:
					p.u[i] = 0
				case 2:
					p.u[i] = -p.u[i]
				case 3:
					on := rnd.Intn(4) > 0
					p.act(func(k *Kernel) { k.Drive(i, on) })
				case 4:
					if rnd.Intn(20) == 0 {
						p.u[i] = extremes[rnd.Intn(len(extremes))]
					}
				}
			}
			if k := p.quiet[p.at]; k.t.Places > 0 && rnd.Intn(30) == 0 {
				at := 0.0
				for range 1 + rnd.Intn(5) {
					i, value, slope := rnd.Intn(len(p.u)), 10*rnd.NormFloat64(), 0.0
					if k.t.Ramped[i] && rnd.Intn(2) == 0 {
						slope = 1e3 * rnd.NormFloat64()
					}
					p.act(func(k *Kernel) { k.Change(i, at, value, slope) })
					at += rnd.Float64() * k.h * 0.7
				}
			}
			if rnd.Intn(40) == 0 {
				to := (p.at + 1 + rnd.Intn(2)) % 3
				a, b := p.quiet[to].TakeOver(p.quiet[p.at], p.u), p.full[to].TakeOver(p.full[p.at], p.u)
				if a != b {
					t.Fatalf("plant %d, tick %d: change of tables %v, want %v as without quiet ticks", seed, k, a, b)
				}
				if a {
					p.at = to
					taken++
				}
			}
			p.step(t, seed, k)
			ticks++
			if p.quiet[p.at].held.isSet {
				quiet++
			}
			if p.y[len(p.y)-1] != 0 && rnd.Intn(5) == 0 {
				clear(p.u)
				p.act((*Kernel).Reset)
			}
		}
	}
	t.Logf("%d plants, %d changes of tables; %d of %d ticks are quiet", plants, taken, quiet, ticks)
	if !(plants >= 20 && taken >= 100 && quiet >= ticks/5) {
		t.Errorf("%d plants, %d changes, %d of %d ticks quiet; want 20, 100, a fifth", plants, taken, quiet, ticks)
	}
}
