//go:build long

package cost

import (
	"testing"

	"lockstep/model/plants"
)

func TestChangeOfTablesCostsEveryPlantAtMostTwiceTheWorstTick(t *testing.T) {
	for _, e := range plants.List() {
		if e.Kind == "plant" {
			t.Run(e.Name, func(t *testing.T) { checkChangeCost(t, e.Name) })
		}
	}
}
