package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/term"

	"lockstep/deploy/latency"
)

func defineLatency(a *args) func() error {
	length := a.span("for 60s", time.Minute, "how long all turns of all methods take together (default 60s)")
	period := a.span("period 1ms", time.Millisecond, "of the grid, 100us to 100ms (default 1ms)")
	priority := a.Int("priority N", 80, "of SCHED_FIFO, 1 to 99")
	cpu := a.Int("cpu N", -1, "where the wake-ups are measured; -1: chosen as for a run")
	load := a.Bool("load", true, "measure under a load on the other CPUs, too: cpu, memory, scheduler, garbage")
	report := a.String("report FILE.json", "", "write the report to this file, as JSON")
	svg := a.String("svg FILE.svg", "lockstep-latency.svg", "write the histograms to this file; \"\" none")

	return func() error {
		if *cpu < -1 {
			return usageError{fmt.Sprintf("latency: -cpu %d: use -1 or the number of a CPU", *cpu)}
		}
		l := latency.Measurement{For: *length, Period: *period, CPU: *cpu, Priority: *priority, Load: *load}
		if err := l.Check(); err != nil {
			return usageError{err.Error()}
		}
		files := []*output{
			{flag: "-report", name: *report, what: "report", make: (*latency.Report).JSON},
			{flag: "-svg", name: *svg, what: "histograms", make: func(r *latency.Report) ([]byte, error) { return r.SVG(), nil }},
		}
		for _, f := range files {
			defer f.close()
			if err := f.open(); err != nil {
				return err
			}
		}

		clear := func() {}
		if term.IsTerminal(int(os.Stderr.Fd())) {
			const line = "\r\x1b[K" // back to its start, and empty
			l.Progress = func(text string) { fmt.Fprint(os.Stderr, line, "latency: ", text) }
			clear = func() { fmt.Fprint(os.Stderr, line) }
		}

		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
		defer stop()
		r, err := l.Run(ctx)
		clear()
		if errors.Is(err, context.Canceled) {
			err = errors.New("latency: interrupted, nothing is reported")
		}
		if err != nil {
			return exit1(err)
		}
		r.Text(os.Stdout)
		for _, f := range files {
			if err := f.write(r); err != nil {
				return err
			}
		}

		return nil
	}
}

// output is a file of a measurement, opened before it, so that a name that cannot be written does
// not cost the minutes it takes.
type output struct {
	flag, name, what string
	file             *os.File // nil: not asked for
	make             func(r *latency.Report) ([]byte, error)
}

func (o *output) open() (err error) {
	if o.name == "" {
		return nil
	}
	if o.file, err = os.OpenFile(o.name, os.O_WRONLY|os.O_CREATE, 0o644); err != nil {
		return usageError{fmt.Sprintf("latency: %s: %v (\"\" writes none)", o.flag, err)}
	}
	return nil
}

// close closes the file and removes it where nothing was written into it.
func (o *output) close() {
	if o.file == nil {
		return
	}
	if info, err := o.file.Stat(); err == nil && info.Mode().IsRegular() && info.Size() == 0 {
		_ = os.Remove(o.name)
	}
	o.file.Close()
}

func (o *output) write(r *latency.Report) error {
	if o.file == nil {
		return nil
	}
	text, err := o.make(r)
	if err == nil {
		_ = o.file.Truncate(0) // not of a pipe
		_, err = o.file.Write(text)
	}

	if err != nil {
		return exit1(fmt.Errorf("latency: %s: %w", o.what, err))
	}
	fmt.Printf("\n%s in %s\n", o.what, o.name)
	return nil
}
