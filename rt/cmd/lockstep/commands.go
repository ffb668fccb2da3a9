package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"lockstep/model/units"
	"lockstep/rt/control"
	"lockstep/rt/ecu"
	"lockstep/rt/host"
)

// command is one word after `lockstep`. Usage, help, manual page and completion are made of this
// table and of the flags that a command declares.
type command struct {
	name  string
	names []string // what stands at each place: "[BENCH]" may be left out, "FILE..." is one or more
	about string

	// define declares the flags and returns the function that runs the command with them.
	define func(a *args) (run func() error)
}

// commands lists them in the order of the help.
func commands() []command {
	units := strings.Join(ecu.Names(), "|")
	return []command{
		{"run", []string{"[BENCH.yaml]"}, "run a bench in step with its buses; without a file: the demo", defineRun},
		{"attach", []string{"[BENCH|PROCESS]"}, "take over a run whose supervisor has ended", defineAttach},
		{"ctl", []string{"BENCH|PROCESS", control.Usage()}, "ask a bench that runs, put faults into it, set its inputs, stop it", defineCtl},
		{"ps", nil, "list the runs of this host", definePs},
		{"stop", []string{"[BENCH|PROCESS]"}, "end a run, and wait until it is gone", defineStop},
		{"sim", []string{"PLANT|BENCH"}, "simulate a plant, or a bench with its control unit, as fast as it goes", defineSim},
		{"sweep", []string{"[SWEEP]"}, "simulate a plant or bench in many variations, on every core and over many machines", defineSweep},
		{"replay", []string{"RECORD"}, "run a record again and compare every bit", defineReplay},
		{"export", []string{"RECORD"}, "write a record as candump log, ASC, BLF, MDF4 or CSV", defineExport},
		{"check", []string{"FILE..."}, "read plants, benches and databases and say what is in them", defineCheck},
		{"gen", []string{"[PLANT]"}, "write the kernel of a plant as Go, C or an FMU, or the target executable of a bench", defineGen},
		{"plants", []string{"[NAME]"}, "list the embedded files, or print one to start from", definePlants},
		{"ecu", []string{units}, "run a virtual control unit on a bus", defineECU},
		{"doctor", nil, "say whether this host is fit for a real-time run, and what to change", defineDoctor},
		{"latency", nil, "measure how late this host wakes a loop up, beside cyclictest", defineLatency},
		{"soak", []string{"BENCH"}, "run a bench with its control unit under a load, and judge it", defineSoak},
		{"certify", []string{"[BENCH|NEW.json]"}, "measure a bench on this host, and write the certificate; compare two", defineCertify},
		{"completion", []string{"bash|zsh|fish"}, "print what completes this command's line in a shell", defineCompletion},
		{"man", []string{"[GUIDE]"}, "print the manual page, or that of a guide: lockstep man | man -l -", defineMan},
		{"version", nil, "print the version", defineVersion},
		{"help", []string{"[COMMAND|TOPIC]"}, "print this, the flags of a command, or what a guide says of a topic", defineHelp},
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

// help lists the commands.
func help(to *os.File) {
	fmt.Fprint(to, wrap(to, "lockstep: ", "the target side of a hardware-in-the-loop bench, in step with a CAN bus"), "\n")
	for _, c := range commands() {
		fmt.Fprint(to, wrap(to, fmt.Sprintf("  lockstep %-10s ", c.name), c.about))
	}
	fmt.Fprint(to, "\nStart with `lockstep run`. Flags: `lockstep COMMAND -h`.\n")
	fmt.Fprint(to, wrap(to, "Guides: ", "`lockstep help` with "+guideNames()+", or with what one of them explains: clutch, e2e-2"))
}

func defineHelp(a *args) func() error {
	html := a.Bool("html", false, "print the whole guide as a page of HTML")
	return func() error {
		if len(a.names) == 0 {
			help(os.Stdout)
			return nil
		}

		c, err := find(a.names[0])
		if err == nil && !*html {
			c.args().help()
			fmt.Println()
		}
		if found, failed := printGuide(a.names[0], *html); found {
			return failed
		}

		return err
	}
}

func defineVersion(*args) func() error {
	return func() error {
		_, err := fmt.Println("lockstep", host.Version())
		return err
	}
}

// printJSON is output for machines.
func printJSON(v any) error {
	e := json.NewEncoder(os.Stdout)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
