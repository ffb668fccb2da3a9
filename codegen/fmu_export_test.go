package codegen

import (
	"strings"
	"testing"
	"time"

	"lockstep/model"
	"lockstep/model/kernel"
	"lockstep/model/plants"
)

// What the tests outside the package need of its inside: they run a simulation, which
// imports it.
var (
	BuildFMUWith = buildFMU
	WrapFMU      = (*Job).wrap
	Token        = (*Job).token
	Period       = (*Job).period
)

// OnGrid is the job of an embedded plant on a grid.
func OnGrid(t testing.TB, name string, period time.Duration) Job {
	t.Helper()
	data, err := plants.Read(name)
	if err != nil {
		t.Fatal(err)
	}
	plant, err := model.Load(name, data)
	if err != nil {
		t.Fatal(err)
	}
	sys, err := plant.Assemble()
	if err != nil {
		t.Fatal(err)
	}
	tables, err := kernel.Prepare(sys, kernel.Options{Period: period})
	if err != nil {
		t.Fatal(err)
	}
	return Job{Tables: tables, System: sys, Hash: HashOf(tables), Command: "lockstep gen " + name, Package: strings.ReplaceAll(name, "-", "_")}
}
