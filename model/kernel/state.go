package kernel

// plantState is the state on which the motion after a plant time depends.
type plantState struct {
	x           []float64 // n, state
	mode        []int8    // mc
	kappa       []uint64  // lock set of each block: independent Stuck elements; redundant ones idle
	idleShare   []float64 // mc, torque of idle elements: see idleTorque
	leavingZero []bool    // mc: the element broke away and its slip is still within slipZero
	region      []int     // switches, region counted from 0
	followed    []bool    // switches: see isFollowed
	present     []bool    // mc: a clearance that exists
	side        []float64 // event indicators, +1 or -1
	pulse       []pulse   // sensors

	// Of a plant stepped sparse, laws×3: slope and curvature of each law at the end of the last
	// substep, per s and s², and its factor, 1/s. The torque feedback follows: see
	// sparseWork.torqueFeedback.
	lawTrend []float64
	counts
}

// counts are the scalars of a plantState.
type counts struct {
	nextBreakpoint float64 // next breakpoint of a source, s
	coincident     int     // events since the plant time last advanced
	fault          int     // 1 + index of the state that became non-finite; 0: none
	logged         int     // entries of the log in use
	eta            float64 // 1: no event in the last step

	events, transitions uint64
}

// newPlantState returns a zero state of the lengths in t.
func newPlantState(t *Tables) plantState {
	m := plantState{
		x: make([]float64, t.N), mode: make([]int8, t.Mc), kappa: make([]uint64, len(t.Blocks())),
		idleShare: make([]float64, t.Mc), leavingZero: make([]bool, t.Mc), region: make([]int, len(t.Switches)),
		followed: make([]bool, len(t.Switches)), present: make([]bool, t.Mc),
		side: make([]float64, len(t.Indicators)), pulse: make([]pulse, len(t.Pulses)),
	}
	if t.Sparse != nil {
		m.lawTrend = make([]float64, 3*(t.M-t.FirstLaw)+2*len(t.Sparse.TorquesRead))
	}
	return m
}

// set copies from.
//
//go:nosplit
func (m *plantState) set(from *plantState) {
	copy(m.x, from.x)
	copy(m.mode, from.mode)
	copy(m.kappa, from.kappa)
	copy(m.idleShare, from.idleShare)
	copy(m.leavingZero, from.leavingZero)
	copy(m.region, from.region)
	copy(m.followed, from.followed)
	copy(m.present, from.present)
	copy(m.side, from.side)
	copy(m.pulse, from.pulse)
	copy(m.lawTrend, from.lawTrend)
	m.counts = from.counts
}
