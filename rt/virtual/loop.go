package virtual

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"lockstep/io/can"
	"lockstep/model/kernel"
	"lockstep/rt"
	"lockstep/rt/bench"
	"lockstep/rt/checkpoint"
	"lockstep/rt/diagnosis"
	"lockstep/rt/fault"
	"lockstep/rt/host"
	"lockstep/rt/port"
	"lockstep/rt/progress"
	"lockstep/rt/recorder"
	"lockstep/rt/report"
	"lockstep/rt/tableset"
	"lockstep/sched"
)

// begin creates the buses, the control unit and the loop. A scenario has set the
// length of the run by now.
func (w *simulation) begin() (err error) {
	h := w.view.Handover
	if h.Loop.Ticks == 0 && w.For == 0 && !w.Door {
		h.Loop.Ticks = int64(defaultLength / w.Step)
	}
	// A run with a door lasts until a client ends it. With -for below the period, Loop.Ticks has the length of the scenario.
	if h.Loop.Ticks < 1 && !(w.Door && w.For == 0) || w.For > 0 && w.For < w.Step {
		return fmt.Errorf("sim: %v is shorter than the period, %v", w.For, w.Step)
	}
	if err := w.makeBuses(); err != nil {
		return err
	}
	for i := range w.buses {
		var p *port.Port
		if port.IsNeeded(h, i) {
			if p, err = port.New(h, w.view.Status, i); err != nil {
				return err
			}
		}
		w.ports = append(w.ports, p)
	}
	if w.Door { // a replay of a record that starts later loads the state of the loop into a reloaded hand-over
		if h, err = h.Reload(); err != nil {
			return err
		}
	}
	w.kernel, w.clock = h.Plant(), sched.NewVirtual(w.Step)
	if w.Door || len(h.Loop.Faults.States) > 0 {
		w.kernel.ReserveSnapshots(fault.MaxSnapshots)
	}
	if err := w.makeTableSets(); err != nil {
		return err
	}
	w.loop, err = rt.New(h.Loop, w.kernel, w.buses, h.Maps, w.clock, w.view.Status)
	if err == nil && w.Door {
		w.view.Checkpoint = checkpoint.NewMemory()
		w.loop.UseCheckpoint(w.view.Checkpoint)
	}
	return err
}

// makeTableSets makes the memory in which the door offers tables of other parameters.
func (w *simulation) makeTableSets() error {
	if !w.Door || w.view.Handover.FixedParameters() != nil {
		return nil
	}
	file, sets, err := tableset.New(kernel.New(w.view.Handover.Tables), w.kernel.SetSize())
	if err != nil {
		return err
	}
	w.view.TableSets = sets
	w.kernel.UseSlots(sets.Kernels())
	return file.Close()
}

// createRecord creates the recorder, which also judges the scenario.
func (w *simulation) createRecord() (err error) {
	w.record, err = recorder.New(w.view, recorder.Options{Path: w.Record, Scenario: w.scenario.Scenario, Live: w.Door, Ports: w.sentByPorts, Diagnosis: w.outcomes})
	if err != nil {
		return err
	}
	for _, p := range w.ports {
		if p != nil {
			p.UseAgenda(w.record.Agenda())
		}
	}
	return nil
}

// outcomes returns the outcomes of the diagnosis since the last call.
func (w *simulation) outcomes() (list []diagnosis.Result) {
	for _, p := range w.ports {
		if p != nil {
			list = append(list, p.TakeOutcomes()...)
		}
	}
	return list
}

// makeBuses creates the buses and connects the control unit to its bus.
func (w *simulation) makeBuses() (err error) {
	for i, bus := range w.view.Handover.Bench.Buses {
		var target, end *os.File
		times := &can.Times{}
		if bench.IsLog(bus.Interface.Text) {
			var p *recorder.Player
			if p, target, err = recorder.OpenPlayer(bus.Interface.Text, w.view.Handover.LogFilters(i)); err == nil {
				w.players = append(w.players, p)
				p.Times = times
			}
		} else {
			target, end, err = can.Pair()
		}

		if err == nil {
			err = w.addBus(target, end, times)
		}
		if err != nil {
			return err
		}
	}

	return nil
}

// addBus adds the two ends of a bus; end is nil if a player has it.
func (w *simulation) addBus(target, end *os.File, times *can.Times) error {
	bus, err := can.Inherit(target)
	if err != nil {
		return err
	}
	bus.Times = times
	w.buses = append(w.buses, bus)
	var other *can.Bus
	if end != nil {
		if other, err = can.Inherit(end); err != nil {
			return err
		}
	}

	w.unitEnds = append(w.unitEnds, other)
	return nil
}

// run ticks until the end of the run. For a plant alone it counts the allocations of the steps.
func (w *simulation) run() error {
	w.beginProgress()
	defer w.Progress.End()
	if w.isPlantOnly() {
		defer w.measureUsage()()
	}
	if w.door == nil { // with a door the simulation waits for requests
		begun := time.Now()
		defer func() { w.real = time.Since(begun) }()
	}
	if err := w.startUnit(); err != nil {
		return err
	}
	w.kernel.Output(w.loop.Y)
	row := w.stimulus.apply(w.loop.U, 0, -1)
	w.handleGridPoint(0, w.loop.U) // with the inputs of the first step
	page := w.view.Status
	page.State.Store(uint64(rt.Running))
	defer page.State.Store(uint64(rt.Ended))

	flush := max(1, int64(recorder.FlushInterval/w.Step)) // ticks; the ring holds far more
	if w.record != nil && w.record.Agenda() != nil {
		flush = max(1, int64(recorder.DrainInterval/w.Step)) // what the scenario asks of a unit follows its causes
	}
	for k := int64(1); !w.loop.Over(); k++ {
		due := time.Duration(k) * w.Step
		if w.stopped == nil {
			if w.stopped = w.awaitTick(k); w.stopped != nil {
				page.Stop.Store(rt.StopPlanned)
			}
		}

		if err := w.advanceUnit(due); err != nil {
			return err
		}
		w.loop.Tick(w.clock.Wait())
		w.stepPorts(int64(due))
		if err := w.switchSupply(due); err != nil {
			return err
		}
		if err := w.deliverSent(due); err != nil {
			return err
		}
		u := w.loop.LastInputs() // of the step that ends at k
		if w.stimulus != nil {
			row = w.stimulus.apply(w.loop.U, int64(due), row)
			u = w.loop.U
		}

		if w.loop.Reached() == k {
			w.handleGridPoint(k, u)
			w.writeTransitions(k)
		}

		if w.record != nil && k%flush == 0 {
			w.record.Write(time.Now())
		}
		if k%progressTicks == 0 {
			w.Progress.Poll(k)
		}
	}

	return nil
}

// progressTicks is the number of ticks between two looks at the clock for the progress line.
const progressTicks = 64

// beginProgress begins the progress of the simulated time. It is polled: the allocations of the ticks are counted.
func (w *simulation) beginProgress() {
	w.Progress.Begin(progress.Work{
		Total: w.view.Handover.Loop.Ticks, Unit: "s", Scale: w.Step.Seconds(), Digits: 1, Polled: true,
	})
}

// awaitTick returns when tick k may be simulated, or the signal that ends the run. Only a run with a door
// waits.
func (w *simulation) awaitTick(k int64) os.Signal {
	if w.door != nil {
		return w.door.Stand(k, w.loop, func() { w.record.Write(time.Now()) }, w.stop)
	}
	select {
	case s := <-w.stop:
		return s
	default:
		return nil
	}
}

// measureUsage counts allocations and page faults until end is called.
func (w *simulation) measureUsage() (end func()) {
	var before, after runtime.MemStats
	var minor, major int64
	percent := debug.SetGCPercent(-1) // waits for a running collection
	end = func() {
		minorEnd, majorEnd := sched.Faults()
		runtime.ReadMemStats(&after)
		debug.SetGCPercent(percent)
		w.usage = &report.Usage{
			Allocs: after.Mallocs - before.Mallocs, GCCycles: uint64(after.NumGC - before.NumGC),
			MinorFaults: uint64(minorEnd - minor), MajorFaults: uint64(majorEnd - major),
		}
	}

	runtime.ReadMemStats(&before)
	runtime.ReadMemStats(&before) // the first call may allocate
	minor, major = sched.Faults()
	return end
}

// handleGridPoint writes grid point k with the inputs u, and passes it to each.
func (w *simulation) handleGridPoint(k int64, u []float64) {
	if k%int64(w.Every) == 0 {
		w.writePorts(k, u)
	}
	if w.each != nil && !w.each(k, w.loop.Y, u) {
		w.view.Status.Stop.Store(rt.StopPlanned)
	}
}

// writePorts writes a row of the ports at grid point k: the outputs and the inputs. Inputs that nothing
// drives have the values of the plant's own waveforms.
func (w *simulation) writePorts(k int64, u []float64) {
	if w.out.csvTable == nil {
		return
	}
	at := float64(w.kernel.Ticks()*int64(w.Step)) / 1e9
	for i, in := range w.sys.Inputs {
		w.inputs[i] = u[i]
		if !w.kernel.Driven(i) {
			w.inputs[i] = kernel.SourceAt(&w.sys.Signals[in.Signal].Source, at)
		}
	}
	w.out.row(float64(k*int64(w.Step))/1e9, w.loop.Y, w.inputs)
}

// writeTransitions writes the transitions of the step to grid point k.
func (w *simulation) writeTransitions(k int64) {
	if w.events == nil {
		return
	}
	takenBack := float64((k-w.kernel.Ticks())*int64(w.Step)) / 1e9 // by resets
	for _, e := range w.kernel.Events() {
		w.events.number(e.Time + takenBack)
		element, from, to := w.view.Handover.Tables.EventNames(e)
		for _, text := range []string{element, from, to} {
			w.events.text(text)
		}
		w.events.end()
	}
}

// advanceUnit advances the control unit and the played logs to just before a grid point.
func (w *simulation) advanceUnit(due time.Duration) error {
	for _, p := range w.players {
		p.PlayUntil(int64(due) - 1)
	}
	return w.unit.advance(due)
}

// stepPorts gives the ports the frames that the loop has passed on, and sends their own frames.
func (w *simulation) stepPorts(now int64) {
	for w.view.Status.NextPortFrame(&w.forwarded) {
		f := &w.forwarded.Frame
		switch p := w.ports[w.forwarded.Bus]; {
		case p == nil:
		case f.Flags&can.FlagLong != 0:
			p.SendLong(&w.forwarded, now)
		default:
			p.Receive(f, now, w.owns(int(w.forwarded.Bus)))
		}
	}
	for i, p := range w.ports {
		if p != nil {
			p.Poll(now)
			p.Flush(now, w.buses[i].Send)
		}
	}
}

// owns returns whether an address is one of the bench on a bus. Nobody else could have it.
func (w *simulation) owns(bus int) func(address uint8) bool {
	j := w.view.Handover.Bench.Buses[bus].J1939
	return func(address uint8) bool {
		return j != nil && slices.ContainsFunc(j.Addresses, func(a bench.Address) bool { return a.Address == address })
	}
}

// sentByPorts returns the frames that the ports have sent since the last call.
func (w *simulation) sentByPorts() (list []port.Sent) {
	for _, p := range w.ports {
		if p != nil {
			list = append(list, p.TakeSent()...)
		}
	}
	return list
}

// deliverSent passes the frames that the loop has sent to the control unit.
func (w *simulation) deliverSent(now time.Duration) error {
	for i, end := range w.unitEnds {
		if end == nil {
			continue // a player reads it
		}
		if err := w.unit.receive(i, end, now); err != nil {
			return err
		}
	}
	return nil
}

// finish completes the files and returns the report; why is an error of the control unit or nil.
func (w *simulation) finish(why error) (*report.Report, error) {
	report, err := w.finishReport(why)
	if w.door != nil {
		w.door.CloseListener()
		w.door.AnswerWaiting(report)
	}
	if report.RecordError != "" {
		err = errors.Join(fmt.Errorf("sim: %w", w.record.Err()), err)
	}
	if report.Scenario != nil {
		err = errors.Join(report.Scenario.Failed(), err)
	}
	signal.Stop(w.stop) // from now on a signal kills
	incomplete := errors.Join(w.out.close(), w.events.close())
	incomplete = errors.Join(incomplete, w.reportFile.Save(report.JSON))
	switch {
	case incomplete != nil && w.isPlantOnly():
		return nil, &host.Exit{Code: 1, Err: fmt.Errorf("sim: %w", incomplete)}
	case incomplete != nil:
		report, err = nil, errors.Join(fmt.Errorf("sim: %w", incomplete), err)
	case !report.Clean:
		err = errors.Join(fmt.Errorf("sim: %s, after %.6g s", report.Ended, report.SimTime), err)
	}

	if err != nil {
		return report, &host.Exit{Code: 1, Err: err}
	}
	return report, nil
}

// finishReport returns the report with the verdict of the scenario.
func (w *simulation) finishReport(why error) (report *report.Report, err error) {
	report = w.makeReport(why)
	if c := w.record; c != nil {
		c.Write(time.Now())
		c.End()
		c.Report(report)
		err = w.scenario.Report(report, c.Findings)
	}

	return report, err
}

// makeReport returns the report from the status block, the control unit and the players.
func (w *simulation) makeReport(err error) *report.Report {
	r, b := w.view, w.view.Handover.Bench
	rep := r.Report()
	rep.Usage, rep.Real = w.usage, w.real.Seconds()
	if len(b.Buses) > 0 {
		rep.Bench, rep.Virtual, rep.Overrun = b.Name, true, b.Overrun.String()
	}
	stop := ""
	if w.stopped != nil {
		stop = strings.ToLower(w.stopped.String())
	}
	rep.Ended, rep.Clean = r.Ended(stop, "")
	var unitErr error
	rep.Unit, unitErr = w.unit.close(err != nil)
	rep.UnitOutput = w.unit.output()
	if err != nil || unitErr != nil && rep.Clean {
		rep.Ended, rep.Clean = fmt.Sprintf("control unit: %v", cmp.Or(err, unitErr)), false
	}
	if err == nil && rep.Unit == "" && len(w.players) == 0 && len(b.Buses) > 0 {
		rep.Unit = "none: no frames received"
	}

	for i, p := range w.ports {
		if p != nil {
			if text := p.Counts().String(); text != "" {
				rep.Ports = append(rep.Ports, b.Buses[i].Name.Text+": "+text)
			}
		}
	}
	recorder.AddPlayed(w.players, rep)
	return rep
}

// close closes the buses and the players, and removes the files that are not complete.
func (w *simulation) close() {
	if w.door != nil {
		w.door.Close()
	}
	w.out.discard()
	w.events.discard()
	w.reportFile.Close()
	w.scenario.Close()
	_, _ = w.unit.close(true) // no effect after the end of a run
	for _, b := range slices.Concat(w.buses, w.unitEnds) {
		if b != nil {
			b.Close()
		}
	}

	for _, p := range w.players {
		p.Log.Close()
		p.Bus.Close()
	}
}
