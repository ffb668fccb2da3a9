package main

import (
	"bytes"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"lockstep/model/assemble"
	"lockstep/model/kernel"
	"lockstep/model/library"
	"lockstep/model/plantfile"
	"lockstep/model/plants"
)

// trainExtent is how much of the study of trains is done.
type trainExtent struct {
	cars   []int
	until  time.Duration // of what a train does by itself
	jumps  int           // ticks in which all commands jump at once
	rounds int           // how often each tick is measured: the fastest counts
}

var (
	wholeTrains = trainExtent{[]int{1, 3, 5, 10, 20}, 8 * time.Second, 400, 3}
	shortTrains = trainExtent{[]int{1, 3, 5, 10}, 2 * time.Second, 60, 3}
)

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

func doTrains(e trainExtent) (*trainResult, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	r := &trainResult{}
	var cars, quiet, dearest []float64
	for _, n := range e.cars {
		c, err := e.train(n)
		if err != nil {
			return nil, err
		}
		r.costs = append(r.costs, c)
		cars, quiet, dearest = append(cars, float64(n)), append(quiet, c.quiet), append(dearest, c.dearest)
	}
	_, r.quiet = powerLaw(cars, quiet)
	_, r.dearest = powerLaw(cars, dearest)
	return r, nil
}

// train measures a train of so many cars.
func (e trainExtent) train(cars int) (c trainCost, err error) {
	name := fmt.Sprintf("train%d", cars)
	data, err := plants.Read(name)
	if err != nil {
		return c, err
	}
	plant, err := plantfile.Load(name+".yaml", data, library.Elements())
	if err != nil {
		return c, err
	}
	sys, err := assemble.System(plant)
	if err != nil {
		return c, err
	}
	all := make([]bool, len(sys.Inputs))
	own, err := kernel.Prepare(sys, kernel.Options{Period: trainGrid, Driven: all})
	if err != nil {
		return c, err
	}
	for i := range all {
		all[i] = true
	}
	driven, err := kernel.Prepare(sys, kernel.Options{Period: trainGrid, Driven: all})
	if err != nil {
		return c, err
	}
	c = trainCost{cars: cars, states: own.N, wheelsets: 4 * cars, located: own.EventBudget}
	still := func(int, []float64) {}
	jump := func(tick int, u []float64) {
		for j, in := range sys.Inputs {
			u[j] = [2]float64{in.Max, in.Min}[tick%2]
		}
	}
	c.quiet, c.own = e.ticks(own, int(e.until/trainGrid), still)
	_, c.dearest = e.ticks(driven, e.jumps, jump)
	c.dearest = max(c.dearest, c.own)
	return c, nil
}

// ticks are the mean of the ticks without an event and the dearest of all, ns.
func (e trainExtent) ticks(t *kernel.Tables, count int, command func(tick int, u []float64)) (quiet, dearest float64) {
	k, y, u := kernel.New(t), make([]float64, len(t.Outputs)), make([]float64, len(t.Inputs))
	cost, busy := make([]float64, count), make([]bool, count)
	for round := range e.rounds {
		k.Reset()
		events := 0.0
		for i := range cost {
			command(i, u)
			began := processorTime()
			k.Step(y, u)
			if took := processorTime() - began; round == 0 || took < cost[i] {
				cost[i] = took
			}
			busy[i], events = y[len(y)-3] != events, y[len(y)-3]
		}
	}
	n := 0.0
	for i, v := range cost {
		if dearest = max(dearest, v); !busy[i] {
			quiet, n = quiet+v, n+1
		}
	}
	return quiet / n, dearest
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

func (r *trainResult) markdown() []byte {
	var b bytes.Buffer
	p := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	p("# Cost of a tick over the length of a train\n")
	p("Plants train1 to train%d, steps of %v. Quiet is the mean of ticks without an event; the dearest tick is that of a train by itself, and of all of its commands jumping from border to border at every tick.\n", r.costs[len(r.costs)-1].cars, trainGrid)
	p("| cars | wheelsets | states | events located | quiet, us | over one car | dearest by itself | dearest, us | %% of %v | over one car |\n|---|---|---|---|---|---|---|---|---|---|", trainGrid)
	one := r.costs[0]
	for _, c := range r.costs {
		p("| %d | %d | %d | %d | %.0f | %.1f | %.0f | %.0f | %.0f | %.1f |", c.cars, c.wheelsets, c.states, c.located, c.quiet/1e3, c.quiet/one.quiet, c.own/1e3, c.dearest/1e3, ofPeriod(c.dearest), c.dearest/one.dearest)
	}
	p("\nQuiet ticks grow with cars^%.2f, the dearest with cars^%.2f.", r.quiet, r.dearest)
	return b.Bytes()
}

// plot is both costs over that of one car.
func (r *trainResult) plot() chart {
	one, last := r.costs[0], float64(r.costs[len(r.costs)-1].cars)
	c := chart{title: "Cost of a tick over the length of a train", across: "cars", up: "over that of one car", x: axis{1, last, true}, y: axis{0.5, 4 * last, true}}
	var cars, quiet, dearest []float64
	for _, v := range r.costs {
		cars, quiet, dearest = append(cars, float64(v.cars)), append(quiet, v.quiet/one.quiet), append(dearest, v.dearest/one.dearest)
	}
	c.curves = []curve{
		{"in proportion", "#cfcfcf", 6, []float64{1, last}, []float64{1, last}},
		{fmt.Sprintf("quiet tick: cars^%.2f", r.quiet), "#1f77b4", 1.8, cars, quiet},
		{fmt.Sprintf("dearest tick: cars^%.2f", r.dearest), "#d62728", 1.8, cars, dearest},
	}
	return c
}

func (r *trainResult) write(dir string) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	plot := r.plot()
	for name, data := range map[string][]byte{"trains.md": r.markdown(), "trains.svg": plot.svg()} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o666); err != nil {
			return err
		}
	}
	return nil
}

func trainsMain(args []string) {
	flags := flag.NewFlagSet("trains", flag.ExitOnError)
	dir := flags.String("o", "", "folder for the table and the plot")
	_ = flags.Parse(args) // it ends the program
	if *dir == "" || flags.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "study: usage: study trains -o DIR")
		os.Exit(2)
	}
	r, err := doTrains(wholeTrains)
	if err == nil {
		err = r.write(*dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "study:", err)
		os.Exit(1)
	}
	os.Stdout.Write(r.markdown())
}
