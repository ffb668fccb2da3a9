package check

import (
	"cmp"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"lockstep/model/kernel"
	"lockstep/model/plantfile"
	"lockstep/rt"
	"lockstep/rt/bench"
	"lockstep/rt/diagnosis"
	"lockstep/rt/progress"
	"lockstep/rt/scenario"
	"lockstep/sched"
)

// Check reads plants, benches and databases and describes them.
type Check struct {
	Step     time.Duration          // period for a plant; a bench has its own
	Scheme   string                 // scheme for a plant: "papers" or "complete"; "": the kernel's default
	Form     string                 // form for a plant: "projected" or "held"; "": the kernel's default
	Matrices bool                   // write the matrices of a plant, too
	Out      io.Writer              // destination of the description
	Strict   bool                   // a database that deviates from the format is an error
	Scenario string                 // scenario for a bench or plant; "" none
	Set      []plantfile.Assignment // values of the plant's parameters that replace those of its file
	Start    []plantfile.Assignment // start presets of the plant
	Warn     func(text string)      // receiver of warnings, one line each
	Progress *progress.Line         // cleared when File returns; nil: none
}

// File checks a plant, bench or database; name is a file or an embedded file.
func (c *Check) File(name string) error {
	command, wanted := "check", []string{"plant", "bench", "database", "diagnosis"}
	if c.Scenario != "" {
		command, wanted = "check -scenario", wanted[:2]
	}
	defer c.Progress.End()
	file, data, kind, err := bench.ReadKind(command, name, wanted...)
	switch {
	case err != nil:
		return err
	case kind == "database":
		return c.database(file, data)
	case kind == "bench":
		return c.bench(name)
	case kind == "diagnosis":
		s, err := diagnosis.Parse(file, filepath.Dir(name), data, nil)
		if err == nil {
			_, err = io.WriteString(c.Out, s.Describe())
		}
		return err
	}

	start, scenarioText, err := c.plantScenario(name, file)
	if err != nil {
		return err
	}
	plant, err := bench.ReadPlant(file, data, c.Set, start)
	if err != nil {
		return err
	}
	p, err := newCheckedPlant(file, plant, kernel.Options{
		Period: c.Step, Scheme: kernel.Scheme(c.Scheme), Form: kernel.Form(c.Form), Progress: c.Progress.BeginPreparation(name),
	})
	c.Progress.End()
	if err != nil {
		return err
	}

	fmt.Fprintf(c.Out, "%s: plant %s, a step of %v, scheme %s, form %s\n",
		file, plant.Name, c.Step, p.tables.Scheme, p.tables.Form)
	if err := c.plant(p); err != nil {
		return err
	}
	fmt.Fprint(c.Out, scenarioText)
	return nil
}

// plantScenario returns the start presets of a plant alone, which its scenario may give, and the description of the
// scenario, "" if there is none.
func (c *Check) plantScenario(name, file string) (start []plantfile.Assignment, text string, err error) {
	if c.Scenario == "" {
		return c.Start, "", nil
	}
	b := bench.FromPlant(name, file, c.Step, c.Scheme)
	b.Set, b.StartSet = c.Set, c.Start
	h, err := bench.Prepare(b)
	if err != nil {
		return nil, "", err
	}
	text, err = c.scenario(h)
	return h.Bench.StartInUse(), text, err
}

// scenario returns the description of the scenario, "" if there is none.
func (c *Check) scenario(h *bench.Handover) (string, error) {
	if c.Scenario == "" {
		return "", nil
	}
	s, err := scenario.Load(h, c.Scenario)
	if err != nil {
		return "", err
	}
	return s.Describe(h), nil
}

// threadText describes the scheduling of the loop's thread.
func threadText(t sched.Thread) string {
	if t.Deadline {
		return fmt.Sprintf("SCHED_DEADLINE %v of %v on CPU %d", time.Duration(t.RuntimeNs), time.Duration(t.PeriodNs), t.CPU)
	}
	return fmt.Sprintf("SCHED_FIFO %d on CPU %d", t.Priority, t.CPU)
}

// watchdogText describes the time without a tick after which the watchdog ends the target.
func watchdogText(b *bench.Bench) string {
	if b.WatchNs != 0 {
		return time.Duration(b.WatchNs).String()
	}
	return fmt.Sprintf("%v with all real-time rights, after %v at best effort,", b.Watchdog(true), b.Watchdog(false))
}

func (c *Check) bench(name string) error {
	b, err := bench.Load(name)
	if err != nil {
		return err
	}
	b.Set, b.StartSet, b.Progress = c.Set, c.Start, c.Progress.BeginPreparation(name)
	h, err := bench.Prepare(b)
	if err != nil {
		return err
	}
	if err := b.CheckEnds(); err != nil {
		return err
	}
	scenarioText, err := c.scenario(h)
	if err != nil {
		return err
	}
	p, err := newCheckedBench(h)
	if err != nil {
		return err
	}
	c.Progress.End()
	fmt.Fprintf(c.Out, "%s: bench %s, plant %s, a tick every %g ms, scheme %s, overrun %s\n",
		b.File, b.Name, b.Plant.Text, float64(b.PeriodNs)/1e6, b.Scheme, b.Overrun)
	fmt.Fprintf(c.Out, "  timer        %s, %s\n", b.Timer, threadText(h.Thread))
	if b.AtArrival {
		fmt.Fprintf(c.Out, "  inputs       act from the arrival of their frames, at up to %d instants inside of a step\n", rt.MaxPlaces)
	}
	fmt.Fprintf(c.Out, "  budget       a tick is late from %v on; the watchdog ends the target after %s without one\n",
		time.Duration(cmp.Or(b.BudgetNs, b.PeriodNs/2)), watchdogText(b))
	if b.Network != nil {
		fmt.Fprintf(c.Out, "  ignition     %s\n", b.Network.Describe())
	}
	fmt.Fprintf(c.Out, "  ends         %s\n", strings.ReplaceAll(b.DescribeEnds(), "\n", "\n               "))
	if err := c.plant(p); err != nil {
		return err
	}
	for i, in := range p.sys.Inputs {
		if s := &h.Tables.Signals[in.Signal]; s.Input < 0 {
			fmt.Fprintf(c.Out, "not driven: %s %s\n", h.Tables.Inputs[i].Name, bench.DescribeSource(&s.Source, in.DeclaredUnit()))
		}
	}

	if b.Program != nil {
		file, _, _ := b.ProgramFile() // CheckEnds has found it
		fmt.Fprintf(c.Out, "control unit %s, an answer within %v\n", file, time.Duration(b.Program.HangNs))
	}
	for i, bus := range b.Buses {
		fmt.Fprintf(c.Out, "bus %s on %s, database %s%s\n",
			bus.Name.Text, bus.Interface.Text, bus.Database.Text, busRates(&bus))
		if b.Unconnected(i) {
			fmt.Fprintln(c.Out, "  nobody is at the other end of this pair: its received messages will be silent")
		}
		fmt.Fprint(c.Out, bus.J1939.DescribeAddresses())
		if err := c.warnDeviations(b, &bus); err != nil {
			return err
		}
		if err := c.checkBus(h, i); err != nil {
			return err
		}
	}

	fmt.Fprint(c.Out, scenarioText)
	return nil
}
