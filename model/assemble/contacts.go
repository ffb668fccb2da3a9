package assemble

import (
	"fmt"

	"lockstep/model"
	"lockstep/model/network"
	"lockstep/model/units"
)

// push computes the losses of contacts. With a the acceleration of the gap without the
// torque of the contact and the loss f, and g and c what these add to it per N,
//
//	a - g·N + c·f = 0,  f = k·N    so    f = k·a/(g - k·c)
func (a *assembly) push() error {
	for _, p := range a.ContactLosses {
		var accel network.Form
		for _, t := range p.Rel {
			accel = accel.Plus(network.AccelOf(t.Node).Scaled(t.Coef))
		}
		f, err := a.measured(accel, p.At, fmt.Sprintf("element %q", p.Name))
		if err != nil {
			return err
		}
		g, c := f[a.ofTorques()+p.Contact], f[a.ofSignals()+p.Own]
		f[a.ofTorques()+p.Contact] = 0
		for _, q := range a.ContactLosses {
			if q.Contact == p.Contact {
				f[a.ofSignals()+q.Own] = 0 // one of them acts at a time
			}
		}
		scaled := a.zero()
		addTo(scaled, p.K/(g-p.K*c), f)
		a.pushed = append(a.pushed, scaled)
	}
	return nil
}

// gaps places the states of the clearances, which must be open.
func (a *assembly) gaps(sys *model.System) error {
	for i := range sys.Frictions {
		f := &sys.Frictions[i]
		if f.Gap == nil {
			continue
		}
		g := *f.Gap
		g.State += a.free
		f.Gap = &g
		if open := g.Sign * (sys.X0[g.State] - g.Limit); !(open > 0) {
			how := "closed"
			if open < 0 {
				how = "overlapping by " + units.Format(units.DropRounding(-open), a.States[g.State-a.free].Unit)
			}
			return refuse(a.Plant, f.Name, a.Frictions[i].At, "at the start it is %s; start it inside its play", how)
		}
	}
	return nil
}
