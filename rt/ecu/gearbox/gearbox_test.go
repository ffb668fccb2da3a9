package gearbox

import "math"

// gearbox is a second implementation of the plant of Morselli section 5 for these
// tests: explicit Euler with the friction as impulses (J.J. Moreau's time
// stepping), found by Gauss-Seidel iteration. A clutch sticks exactly.
type gearbox struct {
	w      [4]float64 // rad/s
	lambda [8]float64 // impulse of each clutch in the last step, N·s
}

var (
	inertia = [4]float64{1, 0.3, 0.5, 2500}                    // kg·m²
	drag    = [4]float64{0.02, 0.01, 0.01, 0.5}                // N·m·s/rad
	torque  = [4]float64{250, 0, 0, 1500}                      // N·m; w[3] is negative, so the last one brakes
	radii   = [8]float64{3, 2, 4, 3, 2, 4, 2, 1}               // of the right wheel; the left one has 1
	leftOf  = [8]int{0, 0, 1, 1, 1, 2, 2, 2}                   // left shaft of each clutch
	force   = [8]float64{50, 50, 200, 200, 200, 500, 500, 500} // N/bar
)

// firstGear is the plant at the start: engine at 100 rad/s, ratio 48.
func firstGear() gearbox {
	return gearbox{w: [4]float64{100, -100. / 3, 100. / 12, -100. / 48}}
}

// advance steps the gearbox by h seconds under the pressures p, bar, and returns
// the largest remaining error of a slip, rad/s.
func (g *gearbox) advance(p [8]float64, h float64) (residual float64) {
	for i := range g.w {
		g.w[i] += h * (torque[i] - drag[i]*g.w[i]) / inertia[i]
	}
	old := g.lambda
	g.lambda = [8]float64{}
	for k, bar := range p {
		if bar > 0 {
			g.push(k, old[k], h*force[k]*bar) // a good guess: that of the last step
		}
	}
	for range 20000 {
		residual = 0
		for k, bar := range p {
			if bar <= 0 {
				continue
			}
			l := leftOf[k]
			s := g.w[l] + radii[k]*g.w[l+1]
			mass := 1 / (1/inertia[l] + radii[k]*radii[k]/inertia[l+1])
			moved := g.push(k, -s*mass, h*force[k]*bar)
			residual = max(residual, math.Abs(moved/mass))
		}
		if residual < 1e-9 {
			break
		}
	}
	return residual
}

// push adds an impulse to clutch k, as far as its capacity allows.
func (g *gearbox) push(k int, impulse, capacity float64) float64 {
	sum := min(max(g.lambda[k]+impulse, -capacity), capacity)
	moved := sum - g.lambda[k]
	g.lambda[k] = sum
	l := leftOf[k]
	g.w[l] += moved / inertia[l]
	g.w[l+1] += radii[k] * moved / inertia[l+1]
	return moved
}

// work returns the friction power, W; never negative.
func (g *gearbox) work(h float64) float64 {
	var sum float64
	for k, lambda := range g.lambda {
		l := leftOf[k]
		sum -= lambda / h * (g.w[l] + radii[k]*g.w[l+1])
	}
	return sum
}

// measured returns the speeds in the resolution of the bus.
func (g *gearbox) measured() (w [4]float64) {
	for i, v := range g.w {
		raw := min(max(math.RoundToEven(v/radPerBit[i]), -1<<14), 1<<14-1)
		w[i] = raw * radPerBit[i]
	}
	return w
}
