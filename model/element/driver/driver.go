// Package driver owns the element type of a driver in the plant: it follows a drive cycle with the signals of two
// pedals and of a lever.
//
// Its law is that of lockstep/model/driver, written as programs of samples: one state each, set in the order of a
// step of that driver. A test holds both equal, bit for bit. The package does not judge how a cycle is driven:
// lockstep/model/cycle does, for scenarios.
package driver

import (
	"bytes"
	"fmt"
	"math"
	"strings"

	"lockstep/model"
	"lockstep/model/cycle"
	"lockstep/model/driver"
	"lockstep/model/element"
	"lockstep/model/law"
	"lockstep/model/network"
)

const defaultPeriod = 0.01 // s

// Kinds returns the element type.
func Kinds() []element.Kind {
	of := driver.Default(defaultPeriod)
	number := func(key, unit string, missing, least, most float64, meaning string) element.Parameter {
		bound := element.NotNegative
		if least > 0 {
			bound = element.Positive
		}
		return element.AsNumber.Of(key, unit, fmt.Sprint(missing), bound, meaning).Within(least, most)
	}
	const least = 1e-9
	return []element.Kind{{
		Name: "driver", Read: read,
		Signals: []element.Quantity{
			{Key: "accelerator", Unit: "1", Meaning: "pedal, 0 to 1"},
			{Key: "brake", Unit: "1", Meaning: "pedal, 0 to 1"},
			{Key: "lever", Unit: "1", Meaning: "0 park, 1 reverse, 2 neutral, 3 drive"},
			{Key: "target", Unit: "m/s", Meaning: "target speed"},
			{Key: "ahead", Unit: "m/s", Meaning: "target speed after the preview"},
		},
		Parameters: []element.Parameter{
			element.Word("cycle", "", "wltc-3b, ftp-75, nedc, hwfet or FILE.csv"),
			element.AsNumber.Of("phases", "1", "all", element.AtLeastOne, "number of its phases that are driven"),
			element.OverTime.Of("speed", "m/s", "", element.Any, "speed of the vehicle"),
			number("preview", "s", of.Preview, least, driver.MostPreview, "time by which the driver looks ahead"),
			number("proportional", "1/s", of.Proportional, 0, driver.Largest, "acceleration per speed error"),
			number("integral", "1/s2", of.Integral, 0, driver.Largest, "rate of acceleration per speed error"),
			number("acceleration", "m/s2", of.Acceleration, least, driver.Largest, "expected at full accelerator up to knee"),
			number("knee", "m/s", of.Knee, least, driver.Largest, "speed from which it falls with 1/speed"),
			number("deceleration", "m/s2", of.Deceleration, least, driver.Largest, "expected at full brake"),
			element.AsNumber.Of("hold", "1", fmt.Sprint(of.Hold), element.Share, "brake at standstill"),
			number("samplePeriod", "s", defaultPeriod, least, driver.MostPeriod,
				"time between two decisions, a multiple of the step"),
		},
	}}
}

// read reads a driver.
func read(e *element.Element) element.Declared {
	s := driver.Default(e.Number("samplePeriod"))
	s.Preview, s.Proportional, s.Integral = e.Number("preview"), e.Number("proportional"), e.Number("integral")
	s.Acceleration, s.Knee, s.Deceleration = e.Number("acceleration"), e.Number("knee"), e.Number("deceleration")
	s.Hold = e.Number("hold")
	speed := network.SignalOf(e.Waveform("speed"))
	target, ahead, parked := addTarget(e, readCycle(e), s.Preview)
	addLaw(e, &s, law.Names{"target": target, "ahead": ahead, "speed": speed, "parked": parked})
	return element.Declared{}
}

// readCycle reads the cycle, up to the end of the last phase that is driven.
func readCycle(e *element.Element) *cycle.Cycle {
	c, err := loadCycle(e, e.Word("cycle"))
	if err != nil {
		e.Refuse(e.Place("cycle"), "%v", err)
	}
	all := float64(len(c.Phases))
	n := e.NumberOr("phases", all)
	if n != math.Trunc(n) || n > all {
		e.Refuse(e.Place("phases"), "phases %g is no number of phases of %s, 1 to %g", n, c.Name, all)
	}
	return c.First(int(n))
}

// loadCycle returns the embedded cycle of a name, or reads that of a CSV file beside the plant file.
func loadCycle(e *element.Element, name string) (*cycle.Cycle, error) {
	if !strings.HasSuffix(name, ".csv") {
		return cycle.Load(name)
	}
	data, path, err := e.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("cycle: %w", err)
	}
	return cycle.Read(path, bytes.NewReader(data))
}

// addTarget makes the signals of a cycle: the target speed, that after the preview, s, and whether the lever belongs
// in park.
func addTarget(e *element.Element, c *cycle.Cycle, preview float64) (target, ahead, parked network.Form) {
	const second = 1e9 // ns
	var now, later model.Source
	for _, at := range c.Target.At {
		t := float64(at) / second
		now.T, later.T = append(now.T, t), append(later.T, t-preview)
	}
	now.V, later.V = c.Target.Value, c.Target.Value

	park := model.Source{Held: true, T: []float64{0}, V: []float64{0}}
	add := func(at int64, v float64) { park.T, park.V = append(park.T, float64(at)/second), append(park.V, v) }
	for _, p := range c.Phases {
		if p.Parked {
			add(p.Begin, 1)
			add(p.End, 0)
		}
	}
	add(c.End(), 1)

	i, j := e.Signals["target"], e.Signals["ahead"]
	e.Network.Signals[i].Source, e.Network.Signals[j].Source = now, later
	return network.SignalOf(i), network.SignalOf(j), network.SignalOf(e.AddSignal("parked", network.Signal{Source: park}))
}

// addLaw adds the states of a driver and their laws. names holds the target, the target ahead, the speed, and whether
// the lever belongs in park.
func addLaw(e *element.Element, s *driver.Settings, names law.Names) {
	index := map[string]int{}
	state := func(name, unit string, start float64) {
		index[name] = network.Add(&e.Network.States,
			network.State{Name: e.Name + "." + name, Unit: unit, At: e.At, Start: start})
		names[name] = network.StateOf(index[name])
	}
	state("accelerator", "1", 0)
	state("brake", "1", s.Hold)
	state("lever", "1", float64(driver.Park))
	state("holding", "1", 1)     // the driver holds the vehicle at standstill
	state("moved", "s", 0)       // time since the last movement of the lever
	state("wanted", "m/s2", 0)   // acceleration that the driver wants
	state("braking", "1", 1)     // the foot is at the brake
	state("integral", "m/s2", 0) // of the controller
	e.SignalForm("accelerator", network.StateOf(index["accelerator"]), 0, 1)
	e.SignalForm("brake", network.StateOf(index["brake"]), 0, 1)
	e.SignalForm("lever", network.StateOf(index["lever"]), float64(driver.Park), float64(driver.Drive))

	for name, v := range map[string]float64{
		"period": s.Period, "preview": s.Preview, "proportional": s.Proportional, "rate": s.Integral,
		"acceleration": s.Acceleration, "knee": s.Knee, "power": float64(s.Acceleration * s.Knee),
		"deceleration": s.Deceleration,
		"footChange":   s.FootChange, "step": float64(s.PedalRate * s.Period), "hold": s.Hold, "leverTime": s.LeverTime,
		"still": driver.Still,
	} {
		names[name] = v
	}
	for _, l := range laws {
		x := law.Formula(l.text, names)
		if i, ok := index[l.name]; ok {
			e.AddSample(network.Sample{Sample: model.Sample{State: i, Period: s.Period}, Value: law.Sampled(x)})
		} else {
			names[l.name] = x
		}
	}
}

// laws are the law of a driver in the order of driver.Step: a name that is a state is set, other names are parts of
// the formulas after them. A truth value is 0 or 1; where(x - y, 1, 0) is x >= y, and where(x - y, 0, 1) is x < y.
// A speed that is not finite has no law here: the kernel takes no such input, and ends at such a state.
var laws = []struct{ name, text string }{
	{"direction", "where(0.5 - abs(lever - 1), -1, 1)"}, // in reverse, backwards is forwards
	{"t", "direction*target"},
	{"a", "direction*ahead"},
	{"v", "direction*speed"},
	{"position", "where(parked - 0.5, 0, where(-1 - (2*sign(target) + sign(ahead)), 1, 3))"}, // wanted of the lever
	{"there", "where(-abs(position - lever), 1, 0)"},
	{"stops", "min(where(-t, 1, 0), where(-a, 1, 0), where(v - still, 0, 1))"},
	{"starts", "min(where(-a, 0, 1), there)"},
	{"holding", "where(holding - 0.5, 1 - starts, stops)"},

	// the lever moves at standstill and with the brake on
	{"waited", "where(moved + period - leverTime, 1, 0)"},
	{"ready", "min(where(abs(v) - still, 0, 1), where(brake - hold, 1, 0), waited)"},
	{"moved", "where(holding - 0.5, where(min(ready, 1 - there) - 0.5, 0, moved + period), moved)"},
	{"lever", "where(min(holding - 0.5, -moved), lever + sign(position - lever), lever)"},

	// the pedals
	{"wanted", "where(holding - 0.5, 0, (a - t)/preview + proportional*(t - v) + integral)"},
	{"foot", "where(braking - 0.5, where(footChange - wanted, 1, 0), where(wanted + footChange, 0, 1))"}, // at the brake
	{"braking", "where(holding - 0.5, 1, foot)"},
	{"full", "where(knee - v, acceleration, power/v)"}, // acceleration at full accelerator
	{"press", "where(braking - 0.5, 0, min(max(wanted/full, 0), 1))"},
	{"accelerator", "min(max(press, accelerator - step), accelerator + step)"},
	{"press", "where(holding - 0.5, hold, where(braking - 0.5, min(max(-wanted/deceleration, 0), 1), 0))"},
	{"press", "where(-accelerator, press, min(press, brake))"},
	{"brake", "min(max(press, brake - step), brake + step)"},

	// anti-windup: the integrator stands while its error asks for more than a pedal can give
	{"over", "min(where(wanted - full, 1, 0), where(v - t, 0, 1))"},
	{"under", "min(where(-deceleration - wanted, 1, 0), where(t - v, 0, 1))"},
	{"next", "min(max(integral + rate*(t - v)*period, -acceleration), acceleration)"},
	{"integral", "where(holding - 0.5, 0, where(max(over, under) - 0.5, integral, next))"},
}
