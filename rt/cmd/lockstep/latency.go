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

	"lockstep/deploy"
	"lockstep/rt/bench"
)

const latencyUsage = "latency [-for 60s] [-report FILE.json] [-svg FILE.svg] [-period 1ms] [-priority 80] [-cpu N] [-load=false]"

func runLatency(list []string) error {
	if is, err := deploy.Child(list); is {
		if err != nil {
			return &bench.Exit{Code: 1, Err: err}
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
	l := deploy.Latency{For: *length, Period: *period, CPU: *cpu, Priority: *priority, Load: *load}
	if err := l.Check(); err != nil {
		return usageError{err.Error()}
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
		return &bench.Exit{Code: 1, Err: err}
	}
	r.Text(os.Stdout)
	return writeLatency(r, *report, *svg)
}

// writeLatency writes the files of a report; "" is none.
func writeLatency(r *deploy.LatencyReport, report, svg string) error {
	for _, f := range []struct {
		name, what string
		make       func() ([]byte, error)
	}{{report, "report", r.JSON}, {svg, "histograms", r.SVG}} {
		if f.name == "" {
			continue
		}
		text, err := f.make()
		if err == nil {
			err = os.WriteFile(f.name, text, 0o644)
		}
		if err != nil {
			return &bench.Exit{Code: 1, Err: fmt.Errorf("latency: %s: %w", f.what, err)}
		}
		fmt.Printf("\n%s in %s\n", f.what, f.name)
	}
	return nil
}
