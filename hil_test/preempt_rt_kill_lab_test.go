package hiltest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// fallen says which of the Speeds carry the safe values of the demo bench: all four
// speeds, 15 bits each, are zero. The engine of a plant that runs always turns.
func fallen(f *frames) (list []bool) {
	for _, data := range f.data {
		list = append(list, bytes.Equal(data[:7], make([]byte, 7)) && data[7]&15 == 0)
	}
	return list
}

// checkFall holds the Speeds against the one way into the safe state: the plant's
// values, then the safe ones and nothing else. It returns how many there are of each.
func checkFall(t *testing.T, f *frames) (plant, safe int) {
	t.Helper()
	list := fallen(f)
	plant = max(slices.Index(list, true), 0)
	if plant == 0 {
		t.Fatalf("of %d Speeds none, or the first, carries the safe values", len(list))
	}
	if slices.Contains(list[plant:], false) {
		t.Errorf("after the safe values the bus carries the plant's again")
	}
	return plant, len(list) - plant
}

// ended waits for the end of a process that is nobody's child here.
func ended(t *testing.T, pid int) {
	t.Helper()
	await(t, fmt.Sprintf("process %d has ended", pid), 30*time.Second, func() bool {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		return err != nil || strings.Contains(string(text), ") Z ")
	})
}

// targetKilled ends the target from outside: the supervisor puts the safe values on
// the bus in its place.
func targetKilled(t *testing.T, signal syscall.Signal) {
	dump, before := candump(t, "can1"), cards(t)
	tcu := unit(t, "can1")
	b := runRT(t)
	if err := syscall.Kill(b.target(), signal); err != nil {
		t.Fatal(err)
	}
	code := b.wait(20 * time.Second)
	said := strings.TrimSpace(b.err.String())
	if code != 1 || !strings.HasPrefix(said, "lockstep: run: ") || strings.Contains(said, "\n") {
		t.Errorf("exit %d, want 1 and the reason in a line: %q", code, said)
	}
	tcu.signal(syscall.SIGINT)
	tcu.wait(10 * time.Second)
	byID, order := dumped(t, dump)
	plant, safe := checkFall(t, byID["200"])
	var r report
	if err := json.Unmarshal([]byte(content(t, b.file)), &r); err != nil {
		t.Fatal(err)
	}
	// The unit's cycles, 10 ms, are the clock: an emulator that stands still stops
	// them, too. The target's last frames may have been dropped.
	speeds, between := 0, 0
	for _, id := range order {
		if id == "200" {
			speeds++
		}
		if id == "110" && speeds == plant {
			between++
		}
	}
	t.Logf("%s\n%d Speeds of the plant in %d ticks, %d missed, %d frames dropped; then %d safe ones, in between %d cycles of the unit",
		said, plant, r.Ticks, r.Missed, r.TxDropped, safe, between)
	if most := 8 + (int(r.Ticks)-plant+1)/2; between > most {
		t.Errorf("%d cycles of the unit between the plant's last Speeds and the first safe ones, want at most %d", between, most)
	}
	now := cards(t)
	gone := now["can0 tx_packets"] - before["can0 tx_packets"] - (now["can1 rx_packets"] - before["can1 rx_packets"]) // no room in the other card
	if byID["200"].count("200"); byID["200"].lost > int(r.TxDropped)+gone {
		t.Errorf("the counter of Speeds jumps over %d frames, where %d were dropped and %d lost by the card", byID["200"].lost, r.TxDropped, gone)
	}
	if last := byID["201"].data[len(byID["201"].data)-1]; !bytes.Equal(last[:6], make([]byte, 6)) {
		t.Errorf("the last Torque is % X, want the safe values", last)
	}
	if safe < 10 {
		t.Errorf("%d safe Speeds, want those of 100 ms", safe)
	}
}

// orphan starts a run and kills its supervisor.
func orphan(t *testing.T, gone string) (target int, b *rtBench) {
	t.Helper()
	b = runRT(t, edit{"supervisor_gone: stop after 1 s", "supervisor_gone: " + gone})
	target = b.target()
	t.Cleanup(func() { syscall.Kill(target, syscall.SIGKILL) })
	b.signal(syscall.SIGKILL)
	b.wait(10 * time.Second)
	return target, b
}

func supervisorKilledGoesOn(t *testing.T) {
	dump := candump(t, "can1")
	before := cards(t)
	target, b := orphan(t, "continue")
	file := filepath.Join(t.TempDir(), "report.json")
	second := start(t, command(t), "attach", "-report", file)
	second.await("missed", 60*time.Second)
	least := time.Since(b.ticking)
	second.signal(syscall.SIGINT)
	code := second.wait(30 * time.Second)
	t.Logf("attach:\n%s%s", &second.out, &second.err)
	if code != 0 {
		t.Fatalf("attach: exit %d, want 0", code)
	}
	ended(t, target)
	var r report
	if err := json.Unmarshal([]byte(content(t, file)), &r); err != nil {
		t.Fatal(err)
	}
	b.checkClock(r, least)
	byID, _ := dumped(t, dump)
	checkWire(t, before, byID, r)
	if list := fallen(byID["200"]); slices.Contains(list, true) {
		t.Errorf("of %d Speeds some carry the safe values; the first supervisor said\n%s", len(list), &b.out)
	}
}

// afterDeath waits for an orphan, and for its safe values, at most so many of them.
// 500 ms are 100 Speeds, where none is missed.
func afterDeath(t *testing.T, gone string, enough, most int) {
	dump := candump(t, "can1")
	target, _ := orphan(t, gone)
	before := strings.Count(dump.out.String(), " 200#")
	if enough > 0 { // it goes on for ever
		await(t, "safe Speeds", 60*time.Second, func() bool {
			return strings.Count(dump.out.String(), " 200#00000000000000") > enough
		})
		syscall.Kill(target, syscall.SIGKILL)
	}
	ended(t, target)
	byID, _ := dumped(t, dump)
	plant, safe := checkFall(t, byID["200"])
	t.Logf("%d Speeds before the supervisor's death, then %d of the plant and %d safe ones", before, plant-before, safe)
	if plant-before > 200 || safe < 1 || safe > most {
		t.Errorf("after the supervisor's death %d Speeds of the plant and %d safe ones; want about 100, and at most %d", plant-before, safe, most)
	}
}
