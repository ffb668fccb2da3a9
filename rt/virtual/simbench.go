package virtual

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"lockstep/io/can"
	"lockstep/model/kernel"
	"lockstep/rt"
	"lockstep/rt/bench"
	"lockstep/rt/ecu"
	"lockstep/rt/host"
	"lockstep/rt/recorder"
	"lockstep/rt/report"
	"lockstep/rt/scenario"
	"lockstep/sched"
)

// virtualBench is a bench in virtual time: the loop of a run on a grid that passes at
// once, its buses as pairs, and its virtual control unit at the other end of one. All
// have their turns in one goroutine, so that the same files give the same record, but
// for the stamps of its header.
//
// Before grid point k the unit does what is due until then; what it sends is read at k.
// What the loop sends at k the unit hears at k, before it does what is due at k. A log
// that stands in for a bus is played likewise. A bus with nobody at its other end
// carries nothing in. A plant with a scenario is a bench without buses.
type virtualBench struct {
	*simulation
	view     report.View
	scenario scenario.Run
	record   *recorder.Recorder // nil: nothing is recorded or judged
	players  []*recorder.Player // of the buses that are logs
	clock    *sched.Virtual
	buses    []*can.Bus // the loop's ends
	ends     []*can.Bus // the other ones
	unit     *ecu.Stepped
	said     host.Capture // by the unit
	bus      int          // the unit's
	frame    [128]byte

	each func(k int64, y, u []float64) bool // takes each grid point, and says whether to go on; nil: nobody does
}

// unitEnd writes frames to the unit's bus; a full one refuses, as a controller does.
type unitEnd struct{ fd int }

func (e unitEnd) Write(b []byte) (int, error) {
	return unix.SendmsgN(e.fd, b, nil, nil, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
}

// defaultLength is how long a bench runs in virtual time that nobody says more about.
const defaultLength = 10 * time.Second

// runVirtual runs the bench that w.Plant names.
func runVirtual(w *simulation) (*report.Report, error) {
	v := &virtualBench{simulation: w}
	defer v.close()
	if err := v.prepare(); err != nil {
		return nil, err
	}
	w.attend()
	return v.conclude(v.run())
}

// prepare does all that may fail before the first tick; the files are the last.
func (v *virtualBench) prepare() (err error) {
	b, err := v.bench()
	if err != nil {
		return err
	}
	h, err := bench.Prepare(b)
	if err != nil {
		return err
	}
	v.equip(b, h)
	if v.scenario, err = scenario.Open(h, v.Scenario, v.JUnit); err != nil {
		return err
	}
	if v.sys, err = bench.Assemble(b); err != nil {
		return err
	}
	if err := v.begin(); err != nil {
		return err
	}
	v.progress = progress{to: v.Progress, length: time.Duration(h.Loop.Ticks) * v.Step}
	if err := v.apart(); err != nil {
		return err
	}
	if err := v.startRecorder(); err != nil {
		return err
	}
	return v.create()
}

// equip takes what runs.
func (v *virtualBench) equip(b *bench.Bench, h *bench.Handover) {
	v.Step, v.tables = time.Duration(b.PeriodNs), h.Tables
	h.Loop.Virtual, h.Loop.Ticks = true, int64(v.For/v.Step)
	v.view = report.View{Handover: h, Page: v.page}
}

// startRecorder opens the record, and begins to judge.
func (v *virtualBench) startRecorder() (err error) {
	v.record, err = recorder.New(v.view, recorder.Options{Path: v.Record, Scenario: v.scenario.Scenario})
	return err
}

// begin makes buses, unit and loop. The scenario has said how long the run is, if one does.
func (v *virtualBench) begin() (err error) {
	h := v.view.Handover
	if h.Loop.Ticks == 0 && v.For == 0 { // nobody says
		h.Loop.Ticks = int64(defaultLength / v.Step)
	}
	if h.Loop.Ticks < 1 {
		return fmt.Errorf("sim: %v is shorter than the period, %v", v.For, v.Step)
	}
	if err := v.connect(); err != nil {
		return err
	}
	v.kernel, v.clock = kernel.New(h.Tables), sched.NewVirtual(v.Step)
	v.loop, err = rt.New(h.Loop, v.kernel, v.buses, h.Maps, v.clock, v.page)
	return err
}

// bench is what runs: the bench, or one without a bus around a plant.
func (v *virtualBench) bench() (*bench.Bench, error) {
	file, data, err := bench.ReadAny(v.Plant)
	if err != nil {
		return nil, err
	}
	if bench.FileKind(file, data) == "bench" {
		if err := v.refuse("a plant", "a bench", []setting{
			{"-in", v.In, "its inputs come from its buses and from a scenario's stimuli (-scenario FILE)"},
			{"-scheme", v.Scheme, "its file says it (scheme: papers)"},
			{"-form", v.Form, "it has its own"},
			{"-step", stepText(v.Step), "its file says it (period: 5 ms)"},
		}); err != nil {
			return nil, err
		}
		return bench.Load(v.Plant)
	}
	if err := v.refuse("a plant without a scenario", "a plant with one", []setting{
		{"-in", v.In, "its inputs follow the scenario's stimuli"},
		{"-form", v.Form, "its form is projected"},
	}); err != nil {
		return nil, err
	}
	if v.Record != "" {
		return nil, fmt.Errorf("sim: -record %s is for a bench; %s is a plant", v.Record, v.Plant)
	}
	return bench.FromPlant(v.Plant, file, v.Step, v.Scheme), nil
}

// setting is a flag that does not fit, and what holds instead.
type setting struct{ flag, text, instead string }

// refuse says which of the flags, for one thing, does not fit the other.
func (v *virtualBench) refuse(one, other string, list []setting) error {
	for _, f := range list {
		if f.text != "" {
			return fmt.Errorf("sim: %s %s is for %s; %s is %s, and %s", f.flag, f.text, one, v.Plant, other, f.instead)
		}
	}
	return nil
}

func stepText(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return d.String()
}

// connect makes the buses, and puts the unit at the end of its own.
func (v *virtualBench) connect() error {
	b := v.view.Handover.Bench
	v.bus = max(0, slices.IndexFunc(b.Buses, func(b bench.Bus) bool { return b.Interface.Text == bench.PairInterface }))
	for i, bus := range b.Buses {
		if strings.HasPrefix(bus.Interface.Text, bench.LogPrefix) {
			p, target, err := recorder.OpenPlayer(bus.Interface.Text, v.view.Handover.Maps[i].Filters())
			if err == nil {
				v.players = append(v.players, p)
				err = v.join(target, nil)
			}
			if err != nil {
				return err
			}
			continue
		}
		target, end, err := can.Pair()
		if err == nil {
			err = v.join(target, end)
		}
		if err != nil {
			return err
		}
	}
	if b.Unit.Text == "" || v.ends[v.bus] == nil { // or a log is there
		return nil
	}
	var err error
	v.unit, err = ecu.NewStepped(b.Unit.Text, unitEnd{v.ends[v.bus].Fd()}, &v.said, b.Settings...)
	return err
}

// join takes the two ends of a bus; end is nil where somebody else has it.
func (v *virtualBench) join(target, end *os.File) error {
	bus, err := can.Inherit(target)
	if err != nil {
		return err
	}
	v.buses = append(v.buses, bus)
	var other *can.Bus
	if end != nil {
		if other, err = can.Inherit(end); err != nil {
			return err
		}
	}
	v.ends = append(v.ends, other)
	return nil
}

// run ticks until the run is over.
func (v *virtualBench) run() error {
	v.kernel.Output(v.loop.Y)
	v.point(0, v.loop.U)
	v.progress.start()
	v.page.State.Store(uint64(rt.Running))
	defer v.progress.end()
	defer v.page.State.Store(uint64(rt.Ended))
	turn := max(1, int64(recorder.FlushInterval/v.Step)) // the ring holds far more
	for k := int64(1); !v.loop.Over(); k++ {
		due := time.Duration(k) * v.Step
		if v.stopped == nil && v.signalled() {
			v.page.Stop.Store(rt.StopPlanned)
		}
		if err := v.others(due - 1); err != nil {
			return err
		}
		v.loop.Tick(v.clock.Wait())
		v.hear(due)
		if ticks := int64(v.page.Ticks.Load()); ticks == k {
			v.point(k, v.loop.Last()) // of the step that ends there
			v.list()
		}
		if v.record != nil && k%turn == 0 {
			v.record.Write(time.Now())
		}
		v.progress.show(int64(due))
	}
	return nil
}

// point shows grid point k, with the inputs u.
func (v *virtualBench) point(k int64, u []float64) {
	if k%int64(v.Every) == 0 {
		v.row(k*int64(v.Step), u)
	}
	if v.each != nil && !v.each(k, v.loop.Y, u) {
		v.page.Stop.Store(rt.StopPlanned)
	}
}

// others lets the unit and the logs do what is due until now.
func (v *virtualBench) others(now time.Duration) error {
	for _, p := range v.players {
		p.PlayUntil(int64(now))
	}
	if v.unit == nil {
		return nil
	}
	return v.unit.Tick(now)
}

// hear tells the unit what the loop has sent; what nobody hears is thrown away.
func (v *virtualBench) hear(now time.Duration) {
	for i, end := range v.ends {
		if end == nil {
			continue // a player reads it
		}
		for {
			n, _, err := unix.Recvfrom(end.Fd(), v.frame[:], unix.MSG_DONTWAIT)
			if err != nil || n == 0 {
				break
			}
			if v.unit != nil && i == v.bus {
				v.unit.Hear(v.frame[:n], now)
			}
		}
	}
}

// conclude completes the files and reports; why is what ended the run beside the loop.
func (v *virtualBench) conclude(why error) (*report.Report, error) {
	report, err := v.settle(why)
	if report.Trouble != "" {
		err = errors.Join(fmt.Errorf("sim: record %s %w: %s", v.Record, recorder.ErrIncomplete, report.Trouble), err)
	}
	if report.Trial != nil {
		err = errors.Join(report.Trial.Failed(), err)
	}
	report, unclean := v.finish(report)
	if err = errors.Join(unclean, err); err != nil {
		return report, &host.Exit{Code: 1, Err: err}
	}
	return report, nil
}

// settle reports, with the verdict of the scenario.
func (v *virtualBench) settle(why error) (report *report.Report, err error) {
	report = v.report(why)
	if c := v.record; c != nil {
		c.Write(time.Now())
		c.Conclude()
		report.Record, report.Trouble = v.Record, c.Incomplete()
		err = v.scenario.Report(report, c.Findings())
	}
	return report, err
}

// report says what the page, the unit and the logs say at the end.
func (v *virtualBench) report(err error) *report.Report {
	r, b := v.view, v.view.Handover.Bench
	rep := report.FromPage(v.page, r.Handover)
	rep.Usage = nil // the loop was not alone in its process
	if len(b.Buses) > 0 {
		rep.Bench, rep.Virtual, rep.Overrun = b.Name, true, b.Overrun.String()
	}
	rep.Silent, rep.Messages, rep.Dropped = r.Silent(), report.ReceivedMessages(r.Page, r.Handover), report.DroppedFrames(r.Page, r.Handover)
	rep.Safe, rep.SafeSince = r.Safe()
	stop := ""
	if v.stopped != nil {
		stop = strings.ToLower(v.stopped.String())
	}
	rep.Ended, rep.Clean = r.Ended(stop, "")
	switch {
	case err != nil:
		rep.Ended, rep.Clean = fmt.Sprintf("control unit: %v", err), false
	case v.unit != nil:
		rep.Unit = v.unit.Close()
	case len(v.players) == 0 && len(b.Buses) > 0:
		rep.Unit = "none: nothing came in"
	}
	for _, p := range v.players {
		rep.Played = append(rep.Played, p.Report())
	}
	return rep
}

// close gives up the buses.
func (v *virtualBench) close() {
	for _, b := range slices.Concat(v.buses, v.ends) {
		if b != nil {
			b.Close()
		}
	}
	for _, p := range v.players {
		p.Log.Close()
		p.Bus.Close()
	}
}
