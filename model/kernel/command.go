package kernel

import "math"

// commands holds the inputs that follow u. A command is constant from the start of a tick. With
// Tables.Places it also changes inside of a tick, at known places. The places divide the tick into
// segments, and on a segment a command is a straight line. A substep ends at each place, as at the
// breakpoint of a source.
//
// A list ×segments×inputs has a row for each segment. The value of a command t after the start of its
// tick, s, is that of its row plus t times its slope.
type commands struct {
	history      []float64 // History×segments×inputs, values of the last ticks and of the next one
	slopeHistory []float64 // the same, slopes, per s; empty without Tables.AnyRamped
	placeHistory []float64 // History×Places, places, s after the start of their tick, rising
	placeCounts  []int     // History, places in use

	latest       int64     // tick of the last u
	current      []float64 // segments×inputs, values of the tick latest
	currentSlope []float64 // the same, slopes
	placeAt      []float64 // Places, places of the tick latest
	places       int       // places in use

	changes bool   // the next tick has changes
	changed []bool // segments×inputs: an input changes in the next tick at the start of a segment
}

func newCommands(t *Tables) commands {
	m := len(t.Inputs)
	row := (t.Places + 1) * m
	vec := func(n int) []float64 { return make([]float64, n) }
	c := commands{history: vec(t.History * row), current: vec(row)}
	if t.Places > 0 {
		c.placeHistory, c.placeCounts = vec(t.History*t.Places), make([]int, t.History)
		c.placeAt, c.changed = vec(t.Places), make([]bool, row)
	}
	if t.AnyRamped {
		c.slopeHistory, c.currentSlope = vec(t.History*row), vec(row)
	}
	return c
}

// set copies from.
//
//go:nosplit
func (c *commands) set(from *commands) {
	copy(c.history, from.history)
	copy(c.slopeHistory, from.slopeHistory)
	copy(c.placeHistory, from.placeHistory)
	copy(c.placeCounts, from.placeCounts)
	copy(c.current, from.current)
	copy(c.currentSlope, from.currentSlope)
	copy(c.placeAt, from.placeAt)
	copy(c.changed, from.changed)
	c.latest, c.places, c.changes = from.latest, from.places, from.changes
}

// Change makes input i follow the line value + slope·(t - at) in the next step, from t = at, s after
// its start, to the next change of the input or the end of the step. The step after it begins with
// its own u. Change needs Tables.Places, and a slope Tables.Ramped.
//
// A change at the start needs no place. A change at the end of the step, or later, is ignored.
// Changes of one input must come in the order of their instants. If all places are taken, the last
// one moves to the instant of a later change, and the changes there move with it.
//
//go:nosplit
func (k *Kernel) Change(i int, at, value, slope float64) {
	if k.t.Places == 0 || !(at < k.h-k.timeTol) {
		return
	}
	if !k.changes {
		k.changes = true
		k.placeCounts[k.ringIndex(k.tick)] = 0
	}
	segment := 0
	if at > k.timeTol {
		segment = k.addPlace(at)
	}
	to := segment*len(k.t.Inputs) + i
	k.changed[to] = true
	if k.t.AnyRamped {
		k.slopesAt(k.tick)[to] = slope
		value -= float64(slope * at)
	}
	k.inputsAt(k.tick)[to] = value
}

// addPlace returns the segment of the next tick that begins at an instant; it adds a place if
// the tick has none there.
//
//go:nosplit
func (k *Kernel) addPlace(at float64) (segment int) {
	entry, places := k.ringIndex(k.tick), k.placesAt(k.tick)
	q, n := 0, k.placeCounts[entry]
	for q < n && places[q] < at-k.timeTol {
		q++
	}
	if q < n && places[q] <= at+k.timeTol {
		return q + 1
	}
	if n == k.t.Places {
		q = min(q, n-1)
		places[q] = max(places[q], at)
		return q + 1
	}

	for s := n; s > q; s-- {
		places[s] = places[s-1]
		k.copySegment(s+1, s)
	}
	m := len(k.t.Inputs)
	for i := range m {
		k.changed[(q+1)*m+i] = false
	}
	places[q] = at
	k.placeCounts[entry] = n + 1
	return q + 1
}

// copySegment copies the changes at the start of a segment of the next tick to another segment.
//
//go:nosplit
func (k *Kernel) copySegment(to, from int) {
	m, values := len(k.t.Inputs), k.inputsAt(k.tick)
	for i := range m {
		k.changed[to*m+i], values[to*m+i] = k.changed[from*m+i], values[from*m+i]
	}
	if k.t.AnyRamped {
		slopes := k.slopesAt(k.tick)
		for i := range m {
			slopes[to*m+i] = slopes[from*m+i]
		}
	}
}

// acceptInputs stores the inputs of a tick. A commanded input that is not finite stops the plant:
// the fault names a state that the input acts on, and the last inputs remain in force.
//
//go:nosplit
func (k *Kernel) acceptInputs(u []float64) bool {
	for i, j := range k.t.InputSignal {
		if k.input[j] >= 0 && !(math.Abs(u[i]) <= math.MaxFloat64) {
			k.fault = 1 + k.t.FirstState[i]
			return false
		}
	}

	if k.t.Places > 0 {
		if !k.acceptChanges(u) {
			return false
		}
	} else {
		copy(k.inputsAt(k.tick), u)
		copy(k.current, u)
	}
	k.latest = k.tick
	return true
}

// acceptChanges sets the lines of this tick. An input follows u from the start, and its line goes on
// where it does not change. A commanded line that is not finite stops the plant, see acceptInputs.
//
//go:nosplit
func (k *Kernel) acceptChanges(u []float64) bool {
	entry := k.ringIndex(k.tick)
	if !k.changes {
		k.placeCounts[entry] = 0
	}
	k.places = k.placeCounts[entry]
	copy(k.placeAt, k.placesAt(k.tick))
	m, values := len(k.t.Inputs), k.inputsAt(k.tick)
	for s := range k.places + 1 {
		for i, j := range k.t.InputSignal {
			at := s*m + i
			changes := k.changes && k.changed[at]
			switch {
			case changes && k.input[j] >= 0 && !(math.Abs(values[at]) <= math.MaxFloat64):
				k.fault = 1 + k.t.FirstState[i]
				return false
			case changes:
			case s > 0:
				values[at] = values[at-m]
			default:
				values[at] = u[i]
			}
			k.current[at] = values[at]
			if k.t.AnyRamped {
				k.acceptSlope(at, changes)
			}
		}
	}

	k.dropChanges()
	return true
}

// acceptSlope sets the slope of one input on one segment of this tick.
//
//go:nosplit
func (k *Kernel) acceptSlope(at int, changes bool) {
	slopes, m := k.slopesAt(k.tick), len(k.t.Inputs)
	switch {
	case changes:
	case at >= m:
		slopes[at] = slopes[at-m]
	default:
		slopes[at] = 0
	}
	k.currentSlope[at] = slopes[at]
}

// dropChanges discards the changes of the next tick.
//
//go:nosplit
func (k *Kernel) dropChanges() {
	if k.changes {
		k.changes = false
		clear(k.changed)
	}
}

// repeatInputs stores the last values of the tick before as those of this tick.
//
//go:nosplit
func (k *Kernel) repeatInputs() {
	from, m := 0, len(k.t.Inputs)
	if k.t.Places > 0 {
		k.dropChanges()
		from = k.placeCounts[k.ringIndex(k.tick-1)] * m
		k.placeCounts[k.ringIndex(k.tick)] = 0
	}
	now, before := k.inputsAt(k.tick), k.inputsAt(k.tick-1)
	for i := range m {
		now[i] = before[from+i]
	}
}

// clearCommands sets the commands of the past to Tables.Start.
//
//go:nosplit
func (k *Kernel) clearCommands() {
	k.latest, k.places = -1, 0
	for i := range k.t.History {
		copy(k.inputsAt(int64(i)), k.t.Start)
	}
	if k.t.Places > 0 {
		k.dropChanges()
		clear(k.placeCounts)
	}
	clear(k.currentSlope)
	clear(k.slopeHistory)
}

// setCommand sets the commands of the past of input i.
//
//go:nosplit
func (k *Kernel) setCommand(i int, value float64) {
	m := len(k.t.Inputs)
	for tick := range int64(k.t.History) {
		values := k.inputsAt(tick)
		for s := range k.t.Places + 1 {
			values[s*m+i] = value
			if k.t.AnyRamped {
				k.slopesAt(tick)[s*m+i] = 0
			}
		}
	}
	for s := range k.t.Places + 1 {
		k.current[s*m+i] = value
		if k.t.AnyRamped {
			k.currentSlope[s*m+i] = 0
		}
	}
}

// ringIndex returns the entry of a tick in the histories. They span as many ticks as the lag and the
// longest dead time.
//
//go:nosplit
func (k *Kernel) ringIndex(tick int64) int {
	ring := int64(k.t.History)
	return int((tick + ring) % ring)
}

// inputsAt returns the values of a tick. Before the first tick they are Tables.Start.
//
//go:nosplit
func (k *Kernel) inputsAt(tick int64) []float64 {
	row := (k.t.Places + 1) * len(k.t.Inputs)
	at := k.ringIndex(tick) * row
	return k.history[at : at+row]
}

// slopesAt returns the slopes of a tick.
//
//go:nosplit
func (k *Kernel) slopesAt(tick int64) []float64 {
	row := (k.t.Places + 1) * len(k.t.Inputs)
	at := k.ringIndex(tick) * row
	return k.slopeHistory[at : at+row]
}

// placesAt returns the places of a tick.
//
//go:nosplit
func (k *Kernel) placesAt(tick int64) []float64 {
	at := k.ringIndex(tick) * k.t.Places
	return k.placeHistory[at : at+k.t.Places]
}

// commandAt returns input i at a local time, on the line that holds at local time mid. A command acts
// from its instant in the tick of its arrival, after its dead time, until the next one.
//
//go:nosplit
func (k *Kernel) commandAt(i int, local, mid float64) float64 {
	if mid >= 0 && k.t.Delay[i] == 0 && k.latest >= 0 {
		if k.t.Places == 0 {
			return k.current[i]
		}
		behind := float64(float64(k.tick-k.latest) * k.h)
		at := k.currentSegment(mid+behind)*len(k.t.Inputs) + i
		v := k.current[at]
		if k.t.Ramped[i] {
			v += float64(k.currentSlope[at] * min(local+behind, k.h))
		}
		return v
	}

	tick := k.commandTick(i, mid)
	if tick < 0 {
		return k.t.Start[i]
	}
	if k.t.Places == 0 {
		return k.inputsAt(tick)[i]
	}
	behind := float64(float64(k.tick-tick)*k.h) - k.t.Delay[i]
	at := k.segmentAt(tick, mid+behind)*len(k.t.Inputs) + i
	v := k.inputsAt(tick)[at]
	if k.t.Ramped[i] {
		v += float64(k.slopesAt(tick)[at] * min(local+behind, k.h))
	}
	return v
}

// commandSlope returns the slope of input i at local time mid, per s.
//
//go:nosplit
func (k *Kernel) commandSlope(i int, mid float64) float64 {
	tick := k.commandTick(i, mid)
	since := mid + float64(float64(k.tick-tick)*k.h) - k.t.Delay[i]
	if tick < 0 || since >= k.h {
		return 0
	}
	return k.slopesAt(tick)[k.segmentAt(tick, since)*len(k.t.Inputs)+i]
}

// commandTick returns the tick whose command holds for input i at a local time; before the first
// command it is negative.
//
//go:nosplit
func (k *Kernel) commandTick(i int, local float64) int64 {
	tick := min(k.tick+floorTicks((local-k.t.Delay[i])/k.h), k.latest)
	if tick < 0 {
		return tick
	}
	return max(tick, k.latest-int64(k.t.History)+1)
}

// currentSegment is segmentAt for the tick latest.
//
//go:nosplit
func (k *Kernel) currentSegment(since float64) (s int) {
	for s < k.places && k.placeAt[s] <= since {
		s++
	}
	return s
}

// segmentAt returns the segment of a tick at an instant, s after its start.
//
//go:nosplit
func (k *Kernel) segmentAt(tick int64, since float64) (s int) {
	places, n := k.placesAt(tick), k.placeCounts[k.ringIndex(tick)]
	for s < n && places[s] <= since {
		s++
	}
	return s
}

// nextCommandChange returns the first change of a command after a local time: at the start of a tick,
// at a place, or where a line passes the offset of a capacity, beyond which the capacity is not a
// line.
//
//go:nosplit
func (k *Kernel) nextCommandChange(local float64) float64 {
	next := math.Inf(1)
	for i, d := range k.t.Delay {
		if i > 0 && d == k.t.Delay[i-1] {
			continue
		}
		ticks := floorTicks((local + k.timeTol - d) / k.h)
		next = min(next, float64(float64(ticks+1)*k.h)+d)
		if k.t.Places > 0 {
			next = min(next, k.nextPlace(k.tick+ticks, local-d)+d)
		}
	}

	for _, f := range k.t.RampPressed {
		of := &k.t.Friction[f]
		i, after := k.input[of.Signal], local+float64(2*k.timeTol)
		if i < 0 {
			continue
		}
		slope := k.commandSlope(i, after)
		if at := local + (of.Offset-k.commandAt(i, local, after))/slope; slope != 0 && at > local+k.timeTol {
			next = min(next, at)
		}
	}

	return next
}

// nextPlace returns the first place of a tick after an instant, both as local times without dead
// time; +Inf if there is none.
//
//go:nosplit
func (k *Kernel) nextPlace(tick int64, local float64) float64 {
	if tick < 0 || tick > k.latest || tick <= k.latest-int64(k.t.History) {
		return math.Inf(1)
	}
	places, start := k.placesAt(tick), float64(float64(tick-k.tick)*k.h)
	for s := range k.placeCounts[k.ringIndex(tick)] {
		if at := start + places[s]; at > local+k.timeTol {
			return at
		}
	}
	return math.Inf(1)
}
