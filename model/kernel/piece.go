package kernel

// capacity sets the kinetic capacity of element i over the piece.
//
//go:nosplit
func (k *Kernel) capacity(i int) {
	f := &k.t.Friction[i]
	j := f.Signal
	v, v1, v2 := k.w0[j], k.w1[j], k.w2[j]
	a := f.Gain * max(0, v-f.Offset)
	b := f.Gain * max(0, v+v1/2+v2/4-f.Offset)
	c := f.Gain * max(0, v+v1+v2-f.Offset)
	k.capC[3*i] = a
	k.capC[3*i+1], k.capC[3*i+2] = parabola(a, b, c)
}

// active reports whether element i has a capacity in the middle of the piece. A
// freewheel always has: it can lock. A gap has while it is in contact.
//
//go:nosplit
func (k *Kernel) active(i int) bool {
	f := &k.t.Friction[i]
	if f.Gap != nil {
		return k.mode[i] == Stuck
	}
	return f.OneWay || k.capC[3*i]+k.capC[3*i+1]/2+k.capC[3*i+2]/4 > 0
}

// instant sets w and capNow at place theta of the piece.
//
//go:nosplit
func (k *Kernel) instant(theta float64) {
	if theta == 0 {
		copy(k.w, k.w0)
		for i := range k.capNow {
			k.capNow[i] = max(0, k.capC[3*i])
		}
		return
	}
	for j := range k.w {
		k.w[j] = k.w0[j] + theta*(k.w1[j]+theta*k.w2[j])
	}
	for i := range k.capNow {
		k.capNow[i] = max(0, k.capC[3*i]+theta*(k.capC[3*i+1]+theta*k.capC[3*i+2]))
	}
}

// expand sets the Taylor coefficients of the state over the piece, from x:
// x(theta) = sum c_j·theta^j, c_(j+1) = length/(j+1)·(A·c_j + B·w_j).
//
//go:nosplit
func (k *Kernel) expand(x []float64) {
	n, m := k.t.N, k.use()
	copy(k.c[:n], x)
	for j := range k.degree {
		next := k.c[(j+1)*n : (j+2)*n]
		mul(next, m.A, k.c[j*n:(j+1)*n])
		switch {
		case j == 0:
			mulAdd(next, m.B, k.w0)
		case j == 1 && !zero(k.w1): // commands are held
			mulAdd(next, m.B, k.w1)
		case j == 2 && !zero(k.w2): // tables are straight
			mulAdd(next, m.B, k.w2)
		}
		scaleIn(next, k.length/float64(j+1))
	}
}

// line is expand in the held form: the papers' straight line (000 eq. 14) with w
// at the middle of what has passed of the piece.
//
//go:nosplit
func (k *Kernel) line(x []float64) {
	n, m, part := k.t.N, k.use(), k.length/k.t.Delta
	copy(k.c[:n], x)
	mul(k.c[n:2*n], m.Phi, x)
	mulAdd(k.c[n:2*n], m.G0, k.w0)
	mul(k.c[2*n:3*n], m.G1, k.w1)
	mul(k.c[3*n:], m.G2, k.w2)
	for i := range n {
		k.c[n+i] = part * (k.c[n+i] - x[i])
		k.c[2*n+i] *= part
		k.c[3*n+i] *= part
	}
}

// rates sets xd to the derivative of the state under w: in the held form what a
// step makes of it, as its lock torques do.
//
//go:nosplit
func (k *Kernel) rates(w []float64) {
	if k.t.Net != nil {
		k.calls.derive(k, k.xd, k.x, w, k.trial)
		return
	}
	m := k.use()
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

// whole sets dst to the state after one piece of length delta, from x.
//
//go:nosplit
func (k *Kernel) whole(dst, x []float64) {
	m := k.use()
	mul(dst, m.Phi, x)
	mulAdd(dst, m.G0, k.w0)
	if !zero(k.w1) { // commands are held
		mulAdd(dst, m.G1, k.w1)
	}
	if !zero(k.w2) { // tables are straight
		mulAdd(dst, m.G2, k.w2)
	}
}

// horner sets dst to the state at theta of the expanded piece. Inlined it would take
// the stack of walk.
//
//go:nosplit
//go:noinline
func (k *Kernel) horner(dst []float64, theta float64) {
	n, four := k.t.N, len(dst)&^3
	last := k.degree * n
	for i := 0; i < four; i += 4 {
		s0, s1, s2, s3 := fourAt(k.c, last+i, n, theta)
		d := dst[i : i+4]
		d[0], d[1], d[2], d[3] = s0, s1, s2, s3
	}
	for i := four; i < len(dst); i++ {
		s := k.c[last+i]
		for at := last - n + i; at >= 0; at -= n {
			s = s*theta + k.c[at]
		}
		dst[i] = s
	}
}

// fourAt are four polynomials at theta: their last coefficients are those of c from last
// on, the others each n before. Together they keep four sums going, as in fourRows.
//
//go:nosplit
func fourAt(c []float64, last, n int, theta float64) (s0, s1, s2, s3 float64) {
	top := c[last : last+4]
	s0, s1, s2, s3 = top[0], top[1], top[2], top[3]
	for at := last - n; at >= 0; at -= n {
		next := c[at : at+4]
		s0, s1, s2, s3 = s0*theta+next[0], s1*theta+next[1], s2*theta+next[2], s3*theta+next[3]
	}
	return s0, s1, s2, s3
}

// torques sets tau for state x from w and capNow, which instant has set.
//
//go:nosplit
func (k *Kernel) torques(x []float64) {
	m := k.use()
	for i := range k.tau {
		switch k.mode[i] {
		case Stuck:
			k.tau[i] = k.idleTorque(i)
			if !k.idle(i) {
				k.tau[i] = dotRow(m.T, i, x) + dotRow(m.U, i, k.w)
			}
		case Free:
			k.tau[i] = 0
		default:
			k.tau[i] = float64(k.mode[i]) * k.capNow[i]
		}
	}
}
