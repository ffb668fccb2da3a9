package check

import (
	"cmp"
	"fmt"
	"time"

	"lockstep/model/kernel"
)

// parts writes how a plant is stepped in two parts.
func (c *Check) parts(p *understood) {
	part := p.tables.Partition
	var names []string
	for _, i := range part.Active {
		names = append(names, p.tables.StateName[i])
	}
	list(c.Out, "active", len(names), names)
	list(c.Out, "step", -1, []string{
		fmt.Sprintf("two parts: %s of %v", count(part.Sub, "micro step"), p.period()/time.Duration(part.Sub)),
		count(part.Iter, "additional iteration"), "no event is located"})
	if micro := p.period().Seconds() / float64(part.Sub); part.Decay*micro > kernel.Bears {
		c.warn("%s: partition: micro steps of %v are too long for laws that let the active part decay within %v; what it does is wrong then, micro steps of %v would do",
			p.file, fit(micro), fit(1/part.Decay), fit(kernel.Bears/part.Decay))
	}
}

// affords refuses a plant in two parts whose dearest tick takes longer than a tick may:
// the budget of the bench, or half of the period.
func affords(p *understood, dearest time.Duration) error {
	part, budget := p.sys.Partition, time.Duration(cmp.Or(p.budget, p.tables.PeriodNs/2))
	if part == nil || dearest <= budget {
		return nil
	}
	return fmt.Errorf("%s: partition: N_sub %d with N_iter %d takes %v in the dearest tick, more than the %v a tick may take; fewer of them, or a longer period",
		part.Place, part.Sub, part.Iter, dearest.Round(100*time.Nanosecond), budget)
}
