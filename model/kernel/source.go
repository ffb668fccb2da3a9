package kernel

import (
	"math"
	"slices"

	"lockstep/model"
)

// segment is the row of table T that holds at time t: T[i] <= t < T[i+1]; -1
// before the first.
//
//go:nosplit
func segment(T []float64, t float64) int {
	lo, hi := 0, len(T) // number of rows with T <= t
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if T[mid] <= t {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo - 1
}

// crossing is s with a row more wherever its table passes through v between two
// rows, so that max(0, s - v) is straight between rows as well. Other sources are
// returned as they are.
func crossing(s model.Source, v float64) model.Source {
	if s.Held || s.Amplitude != 0 || len(s.Sum) > 0 {
		return s
	}
	out := s
	out.T, out.V = nil, nil
	for i := range s.T {
		if i > 0 && (s.V[i-1]-v)*(s.V[i]-v) < 0 && s.T[i] > s.T[i-1] {
			part := (v - s.V[i-1]) / (s.V[i] - s.V[i-1])
			out.T, out.V = append(out.T, s.T[i-1]+part*(s.T[i]-s.T[i-1])), append(out.V, v)
		}
		out.T, out.V = append(out.T, s.T[i]), append(out.V, s.V[i])
	}
	return out
}

// delayed is s later by a dead time.
func delayed(s model.Source, d float64) model.Source {
	if d == 0 {
		return s
	}
	s.Start += d
	s.T = slices.Clone(s.T)
	if s.Period == 0 {
		for i := range s.T {
			s.T[i] += d
		}
	}
	sum := make([][]model.Source, len(s.Sum))
	for i, factors := range s.Sum {
		for _, f := range factors {
			sum[i] = append(sum[i], delayed(f, d))
		}
	}
	s.Sum = sum
	return s
}

// corners is the largest number of corners, of sources and of commands with a
// dead time, within the time that one tick can span.
func (t *Tables) corners() int {
	span := float64(t.periods()) * float64(t.PeriodNs) * 1e-9
	most := 0
	var once []float64
	leaf := func(s *model.Source) {
		if s.Period > 0 {
			most += (len(s.T) + 1) * (int(span/s.Period) + 2)
		} else {
			once = append(once, s.T...)
		}
		if s.Amplitude != 0 || s.Period > 0 {
			once = append(once, s.Start)
		}
	}
	for _, d := range t.Delay {
		if d > 0 {
			most += t.periods()
		}
	}
	for i := range t.Signals {
		s := &t.Signals[i]
		if s.Input < 0 && len(s.Source.Sum) == 0 {
			leaf(&s.Source)
		}
		for _, factors := range s.Source.Sum {
			for j := range factors {
				leaf(&factors[j])
			}
		}
	}
	slices.Sort(once)
	cluster, first := 0, 0
	for i := range once {
		for once[i]-once[first] > span {
			first++
		}
		cluster = max(cluster, i-first+1)
	}
	return most + cluster
}

// sourceAt is the value of s at time t, on the smooth part of it that holds
// around time mid.
//
//go:nosplit
func sourceAt(s *model.Source, t, mid float64) float64 {
	if len(s.Sum) == 0 {
		return leafAt(s, t, mid)
	}
	total := 0.0
	for _, factors := range s.Sum {
		p := 1.0
		for i := range factors {
			p *= leafAt(&factors[i], t, mid)
		}
		total += p
	}
	return total
}

//go:nosplit
func leafAt(s *model.Source, t, mid float64) float64 {
	v := tableAt(s, t, mid)
	if s.Amplitude != 0 && mid >= s.Start {
		v += s.Amplitude * sin(2*math.Pi*s.Frequency*(t-s.Start)+s.Phase)
	}
	return v
}

//go:nosplit
func tableAt(s *model.Source, t, mid float64) float64 {
	if len(s.T) == 0 {
		return 0
	}
	if s.Period > 0 {
		if mid < s.Start {
			return s.V[0]
		}
		shift := s.Start + s.Period*floor((mid-s.Start)/s.Period)
		t, mid = t-shift, mid-shift
	}
	i := segment(s.T, mid)
	switch {
	case i < 0:
		return s.V[0]
	case i >= len(s.T)-1:
		return s.V[len(s.V)-1]
	case s.Held:
		return s.V[i]
	}
	return s.V[i] + (s.V[i+1]-s.V[i])*((t-s.T[i])/(s.T[i+1]-s.T[i]))
}

// cornerAfter is the first corner of s after time t, +Inf where there is none.
//
//go:nosplit
func cornerAfter(s *model.Source, t float64) float64 {
	if len(s.Sum) == 0 {
		return leafCorner(s, t)
	}
	next := math.Inf(1)
	for _, factors := range s.Sum {
		for i := range factors {
			next = min(next, leafCorner(&factors[i], t))
		}
	}
	return next
}

//go:nosplit
func leafCorner(s *model.Source, t float64) float64 {
	next := math.Inf(1)
	if (s.Amplitude != 0 || s.Period > 0) && t < s.Start {
		next = s.Start
	}
	if len(s.T) == 0 || s.Period > 0 && t < s.Start {
		return next
	}
	shift := 0.0
	if s.Period > 0 {
		shift = s.Start + s.Period*floor((t-s.Start)/s.Period)
		next = min(next, shift+s.Period)
	}
	if i := segment(s.T, t-shift) + 1; i < len(s.T) {
		next = min(next, shift+s.T[i])
	}
	return next
}

// corner is the first corner of any source, or change of a command, after the
// local time of this tick, as a local time.
//
//go:nosplit
func (k *Kernel) corner(local float64) float64 {
	now := k.grid() + local
	if now+k.gap >= k.nextSource {
		k.nextSource = math.Inf(1)
		for j := range k.t.Signals[:k.t.FirstAffine] {
			if sig := &k.t.Signals[j]; k.input[j] < 0 {
				k.nextSource = min(k.nextSource, cornerAfter(&sig.Source, now+k.gap))
			}
		}
	}
	next := k.nextSource - k.grid()
	for i, d := range k.t.Delay {
		if i > 0 && d == k.t.Delay[i-1] {
			continue
		}
		next = min(next, float64(ticks((local+k.gap-d)/k.h)+1)*k.h+d)
	}
	return next
}

// grid is the grid time at the start of this tick, s.
//
//go:nosplit
func (k *Kernel) grid() float64 { return float64(k.tick) * k.h }

// ticks is the largest whole number that is not above x; |x| is below History.
//
//go:nosplit
func ticks(x float64) int64 {
	n := int64(x)
	if float64(n) > x {
		n--
	}
	return n
}

// command is input i at a local time: commands hold from the tick of their
// arrival, after their dead time, until the next.
//
//go:nosplit
func (k *Kernel) command(i int, local float64) float64 {
	at := min(k.tick+ticks((local-k.t.Delay[i])/k.h), k.latest)
	if at < 0 {
		return k.t.Start[i]
	}
	return k.past(max(at, k.latest-int64(k.t.History)+1))[i]
}

// Drive has input i, which nothing drives by the tables, follow u from the next step
// on, or its own source again. Until the dead time of the first u is over it stays as it
// is now.
//
//go:nosplit
func (k *Kernel) Drive(i int, on bool) {
	j := k.t.InputSignal[i]
	if k.t.Signals[j].Input >= 0 {
		return
	}
	k.shownAt, k.nextSource = -1, 0
	if !on {
		k.input[j] = -1
		return
	}
	k.input[j] = i
	now := sourceAt(&k.t.Signals[j].Source, k.grid(), k.grid()+k.gap)
	for tick := range int64(k.t.History) {
		k.past(tick)[i] = now
	}
}

// Driven says that input i follows u.
func (k *Kernel) Driven(i int) bool { return k.input[k.t.InputSignal[i]] >= 0 }

// Own is what the source of input i gives in the middle of the next step.
//
//go:nosplit
func (k *Kernel) Own(i int) float64 {
	at := k.grid() + k.h/2 + k.t.Delay[i] // the source is later by the dead time
	return sourceAt(&k.t.Signals[k.t.InputSignal[i]].Source, at, at)
}

// sources sets w over the piece that begins at a local time and lasts length:
// commands held, sources as the parabola through their values at the start, the
// middle and the end (exact for tables, since pieces end at corners), laws held
// at their value at the start until couple refines them, the torque of slipping
// elements from the clipped capacity. Where x is nil the piece begins as that before it,
// and couple does the rest.
//
//go:nosplit
func (k *Kernel) sources(x []float64, local, length float64) {
	k.length = length
	mid := local + length/2
	for j := k.t.FirstAffine; j < k.t.FirstLaw; j++ {
		k.w1[j], k.w2[j] = 0, 0
	}
	k.bends(k.w0)
	for j := range k.t.Signals[:k.t.FirstAffine] {
		sig := &k.t.Signals[j]
		if i := k.input[j]; i >= 0 {
			k.w0[j], k.w1[j], k.w2[j] = k.command(i, mid), 0, 0
			continue
		}
		t, tm := k.grid()+local, k.grid()+mid
		if local == 0 && k.shownAt == k.tick && length > 0 {
			k.w0[j] = k.shown[j]
		} else {
			k.w0[j] = sourceAt(&sig.Source, t, tm)
		}
		if sig.Source.Amplitude == 0 && len(sig.Source.Sum) == 0 { // straight between corners
			k.w1[j], k.w2[j] = sourceAt(&sig.Source, t+length, tm)-k.w0[j], 0
			continue
		}
		k.w1[j], k.w2[j] = parabola(k.w0[j], sourceAt(&sig.Source, tm, tm), sourceAt(&sig.Source, t+length, tm))
	}
	if x != nil {
		k.begun(x)
	}
}

// begun sets the laws and capacities that hold at the start of the piece, for
// state x. Laws that read torques and torques that follow laws settle in a bounded
// number of rounds: each loses what a gear loses of its torque.
//
//go:nosplit
func (k *Kernel) begun(x []float64) {
	first, m := k.t.FirstLaw, k.t.M
	rounds := 1
	if k.t.ReadsTau {
		rounds = coupling
		k.heed(0, true)
	}
	for range rounds {
		k.laws(k.w0[:m], x)
		moved := k.t.Net == nil || k.settling()
		for j := first; j < m; j++ {
			k.w1[j], k.w2[j] = 0, 0
		}
		for i := range k.mode {
			k.capacity(i)
			k.slide(i)
		}
		if !moved || !k.t.ReadsTau {
			return
		}
		k.instant(0)
		k.calls.torques(k, x)
		k.heed(0, false)
	}
}

// now sets w and capNow to their values at the grid time, for state x.
//
//go:nosplit
func (k *Kernel) now(x []float64) {
	if k.t.ReadsTau {
		k.calls.sources(k, x, 0, 0)
		k.instant(0)
		return
	}
	m := k.t.M
	k.shownAt = k.tick
	k.bends(k.w)
	for j := range k.t.Signals[:k.t.FirstAffine] {
		if i := k.input[j]; i >= 0 {
			k.w[j] = k.command(i, 0)
		} else {
			k.shown[j] = sourceAt(&k.t.Signals[j].Source, k.grid(), k.grid()+k.gap) // behind a jump
			k.w[j] = k.shown[j]
		}
	}
	k.laws(k.w[:m], x)
	k.exert()
}

// exert sets the capacities of this instant, and the torques in w that follow from them.
//
//go:nosplit
func (k *Kernel) exert() {
	for i := range k.capNow {
		f, at := &k.t.Friction[i], k.t.M+i
		k.capNow[i] = f.Gain * max(0, k.w[f.Signal]-f.Offset)
		k.w[at] = k.direction(i) * k.capNow[i]
		if k.idle(i) {
			k.w[at] = k.idleTorque(i)
		}
	}
}
