package virtual

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"lockstep/rt/bench/benchtest"
)

// Several resets and snapshots at one tick of a run that stands count what the plant has done once.
func TestResetsAtOneTickCountEventsOnce(t *testing.T) {
	count := func(requests ...string) [2]uint64 {
		name := fmt.Sprintf("reset-%d", os.Getpid())
		file := filepath.Join(t.TempDir(), "bench.yaml")
		if err := os.WriteFile(file, []byte(benchtest.DemoText(t, "bench: powershift-bench", "bench: "+name)), 0o644); err != nil {
			t.Fatal(err)
		}
		ask, ended := openDoor(t, name, Simulation{Plant: file})
		for _, r := range append(requests, "stop wait") {
			ask(r)
		}
		r := <-ended
		if r == nil {
			t.Fatal("no report")
		}
		return [2]uint64{r.Events, r.Transitions}
	}
	once := count("advance 2s", "reset", "advance 1s")
	if twice := count("advance 2s", "reset", "reset", "advance 1s"); once[0] == 0 || twice != once {
		t.Errorf("after two resets at one tick: %d events and transitions, after one %d", twice, once)
	}
	again := count("advance 2s", "reset", "snapshot start", "advance 1s", "reset start", "advance 5ms")
	if want := count("advance 2s", "reset", "advance 1s", "reset", "advance 5ms"); again != want {
		t.Errorf("after a snapshot at the tick of a reset: %d events and transitions, want %d", again, want)
	}
}
