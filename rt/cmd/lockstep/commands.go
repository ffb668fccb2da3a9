package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"lockstep/model/units"
	"lockstep/rt/control"
	"lockstep/rt/ecu"
	"lockstep/rt/host"
)

// command is a command of lockstep, such as run. Usage, help, manual page and completion are
// generated from the table of commands and the flags that each command declares.
type command struct {
	name     string
	operands []string // "[BENCH]" is optional, "FILE..." is one or more
	about    string

	// define declares the flags of the command and returns the function that runs it.
	define func(a *args) (run func() error)
}

// commands returns all commands in the order of the help.
func commands() []command {
	controlUnits := strings.Join(ecu.Names(), "|")
	return []command{
		{"run", []string{"[BENCH.yaml]"}, "run a bench in real time on its CAN buses; without a file, the demo", defineRun},
		{"attach", []string{"[BENCH|PROCESS]"}, "take over a run whose supervisor has ended", defineAttach},
		{"ctl", []string{"BENCH|PROCESS", control.Usage()}, "query a running bench, inject faults, set its inputs, or stop it", defineCtl},
		{"uds", []string{"[BENCH|FILE]", "COMMAND..."}, "diagnose the control unit of a running bench, or on a bus: trouble codes, data, routines, flash", defineUDS},
		{"ps", nil, "list the runs on this host", definePs},
		{"stop", []string{"[BENCH|PROCESS]"}, "stop a run and wait until its processes have ended", defineStop},
		{"sim", []string{"PLANT|BENCH"}, "simulate a plant, or a bench with its control unit, as fast as possible", defineSim},
		{"sweep", []string{"[SWEEP]"}, "simulate many variations of a plant or bench, on all cores and on many machines", defineSweep},
		{"replay", []string{"RECORD"}, "run a record again and compare every bit", defineReplay},
		{"export", []string{"RECORD"}, "write a record as candump log, ASC, BLF, MDF4 or CSV", defineExport},
		{"view", []string{"RECORD|CSV|MF4", "[RECORD|CSV|MF4]"}, "show a finished run, or two together, in the page of a run", defineView},
		{"plot", []string{"RECORD|CSV|MF4", "[SIGNAL...]"}, "draw signals of a record, or of a CSV or MDF4 file of export", definePlot},
		{"diff", []string{"RECORD|CSV|MF4", "RECORD|CSV|MF4"}, "compare the signals of two runs", defineDiff},
		{"check", []string{"FILE..."}, "read plants, benches and databases and describe them", defineCheck},
		{"gen", []string{"[PLANT]"}, "write the kernel of a plant as Go, C or an FMU, or the target executable of a bench", defineGen},
		{"plants", []string{"[NAME]"}, "list the embedded files, or print one to start from", definePlants},
		{"ecu", []string{controlUnits}, "run a virtual control unit on a bus", defineECU},
		{"doctor", nil, "check whether this host is fit for a real-time run, and list what to change", defineDoctor},
		{"latency", nil, "measure the wake-up latency of this host, with cyclictest as the reference", defineLatency},
		{"soak", []string{"BENCH"}, "run a bench with its control unit under load, and give a verdict", defineSoak},
		{"certify", []string{"[BENCH|NEW.json]"}, "measure a bench on this host and write a certificate, or compare two certificates", defineCertify},
		{"completion", []string{"bash|zsh|fish"}, "print the script that completes command lines in a shell", defineCompletion},
		{"man", []string{"[GUIDE]"}, "print the manual page of lockstep or of a guide: lockstep man | man -l -", defineMan},
		{"version", nil, "print the version", defineVersion},
		{"help", []string{"[COMMAND|TOPIC]"}, "print this list, the flags of a command, or a section of a guide", defineHelp},
	}
}

// find returns the command called name, or an error with the most similar name.
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

// help lists the commands.
func help(to io.Writer) {
	fmt.Fprint(to, wrap(os.Stdout, "lockstep: ", "the target side of a hardware-in-the-loop bench, in step with a CAN bus"), "\n")
	for _, c := range commands() {
		fmt.Fprint(to, wrap(os.Stdout, fmt.Sprintf("  lockstep %-10s ", c.name), c.about))
	}
	fmt.Fprint(to, "\nStart with `lockstep run`. Flags: `lockstep COMMAND -h`.\n")
	fmt.Fprint(to, wrap(os.Stdout, "Guides: ", "`lockstep help` with "+guideNames()+", or with a topic of a guide, such as clutch or e2e-2"))
}

func defineHelp(a *args) func() error {
	html := a.Bool("html", false, "print the guide as an HTML page")
	return func() error {
		if len(a.operands) == 0 {
			help(plainOut)
			return nil
		}

		c, err := find(a.operands[0])
		if err == nil && !*html {
			c.args().help()
			fmt.Fprintln(plainOut)
		}
		if found, failed := printGuide(a.operands[0], *html); found {
			return failed
		}

		return err
	}
}

func defineVersion(*args) func() error {
	return func() error {
		_, err := fmt.Fprintln(plainOut, "lockstep", host.Version())
		return err
	}
}

// printJSON writes v to the standard output as indented JSON.
func printJSON(v any) error {
	e := json.NewEncoder(plainOut)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
