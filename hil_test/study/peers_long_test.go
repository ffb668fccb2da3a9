//go:build long

package main

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lockstep/hil_test/lab"
)

// TestPeersAgreeAndCostMore runs every engine that is installed; one that is missing skips the test
// after the others have run.
func TestPeersAgreeAndCostMore(t *testing.T) {
	r := doPeers(peerExtent{[]time.Duration{time.Millisecond, 5 * time.Millisecond}, 3, 3})
	made := r.files()
	t.Logf("%s", made["peers.md"])
	largest := map[string]float64{"coupled-clutches": 5e-3, "friction": 1} // of any engine at 5 ms, rad/s
	for _, q := range r.runs {
		held := r.of("lockstep, held, from the middle", q.plant, q.step)
		own := r.of("lockstep, own waveforms", q.plant, q.step)
		if !(own.err <= 1e-8) {
			t.Errorf("%s, %v: lockstep with own waveforms is off by %g rad/s", q.plant, q.step, own.err)
		}
		if q.peer.source == "lockstep" {
			continue
		}
		if !(q.err <= largest[q.plant]) {
			t.Errorf("%s, %s, %v: off by %g rad/s, want at most %g", q.peer.name, q.plant, q.step, q.err, largest[q.plant])
		}
		if !(q.median() > 2*held.median()) {
			t.Errorf("%s, %s, %v: a step takes %.0f ns, lockstep %.0f", q.peer.name, q.plant, q.step, q.median(), held.median())
		}
		if q.peer.source != "cvode" && !(q.err >= held.err) { // CVODE follows inputs that are not held
			t.Errorf("%s, %s, %v: off by %g rad/s, lockstep with held inputs by %g", q.peer.name, q.plant, q.step, q.err, held.err)
		}
	}
	dir := t.TempDir()
	if err := made.write(dir); err != nil {
		t.Fatal(err)
	}
	for _, plant := range peerPlants {
		wellFormed(t, filepath.Join(dir, "peers-"+plant.name+".svg"))
	}
	if len(r.missing) > 0 {
		lab.Skip(t, strings.Join(r.missing, "; "))
	}
}
