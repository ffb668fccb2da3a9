package cost

import (
	"testing"
	"time"

	"lockstep/hil_test/rig"
	"lockstep/model/kernel"
	"lockstep/model/plants"
)

// The worst tick of the gearbox with dog clutches is at most three times that of automatic4, each along its own
// inputs with two shifts.
func TestWorstTickOfAmt12IsAtMostThreeTimesThatOfAutomatic4(t *testing.T) {
	const ticks, passes, attempts = 2500, 4, 3 // a tick counts with its fastest pass; a noisy host gets another attempt
	worst := func(name string) float64 {
		data, err := plants.Read(name)
		if err != nil {
			t.Fatal(err)
		}
		r := rig.Prepare(t, string(data), kernel.Options{Period: 5 * time.Millisecond}, false)
		_, worst, events := r.TickCosts(ticks, passes, nil)
		if events < 30 {
			t.Fatalf("%s: %g events", name, events)
		}
		return worst
	}
	for attempt := 1; ; attempt++ {
		plain, dogs := worst("automatic4"), worst("amt12")
		t.Logf("worst tick of automatic4 %.0f us, of amt12 %.0f us: %.2f times", plain/1e3, dogs/1e3, dogs/plain)
		if dogs <= 3*plain {
			return
		}
		if attempt == attempts {
			t.Fatalf("the worst tick of amt12 is %.2f times that of automatic4; most is 3", dogs/plain)
		}
	}
}
