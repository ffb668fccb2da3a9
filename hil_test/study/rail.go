package main

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"lockstep/model"
	"lockstep/model/assemble"
	"lockstep/model/kernel"
	"lockstep/model/library"
	"lockstep/model/plantfile"
	"lockstep/model/plants"
	"lockstep/model/units"
)

// The configurations of 003 chapter 9.
var (
	railSteps = []time.Duration{50 * time.Millisecond, 20 * time.Millisecond, 10 * time.Millisecond, 5 * time.Millisecond, 2 * time.Millisecond}
	railIters = []int{0, 1, 2, 3, 4, 5}
	railSubs  = []int{1, 2, 5, 10, 15, 20}
	railSigns = []float64{1, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001, 0.0005} // T_sgn, m/s
)

// railGrid is the grid of what everything is compared with: the kernel's own step.
const railGrid = time.Millisecond

// railExtent is how much of the study of the rail car is done.
type railExtent struct {
	until  time.Duration
	steps  []time.Duration
	iters  []int
	subs   []int
	signs  []float64
	rounds int // of the measurement of cost
}

var (
	wholeRail = railExtent{8 * time.Second, railSteps, railIters, railSubs, railSigns, 12}
	shortRail = railExtent{2500 * time.Millisecond, []time.Duration{20 * time.Millisecond, 10 * time.Millisecond}, []int{0, 2}, []int{1, 5}, []float64{0.2, 0.05, 0.005}, 2}
)

// setting is one way to step the car; sub 0 is the kernel's own.
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

// ride is the motion of the car: a row per step with the car's place, m, and speed, m/s,
// then the places of the wheels at the rim, then their speeds.
type ride struct {
	setting
	rows [][10]float64
	cost float64 // ns per step
	err  error   // it cannot be stepped so
}

// railCar prepares the car with the outputs of a ride.
func railCar(s setting) (*kernel.Tables, error) {
	data, err := plants.Read("rail17")
	if err != nil {
		return nil, err
	}
	text := string(data)
	if s.sign > 0 {
		text = strings.ReplaceAll(text, "T_sgn: 0.05 m/s", fmt.Sprintf("T_sgn: %g m/s", s.sign))
	} else {
		text = strings.ReplaceAll(text, "T_sgn: 0.05 m/s, ", "")
	}
	for i, wheel := range []string{"bogie1.rear", "bogie1.front", "bogie2.rear", "bogie2.front"} {
		text += fmt.Sprintf("  roll%d: {position: %s.rim}\n", i+1, wheel)
	}
	plant, err := plantfile.Load("rail17.yaml", []byte(text), library.Elements())
	if err != nil {
		return nil, err
	}
	sys, err := assemble.System(plant)
	if err != nil {
		return nil, err
	}
	if s.sub > 0 {
		sys.Partition = &model.Partition{Sub: s.sub, Iter: s.iter}
	}
	return kernel.Prepare(sys, kernel.Options{Period: s.h})
}

// railPort says which outputs a ride keeps.
var railPort = [10]string{"xc", "v_xc", "roll1", "roll2", "roll3", "roll4", "u1", "u2", "u3", "u4"}

// take rides until then.
func (s setting) take(until time.Duration) *ride {
	r := &ride{setting: s}
	t, err := railCar(s)
	if err != nil {
		r.err = err
		return r
	}
	k, y := kernel.New(t), make([]float64, len(t.Outputs))
	var at [10]int
	for i, name := range railPort {
		at[i] = slices.IndexFunc(t.Outputs, func(o units.Port) bool { return o.Name == name })
	}
	for range int(until / s.h) {
		k.Step(y, t.Start)
		var row [10]float64
		for i, j := range at {
			row[i] = y[j]
		}
		r.rows = append(r.rows, row)
	}
	if y[len(y)-1] != 0 {
		r.err = errors.New("its state is no longer finite")
	}
	return r
}

// measure sets the costs of rides: ns of a step, each the least of many blocks of steps,
// taken in turns, so that what else the machine does weighs on none.
func measure(rides []*ride, rounds int) {
	const block = 20
	kernels, tables := make([]*kernel.Kernel, len(rides)), make([]*kernel.Tables, len(rides))
	for i, r := range rides {
		r.cost = math.Inf(1)
		if t, err := railCar(r.setting); err == nil {
			tables[i], kernels[i] = t, kernel.New(t)
		}
	}
	for range rounds {
		for i, k := range kernels {
			if k == nil {
				continue
			}
			y := make([]float64, len(tables[i].Outputs))
			began := time.Now()
			for range block {
				k.Step(y, tables[i].Start)
			}
			rides[i].cost = min(rides[i].cost, float64(time.Since(began).Nanoseconds())/block)
		}
	}
}

// takeAll rides in all ways at once, one to a core.
func takeAll(list []setting, until time.Duration) []*ride {
	out, next := make([]*ride, len(list)), make(chan int)
	var all sync.WaitGroup
	for range runtime.NumCPU() {
		all.Go(func() {
			for i := range next {
				out[i] = list[i].take(until)
			}
		})
	}
	for i := range list {
		next <- i
	}
	close(next)
	all.Wait()
	return out
}

// off is the integrated error of 003 eq. 9.3.1, per second of motion: of the places, m,
// and of the speeds, m/s, the car's and the mean of the wheels' added up. NaN stays NaN.
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

// shakes is the amplitude of the highest frequency in the discrete Fourier transform of
// the wheels' speeds, m/s, the largest of the four.
func (r *ride) shakes() (largest float64) {
	for w := range 4 {
		sum := 0.0
		for i, row := range r.rows {
			sum += row[6+w] * float64(1-2*(i%2))
		}
		largest = most(largest, math.Abs(sum)/float64(len(r.rows)))
	}
	return largest
}
