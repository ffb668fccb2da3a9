package faults

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// targetDies kills the target with a signal and checks that the supervisor sends the safe values.
func targetDies(a *attempt, how syscall.Signal, why string) {
	s := a.run(plan{})
	s.bus.ticking(100)
	a.signal(a.target(), how)
	s.ends(1, "run: the target process died ("+why)
	all, r := s.bus.end(), s.read()
	s.bus.checkSafeEnd(all)
	s.bus.counted(all, r)
	before, safe := s.bus.split(all)
	a.must(r.SafeFrames == len(safe), "the report says %d safe frames, %d came", r.SafeFrames, len(safe))
	a.must(r.Ticks >= uint64(len(of(before, speeds))) && r.Usage == nil, "%d ticks, usage %v; want at least %d, none", r.Ticks, r.Usage, len(of(before, speeds)))
	gap := s.gapBeforeSafe(all)
	a.Logf("%v from the last frame to the first safe one, %.3f ms from the last grid point", gap, r.SafeAfter*1e3)
	a.inTime(gap <= 2*tick && r.SafeAfter <= 2*tick.Seconds(), "the first safe value came %v after the last frame, %g s after the last tick; want 10 ms", gap, r.SafeAfter)
}

func targetSIGKILL(a *attempt) { targetDies(a, syscall.SIGKILL, "signal: killed; last tick ") }
func targetSIGSEGV(a *attempt) { targetDies(a, syscall.SIGSEGV, "exit status 2: SIGSEGV: ") }
func targetSIGABRT(a *attempt) { targetDies(a, syscall.SIGABRT, "exit status 2: SIGABRT: ") }

func targetGoneSilence(a *attempt) {
	s := a.run(plan{change: []string{"target_gone: safe", "target_gone: silence"}})
	s.bus.ticking(50)
	a.signal(a.target(), syscall.SIGKILL)
	s.ends(1, "run: the target process died (signal: killed; last tick ")
	all, r := s.bus.end(), s.read()
	_, safe := s.bus.split(all)
	a.must(len(safe) == 0 && r.SafeFrames == 0, "%d safe frames, the report says %d; want silence", len(safe), r.SafeFrames)
}

// runaway is a plant whose torque grows with its speed: w = e^(1000·t) rad/s, which overflows a
// float64 at 0.71 s.
const runaway = `plant: runaway
elements:
  rotor: {type: inertia, J: 1 kg.m2, w_start: 1 rad/s}
  drive: {type: linear_speed_dependent_torque, flange: rotor, tau_nominal: 1000 N.m, w_nominal: 1 rad/s, TorqueDirection: false}
outputs:
  w: {speed: rotor}
`

const runawayDBC = `VERSION ""
BU_: Bench
BO_ 512 Speeds: 8 Bench
 SG_ w : 0|32@1- (0.1,0) [0|0] "rad/s" Bench
 SG_ count : 60|4@1+ (1,0) [0|15] "" Bench
`

const runawayBench = `bench: %s
plant: runaway.yaml
period: 5 ms
overrun: skip 1000
safe: {time: 100 ms, values: {w: 20 rad/s}}
end: {non_finite: %s}
buses:
  drive:
    interface: fd:3
    database: runaway.dbc
    frames: {Speeds: {cycle: 5 ms, counter: count}}
    send: [w -> Speeds.w]
`

// runDiverging runs the runaway plant until the run ends by itself. It returns the frames before
// the first safe one, and the safe ones.
func runDiverging(a *attempt, end string) (before, safe []frame) {
	for name, text := range map[string]string{"runaway.yaml": runaway, "runaway.dbc": runawayDBC} {
		if err := os.WriteFile(filepath.Join(a.dir, name), []byte(text), 0o644); err != nil {
			a.Fatal(err)
		}
	}
	s := a.run(plan{text: fmt.Sprintf(runawayBench, a.mark, end)})
	s.ends(1, "run: state rotor.w of the plant is no longer finite, after 0.7")
	all, r := s.bus.end(), s.read()
	a.must(r.TxRefused == 0, "%d attempts to send a value that is not a number, want none", r.TxRefused)
	s.bus.counted(all, r)
	for _, f := range all {
		if uint32(f.data) == 200 {
			safe = append(safe, f)
			continue
		}
		a.must(len(safe) == 0, "a frame of the plant after a safe one: %016x", f.data)
		before = append(before, f)
	}
	// From 0.02 s on the signal carries its maximum.
	a.inTime(len(before) > 100, "%d frames of the plant, want 142", len(before))
	for i, f := range before[min(5, len(before)):] {
		a.must(uint32(f.data) == 1<<31-1, "frame %d carries %#x; want the maximum of the signal", i+5, uint32(f.data))
	}
	return before, safe
}

func nonFinite(a *attempt) {
	_, safe := runDiverging(a, "safe")
	a.must(len(safe) > 0 && len(safe) <= 21, "%d safe frames, want 20", len(safe))
	a.inTime(len(safe) > 10, "%d safe frames, want 20", len(safe))
}

func nonFiniteSilence(a *attempt) {
	_, safe := runDiverging(a, "silence")
	a.must(len(safe) == 0, "%d safe frames, want silence", len(safe))
}
