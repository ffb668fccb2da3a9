package main

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"lockstep/hil_test/rig"
	"lockstep/model/kernel"
	"lockstep/rt/plot"
)

// trainExtent are the parameters of the study of trains.
type trainExtent struct {
	cars   []int
	until  time.Duration // length of the run with the plant's own input waveforms
	jumps  int           // ticks of the run in which all commands jump
	rounds int           // measurements of each tick, of which the fastest counts
}

var wholeTrains = trainExtent{[]int{1, 3, 5, 10, 20}, 8 * time.Second, 400, 3}

const trainGrid = 5 * time.Millisecond

// trainCost is the cost of the ticks of a train, ns of processor time.
type trainCost struct {
	cars, states, wheelsets, located int
	quiet                            float64 // mean tick without an event
	own                              float64 // worst tick with the plant's own input waveforms
	worst                            float64 // worst tick of both runs
}

// trainResult is the result of the study of trains.
type trainResult struct {
	costs        []trainCost
	quiet, worst float64 // exponents of the growth with the number of cars
}

func doTrains(e trainExtent) *trainResult {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	r := &trainResult{}
	var cars, quiet, worst []float64
	for _, n := range e.cars {
		c := e.train(n)
		r.costs = append(r.costs, c)
		cars, quiet, worst = append(cars, float64(n)), append(quiet, c.quiet), append(worst, c.worst)
	}

	_, r.quiet = powerLaw(cars, quiet)
	_, r.worst = powerLaw(cars, worst)
	return r
}

// train measures a train with a number of cars.
func (e trainExtent) train(cars int) trainCost {
	sys := must(rig.Load(fmt.Sprintf("train%d", cars)))
	own := must(rig.New(sys, kernel.Options{Period: trainGrid}, false))
	commanded := must(rig.New(sys, kernel.Options{Period: trainGrid}, true))
	jump := func(tick int, u []float64) {
		for j, in := range sys.Inputs {
			u[j] = [2]float64{in.Max, in.Min}[tick%2]
		}
	}

	c := trainCost{cars: cars, states: own.Tables.N, wheelsets: 4 * cars, located: own.Tables.EventBudget}
	least, events := own.LeastTicks(int(e.until/trainGrid), e.rounds, nil, processorTime)
	n, last := 0.0, 0.0
	for i, ns := range least {
		if events[i] == last {
			c.quiet, n = c.quiet+ns, n+1
		}
		last = events[i]
	}

	c.quiet /= n
	c.own = slices.Max(least)
	least, _ = commanded.LeastTicks(e.jumps, e.rounds, jump, processorTime)
	c.worst = max(c.own, slices.Max(least))
	return c
}

// processorTime returns the processor time of this thread, ns.
func processorTime() float64 {
	var at unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &at) != nil {
		return math.NaN()
	}
	return float64(at.Nano())
}

// ofPeriod returns a cost as a percentage of the period.
func ofPeriod(cost float64) float64 { return cost / float64(trainGrid) * 100 }

func (r *trainResult) files() files {
	return files{"trains.md": r.markdown(), "trains.svg": draw(r.plot())}
}

func (r *trainResult) markdown() []byte {
	p := &page{}
	p.line("# Cost of a tick over the length of a train\n")
	p.line("Plants train1 to train%d, steps of %v. Quiet is the mean of ticks without an event. The worst tick "+
		"is the longest with the train's own input waveforms, and with all commands jumping between their limits at every tick.\n",
		r.costs[len(r.costs)-1].cars, trainGrid)
	p.table("| cars | wheelsets | states | events located | quiet, us | over one car | worst, own waveforms | worst, us |" +
		fmt.Sprintf(" %% of %v | over one car |", trainGrid))

	one := r.costs[0]
	for _, c := range r.costs {
		p.line("| %d | %d | %d | %d | %.0f | %.1f | %.0f | %.0f | %.0f | %.1f |", c.cars, c.wheelsets, c.states, c.located,
			c.quiet/1e3, c.quiet/one.quiet, c.own/1e3, c.worst/1e3, ofPeriod(c.worst), c.worst/one.worst)
	}

	p.line("\nQuiet ticks grow with cars^%.2f, the worst with cars^%.2f.", r.quiet, r.worst)
	return p.Bytes()
}

// plot returns the plot of both costs over those of one car.
func (r *trainResult) plot() plot.Chart {
	one, last := r.costs[0], float64(r.costs[len(r.costs)-1].cars)
	var cars, quiet, worst []float64
	for _, v := range r.costs {
		cars = append(cars, float64(v.cars))
		quiet, worst = append(quiet, v.quiet/one.quiet), append(worst, v.worst/one.worst)
	}

	return plot.Chart{
		Title: "Cost of a tick over the length of a train",
		X:     plot.Axis{Name: "cars", Low: 1, High: last, Log: true},
		Y:     plot.Axis{Name: "over that of one car", Low: 0.5, High: 4 * last, Log: true},
		Curves: []plot.Curve{
			curve("in proportion", "#cfcfcf", 6, []float64{1, last}, []float64{1, last}),
			curve(fmt.Sprintf("quiet tick: cars^%.2f", r.quiet), "#1f77b4", 1.8, cars, quiet),
			curve(fmt.Sprintf("worst tick: cars^%.2f", r.worst), "#d62728", 1.8, cars, worst),
		},
	}
}
