package bench

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	"lockstep/hil_test/ecu"
	"lockstep/io/can"
	"lockstep/model/kernel"
	"lockstep/rt"
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
	r     *run
	clock *sched.Virtual
	buses []*can.Bus // the loop's ends
	ends  []*can.Bus // the other ones
	unit  *ecu.Stepped
	said  capture // by the unit
	bus   int     // the unit's
	frame [128]byte

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
func runVirtual(w *simulation) (*Report, error) {
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
	h, err := Prepare(b)
	if err != nil {
		return err
	}
	v.equip(b, h)
	if err := v.r.startScenario(); err != nil {
		return err
	}
	if v.sys, err = assemblePlant(b); err != nil {
		return err
	}
	if err := v.begin(); err != nil {
		return err
	}
	v.progress = progress{to: v.Progress, length: time.Duration(h.Loop.Ticks) * v.Step}
	if err := v.apart(); err != nil {
		return err
	}
	if err := v.r.startRecord(); err != nil {
		return err
	}
	return v.create()
}

// equip takes what runs.
func (v *virtualBench) equip(b *Bench, h *Handover) {
	v.Step, v.tables = time.Duration(b.PeriodNs), h.Tables
	h.Loop.Virtual, h.Loop.Ticks = true, int64(v.For/v.Step)
	v.r = &run{bench: b, h: h, page: v.page, options: Options{Record: v.Record, Scenario: v.Scenario, JUnit: v.JUnit}, unitDie: -1, restore: func() {}}
}

// begin makes buses, unit and loop. The scenario has said how long the run is, if one does.
func (v *virtualBench) begin() (err error) {
	h := v.r.h
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
func (v *virtualBench) bench() (*Bench, error) {
	file, data, err := ReadAny(v.Plant)
	if err != nil {
		return nil, err
	}
	if kind(file, data) == "bench" {
		if err := v.refuse("a plant", "a bench", []setting{
			{"-in", v.In, "its inputs come from its buses and from a scenario's stimuli (-scenario FILE)"},
			{"-scheme", v.Scheme, "its file says it (scheme: papers)"},
			{"-form", v.Form, "it has its own"},
			{"-step", stepText(v.Step), "its file says it (period: 5 ms)"},
		}); err != nil {
			return nil, err
		}
		return Load(v.Plant)
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
	return plantBench(v.Plant, file, v.Step, v.Scheme), nil
}

// plantBench is the bench without buses that a plant with a scenario is; file is how
// ReadAny calls it.
func plantBench(name, file string, step time.Duration, scheme string) *Bench {
	b := &Bench{
		File: file, Name: name, Plant: Word{Text: name, Line: 1, Col: 1}, Scheme: scheme, Timer: sched.Timerfd, CPU: -1, Priority: 80,
		PeriodNs: int64(cmp.Or(step, plantStep)),
	}
	if _, err := os.Stat(name); err == nil {
		b.dir, b.Plant.Text = filepath.Dir(name), filepath.Base(name)
	}
	return b
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
	b := v.r.bench
	v.bus = max(0, slices.IndexFunc(b.Buses, func(b Bus) bool { return b.Interface.Text == pair }))
	for i, bus := range b.Buses {
		if strings.HasPrefix(bus.Interface.Text, fromFile) {
			p, target, err := openPlayer(bus.Interface.Text, v.r.h.Maps[i].Filters())
			if err == nil {
				v.r.players = append(v.r.players, p)
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
	turn := max(1, int64(flushing/v.Step)) // the ring holds far more
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
		if v.r.record != nil && k%turn == 0 {
			v.r.record.turn(time.Now())
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
	for _, p := range v.r.players {
		p.until(int64(now))
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
func (v *virtualBench) conclude(why error) (*Report, error) {
	report, err := v.settle(why)
	if report.Trouble != "" {
		err = errors.Join(fmt.Errorf("sim: record %s is incomplete: %s", v.Record, report.Trouble), err)
	}
	if report.Trial != nil {
		err = errors.Join(report.Trial.failed(), err)
	}
	report, unclean := v.finish(report)
	if err = errors.Join(unclean, err); err != nil {
		return report, &Exit{1, err}
	}
	return report, nil
}

// settle reports, with the verdict of the scenario.
func (v *virtualBench) settle(why error) (report *Report, err error) {
	report = v.report(why)
	if c := v.r.record; c != nil {
		c.turn(time.Now())
		c.conclude()
		report.Record, report.Trouble = v.Record, c.trouble()
		err = v.r.tried(report)
	}
	return report, err
}

// report says what the page, the unit and the logs say at the end.
func (v *virtualBench) report(err error) *Report {
	r := v.r
	report := pageReport(v.page, r.h)
	report.Usage = nil // the loop was not alone in its process
	if len(r.bench.Buses) > 0 {
		report.Bench, report.Virtual, report.Overrun = r.bench.Name, true, r.bench.Overrun.String()
	}
	report.Silent, report.Messages, report.Dropped = r.silent(), received(r.page, r.h), drops(r.page, r.h)
	report.Safe, report.SafeSince = r.safe()
	if v.stopped != nil {
		r.stop = strings.ToLower(v.stopped.String())
	}
	report.Ended, report.Clean = r.ended()
	switch {
	case err != nil:
		report.Ended, report.Clean = fmt.Sprintf("control unit: %v", err), false
	case v.unit != nil:
		report.Unit = v.unit.Close()
	case len(r.players) == 0 && len(r.bench.Buses) > 0:
		report.Unit = "none: nothing came in"
	}
	for _, p := range r.players {
		report.Played = append(report.Played, p.says())
	}
	return report
}

// close gives up the buses.
func (v *virtualBench) close() {
	for _, b := range slices.Concat(v.buses, v.ends) {
		if b != nil {
			b.Close()
		}
	}
	if v.r == nil {
		return
	}
	for _, p := range v.r.players {
		p.from.Close()
		p.bus.Close()
	}
}
