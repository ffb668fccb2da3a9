package mechanics_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"lockstep/model/kernel"
	"lockstep/model/modeltest"
)

// buffers returns the text of a row of cars with damped contacts between them. Three cars run into
// those ahead.
func buffers(contact string) string {
	var elements, outputs strings.Builder
	for i := range 12 {
		v := 0.0
		if i < 3 {
			v = 5
		}
		fmt.Fprintf(&elements, "m%d: {type: mass, m: %d, s_start: %g, v_start: %g}\n",
			i, 1000+10*(i*3%7), 0.1*float64(i)+0.003*float64(i*11%13), v)
		if i > 0 {
			fmt.Fprintf(&elements, "k%d: {type: %s, a: m%d, b: m%d, c: 5e6, d: 3e4}\n", i, contact, i-1, i)
		}
		fmt.Fprintf(&outputs, "v%d: {speed: m%d}\n", i, i)
	}
	return modeltest.PlantOf(elements.String(), outputs.String())
}

// A long plant locates few events a tick. The force of a contact that closes or opens beyond them is
// still that of the contact.
func TestContactsBeyondTheEventBudgetKeepTheirForce(t *testing.T) {
	for contact, tol := range map[string]float64{
		"elasto_gap, s_rel0: 0.07":                      1e-3,
		"elasto_backlash, backlash: 0.06, s_rel0: 0.1":  2e-3,
		"elasto_backlash2, backlash: 0.06, s_rel0: 0.1": 3e-2,
	} {
		text := buffers(contact)
		exact := modeltest.New(t, text, 5*time.Millisecond)
		few := modeltest.NewWith(t, text, kernel.Options{Period: 5 * time.Millisecond, Stepping: kernel.Sparse, EventBudget: 1})
		few.To(1, func(at float64) {
			exact.To(at, nil)
			for i := range 12 {
				name := fmt.Sprintf("v%d", i)
				few.Is(name, exact.Get(name), tol)
			}
		})
	}
}
