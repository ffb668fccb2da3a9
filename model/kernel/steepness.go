package kernel

import "math"

// gains are how much each law changes with each state, laws×n, through other laws, too;
// and how much it drives each state, n×laws.
func (t *Tables) gains() (rows, acts []float64) {
	count, n := t.M-t.FirstLaw, t.N
	rows, acts = make([]float64, count*n), make([]float64, n*count)
	for j := range count {
		law, row := t.Signals[t.FirstLaw+j].Law, rows[j*n:(j+1)*n]
		for a := range law.Args {
			arg := &law.Args[a]
			for i, r := range arg.Row {
				row[i] += law.Slopes[a] * math.Abs(r)
			}
		}
	}
	for l := range count {
		for i := range n {
			acts[i*count+l] = math.Abs(t.Open.B[i*(t.M+t.Mc)+t.FirstLaw+l])
			for f := range t.Friction {
				if t.Friction[f].Signal == t.FirstLaw+l {
					acts[i*count+l] += t.Friction[f].Gain * math.Abs(t.Bc[i*t.Mc+f])
				}
			}
		}
	}
	return rows, acts
}

// steepness is how fast the laws can follow the motion they cause, rad/s: the
// larger of the gains from law to law through the plant and, where they go by way
// of a deflection, of their root.
func (t *Tables) steepness() (float64, error) {
	count, n := t.M-t.FirstLaw, t.N
	if count == 0 {
		return 0, nil
	}
	rows, acts := t.gains()
	direct, err := radius(product(rows, acts, count, n, count), count)
	if err != nil {
		return 0, err
	}
	moves := make([]float64, n*n)
	for i, v := range t.bent(t.Open.A, t.steepest()) {
		moves[i] = math.Abs(v)
	}
	indirect, err := radius(product(rows, product(moves, acts, n, n, count), count, n, count), count)
	return max(direct, math.Sqrt(indirect)), err
}

// decay is how fast laws and dampers let the active part decay, 1/s.
func (t *Tables) decay(active []int) (float64, error) {
	rows, acts := t.gains()
	count, n, own := t.M-t.FirstLaw, t.N, len(active)
	rates := make([]float64, own*own)
	for q, i := range active {
		for c, j := range active {
			if i == j {
				rates[q*own+c] = math.Abs(t.Open.A[i*n+j])
			}
			for l := range count {
				rates[q*own+c] += acts[i*count+l] * rows[l*n+j]
			}
		}
	}
	return radius(rates, own)
}
