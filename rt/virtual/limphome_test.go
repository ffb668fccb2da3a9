package virtual

import (
	"testing"
	"time"
)

// limpHome puts a fault on a speed that the unit reads: the ratio is one that no gear has. The unit stores P0730 and
// holds third gear, also after the fault, until the ignition begins the next operation cycle.
const limpHome = `
scenario: limp-home
for: 22 s
stimuli: {throttle: "0 %", lever: 3, brake.pressure: {table: [[0 s, 0 bar], [10 s, 0 bar], [10.5 s, 40 bar]]}}
faults:
  - {name: wrong ratio, signal: ShaftSpeeds.n_input, gain: 1.4, at: 7 s, for: 2 s}
steps:
  - {at: 14 s, ignition: off}
  - {at: 18 s, ignition: run}
expect:
  - {name: first gear, value: C5.pressure, within: 0.2 bar, of: 18 bar, from: 6 s, to: 6.9 s}
  - {name: limp-home, answer: C3.pressure > 8 bar, after: {fault: wrong ratio}, within: 1.6 s}
  - {name: third gear after the fault, value: C3.pressure, within: 0.2 bar, of: 9 bar, from: 9 s, to: 13.9 s}
  - {name: first gear after the ignition, value: C5.pressure, within: 0.2 bar, of: 18 bar, from: 20 s}
  - {name: no third gear after the ignition, value: C3.pressure, within: 0.2 bar, of: 0 bar, from: 20 s}
`

func TestAutomaticIsInLimpHomeUntilTheNextIgnition(t *testing.T) {
	virtualRun{bench: "automatic-bench", scenario: limpHome, length: 22 * time.Second}.run(t)
}
