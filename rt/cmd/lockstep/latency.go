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
	"lockstep/rt/host"
	"lockstep/sched"
)

const latencyUsage = "latency [-for 60s] [-report FILE.json] [-svg FILE.svg] [-period 1ms] [-priority 80] [-cpu N] [-load=false]"

func runLatency(list []string) error {
	if is, err := latency.Child(list); is {
		if err != nil {
			return &host.Exit{Code: 1, Err: err}
		}
		return nil
	}
	a := newArgs("latency", latencyUsage)
	length := a.span("for", time.Minute, "how long all turns of all methods take together (default 60s)")
	period := a.span("period", time.Millisecond, "of the grid, 100us to 100ms (default 1ms)")
	priority := a.Int("priority", 80, "of SCHED_FIFO, 1 to 99")
	cpu := a.Int("cpu", -1, "where the wake-ups are measured; -1: chosen as for a run")
	load := a.Bool("load", true, "measure under a load on the other CPUs, too: cpu, memory, scheduler, garbage")
	report := a.String("report", "", "write the report to this file, as JSON")
	svg := a.String("svg", "lockstep-latency.svg", "write the histograms to this file; \"\" none")
	if err := a.parse(list, 0, 0, os.Stdout); err != nil {
		return err
	}
	if *cpu < -1 {
		return usageError{fmt.Sprintf("latency: -cpu %d: use -1 or the number of a CPU", *cpu)}
	}
	l := latency.Measurement{For: *length, Period: *period, CPU: *cpu, Priority: *priority, Load: *load,
		Raise: func(cpu, priority int) (func(), *sched.Missing) { return host.RaiseTimers(cpu, priority, "latency") }}
	if err := l.Check(); err != nil {
		return usageError{err.Error()}
	}
	files, err := latencyFiles(*report, *svg)
	if err != nil {
		return err
	}
	defer files.close()
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
		return &host.Exit{Code: 1, Err: err}
	}
	r.Text(os.Stdout)
	return files.write(r)
}

// outputs are the files of a measurement, opened before it, so that a name that
// cannot be written does not cost the minutes it takes.
type outputs struct{ report, svg *os.File } // nil: not asked for

func latencyFiles(report, svg string) (o outputs, err error) {
	for _, f := range []struct {
		name, flag string
		to         **os.File
	}{{report, "-report", &o.report}, {svg, "-svg", &o.svg}} {
		if f.name == "" {
			continue
		}
		if *f.to, err = os.OpenFile(f.name, os.O_WRONLY|os.O_CREATE, 0o644); err != nil {
			o.close()
			return o, usageError{fmt.Sprintf("latency: %s: %v (\"\" writes none)", f.flag, err)}
		}
	}
	return o, nil
}

// close closes the files and removes those into which nothing was written.
func (o outputs) close() {
	for _, f := range []*os.File{o.report, o.svg} {
		if f == nil {
			continue
		}
		if info, err := f.Stat(); err == nil && info.Mode().IsRegular() && info.Size() == 0 {
			_ = os.Remove(f.Name())
		}
		f.Close()
	}
}

// write writes the files of a report.
func (o outputs) write(r *latency.Report) error {
	for _, out := range []struct {
		file *os.File
		what string
		make func() ([]byte, error)
	}{{o.report, "report", r.JSON}, {o.svg, "histograms", r.SVG}} {
		if out.file == nil {
			continue
		}
		text, err := out.make()
		if err == nil {
			_ = out.file.Truncate(0) // not of a pipe
			_, err = out.file.Write(text)
		}
		if err != nil {
			return &host.Exit{Code: 1, Err: fmt.Errorf("latency: %s: %w", out.what, err)}
		}
		fmt.Printf("\n%s in %s\n", out.what, out.file.Name())
	}
	return nil
}
