//go:build long

package accuracy

import (
	"testing"

	"lockstep/model/plants"
)

func TestEveryPlantChangesUnderMotion(t *testing.T) {
	for _, e := range plants.List() {
		if p := (changedPlant{name: e.Name}); e.Kind == "plant" {
			p.run(t, false, (*changeable).checkEnergySteps)
			p.run(t, true, (*changeable).checkFreshStart)
		}
	}
}
