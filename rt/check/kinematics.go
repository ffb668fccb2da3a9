package check

import (
	"cmp"
	"fmt"
	"math"

	"lockstep/model/assemble"
	"lockstep/model/kernel"
	"lockstep/model/network"
	"lockstep/model/units"
)

// linearTime is the time of the plant's own waveforms in which check looks for the largest angle of a body, s.
const linearTime = 5.0

// linearError is the share of a lever by which linear kinematics may be off without a warning.
const linearError = 1e-6

// linearBodies warns of bodies whose points are linear in an angle, where the angle at the start or under the plant's
// own waveforms is so large that a lever is off by more than linearError. It names the body that turns most, and counts
// the others: a train has two frames per car.
func (c *Check) linearBodies(p *checkedPlant) error {
	list := p.plant.Linear
	if len(list) == 0 || p.tables.Partition != nil { // the error of a step in two parts is larger
		return nil
	}
	first := len(p.plant.Outputs)
	for _, b := range list {
		p.plant.Outputs = append(p.plant.Outputs, network.Output{At: b.At,
			Port: units.Port{Name: b.Name + ".turning", Unit: "rad/s"}, Form: network.RowOf(b.Node).Speeds(1)})
	}
	sys, err := assemble.System(p.plant)
	p.plant.Outputs = p.plant.Outputs[:first]
	if err != nil {
		return err
	}
	t, err := kernel.Prepare(sys, kernel.Options{Period: p.period(), Scheme: p.tables.Scheme, Form: p.tables.Form})
	if err != nil {
		return fmt.Errorf("%s: %w", p.file, err)
	}

	k, y, u := kernel.New(t), make([]float64, len(t.Outputs)), make([]float64, len(t.Inputs))
	h := p.period().Seconds()
	angle, most := make([]float64, len(list)), make([]float64, len(list))
	for i, b := range list {
		angle[i], most[i] = b.Start, math.Abs(b.Start)
	}
	for range int(linearTime / h) {
		k.Step(y, u)
		for i := range list {
			angle[i] += h * y[first+i]
			most[i] = max(most[i], math.Abs(angle[i]))
		}
	}
	worst, others := -1, -1
	for i := range list {
		if leverError(most[i]) > linearError {
			others++
			if worst < 0 || most[i] > most[worst] {
				worst = i
			}
		}
	}
	if worst < 0 {
		return nil
	}
	also, b := "", list[worst]
	if others > 0 {
		also = fmt.Sprintf("; %d more bodies turn by as much or less", others)
	}
	c.warn("%s:%d: body %q turns by up to %.2g rad; its linear points, lines and joints are off by %.1g of their levers, "+
		"which kinematics: exact is not%s", cmp.Or(p.plant.File, p.file), b.At.Line, b.Name, most[worst], leverError(most[worst]), also)
	return nil
}

// leverError is the part of a lever by which a linear point is off at an angle, rad.
func leverError(angle float64) float64 {
	return 1 - math.Cos(min(angle, math.Pi))
}
