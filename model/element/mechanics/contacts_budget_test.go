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

// A contact in a plant stepped in two parts acts while it is closed, and only then.
func TestContactsInTwoPartsFollowTheWholePlant(t *testing.T) {
	const elements = `
car: {type: mass, m: 1000, v_start: 10, s_start: 0}
head: {type: mass, m: 500, s_start: 0.2, v_start: 9}
gap: {type: elasto_gap, a: car, b: head, c: 2e5, d: 3e3}
play: {type: elasto_backlash, a: car, b: head, c: 2e5, d: 3e2, backlash: 0.5}
spring: {type: spring_damper, a: car, b: head, c: 1e3, d: 10, s_rel0: 0.1}
wheel: {type: inertia, J: 10, w_start: 20}
tread: {type: ideal_rolling_wheel, a: wheel, b: rim, radius: 0.5}
rim: {type: mass, m: 1}
brake: {type: brake, flange: wheel, mu: 0.3, cgeo: 1, fn: 3 kN}
rail: {type: rail_contact, a: rim, b: car, law: gyebroszki, mu0: 0.2, A: 0.4, v_star: 5 m/s, fn: 5 kN}`
	text := modeltest.PlantOf(elements, "v: {speed: car}\nvh: {speed: head}")
	whole := modeltest.New(t, text, time.Millisecond)
	parts := modeltest.New(t, text+"partition: {N_sub: 20, N_iter: 2}\n", 5*time.Millisecond)
	parts.To(1, func(at float64) {
		whole.To(at, nil)
		parts.Is("v", whole.Get("v"), 2e-3)
		parts.Is("vh", whole.Get("vh"), 2e-3)
	})
}
