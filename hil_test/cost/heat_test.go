package cost

import (
	"slices"
	"testing"
	"time"

	"lockstep/hil_test/rig"
	"lockstep/model/kernel"
	"lockstep/model/plants"
)

// The tick of an automatic gearbox whose losses heat its oil costs about 1.3 times that of the gearbox without
// heat: the losses are evaluated once in a substep, not in each iteration of its laws. If they were iterated it
// would cost about twice as much.
func TestHeatCostsTheTickLittle(t *testing.T) {
	var plain, heated *rig.Plant
	for name, plant := range map[string]**rig.Plant{"automatic4": &plain, "automatic-car": &heated} {
		data, err := plants.Read(name)
		if err != nil {
			t.Fatal(err)
		}
		*plant = rig.Prepare(t, string(data), kernel.Options{Period: 5 * time.Millisecond}, false)
	}
	if got := len(heated.Tables.Downstream); got != 7 {
		t.Errorf("%d laws follow from the law iteration; want 7, the losses of converter, clutches and brakes", got)
	}
	ratios := make([]float64, 0, 3)
	for range cap(ratios) { // alternating, since the speed of the machine drifts
		without, _, _ := plain.TickCosts(1000, 3, nil)
		with, _, _ := heated.TickCosts(1000, 3, nil)
		ratios = append(ratios, with/without)
		t.Logf("mean tick %.1f us, with heat %.1f us: %.2f times", without/1e3, with/1e3, with/without)
	}
	if least := slices.Min(ratios); !(least <= 1.6) {
		t.Errorf("the tick with heat costs %.2f times that without; most is 1.6", least)
	}
}
