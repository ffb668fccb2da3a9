package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"lockstep/model/units"
	"lockstep/rt/host"
)

// command is one word after `lockstep`.
type command struct {
	name, usage, about string
	run                func(list []string) error
}

// commands lists them in the order of the help.
func commands() []command {
	return []command{
		{"run", runUsage, "run a bench in step with its buses; without a file: the demo", runBench},
		{"attach", attachUsage, "take over a run whose supervisor has ended", runAttach},
		{"ctl", ctlUsage, "ask a bench that runs, put faults into it, set its inputs, stop it", runCtl},
		{"ps", psUsage, "list the runs of this host", runPs},
		{"stop", stopUsage, "end a run, and wait until it is gone", runStop},
		{"sim", simUsage, "simulate a plant, or a bench with its control unit, as fast as it goes", runSim},
		{"sweep", sweepUsage, "simulate a plant or bench in many variations, on every core and over many machines", runSweep},
		{"replay", replayUsage, "run a record again and compare every bit", runReplay},
		{"export", exportUsage, "write a record as candump log, ASC, BLF, MDF4 or CSV", runExport},
		{"check", checkUsage, "read plants, benches and databases and say what is in them", runCheck},
		{"gen", genUsage, "write the kernel of a plant as Go, C or an FMU, or the target executable of a bench", runGen},
		{"plants", "plants [NAME]", "list the embedded files, or print one to start from", runPlants},
		{"ecu", ecuUsage, "run a virtual control unit on a bus", runECU},
		{"doctor", doctorUsage, "say whether this host is fit for a real-time run, and what to change", runDoctor},
		{"latency", latencyUsage, "measure how late this host wakes a loop up, beside cyclictest", runLatency},
		{"soak", soakUsage, "run a bench with its control unit under a load, and judge it", runSoak},
		{"certify", certifyUsage, "measure a bench on this host, and write the certificate; compare two", runCertify},
		{"completion", "completion bash|zsh|fish", "print what completes this command's line in a shell", runCompletion},
		{"man", "man", "print the manual page: lockstep man | man -l -", runMan},
		{"version", "version", "print the version", runVersion},
		{"help", "help [COMMAND]", "print this, or the flags of a command", runHelp},
	}
}

// find returns the command called name, or an error with the nearest.
func find(name string) (command, error) {
	switch name {
	case "-h", "-help", "--help":
		name = "help"
	case "-version", "--version":
		name = "version"
	}
	var known []string
	for _, c := range commands() {
		if c.name == name {
			return c, nil
		}
		known = append(known, c.name)
	}
	if near := units.Meant(name, known); near != "" {
		return command{}, usageError{fmt.Sprintf("unknown command %q%s", name, near)}
	}
	return command{}, usageError{fmt.Sprintf("unknown command %q; known are %s", name, strings.Join(known, ", "))}
}

func help(w io.Writer) {
	fmt.Fprint(w, "lockstep: the target side of a hardware-in-the-loop bench, in step with a CAN bus\n\n")
	for _, c := range commands() {
		fmt.Fprintf(w, "  lockstep %-10s %s\n", c.name, c.about)
	}
	fmt.Fprint(w, "\nStart with `lockstep run`. Flags: `lockstep help COMMAND`.\n")
}

func runHelp(list []string) error {
	a := newArgs("help", "help [COMMAND]")
	if err := a.parse(list, 0, 1, os.Stdout); err != nil {
		return err
	}
	if len(a.names) == 0 {
		help(os.Stdout)
		return nil
	}
	c, err := find(a.names[0])
	if err != nil {
		return err
	}
	return c.run([]string{"-h"})
}

func runVersion(list []string) error {
	a := newArgs("version", "version")
	if err := a.parse(list, 0, 0, os.Stdout); err != nil {
		return err
	}
	fmt.Println("lockstep", host.Version())
	return nil
}

// printJSON is output for machines.
func printJSON(v any) error {
	e := json.NewEncoder(os.Stdout)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
