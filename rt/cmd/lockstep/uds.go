package main

import (
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"

	"lockstep/rt/bench"
	"lockstep/rt/control"
	"lockstep/rt/diagnosis"
	"lockstep/rt/host"
)

// thenWord separates the commands of one command line.
const thenWord = "then"

func defineUDS(a *args) func() error {
	o := control.Options{}
	a.BoolVar(&o.JSON, "json", false, "print the answer of a bench as a line of JSON")
	bus := a.String("bus INTERFACE", "", "work alone on this CAN interface, without a running bench")

	return func() error {
		which, words := "", a.operands
		if !slices.ContainsFunc(diagnosis.Commands, func(c diagnosis.Command) bool { return c.Name == words[0] }) {
			which, words = words[0], words[1:]
		}
		if len(words) == 0 {
			return usageError{"uds: the command is missing; `lockstep help commands` lists the commands"}
		}
		commands := splitCommands(words)
		if *bus != "" {
			return diagnoseAlone(which, *bus, commands)
		}
		if o.Out = stdout; o.JSON {
			o.Out = plainOut
		}
		if which == "" {
			var err error
			if which, err = onlyRun(); err != nil {
				return err
			}
		}
		for _, c := range commands {
			if len(c) == 2 && c[0] == "flash" { // the run has another working directory
				if full, err := filepath.Abs(c[1]); err == nil {
					c[1] = full
				}
			}
			if err := control.Ask(which, append([]string{"uds"}, c...), o); err != nil {
				return err
			}
		}
		return nil
	}
}

// onlyRun returns the process of the only run on this host.
func onlyRun() (string, error) {
	runs := slices.DeleteFunc(control.List(), func(r control.ListedRun) bool { return r.Supervisor == 0 })
	if len(runs) != 1 {
		return "", fmt.Errorf("uds: %d benches run; name one, or a diagnosis file with -bus INTERFACE: lockstep uds BENCH dtc", len(runs))
	}
	return fmt.Sprint(runs[0].Supervisor), nil
}

// splitCommands returns the commands of words that are separated by "then".
func splitCommands(words []string) (list [][]string) {
	for {
		i := slices.Index(words, thenWord)
		if i < 0 {
			return append(list, words)
		}
		list, words = append(list, words[:i]), words[i+1:]
	}
}

// readSpec reads a diagnosis file, or that of the only bus of a bench file that has one.
func readSpec(name string) (*diagnosis.Spec, error) {
	file, data, kind, err := bench.ReadKind("uds", name, "diagnosis", "bench")
	if err != nil {
		return nil, err
	}
	if kind == "diagnosis" {
		return diagnosis.Parse(file, filepath.Dir(name), data, nil)
	}
	b, err := bench.Load(name)
	if err != nil {
		return nil, err
	}
	for i := range b.Buses {
		if s, err := b.ReadDiagnosis(i); s != nil || err != nil {
			return s, err
		}
	}
	return nil, fmt.Errorf("uds: no bus of %s has a diagnosis file (diagnosis: FILE)", name)
}

// diagnoseAlone runs commands on an interface without a bench.
func diagnoseAlone(name, iface string, commands [][]string) error {
	if name == "" {
		return usageError{"uds: -bus needs a diagnosis file or a bench file: lockstep uds tcu.yaml -bus can0 dtc"}
	}
	s, err := readSpec(name)
	if err != nil {
		return err
	}
	signals, stopped := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	go func() {
		<-signals
		close(stopped)
	}()
	var failed error
	err = diagnosis.Alone(s, iface, commands, func(o diagnosis.Outcome) {
		if o.Unasked {
			fmt.Fprintf(os.Stderr, "lockstep: uds: %v\n", o.Err)
			return
		}
		for _, l := range o.Lines {
			if o.Err == nil {
				fmt.Fprintln(stdout, l)
			}
		}
		failed = o.Err
	}, stopped)
	switch {
	case failed != nil:
		return &host.Exit{Code: 1, Err: fmt.Errorf("uds: %w", failed)}
	case err != nil:
		return fmt.Errorf("uds: %s: %w", iface, err)
	}
	return nil
}
