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

// trainExtent is how much of the study of trains is done.
type trainExtent struct {
	cars   []int
	until  time.Duration // of what a train does by itself
	jumps  int           // ticks in which all commands jump at once
	rounds int           // how often each tick is measured: the fastest counts
}

var wholeTrains = trainExtent{[]int{1, 3, 5, 10, 20}, 8 * time.Second, 400, 3}

const trainGrid = 5 * time.Millisecond

// trainCost is what the ticks of a train cost, ns of processor time.
type trainCost struct {
	cars, states, wheelsets, located int
	quiet                            float64 // mean of those without an event
	own, dearest                     float64 // the dearest by itself, and where all commands jump as well
}

// trainResult is what the study of trains finds.
type trainResult struct {
	costs          []trainCost
	quiet, dearest float64 // the powers of the cars with which they grow
}

func doTrains(e trainExtent) *trainResult {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	r := &trainResult{}
	var cars, quiet, dearest []float64
	for _, n := range e.cars {
		c := e.train(n)
		r.costs = append(r.costs, c)
		cars, quiet, dearest = append(cars, float64(n)), append(quiet, c.quiet), append(dearest, c.dearest)
	}

	_, r.quiet = powerLaw(cars, quiet)
	_, r.dearest = powerLaw(cars, dearest)
	return r
}

// train measures a train of so many cars.
func (e trainExtent) train(cars int) trainCost {
	sys := must(rig.Load(fmt.Sprintf("train%d", cars)))
	own := must(rig.New(sys, kernel.Options{Period: trainGrid}, false))
	driven := must(rig.New(sys, kernel.Options{Period: trainGrid}, true))
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
	least, _ = driven.LeastTicks(e.jumps, e.rounds, jump, processorTime)
	c.dearest = max(c.own, slices.Max(least))
	return c
}

// processorTime is what this thread has had of a processor, ns: others do not count.
func processorTime() float64 {
	var at unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &at) != nil {
		return math.NaN()
	}
	return float64(at.Nano())
}

// ofPeriod is a cost as a part of the period, %.
func ofPeriod(cost float64) float64 { return cost / float64(trainGrid) * 100 }

func (r *trainResult) files() files {
	return files{"trains.md": r.markdown(), "trains.svg": draw(r.plot())}
}

func (r *trainResult) markdown() []byte {
	p := &page{}
	p.line("# Cost of a tick over the length of a train\n")
	p.line("Plants train1 to train%d, steps of %v. Quiet is the mean of ticks without an event; the dearest tick "+
		"is that of a train by itself, and of all of its commands jumping from border to border at every tick.\n",
		r.costs[len(r.costs)-1].cars, trainGrid)
	p.table("| cars | wheelsets | states | events located | quiet, us | over one car | dearest by itself | dearest, us |" +
		fmt.Sprintf(" %% of %v | over one car |", trainGrid))

	one := r.costs[0]
	for _, c := range r.costs {
		p.line("| %d | %d | %d | %d | %.0f | %.1f | %.0f | %.0f | %.0f | %.1f |", c.cars, c.wheelsets, c.states, c.located,
			c.quiet/1e3, c.quiet/one.quiet, c.own/1e3, c.dearest/1e3, ofPeriod(c.dearest), c.dearest/one.dearest)
	}

	p.line("\nQuiet ticks grow with cars^%.2f, the dearest with cars^%.2f.", r.quiet, r.dearest)
	return p.Bytes()
}

// plot is both costs over that of one car.
func (r *trainResult) plot() plot.Chart {
	one, last := r.costs[0], float64(r.costs[len(r.costs)-1].cars)
	var cars, quiet, dearest []float64
	for _, v := range r.costs {
		cars = append(cars, float64(v.cars))
		quiet, dearest = append(quiet, v.quiet/one.quiet), append(dearest, v.dearest/one.dearest)
	}

	return plot.Chart{
		Title: "Cost of a tick over the length of a train",
		X:     plot.Axis{Name: "cars", Low: 1, High: last, Log: true},
		Y:     plot.Axis{Name: "over that of one car", Low: 0.5, High: 4 * last, Log: true},
		Curves: []plot.Curve{
			curve("in proportion", "#cfcfcf", 6, []float64{1, last}, []float64{1, last}),
			curve(fmt.Sprintf("quiet tick: cars^%.2f", r.quiet), "#1f77b4", 1.8, cars, quiet),
			curve(fmt.Sprintf("dearest tick: cars^%.2f", r.dearest), "#d62728", 1.8, cars, dearest),
		},
	}
}
