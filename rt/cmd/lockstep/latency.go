package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"syscall"
	"time"

	"lockstep/deploy/latency"
	"lockstep/rt/bench"
	"lockstep/rt/host"
	"lockstep/rt/progress"
)

func defineLatency(a *args) func() error {
	length := a.duration("for 60s", time.Minute, "total duration of all methods and rounds (default 60s)")
	period := a.duration("period 1ms", time.Millisecond, "period of the grid, 100us to 100ms (default 1ms)")
	priority := a.Int("priority N", 80, "SCHED_FIFO priority, 1 to 99")
	cpu := a.Int("cpu N", -1, "CPU of the measured thread; -1: chosen as for a run")
	load := a.Bool("load", true, "measure also under load on the other CPUs: cpu, memory, scheduler, garbage")
	report := a.output("report FILE.json", "write the report to this file, as JSON")
	svg := a.output("svg FILE.svg", "write the histograms to this file")

	return func() error {
		if *cpu < -1 {
			return usageError{fmt.Sprintf("latency: -cpu %d: use -1 or the number of a CPU", *cpu)}
		}
		l := latency.Measurement{For: *length, Period: *period, CPU: *cpu, Priority: *priority, Load: *load}
		if err := l.Check(); err != nil {
			return usageError{err.Error()}
		}
		files := []*output{
			{flag: "-report", name: *report, what: "report", kind: "JSON", make: (*latency.Report).JSON},
			{flag: "-svg", name: *svg, what: "histograms", kind: "XML", make: func(r *latency.Report) ([]byte, error) { return r.SVG(), nil }},
		}
		for _, f := range files {
			if err := f.open(); err != nil {
				return err
			}
			defer f.file.Close()
		}

		line := progressLine("latency")
		showTurns(&l, line)
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
		defer stop()
		r, err := l.Run(ctx)
		line.End()
		if errors.Is(err, context.Canceled) {
			err = errors.New("latency: interrupted, no report written")
		}
		if err != nil {
			return exit1(err)
		}
		r.Text(plainOut)
		for _, f := range files {
			if err := f.write(r); err != nil {
				return err
			}
		}

		return nil
	}
}

// showTurns makes a measurement name its turns in the progress line. It is polled: nothing is drawn during a turn.
func showTurns(l *latency.Measurement, line *progress.Line) {
	l.Progress = func(text string) {
		line.Begin(progress.Work{What: text, Polled: true})
		line.Poll(0)
	}
}

// output is a result file of a measurement. It is opened before the measurement, so that a file
// that cannot be written does not waste minutes.
type output struct {
	flag, name, what string
	kind             string       // see bench.Kind
	file             *host.Result // nil: not requested
	make             func(r *latency.Report) ([]byte, error)
}

func (o *output) open() (err error) {
	if o.file, err = bench.CreateResult(o.name, host.ReportSpace, o.kind); err != nil {
		return fmt.Errorf("latency: %s: %w", o.flag, err)
	}
	return nil
}

func (o *output) write(r *latency.Report) error {
	if o.file == nil {
		return nil
	}
	err := o.file.Save(func(to io.Writer) error {
		text, err := o.make(r)
		if err == nil {
			_, err = to.Write(text)
		}
		return err
	})
	if err != nil {
		return exit1(fmt.Errorf("latency: %s: %w", o.what, err))
	}
	fmt.Fprintf(plainOut, "\n%s in %s\n", o.what, o.name)
	return nil
}
