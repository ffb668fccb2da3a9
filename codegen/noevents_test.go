package codegen

import (
	"testing"
	"time"

	"lockstep/model/modeltest"
)

// A plant whose elements have no events has an event log, too, which stays empty: Events reads it.
func TestPlantWithoutEventsIsGenerated(t *testing.T) {
	b := modeltest.New(t, `plant: pushed
inputs: {push: {unit: N, default: 0 N}}
elements:
  car: {type: mass, m: 1500 kg}
  hand: {type: force, flange: car, f: push}
outputs: {v: {speed: car}}
`, 5*time.Millisecond)
	tables := b.Tables
	j := Job{Tables: tables, Hash: HashOf(tables), Command: "lockstep gen pushed", Package: "pushed"}
	if _, _, err := GenerateC(j); err != nil { // the translation to C checks the types of the kernel in Go
		t.Error(err)
	}
}
