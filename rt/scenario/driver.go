package scenario

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"time"

	"lockstep/io/sigmap"
	"lockstep/io/yamlfile"
	"lockstep/model/cycle"
	"lockstep/model/driver"
	"lockstep/model/units"
	"lockstep/rt"
	"lockstep/rt/bench"
	"lockstep/rt/fault"
	"lockstep/rt/report"
)

// driverSetting is a key of the section driver with a number.
type driverSetting struct {
	key, unit string
	at        func(d *driverSection) *float64
}

// driverSettings lists the keys of the section driver with a number. SCENARIO.md describes them.
var driverSettings = []driverSetting{
	{"preview", "s", func(d *driverSection) *float64 { return &d.plan.Settings.Preview }},
	{"proportional", "1/s", func(d *driverSection) *float64 { return &d.plan.Settings.Proportional }},
	{"integral", "1/s2", func(d *driverSection) *float64 { return &d.plan.Settings.Integral }},
	{"acceleration", "m/s2", func(d *driverSection) *float64 { return &d.plan.Settings.Acceleration }},
	{"knee", "m/s", func(d *driverSection) *float64 { return &d.plan.Settings.Knee }},
	{"deceleration", "m/s2", func(d *driverSection) *float64 { return &d.plan.Settings.Deceleration }},
	{"hold", "%", func(d *driverSection) *float64 { return &d.plan.Settings.Hold }},
	{"mass", "kg", func(d *driverSection) *float64 { return &d.vehicle.Mass }},
	{"f0", "N", func(d *driverSection) *float64 { return &d.vehicle.F0 }},
	{"f1", "N.s/m", func(d *driverSection) *float64 { return &d.vehicle.F1 }},
	{"f2", "N.s2/m2", func(d *driverSection) *float64 { return &d.vehicle.F2 }},
}

// driverSection is the section driver of a scenario, resolved.
type driverSection struct {
	plan    fault.Cycle
	cycle   *cycle.Cycle
	vehicle cycle.Vehicle
	rated   bool // the section has a mass, and so the energy figures of SAE J2951
	judges  bool // an element of the plant drives: the section only judges
}

// readDriver reads the section driver; nil: there is none. c is its cycle; nil: it is read, too.
func readDriver(r *yamlfile.Reader, f yamlfile.Field, c *cycle.Cycle, s *Scenario, h *bench.Handover) *driverSection {
	if f.IsMissing() {
		return nil
	}
	keys := []string{"lane", "cycle", "phases", "speed", "pedals", "accelerator", "brake", "gear"}
	for _, k := range driverSettings {
		keys = append(keys, k.key)
	}
	given := r.Section(f, "driver", keys...)
	if lane, ok := given["lane"]; ok {
		if s.Plan.Lane = readLane(r, lane, s, h); len(given) == 1 {
			return nil
		}
	}
	d := &driverSection{plan: fault.Cycle{Settings: driver.Default(float64(h.Tables.PeriodNs) / 1e9)}}
	if given["cycle"].IsMissing() {
		r.Fail(f, "driver: the cycle is missing (cycle: %s)", cycle.Names()[0])
	}
	if c == nil {
		c = loadCycle(r, given["cycle"])
	}
	d.setCycle(r, c, given["phases"])
	d.readSettings(r, given)
	d.readPedals(r, given)
	d.readPorts(r, f, given, s, h)
	return d
}

// readPedals reads whether the driver of the section has pedals.
func (d *driverSection) readPedals(r *yamlfile.Reader, given map[string]yamlfile.Field) {
	f, ok := given["pedals"]
	if !ok {
		return
	}
	if text := r.Scalar(f, "driver: pedals").Text; text != "none" {
		r.Fail(f, "driver: pedals: %q is not none, which says that an element of the plant drives and the cycle is only judged", text)
	}
	d.judges = true
	for _, key := range []string{"accelerator", "brake", "gear", "preview", "proportional", "integral", "acceleration", "knee", "deceleration", "hold"} {
		if g, ok := given[key]; ok {
			r.FailAt(g.KeyAt, "driver: %s has no effect with pedals: none", key)
		}
	}
}

// loadCycle returns an embedded cycle, or reads a file, which is searched first beside the scenario.
func loadCycle(r *yamlfile.Reader, f yamlfile.Field) *cycle.Cycle {
	c, err := cycle.LoadFor(r.File, r.Scalar(f, "driver: cycle").Text)
	if err != nil {
		r.Fail(f, "driver: %w", err)
	}
	return c
}

// setCycle sets the cycle, which the number of phases may end earlier.
func (d *driverSection) setCycle(r *yamlfile.Reader, c *cycle.Cycle, phases yamlfile.Field) {
	if !phases.IsMissing() {
		c = c.First(r.Integer(phases, "driver: phases", 1, len(c.Phases)))
	}
	d.cycle, d.plan.Target = c, sigmap.Waveform{At: c.Target.At, Value: c.Target.Value}
	for _, p := range c.Phases {
		if p.Parked {
			d.plan.Parked = append(d.plan.Parked, [2]int64{p.Begin, p.End})
		}
	}
}

// readSettings reads the numbers of the driver and of the vehicle.
func (d *driverSection) readSettings(r *yamlfile.Reader, given map[string]yamlfile.Field) {
	for _, k := range driverSettings {
		if f, ok := given[k.key]; ok {
			what := "driver: " + k.key
			*k.at(d) = bench.ReadQuantity(r, f, r.Scalar(f, what).Text, units.Want(k.unit), what)
			if err := d.plan.Settings.Check(); err != nil { // the defaults are good
				r.Fail(f, "%w", err) // the error begins with "driver: "
			}
		}
	}
	d.plan.Preview = int64(math.Round(d.plan.Settings.Preview * 1e9))
	if _, d.rated = given["mass"]; d.rated {
		if err := d.vehicle.Check(); err != nil {
			r.Fail(given["mass"], "driver: %w", err)
		}
	}
	for _, key := range []string{"f0", "f1", "f2"} {
		if f, ok := given[key]; ok && !d.rated {
			r.Fail(f, "driver: %s has no effect without the mass of the vehicle (mass: 1500 kg)", key)
		}
	}
}

// readPorts binds the driver to the ports of the plant.
func (d *driverSection) readPorts(r *yamlfile.Reader, section yamlfile.Field, given map[string]yamlfile.Field, s *Scenario, h *bench.Handover) {
	// name returns the port of a key: the given one, or the first of the standard names that the plant has.
	name := func(key string, ports []units.Port, standard ...string) (string, yamlfile.Field) {
		if f, ok := given[key]; ok {
			return r.Scalar(f, "driver: "+key).Text, f
		}
		for _, n := range standard {
			if bench.PortIndex(ports, n) >= 0 {
				return n, section
			}
		}
		return standard[0], section
	}
	speed, at := name("speed", h.Tables.Outputs, "v")
	if d.plan.Speed = bench.PortIndex(h.Tables.Outputs, speed); d.plan.Speed < 0 {
		r.Fail(at, "driver: speed: %w", unknownName("output", speed, bench.PortNames(h.Tables.Outputs)))
	}
	if unit := h.Tables.Outputs[d.plan.Speed].Unit; unit != "m/s" {
		r.Fail(at, "driver: speed: output %s has the unit %s: name an output of a speed in m/s", speed, unit)
	}
	if d.judges {
		return
	}

	input := func(key, other string) (int, yamlfile.Field) {
		port, at := name(key, h.Tables.Inputs, key, other)
		i := bench.PortIndex(h.Tables.Inputs, port)
		by := drivenBy(h, port)
		switch {
		case i < 0:
			r.Fail(at, "driver: %s: %w", key, unknownName("input", port, bench.PortNames(h.Tables.Inputs)))
		case by != "":
			r.Fail(at, "driver: %s: %s drives the input %s", key, by, port)
		case slices.ContainsFunc(s.stimuli, func(t *resolvedTarget) bool { return t.Where == fault.Input && t.Input == i }):
			r.Fail(at, "driver: %s: input %s has a stimulus: leave out the stimulus or the driver's key", key, port)
		}
		return i, at
	}
	pedal := func(key, other string) fault.Pedal {
		i, at := input(key, other)
		p := &h.Tables.Inputs[i]
		if math.IsInf(p.Min, 0) || math.IsInf(p.Max, 0) {
			r.Fail(at, "driver: %s: input %s has no range: give it min and max in the plant file", key, p.Name)
		}
		return fault.Pedal{Input: i, Low: p.Min, High: p.Max}
	}
	d.plan.Accelerator, d.plan.Brake = pedal("accelerator", "throttle"), pedal("brake", "brake.pressure")
	d.plan.Lever = -1
	if gear, _ := name("gear", h.Tables.Inputs, "gear", "lever"); !given["gear"].IsMissing() || bench.PortIndex(h.Tables.Inputs, gear) >= 0 {
		i, at := input("gear", "lever")
		if p := &h.Tables.Inputs[i]; !(p.Min <= 0 && p.Max >= float64(driver.Drive)) {
			r.Fail(at, "driver: gear: the range of input %s is not 0 to 3: 0 park, 1 reverse, 2 neutral, 3 drive", p.Name)
		}
		d.plan.Lever = i
	}
	if p := &d.plan; p.Accelerator.Input == p.Brake.Input || p.Lever == p.Accelerator.Input || p.Lever == p.Brake.Input {
		r.Fail(section, "driver: the pedals and the lever need inputs of their own")
	}
	if s.Plan.Lane.Drives(d.plan.Accelerator.Input) || s.Plan.Lane.Drives(d.plan.Brake.Input) || s.Plan.Lane.Drives(d.plan.Lever) {
		r.Fail(given["lane"], "driver: lane: steer: a pedal or the lever uses the input, too")
	}
}

// DriveCycle applies the scenario that only drives a cycle, an embedded one or FILE.csv, with the ports of their
// standard names.
func DriveCycle(h *bench.Handover, name string) (*Scenario, error) {
	if _, err := cycle.Load(name); err != nil {
		return nil, err
	}
	title := []rune(filepath.Base(name))
	s, err := Parse("-cycle", fmt.Appendf(nil, "scenario: %q\ndriver: {cycle: %q}\n", string(title[:min(len(title), 64)]), name), h)
	if err == nil {
		Apply(h, s)
	}
	return s, err
}

// ticks returns the length of the cycle in ticks.
func (d *driverSection) ticks(h *bench.Handover) int64 {
	return (d.cycle.End() + h.Tables.PeriodNs - 1) / h.Tables.PeriodNs
}

// expect adds the expectations of the cycle: each of its parts is driven within the band.
func (d *driverSection) expect(s *Scenario) {
	c := d.cycle
	for _, part := range c.Parts() {
		name := c.Name
		if part.Name != "" {
			name += " " + part.Name
		}
		s.Expect = append(s.Expect, Expectation{
			Name: yamlfile.Scalar{Text: name},
			Want: fmt.Sprintf("the target within %s in %s", c.Unit.Difference().Format(c.Band.Speed), seconds.Format(c.Band.Time.Seconds())),
			newEvaluator: func() evaluator {
				var vehicle *cycle.Vehicle
				if d.rated {
					vehicle = &d.vehicle
				}
				return &cycleEvaluator{driverSection: d, part: part, following: cycle.Follow(c, part, vehicle)}
			},
		})
	}
}

// cycleEvaluator expects a part of a cycle to be driven within its band.
type cycleEvaluator struct {
	*driverSection
	part      cycle.Phase
	following *cycle.Following
}

func (c *cycleEvaluator) addEntry(j *Judge, e *rt.Entry) {
	if e.Kind == rt.KindStep {
		c.following.Add(e.Tick*j.period, e.Y[c.plan.Speed])
	}
}

func (c *cycleEvaluator) finish(j *Judge, f *report.Finding) {
	r := c.following.Result()
	f.Held, f.Time = r.Passed(), float64(c.part.End-c.part.Begin)/1e9
	if f.Seen = c.format(&r); !r.Complete {
		seen := f.Seen
		j.leaveOpen(f)
		f.Skipped = f.Skipped && r.Violations == 0
		f.Seen += ", the part ends at " + seconds.Format(float64(c.part.End)/1e9) + "; " + seen
	}
}

func (c *cycleEvaluator) seenSoFar(*Judge) string {
	r := c.following.Result()
	if r.Complete || r.Violations > 0 { // decided
		return ""
	}
	return c.format(&r) + " so far"
}

// format describes a result.
func (c *cycleEvaluator) format(r *cycle.Result) string {
	unit := c.cycle.Unit.Difference()
	speed := func(v float64) string { return units.WithUnit(fmt.Sprintf("%.3g", unit.FromSI(v)), unit.Spelled) }
	text := counted(r.Violations, "violation")
	if r.Violations > 0 {
		text += fmt.Sprintf(", the first at %.9g s", r.First.Seconds())
	}
	if r.Deviations > 0 {
		text += fmt.Sprintf("; %s, the longest %s, the largest %s beyond the band at %.9g s",
			counted(r.Deviations, "deviation"), seconds.Format(r.Longest.Round(time.Millisecond).Seconds()), speed(r.Largest), r.LargestAt.Seconds())
	}
	if !r.Complete {
		return text
	}
	text += "; RMSSE " + speed(r.RMSSE)
	for _, figure := range []struct {
		name  string
		value float64
	}{{"IWR", r.IWR}, {"ASCR", r.ASCR}, {"DR", r.DR}, {"ER", r.ER}, {"EER", r.EER}} {
		if !math.IsNaN(figure.value) && !math.IsInf(figure.value, 0) { // a target of zero has none, and ER and EER need a vehicle
			text += fmt.Sprintf(", %s %.2f %%", figure.name, figure.value)
		}
	}
	return text
}

// counted formats a number of things.
func counted(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
