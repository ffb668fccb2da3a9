package bench

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"lockstep/io/can"
	"lockstep/io/messages"
	"lockstep/io/sigmap"
	"lockstep/model"
	"lockstep/model/assemble"
	"lockstep/model/kernel"
	"lockstep/model/library"
	"lockstep/model/network"
	"lockstep/model/plantfile"
	"lockstep/model/units"
	"lockstep/rt"
	"lockstep/rt/fault"
	"lockstep/rt/target"
	"lockstep/sched"
)

// Handover is all that the target process needs, as plain data: the target decodes it, makes
// a kernel and a loop from it, and ticks.
type Handover struct {
	target.Handover
	Tables  *kernel.Tables  // tables of the kernel; a generated target does not read them
	Changes []kernel.Change // tables of later grid points, when a scenario changes parameters

	ForSupervisors

	uncommanded []string            // descriptions of inputs that no bus drives; not sent to the target
	parameters  []network.Parameter // parameters of the plant without further values; nil: not read yet

	faultChecker *fault.Set           // fault set that checks commands; nil: not made yet
	databases    []*messages.Database // databases by bus; nil: not read yet, see Database
}

// Uncommanded describes the inputs that no bus drives.
func (h *Handover) Uncommanded() []string { return h.uncommanded }

// Clone returns a copy for another goroutine that shares no caches.
func (h *Handover) Clone() *Handover {
	own := *h
	own.faultChecker, own.databases = nil, slices.Clone(h.databases)
	return &own
}

// CheckFaults refuses the commands that the loop would refuse, because the loop itself cannot
// report errors.
func (h *Handover) CheckFaults(list []fault.Command) error {
	if h.faultChecker == nil {
		m, p := len(h.Tables.Inputs), len(h.Tables.Outputs)
		system := fault.System{PeriodNs: h.Tables.PeriodNs, M: m, P: p, Maps: h.Maps, Plant: kernel.NewSequence(h.Tables, nil)}
		var err error
		if h.faultChecker, err = fault.New(fault.Plan{Ranges: h.Loop.Faults.Ranges}, system); err != nil {
			return err
		}
	}

	for i := range list {
		if err := h.faultChecker.Check(&list[i]); err != nil {
			return err
		}
	}

	return nil
}

// Plant returns the plant that the loop steps, of the table kernel.
func (h *Handover) Plant() *kernel.Sequence { return kernel.NewSequence(h.Tables, h.Changes) }

// KernelInUse returns the kind of the kernel: "table" or "generated".
func (h *Handover) KernelInUse() string {
	if h.Mark == "" {
		return "table"
	}
	return "generated"
}

// Prepare makes a Handover from a bench: it reads the plant and the databases, assembles and
// discretises the plant, and binds every signal to its port. Errors have the position in the
// file.
func Prepare(b *Bench) (*Handover, error) {
	draft, err := b.ParsePlant()
	if err != nil {
		return nil, err
	}
	plant, err := draft.Load()
	if err != nil {
		return nil, err
	}
	sys, driven, tables, err := b.prepareTables(plant)
	if err != nil {
		return nil, err
	}
	h := &Handover{
		Handover: target.Handover{
			Loop: b.loop(tables), Timer: target.Timer{Sleep: b.Timer, SpinNs: b.SpinNs}, Thread: b.thread(),
		},
		Tables: tables, ForSupervisors: ForSupervisors{Bench: b}, parameters: parametersOf(plant),
	}
	h.describeUncommanded(sys, driven)
	if err := b.checkShown(tables.Outputs); err != nil {
		return nil, err
	}

	for i := range b.Buses {
		db, err := h.Database(i)
		if err != nil {
			return nil, err
		}
		m, err := b.bind(&b.Buses[i], db, tables)
		if err != nil {
			return nil, err
		}
		h.Maps = append(h.Maps, m)
	}

	if h.Loop.Inputs, err = b.inputPlan(h, tables); err != nil {
		return nil, err
	}
	h.Loop.Ports, h.Loop.Wires = b.portsNeeded(h.Maps), b.wires()
	if h.Loop.Network, err = b.networkPlan(h); err != nil {
		return nil, err
	}
	h.Loop.Taken, h.Loop.Tested = make([][]can.Filter, len(b.Buses)), make([][]can.Filter, len(b.Buses))
	for i := range b.Buses {
		s, err := b.ReadDiagnosis(i)
		if err != nil {
			return nil, err
		}
		if s != nil {
			h.Loop.Tested[i] = s.Filters()
			h.Loop.Taken[i] = slices.Clone(h.Loop.Tested[i])
			if err := b.checkUnit(i, s, h.Maps[i]); err != nil {
				return nil, err
			}
		}
		if b.Buses[i].J1939 != nil || h.Maps[i].HasLong() {
			h.Loop.Taken[i] = append(h.Loop.Taken[i], can.Filter{ID: can.EFF, Mask: can.EFF})
		}
	}
	h.Loop.Faults.Ranges = inputRanges(tables, h.Maps)
	if h.Loop.Safe, err = b.prepareSafeValues(tables, h.Maps); err != nil {
		return nil, err
	}
	return h, nil
}

// describeUncommanded describes the inputs that no bus drives.
func (h *Handover) describeUncommanded(sys *model.System, driven []bool) {
	h.uncommanded = nil
	for i, in := range sys.Inputs {
		if !driven[i] {
			h.uncommanded = append(h.uncommanded, in.Name+" "+DescribeSource(&sys.Signals[in.Signal].Source, in.DeclaredUnit()))
		}
	}
}

// SetStart prepares the tables anew with start presets that replace those of the bench file.
func (h *Handover) SetStart(list []plantfile.Assignment) error {
	b := *h.Bench // runs of other scenarios share the bench
	b.Start = replaced(b.Start, list)
	draft, err := b.ParsePlant()
	if err != nil {
		return err
	}
	plant, err := draft.Load()
	if err != nil {
		return err
	}
	sys, driven, tables, err := b.prepareTables(plant)
	if err != nil {
		return err
	}
	h.Bench, h.Tables, h.Loop.Start, h.faultChecker = &b, tables, tables.Start, nil
	h.parameters = parametersOf(plant)
	h.describeUncommanded(sys, driven)
	return nil
}

// replaced returns list with the assignments of by in place of those to the same names.
func replaced(list, by []plantfile.Assignment) []plantfile.Assignment {
	rest := slices.DeleteFunc(slices.Clone(list), func(a plantfile.Assignment) bool {
		return slices.ContainsFunc(by, func(b plantfile.Assignment) bool { return a.Name == b.Name })
	})
	return append(rest, by...)
}

// checkShown checks names and units of the outputs in the status line.
func (b *Bench) checkShown(outputs []units.Port) error {
	for _, shown := range append([]Shown{{Output: b.Engine}, {Output: b.Wheel}}, b.Shown...) {
		name := shown.Output.Text
		i := PortIndex(outputs, name)
		if i < 0 && name != "" {
			return b.Errorf(shown.Output, "show: plant %s has no output %q%s", b.Plant.Text, name, units.Meant(name, PortNames(outputs)))
		}
		if shown.Unit == "" {
			continue
		}
		if _, err := outputs[i].DeclaredUnit().Spell(shown.Unit); err != nil {
			return b.Errorf(shown.Output, "show: %s: %s", name, units.Reason(err))
		}
	}
	return nil
}

// prepareTables assembles and discretises a plant for the bench.
func (b *Bench) prepareTables(plant *network.Plant) (sys *model.System, driven []bool, t *kernel.Tables, err error) {
	if sys, err = assemble.System(plant); err != nil {
		return nil, nil, nil, err
	}
	if driven, err = b.drivenInputs(sys); err != nil {
		return nil, nil, nil, err
	}
	opt := kernel.Options{Period: time.Duration(b.PeriodNs), Driven: driven, Scheme: kernel.Scheme(b.Scheme), Progress: b.Progress}
	opt.Places, opt.Ramped = b.changesInside(sys)
	if t, err = kernel.Prepare(sys, opt); err != nil {
		err = b.Errorf(b.Plant, "%w", err)
	}
	return sys, driven, t, err
}

// PrepareChange returns the tables of the plant with further values of tunable parameters.
func (h *Handover) PrepareChange(set []plantfile.Assignment) (*kernel.Tables, error) {
	plant, err := h.plantWith(set)
	if err != nil {
		return nil, err
	}
	_, _, t, err := h.Bench.prepareTables(plant)
	if err == nil {
		err = t.Follows(h.Tables)
	}
	return t, err
}

// SetOfPhase returns the values of tunable parameters in a phase of the run: those of the first changes of the
// scenario, as many as the phase says, replaced by those of set.
func (h *Handover) SetOfPhase(phase int, set []plantfile.Assignment) (list []plantfile.Assignment) {
	for _, text := range h.ChangeTexts[:phase] {
		for part := range strings.SplitSeq(text, ", ") {
			a, _ := plantfile.ParseAssignment(part) // the scenario has checked it
			list = replaced(list, []plantfile.Assignment{a})
		}
	}
	return replaced(list, set)
}

// Parameters returns the parameters of the plant with further values of tunable ones. The caller does
// not change the list.
func (h *Handover) Parameters(set []plantfile.Assignment) ([]network.Parameter, error) {
	if len(set) == 0 && h.parameters != nil {
		return h.parameters, nil
	}
	plant, err := h.plantWith(set)
	if err != nil {
		return nil, err
	}
	list := parametersOf(plant)
	if len(set) == 0 {
		h.parameters = list
	}
	return list, nil
}

// parametersOf returns the parameters of a plant, never nil.
func parametersOf(plant *network.Plant) []network.Parameter {
	return append([]network.Parameter{}, plant.Parameters...)
}

// plantWith returns the plant with further values of tunable parameters.
func (h *Handover) plantWith(set []plantfile.Assignment) (*network.Plant, error) {
	draft, err := h.Bench.ParsePlant()
	if err != nil {
		return nil, err
	}
	draft.Assign(replaced(h.Bench.Set, set))
	defer draft.Assign(h.Bench.Set)
	plant, err := draft.Load()
	for i := 0; err == nil && i < len(set); i++ {
		p := plant.Parameters[slices.IndexFunc(plant.Parameters, func(p network.Parameter) bool { return p.Name == set[i].Name })]
		if !p.Tunable {
			err = fmt.Errorf("parameter %q cannot change in a run: the plant file does not say tune: true", p.Name)
		}
	}
	if err != nil {
		return nil, err
	}
	return plant, nil
}

// Tunable returns the names of the tunable parameters of the plant file.
func (h *Handover) Tunable() (names []string) {
	list, _ := h.Parameters(nil) // fails for no plant that was prepared
	for i := range list {
		if list[i].Tunable {
			names = append(names, list[i].Name)
		}
	}
	return names
}

// FixedParameters returns why no parameter can change while the run lasts; nil: the tunable ones can.
func (h *Handover) FixedParameters() error {
	switch {
	case h.Tunable() == nil:
		return errors.New("no parameter of the plant can change in a run: the plant file marks those that can with tune: true")
	case h.Mark != "":
		return errors.New("a generated kernel has fixed parameters: run with -kernel table")
	case h.Tables.Partition != nil:
		return errors.New("a plant with a partition keeps its parameters during a run")
	}
	return nil
}

// FirstReservationFD returns the first descriptor of the target after its buses and its memory.
func (h *Handover) FirstReservationFD() int {
	return max(h.TableSetFD, h.StateFD, target.FirstBusFD+len(h.Bench.Buses)-1) + 1
}

// thread returns the scheduling of the loop's thread.
func (b *Bench) thread() sched.Thread {
	return sched.Thread{
		CPU: b.CPU, Priority: b.Priority, Sleep: b.Timer,
		Deadline: b.Deadline, RuntimeNs: cmp.Or(b.BudgetNs, b.PeriodNs/2), PeriodNs: b.PeriodNs,
	}.ChooseCPU()
}

// Assemble returns the plant of a bench as matrices.
func Assemble(b *Bench) (*model.System, error) {
	draft, err := b.ParsePlant()
	if err != nil {
		return nil, err
	}
	plant, err := draft.Load()
	if err != nil {
		return nil, err
	}
	return assemble.System(plant)
}

// ParsePlant reads and parses the file of the plant, or takes the plant of SetPlant, and gives it the
// values of Set and the start presets.
func (b *Bench) ParsePlant() (*plantfile.Draft, error) {
	draft := b.draft
	if draft == nil {
		file, data, err := b.Read(b.Plant, "plant")
		if err != nil {
			return nil, err
		}
		if draft, err = plantfile.Parse(file, data, library.Elements()); err != nil {
			return nil, err
		}
	}
	draft.Assign(b.Set)
	draft.Start(b.StartInUse())
	draft.ReadWith(b.readOfPlant)
	return draft, nil
}

// SetText returns the assignments of Set, joined by ", ".
func (b *Bench) SetText() string { return joined(b.Set) }

// StartInUse returns the start presets: those of the command line replace those of the files.
func (b *Bench) StartInUse() []plantfile.Assignment { return replaced(b.Start, b.StartSet) }

// StartText returns the start presets, joined by ", ".
func (b *Bench) StartText() string { return joined(b.StartInUse()) }

func joined(list []plantfile.Assignment) string {
	text := make([]string, len(list))
	for i, a := range list {
		text[i] = a.String()
	}
	return strings.Join(text, ", ")
}

// drivenInputs reports for each input of the plant whether a bus drives it; an input driven
// twice is an error.
func (b *Bench) drivenInputs(sys *model.System) ([]bool, error) {
	driven := make([]bool, len(sys.Inputs))
	names := make([]string, len(sys.Inputs))
	for i, in := range sys.Inputs {
		names[i] = in.Name
	}
	for _, bus := range b.Buses {
		for j, l := range bus.Receive {
			i, at := slices.Index(names, l.Port), bus.positions[sigmap.Place{List: sigmap.InReceive, Index: j}]
			switch {
			case i < 0:
				return nil, b.Errorf(at, "plant %s has no input %q%s; it has %s",
					b.Plant.Text, l.Port, units.Meant(l.Port, names), strings.Join(names, ", "))
			case driven[i]:
				return nil, b.Errorf(at, "input %q is driven twice", l.Port)
			}

			driven[i] = true
		}
	}

	return driven, nil
}

// changesInside returns at how many instants of a step the kernel must take changes of its inputs, and
// which inputs are ramped.
func (b *Bench) changesInside(sys *model.System) (places int, ramped []bool) {
	ramped = make([]bool, len(sys.Inputs))
	for _, bus := range b.Buses {
		for _, r := range bus.Ramps {
			for i, in := range sys.Inputs {
				ramped[i] = ramped[i] || slices.Contains(r.Ports, in.Name)
			}
		}
	}
	if b.AtArrival || slices.Contains(ramped, true) {
		places = rt.MaxPlaces
	}
	return places, ramped
}

// inputPlan returns when received values act. A ramp lasts the cycle of its message.
func (b *Bench) inputPlan(h *Handover, t *kernel.Tables) (rt.InputPlan, error) {
	plan := rt.InputPlan{AtArrival: b.AtArrival}
	for i := range b.Buses {
		bus := &b.Buses[i]
		db, err := h.Database(i)
		if err != nil {
			return plan, err
		}
		for _, r := range bus.Ramps {
			ns := bus.cycleOf(db, r.Message)
			if ns == 0 {
				return plan, b.Errorf(r.At, "message %s: ramp: the cycle is missing, here and in the database (cycle: 10 ms)", r.Message)
			}
			if plan.RampNs == nil {
				plan.RampNs = make([]int64, len(t.Inputs))
			}
			for _, port := range r.Ports {
				plan.RampNs[PortIndex(t.Inputs, port)] = ns
			}
		}
	}
	return plan, nil
}

// cycleOf returns the expected cycle of a received message, ns; 0: none.
func (b *Bus) cycleOf(db *messages.Database, message string) int64 {
	for _, m := range b.Messages {
		if m.Message == message && m.CycleNs > 0 {
			return m.CycleNs
		}
	}
	for _, m := range db.Messages {
		if m.Name == message {
			return m.CycleNs
		}
	}
	return 0
}

// PortIndex returns the index of the port called name, -1 if there is none.
func PortIndex(ports []units.Port, name string) int {
	return slices.IndexFunc(ports, func(p units.Port) bool { return p.Name == name })
}

// PortNames lists the names of ports, in their order.
func PortNames(ports []units.Port) []string {
	names := make([]string, len(ports))
	for i, p := range ports {
		names[i] = p.Name
	}
	return names
}

// bind binds the signals of a bus to the ports.
func (b *Bench) bind(bus *Bus, db *messages.Database, t *kernel.Tables) (*sigmap.Map, error) {
	r := NewReader(b.File)
	err := r.Try(func() {
		for i := range bus.Frames {
			bus.Frames[i].readWaveforms(r, db)
		}
	})
	if err != nil {
		return nil, err
	}
	m, err := sigmap.Bind(db, bus.spec(db, b.PeriodNs), t.Inputs, t.Outputs)
	if err != nil {
		at, e := bus.Database, &sigmap.SpecError{}
		if errors.As(err, &e) {
			at = bus.positions[e.Place]
		}
		return nil, b.Errorf(at, "bus %q: %w", bus.Name.Text, err)
	}
	return m, b.checkAddresses(bus, m)
}

// loop returns the configuration of the loop, with the outputs that the loop watches.
func (b *Bench) loop(t *kernel.Tables) rt.Config {
	return rt.Config{
		Period: time.Duration(b.PeriodNs), Overrun: b.Overrun, Budget: time.Duration(b.BudgetNs),
		Watch: WatchedOutputs(t.Outputs),
		Start: t.Start, Warmup: warmup, Supervisor: b.End.Supervisor, Bus: b.End.Bus,
	}
}

// warmup is the number of steps that load the plant's code and data into the caches before
// the first tick.
const warmup = 100

// WatchedOutputs returns the indices of the outputs that the loop reads at each tick: events,
// transitions, lag and fault.
func WatchedOutputs(outputs []units.Port) rt.Watch {
	return rt.Watch{
		Events: PortIndex(outputs, "events"), Transitions: PortIndex(outputs, "transitions"),
		Lag: PortIndex(outputs, "lag"), Fault: PortIndex(outputs, "fault"),
	}
}

// inputRanges returns for each input the intersection of two ranges: of its port, and of the signal
// that drives it.
func inputRanges(t *kernel.Tables, maps []*sigmap.Map) [][2]float64 {
	list := make([][2]float64, len(t.Inputs))
	for i, p := range t.Inputs {
		list[i] = [2]float64{p.Min, p.Max}
	}
	for _, m := range maps {
		for _, rx := range m.Rx {
			for _, f := range rx.Fields {
				a, b := f.Lo*f.Factor+f.Offset, f.Hi*f.Factor+f.Offset
				r := &list[f.Index]
				r[0], r[1] = max(r[0], min(a, b)), min(r[1], max(a, b))
			}
		}
	}

	return list
}
