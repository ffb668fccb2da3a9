package kernel_test

import (
	"fmt"
	"log"
	"time"

	"lockstep/model/assemble"
	"lockstep/model/kernel"
	"lockstep/model/library"
	"lockstep/model/plantfile"
)

// A torque of 3 N·m accelerates 2 kg·m² for one second.
func Example() {
	const file = `
plant: wheel
inputs:
  tau: {unit: N.m, min: 0, max: 10}
elements:
  rim:  {type: inertia, J: 2 kg.m2}
  push: {type: torque, flange: rim, tau: tau}
outputs:
  w: {speed: rim}
`
	network, err := plantfile.Load("wheel.yaml", []byte(file), library.Elements())
	if err != nil {
		log.Fatal(err)
	}
	system, err := assemble.System(network)
	if err != nil {
		log.Fatal(err)
	}
	tables, err := kernel.Prepare(system, kernel.Options{Period: 5 * time.Millisecond, Driven: []bool{true}})
	if err != nil {
		log.Fatal(err)
	}

	k := kernel.New(tables)
	u, y := []float64{3}, make([]float64, len(tables.Outputs))
	for range 200 {
		k.Step(y, u)
	}
	fmt.Printf("%s = %.3f %s\n", tables.Outputs[0].Name, y[0], tables.Outputs[0].Unit)
	// Output: w = 1.500 rad/s
}
