package main

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"sync"
	"time"

	"gonum.org/v1/gonum/mat"

	"lockstep/hil_test/rig"
	"lockstep/model"
	"lockstep/model/kernel"
)

// railGrid is the grid of the reference, the whole step of the kernel.
const railGrid = ms

const ms = time.Millisecond

// railExtent are the parameters of the study of the rail car.
type railExtent struct {
	until  time.Duration
	steps  []time.Duration
	iters  []int     // N_iter
	subs   []int     // N_sub
	signs  []float64 // T_sgn, m/s
	rounds int       // repetitions of the measurement of cost
}

// wholeRail holds the configurations of Gyebroszki, chapter 9.
var wholeRail = railExtent{
	until: 8 * time.Second, steps: []time.Duration{50 * ms, 20 * ms, 10 * ms, 5 * ms, 2 * ms}, iters: []int{0, 1, 2, 3, 4, 5},
	subs:  []int{1, 2, 5, 10, 15, 20},
	signs: []float64{1, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001, 0.0005}, rounds: 12,
}

// setting is a configuration to step the car; sub 0 is the whole step of the kernel.
type setting struct {
	h         time.Duration
	sub, iter int
	sign      float64 // T_sgn, m/s; 0: the contact is a friction element
}

func (s setting) text() string {
	if s.sub == 0 {
		return fmt.Sprintf("own step of %v", s.h)
	}
	return fmt.Sprintf("%v, N_sub %d, N_iter %d", s.h, s.sub, s.iter)
}

// ride is the motion of the car. A row per step has position, m, and speed, m/s, of the car, then
// the positions of the four wheels at the rim, then their speeds.
type ride struct {
	setting
	rows [][10]float64
	cost float64 // time of a step, ns
	err  error   // reason why the configuration fails
}

// railCar prepares the car with the outputs of a ride.
func railCar(s setting) (*rig.Plant, error) {
	edits := []edit{{"T_sgn: 0.05 m/s, ", ""}}
	if s.sign > 0 {
		edits = []edit{{"T_sgn: 0.05 m/s", fmt.Sprintf("T_sgn: %g m/s", s.sign)}}
	}
	ports := "outputs:\n"
	for i, wheel := range []string{"bogie1.rear", "bogie1.front", "bogie2.rear", "bogie2.front"} {
		ports += fmt.Sprintf("  roll%d: {position: %s.rim}\n", i+1, wheel)
	}
	sys, err := system("rail17", append(edits, edit{"outputs:\n", ports})...)
	if err != nil {
		return nil, err
	}
	if s.sub > 0 {
		sys.Partition = &model.Partition{Sub: s.sub, Iter: s.iter}
	}
	return rig.New(sys, kernel.Options{Period: s.h}, false)
}

// railPort lists the outputs in a row of a ride.
var railPort = [10]string{"xc", "v_xc", "roll1", "roll2", "roll3", "roll4", "u1", "u2", "u3", "u4"}

// run steps the car until a time.
func (s setting) run(until time.Duration) *ride {
	r := &ride{setting: s}
	car, err := railCar(s)
	if err != nil {
		r.err = err
		return r
	}

	var at [10]int
	for i, name := range railPort {
		at[i] = car.Port(name)
	}
	for range int(until / s.h) {
		car.Step(car.Y, car.U)
		var row [10]float64
		for i, j := range at {
			row[i] = car.Y[j]
		}
		r.rows = append(r.rows, row)
	}

	if car.Y[len(car.Y)-1] != 0 {
		r.err = errors.New("its state is no longer finite")
	}
	return r
}

// measure sets the costs of rides: the minimum time of a step over many blocks of steps, ns. The
// rides take turns, so that other processes disturb all alike.
func measure(rides []*ride, rounds int) {
	const block = 20
	cars := make([]*rig.Plant, len(rides))
	for i, r := range rides {
		r.cost = math.Inf(1)
		cars[i], _ = railCar(r.setting) // nil, without a cost, if the configuration fails
	}

	for range rounds {
		for i, car := range cars {
			if car == nil {
				continue
			}
			began := time.Now()
			for range block {
				car.Step(car.Y, car.U)
			}
			rides[i].cost = min(rides[i].cost, float64(time.Since(began).Nanoseconds())/block)
		}
	}
}

// runAll runs all configurations in parallel, one per core.
func runAll(list []setting, until time.Duration) []*ride {
	out, free := make([]*ride, len(list)), make(chan struct{}, runtime.NumCPU())
	var all sync.WaitGroup
	for i, s := range list {
		free <- struct{}{}
		all.Go(func() {
			out[i] = s.run(until)
			<-free
		})
	}

	all.Wait()
	return out
}

// off returns the integrated errors of Gyebroszki, eq. 9.3.1 per second of motion: of the
// positions, m, and of the speeds, m/s. Each is the error of the car plus the mean error of the
// wheels. NaN stays NaN.
func (r *ride) off(truth *ride) (place, speed float64) {
	every := int(r.h / truth.h)
	for i, row := range r.rows {
		want := truth.rows[(i+1)*every-1]
		place += math.Abs(row[0] - want[0])
		speed += math.Abs(row[1] - want[1])
		for w := range 4 {
			place += math.Abs(row[2+w]-want[2+w]) / 4
			speed += math.Abs(row[6+w]-want[6+w]) / 4
		}
	}

	n := float64(len(r.rows))
	return place / n, speed / n
}

// shakes returns the amplitude of the highest frequency in the discrete Fourier transform of the
// wheel speeds, m/s, the largest of the four.
func (r *ride) shakes() (largest float64) {
	for w := range 4 {
		sum := 0.0
		for i, row := range r.rows {
			sum += row[6+w] * float64(1-2*(i%2))
		}
		largest = max(largest, math.Abs(sum)/float64(len(r.rows)))
	}

	return largest
}

// railResult is the result of the study of the rail car.
type railResult struct {
	railExtent
	truth *ride
	maps  map[setting]*finding // by configuration of chapter 9; sub 0: the whole step of the kernel
	cost  [4]float64           // a, b, c and d of Gyebroszki, eq. 9.4.1 for the time of a step, in units
	unit  float64              // time of a step with N_sub 1 and N_iter 0, ns
	scans []signRow
}

// finding is a ride with its errors.
type finding struct {
	*ride
	place, speed float64 // Gyebroszki, eq. 9.3.1, m and m/s
	shake        float64 // m/s
}

// signRow is a threshold of section 9.1.
type signRow struct {
	*ride
	own    float64 // error of the speeds against the same law with the whole step, m/s
	rolled float64 // error of the speeds against a contact that rolls, m/s
}

const paperSign = 0.05 // T_sgn of Gyebroszki, m/s

func doRail(e railExtent) *railResult {
	r := &railResult{railExtent: e, maps: map[setting]*finding{}}
	list := []setting{{h: railGrid, sign: paperSign}}
	for _, h := range e.steps {
		list = append(list, setting{h: h, sign: paperSign})
		for _, iter := range e.iters {
			for _, sub := range e.subs {
				list = append(list, setting{h, sub, iter, paperSign})
			}
		}
	}

	rides := runAll(list, e.until)
	r.truth = rides[0]
	measure(rides[1:], e.rounds)
	for _, one := range rides[1:] {
		f := &finding{ride: one, shake: one.shakes()}
		f.place, f.speed = one.off(r.truth)
		r.maps[one.setting] = f
	}

	r.fit()
	r.scan()
	return r
}

// at returns the finding of a configuration.
func (r *railResult) at(h time.Duration, sub, iter int) *finding {
	return r.maps[setting{h, sub, iter, paperSign}]
}

// growth fits Gyebroszki, eq. 8.3.1, Err = a·dt^b with dt in s, to the errors with the largest
// N_sub.
func (r *railResult) growth(iter int, of func(f *finding) float64) (a, b float64) {
	var h, e []float64
	for _, step := range r.steps {
		h, e = append(h, step.Seconds()), append(e, of(r.at(step, r.subs[len(r.subs)-1], iter)))
	}
	return powerLaw(h, e)
}

// fit sets cost by least squares of the relative errors over all configurations in two parts.
func (r *railResult) fit() {
	r.unit = math.Inf(1)
	for _, h := range r.steps {
		r.unit = min(r.unit, r.at(h, r.subs[0], r.iters[0]).cost)
	}
	var rows, ones []float64
	for s, f := range r.maps {
		if s.sub > 0 {
			want := f.cost / r.unit
			rows = append(rows, float64(s.iter)/want, float64(s.sub)/want, float64(s.iter*s.sub)/want, 1/want)
			ones = append(ones, 1)
		}
	}

	n := len(ones)
	if err := mat.NewVecDense(4, r.cost[:]).SolveVec(mat.NewDense(n, 4, rows), mat.NewVecDense(n, ones)); err != nil {
		panic("study: times of rides: " + err.Error()) // the configurations vary N_sub and N_iter
	}
}

// Configuration of section 9.1.
const (
	signStep         = 5 * time.Millisecond
	signSub          = 5
	signIter         = 1
	leastOwn float64 = 0.005 // smallest T_sgn of the whole step, m/s; below, it needs too many substeps
)

// scan varies T_sgn as section 9.1 does.
func (r *railResult) scan() {
	list := []setting{{h: signStep}}
	for _, sign := range r.signs {
		list = append(list, setting{signStep, signSub, signIter, sign})
	}
	for _, sign := range r.signs {
		if sign >= leastOwn {
			list = append(list, setting{h: signStep, sign: sign})
		}
	}

	rides := runAll(list, r.until)
	own := map[float64]*ride{}
	for _, o := range rides[1+len(r.signs):] {
		own[o.sign] = o
	}
	for _, one := range rides[1 : 1+len(r.signs)] {
		row := signRow{ride: one, own: math.NaN()}
		if one.err == nil {
			_, row.rolled = one.off(rides[0])
			if o := own[one.sign]; o != nil && o.err == nil {
				_, row.own = one.off(o)
			}
		}

		r.scans = append(r.scans, row)
	}
}
