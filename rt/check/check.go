// Package check owns what `lockstep check` writes before a run: what was understood of a plant,
// a bench or a database, the interface and the load of each bus, and the worst tick, measured on
// this host. It starts no run and opens no bus.
package check

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"lockstep/io/can"
	"lockstep/model/kernel"
	"lockstep/model/library"
	"lockstep/model/plantfile"
	"lockstep/rt/bench"
	"lockstep/rt/scenario"
	"lockstep/sched"
)

// Check reads plants, benches and databases and writes what was understood.
type Check struct {
	Step     time.Duration // period of a plant; a bench has its own
	Scheme   string        // of a plant: "papers" or "complete"; "" is the kernel's default
	Form     string        // of a plant: "projected" or "held"; "" is the kernel's default
	Matrices bool          // write the matrices of a plant, too
	Out      io.Writer
	Strict   bool              // a database that does not keep to the format is an error
	Scenario string            // of a bench: a scenario for it; "" none
	Warn     func(text string) // is told what is possible but unwise, one line each
}

// File checks the plant, bench or database called name, a file or embedded.
func (c *Check) File(name string) error {
	file, data, err := bench.ReadAny(name)
	if err != nil {
		return err
	}
	what := bench.FileKind(file, data)
	if c.Scenario != "" && what != "bench" && what != "plant" {
		return &bench.KindError{File: name, Kind: what, Err: fmt.Errorf("check: %s is a file of kind %s; -scenario is of a bench or a plant", name, what)}
	}
	switch what {
	case "database":
		return c.database(file, data)
	case "scenario":
		return &bench.KindError{File: name, Kind: what, Err: fmt.Errorf("check: %s: a scenario is checked with its bench: lockstep check BENCH -scenario %s", name, name)}
	case "sweep":
		return &bench.KindError{File: name, Kind: what, Err: fmt.Errorf("check: %s: a sweep is checked before its first case: lockstep sweep %s", name, name)}
	case "inputs":
		return &bench.KindError{File: name, Kind: what, Err: fmt.Errorf("check: %s: a file of inputs is checked with its plant: lockstep sim PLANT -in %s", name, name)}
	case "bench":
		return c.bench(name)
	}
	plant, err := plantfile.Load(file, data, library.Elements())
	if err != nil {
		return err
	}
	p, err := understand(file, plant, kernel.Options{
		Period: c.Step, Scheme: kernel.Scheme(c.Scheme), Form: kernel.Form(c.Form),
	})
	if err != nil {
		return err
	}
	scenario, err := c.scenario(name, file)
	if err != nil {
		return err
	}
	fmt.Fprintf(c.Out, "%s: plant %s, a step of %v, scheme %s, form %s\n", file, plant.Name, c.Step, p.tables.Scheme, p.tables.Form)
	if err := c.plant(p); err != nil {
		return err
	}
	fmt.Fprint(c.Out, scenario)
	return nil
}

// scenario is what is understood of the scenario for a plant, if there is one.
func (c *Check) scenario(name, file string) (string, error) {
	if c.Scenario == "" {
		return "", nil
	}
	h, err := bench.Prepare(bench.FromPlant(name, file, c.Step, c.Scheme))
	if err != nil {
		return "", err
	}
	s, err := scenario.Load(h, c.Scenario)
	if err != nil {
		return "", err
	}
	return s.Text(h), nil
}

// threadText says how the loop's thread is scheduled.
func threadText(t sched.Thread) string {
	if t.Deadline {
		return fmt.Sprintf("SCHED_DEADLINE %v of %v on CPU %d", time.Duration(t.RuntimeNs), time.Duration(t.PeriodNs), t.CPU)
	}
	return fmt.Sprintf("SCHED_FIFO %d on CPU %d", t.Priority, t.CPU)
}

func (c *Check) bench(name string) error {
	b, err := bench.Load(name)
	if err != nil {
		return err
	}
	h, err := bench.Prepare(b)
	if err != nil {
		return err
	}
	scenarioText := ""
	if c.Scenario != "" {
		s, err := scenario.Load(h, c.Scenario)
		if err != nil {
			return err
		}
		scenarioText = s.Text(h)
	}
	file, data, err := b.Read(b.Plant)
	if err != nil {
		return err
	}
	plant, err := plantfile.Load(file, data, library.Elements())
	if err != nil {
		return err
	}
	p := &understood{file: b.File, tables: h.Tables, budget: b.BudgetNs}
	if err := p.assemble(plant); err != nil {
		return err
	}
	fmt.Fprintf(c.Out, "%s: bench %s, plant %s, a tick every %g ms, scheme %s, overrun %s\n",
		b.File, b.Name, b.Plant.Text, float64(b.PeriodNs)/1e6, b.Scheme, b.Overrun)
	fmt.Fprintf(c.Out, "  timer        %s, %s\n", b.Timer, threadText(h.Thread))
	fmt.Fprintf(c.Out, "  budget       a tick is late from %v on; the watchdog ends the target after %v without one\n",
		time.Duration(cmp.Or(b.BudgetNs, b.PeriodNs/2)), time.Duration(b.WatchNs))
	fmt.Fprintf(c.Out, "  ends         %s\n", strings.ReplaceAll(b.EndsText(), "\n", "\n               "))
	if err := c.plant(p); err != nil {
		return err
	}
	for i, in := range p.sys.Inputs {
		if s := &h.Tables.Signals[in.Signal]; s.Input < 0 {
			fmt.Fprintf(c.Out, "not driven: %s %s\n", h.Tables.Inputs[i].Name, bench.DescribeSource(&s.Source, in.Unit))
		}
	}
	for i, bus := range b.Buses {
		fmt.Fprintf(c.Out, "bus %s on %s, database %s%s\n", bus.Name.Text, bus.Interface.Text, bus.Database.Text, busRates(&bus))
		fmt.Fprint(c.Out, bus.J1939.AddressesText())
		if err := c.lenient(b, &bus); err != nil {
			return err
		}
		if err := c.checkBus(b, &bus, h.Tables, h.Maps[i]); err != nil {
			return err
		}
	}
	fmt.Fprint(c.Out, scenarioText)
	return nil
}

// identifier is a CAN identifier as candump prints it.
func identifier(id uint32) string {
	if id&can.EFF != 0 {
		return fmt.Sprintf("%08X", id&^can.EFF)
	}
	return fmt.Sprintf("%03X", id)
}
