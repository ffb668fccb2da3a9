package cost

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"lockstep/hil_test/rig"
	"lockstep/model/kernel"
	"lockstep/model/plants"
)

// tenBlocks are ten signal blocks that each read the one before: seven of them belong to the matrices, act at the
// tick or have no corner of their own.
const tenBlocks = `
  gain%[1]d: {type: gain, k: %[1]d.5, u: v_block}
  late%[1]d: {type: fixed_delay, u: gain%[1]d, delayTime: 0.%[1]d s}
  lag%[1]d: {type: first_order, u: late%[1]d, T: 0.%[1]d s}
  pi%[1]d: {type: pi, u: lag%[1]d, k: 0.1, T: 2 s}
  limit%[1]d: {type: limiter, u: pi%[1]d, uMax: 9 m/s}
  hot%[1]d: {type: hysteresis, u: lag%[1]d, uLow: 3 m/s, uHigh: 4 m/s}
  choice%[1]d: {type: switch, u1: limit%[1]d, u2: hot%[1]d, u3: lag%[1]d}
  map%[1]d: {type: combi_table_1ds, u: lag%[1]d, table: [[0, 1], [10, 2], [40, 1.5]]}
  seen%[1]d: {type: sampler, u: choice%[1]d, samplePeriod: 10 ms}
  end%[1]d: {type: first_order, u: seen%[1]d, T: 0.4 s}
`

// The worst tick of an automatic gearbox with fifty signal blocks costs at most 1.5 times that of the
// gearbox alone.
func TestFiftyBlocksCostTheWorstTickLittle(t *testing.T) {
	data, err := plants.Read("automatic4")
	if err != nil {
		t.Fatal(err)
	}
	blocks, outputs := "elements:\n  v_block: {type: speed_sensor, flange: car}\n", "outputs:\n"
	for i := 1; i <= 5; i++ {
		blocks += fmt.Sprintf(tenBlocks, i)
		outputs += fmt.Sprintf("  end%d: {signal: end%d}\n  map%d: {signal: map%d}\n", i, i, i, i)
	}
	with := strings.Replace(strings.Replace(string(data), "elements:\n", blocks, 1), "\noutputs:\n", "\n"+outputs, 1)
	ratios := make([]float64, 0, 3)
	for range cap(ratios) { // alternating, since the speed of the machine drifts
		var worst [2]float64
		for i, text := range []string{string(data), with} {
			r := rig.Prepare(t, text, kernel.Options{Period: 5 * time.Millisecond}, false)
			_, worst[i], _ = r.TickCosts(1000, 3, nil)
		}
		ratios = append(ratios, worst[1]/worst[0])
		t.Logf("worst tick %.0f us, with blocks %.0f us", worst[0]/1e3, worst[1]/1e3)
	}
	if least := slices.Min(ratios); !(least <= 1.5) {
		t.Errorf("the worst tick costs %.2f times that without blocks; most is 1.5", least)
	}
}
