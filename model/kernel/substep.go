package kernel

// expandCapacity sets the kinetic capacity of element i over the substep.
//
//go:nosplit
func (k *Kernel) expandCapacity(i int) {
	f := &k.t.Friction[i]
	switch {
	case f.Face > 0:
		return // setFaceLimits
	case f.Gap != nil:
		k.capC[3*i], k.capC[3*i+1], k.capC[3*i+2] = 0, 0, 0
		return
	}
	j := f.Signal
	if q := k.t.Signals[j].Wave; q >= 0 {
		k.expandWaveCapacity(i, q)
		return
	}
	v, v1, v2 := k.w0[j], k.w1[j], k.w2[j]
	a := float64(f.Gain * max(0, v-f.Offset))
	k.capC[3*i] = a
	if v1 == 0 && v2 == 0 { // a command
		k.capC[3*i+1], k.capC[3*i+2] = 0, 0
		return
	}
	b := float64(f.Gain * max(0, v+float64(v1/2)+float64(v2/4)-f.Offset))
	c := float64(f.Gain * max(0, v+v1+v2-f.Offset))
	k.capC[3*i+1], k.capC[3*i+2] = parabola(a, b, c)
}

// hasCapacity reports whether element i has a capacity in the middle of the substep. A freewheel
// always has, since it can lock. A clearance has while it is in contact.
//
//go:nosplit
func (k *Kernel) hasCapacity(i int) bool {
	f := &k.t.Friction[i]
	switch {
	case f.Gap != nil:
		return k.mode[i] == Stuck
	case f.Face > 0:
		return k.mode[f.Face-1] == Stuck
	case k.atZero[i]:
		return k.rising[i] || f.OneWay
	}
	return f.OneWay || k.waveGain[i] > 0 || k.capC[3*i]+float64(k.capC[3*i+1]/2)+float64(k.capC[3*i+2]/4) > 0
}

// setInstant sets w and capNow at place theta of the substep.
//
//go:nosplit
func (k *Kernel) setInstant(theta float64) {
	if theta == 0 {
		copy(k.w, k.w0)
		for _, i := range k.t.Capacities {
			k.capNow[i] = max(0, k.capC[3*i])
		}
		return
	}

	k.setParabolas(theta)
	for _, i := range k.t.Capacities {
		c := k.capC[3*i : 3*i+3]
		k.capNow[i] = max(0, c[0]+float64(theta*(c[1]+float64(theta*c[2]))))
	}
	k.addWaves(theta)
}

// setParabolas sets w at place theta of the substep, without waves. Inlined, it would exceed the stack of locateEvent.
//
//go:nosplit
//go:noinline
func (k *Kernel) setParabolas(theta float64) {
	w, w0, w1, w2 := k.w, k.w0[:len(k.w)], k.w1[:len(k.w)], k.w2[:len(k.w)]
	for j := range w {
		w[j] = w0[j] + float64(theta*(w1[j]+float64(theta*w2[j])))
	}
}

// expand sets the Taylor coefficients of the state over the substep, starting at x:
//
//	x(theta) = sum c_j·theta^j,    c_(j+1) = length/(j+1)·(A·c_j + B·w_j)
//
//go:nosplit
func (k *Kernel) expand(x []float64) {
	n, m := k.t.N, k.currentMode()
	copy(k.c[:n], x)
	mul(k.c[n:2*n], m.A, x)
	mulAdd(k.c[n:2*n], m.B, k.w0)
	scaleIn(k.c[n:2*n], k.length)
	k.expandHigher()
}

// expandOnRates is expand from the present state, whose derivative setRates has set.
//
//go:nosplit
func (k *Kernel) expandOnRates() {
	if k.t.Form == Held {
		k.calls.expand(k, k.x)
		return
	}
	n := k.t.N
	copy(k.c[:n], k.x)
	for i, r := range k.xd {
		k.c[n+i] = float64(k.length * r)
	}
	k.expandHigher()
}

// expandHigher sets the Taylor coefficients of the state from the second on.
//
//go:nosplit
func (k *Kernel) expandHigher() {
	n, m := k.t.N, k.currentMode()
	for j := 1; j < k.degree; j++ {
		next := k.c[(j+1)*n : (j+2)*n]
		mul(next, m.A, k.c[j*n:(j+1)*n])
		switch {
		case j == 1 && !isZero(k.w1): // commands are held
			mulAdd(next, m.B, k.w1)
		case j == 2 && !isZero(k.w2): // tables are straight
			mulAdd(next, m.B, k.w2)
		case j > 2 && j <= k.waveDegree:
			mulAdd(next, m.B, k.waveTerms(j))
		}

		scaleIn(next, k.length/float64(j+1))
	}
}

// expandLine is expand in the held form: the papers' straight line (Reiter, eq. 14), with w at the
// middle of the elapsed part of the substep.
//
//go:nosplit
func (k *Kernel) expandLine(x []float64) {
	n, m, part := k.t.N, k.currentMode(), k.length/k.t.Delta
	copy(k.c[:n], x)
	mul(k.c[n:2*n], m.Phi, x)
	mulAdd(k.c[n:2*n], m.G0, k.w0)
	mul(k.c[2*n:3*n], m.G1, k.w1)
	mul(k.c[3*n:], m.G2, k.w2)
	for i := range n {
		k.c[n+i] = float64(part * (k.c[n+i] - x[i]))
		k.c[2*n+i] = float64(k.c[2*n+i] * part)
		k.c[3*n+i] = float64(k.c[3*n+i] * part)
	}
}

// setRates sets xd to the derivative of the state under w. In the held form it is the mean rate
// over one step, which includes the held lock torques.
//
//go:nosplit
func (k *Kernel) setRates(w []float64) {
	if k.t.Sparse != nil {
		k.calls.derive(k, k.xd, k.x, w, k.trialTau)
		return
	}

	m := k.currentMode()
	if k.t.Form == Projected {
		mul(k.xd, m.A, k.x)
		mulAdd(k.xd, m.B, w)
		return
	}

	mul(k.xd, m.Phi, k.x)
	mulAdd(k.xd, m.G0, w)
	for i, v := range k.x {
		k.xd[i] = (k.xd[i] - v) / k.t.Delta
	}
}

// fullSubstep sets dst to the state after one substep of length delta, starting at x.
//
//go:nosplit
func (k *Kernel) fullSubstep(dst, x []float64) {
	m := k.currentMode()
	mul(dst, m.Phi, x)
	mulAdd(dst, m.G0, k.w0)
	if !isZero(k.w1) { // commands are held
		mulAdd(dst, m.G1, k.w1)
	}
	if !isZero(k.w2) { // tables are straight
		mulAdd(dst, m.G2, k.w2)
	}
}

// horner sets dst to the state at theta of the expanded substep. Inlined, it would exceed the stack
// of advanceSubstep.
//
//go:nosplit
//go:noinline
func (k *Kernel) horner(dst []float64, theta float64) {
	n, four := k.t.N, len(dst)&^3
	last := k.degree * n
	for i := 0; i < four; i += 4 {
		s0, s1, s2, s3 := hornerFour(k.c, last+i, n, theta)
		d := dst[i : i+4]
		d[0], d[1], d[2], d[3] = s0, s1, s2, s3
	}

	for i := four; i < len(dst); i++ {
		s := k.c[last+i]
		for at := last - n + i; at >= 0; at -= n {
			s = float64(s*theta) + k.c[at]
		}
		dst[i] = s
	}
}

// hornerFour evaluates four polynomials at theta. Their last coefficients are in c from index last
// on, each lower coefficient n before. Four sums grow side by side, as in fourRows.
//
//go:nosplit
func hornerFour(c []float64, last, n int, theta float64) (s0, s1, s2, s3 float64) {
	top := c[last : last+4]
	s0, s1, s2, s3 = top[0], top[1], top[2], top[3]
	for at := last - n; at >= 0; at -= n {
		next := c[at : at+4]
		s0, s1 = float64(s0*theta)+next[0], float64(s1*theta)+next[1]
		s2, s3 = float64(s2*theta)+next[2], float64(s3*theta)+next[3]
	}

	return s0, s1, s2, s3
}

// setTorques sets tau for state x from w and capNow, which setInstant has set.
//
//go:nosplit
func (k *Kernel) setTorques(x []float64) {
	m := k.currentMode()
	for i := range k.tau {
		if k.tau[i] = k.appliedTorque(i); k.carriesLoad(i) || k.followsLock(i) {
			k.tau[i] = dotRow(m.T, i, x) + dotRow(m.U, i, k.w)
		}
	}
}
