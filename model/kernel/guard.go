package kernel

// Reads are the states and the signals that a guard reads.
type Reads struct{ States, Signals []int }

// reads lists what each guard reads, so that looking for the place where it is passed
// costs what it reads and not what the plant has.
func (t *Tables) reads() (list []Reads) {
	for g := range t.Guards {
		states, signals := make([]bool, t.N), make([]bool, t.M)
		mark := func(row []float64) {
			for i, r := range row {
				states[i] = states[i] || r != 0
			}
		}
		for _, a := range t.Guards[g].Args {
			mark(a.Row)
			for _, j := range a.Signal {
				signals[j] = true
				if b := t.Signals[j].Affine; b != nil {
					mark(t.Switches[b.Switch].Row)
				}
			}
		}
		list = append(list, Reads{marked(states), marked(signals)})
	}
	return list
}

// marked are the indices of the marked ones.
func marked(list []bool) (at []int) {
	for i, m := range list {
		if m {
			at = append(at, i)
		}
	}
	return at
}

// glance sets what guard g reads to its value at theta of the expanded piece: states in
// xd, signals in w.
//
//go:nosplit
func (k *Kernel) glance(g int, theta float64) {
	if k.t.ReadsTau {
		k.horner(k.xd, theta)
		k.instant(theta)
		k.torqued(k.xd, theta)
		return
	}
	r, n := &k.t.Reads[g], k.t.N
	for _, i := range r.States {
		s := k.c[k.degree*n+i]
		for j := k.degree - 1; j >= 0; j-- {
			s = s*theta + k.c[j*n+i]
		}
		k.xd[i] = s
	}
	for _, j := range r.Signals {
		k.w[j] = k.w0[j] + theta*(k.w1[j]+theta*k.w2[j])
	}
}
