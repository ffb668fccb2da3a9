package faults

import (
	"os"
	"strings"
	"testing"
)

// scenario is one fault and its consequence.
type scenario struct {
	name   string
	fault  string
	effect string // expected consequence
	check  func(*attempt)
	lab    string // subtest of TestLabPreemptRT that checks the scenario in a lab; "": check does
}

var scenarios = []scenario{
	// The target stalls for 200 ms, 40 ticks.
	{"010-late-stop", "under overrun: stop", "safe values for 100 ms, then silence; exit 1", lateStop, ""},
	{"020-late-stop-silence", "the same, with policy: silence", "silence at once; exit 1", lateStopSilence, ""},
	{"030-late-safe", "under overrun: safe", "safe values at once and until the end, simulated time follows the clock; exit 1", lateSafe, ""},
	{"040-late-skip", "under overrun: skip 1000", "a gap, then the plant where the clock is; exit 0", lateSkip, ""},
	{"050-late-skip-exceeded", "under overrun: skip 10", "the safe state; exit 1", lateSkipExceeded, ""},
	{"060-late-catchup", "under overrun: catchup 1000", "the frames of the gap, late; exit 0", lateCatchUp, ""},
	{"070-watchdog", "for longer than watchdog: 300 ms", "it is killed, the supervisor sends the safe values; exit 1", watchdog, ""},
	{"080-supervisor-stands-still", "the supervisor stalls for 1 s", "no effect; exit 0", supervisorStalls, ""},

	// The run is ended.
	{"110-time-over", "its time is over, with planned: safe", "safe values for 100 ms; exit 0", timeOver, ""},
	{"120-ctrl-c", "Ctrl-C, with planned: silence", "silence; exit 0", ctrlCSilence, ""},
	{"130-sigterm", "SIGTERM, with shutdown: safe", "safe values for 100 ms; exit 0", sigterm, ""},
	{"140-sigterm-to-all", "SIGTERM to all processes, as a service manager does", "the same", sigtermToAll, ""},
	{"150-terminal-closed", "SIGHUP", "as Ctrl-C", terminalClosed, ""},
	{"160-ctrl-c-at-once", "Ctrl-C twice at once, from a terminal and its shell", "counts once: safe values for 100 ms; exit 0", ctrlCAtOnce, ""},
	{"170-ctrl-c-twice", "Ctrl-C twice, while the target is stopped", "it is killed, safe values; exit 1", ctrlCTwice, ""},

	// The target dies.
	{"210-target-sigkill", "SIGKILL of the target", "safe values within two ticks, for 100 ms; exit 1", targetSIGKILL, ""},
	{"220-target-sigsegv", "SIGSEGV of the target", "the same", targetSIGSEGV, ""},
	{"230-target-sigabrt", "SIGABRT of the target", "the same", targetSIGABRT, ""},
	{"240-target-gone-silence", "SIGKILL of the target, with target_gone: silence", "silence; exit 1", targetGoneSilence, ""},
	{"242-target-dies-overloaded", "SIGKILL of the target while every CPU is overloaded, five times", "safe values within two ticks where the host grants real-time priority", targetDiesOverloaded, ""},
	{"244-target-dies-unsupervised", "SIGKILL of the target while the supervisor stands still", "safe values within two ticks where the host grants real-time priority", targetDiesUnsupervised, ""},
	{"246-guard-dies", "SIGKILL of the guard, then of the target", "safe values from the supervisor; the report names the death of the guard; exit 1", guardDies, ""},
	{"250-non-finite", "a state of the plant is not a number", "the value is not sent; safe values for 100 ms; exit 1", nonFinite, ""},
	{"260-non-finite-silence", "the same, with non_finite: silence", "the value is not sent; silence; exit 1", nonFiniteSilence, ""},

	// The supervisor dies.
	{"310-supervisor-gone-continue", "under supervisor_gone: continue", "the run goes on; attach takes over, again and again; exit 0", goneContinue, ""},
	{"320-supervisor-gone-safe", "under supervisor_gone: safe after 300 ms", "the plant for 300 ms, then safe values; attach takes over; exit 1", goneSafe, ""},
	{"330-supervisor-gone-stop", "under supervisor_gone: stop after 300 ms", "the plant for 300 ms, safe values for 100 ms, the target ends", goneStop, ""},
	{"340-attach-supervised", "attach to a run that has a supervisor", "refused, exit 3; the run is unharmed", attachSupervised, ""},
	{"350-attach-ended", "attach after the end of the run", "refused, exit 3", attachEnded, ""},
	{"360-attached-target-dies", "SIGKILL of the target, attached", "safe values from the attached supervisor; exit 1", attachedTargetDies, ""},
	{"370-attach-twice", "two attach at the same time", "one succeeds, the other is refused, exit 3", attachTwice, ""},
	{"380-orphan-shutdown", "SIGTERM of a target without a supervisor", "safe values for 100 ms, the target ends", orphanShutdown, ""},
	{"390-supervisor-crash", "the Go runtime of the supervisor reports a fatal error, under supervisor_gone: continue", "it ends by SIGABRT; the run goes on, attach takes over; exit 0", supervisorCrash, ""},
	{"395-ids-reused", "the ids of a killed supervisor and its target belong to other processes", "attach takes over; the processes are not taken for the run", nil, "ReusedProcessIDsAreNotTakenForARun"},

	// The unit and the bus.
	{"410-unit-silent", "the unit stops sending", "the plant continues with the last command and reports it; exit 0", unitSilent, ""},
	{"420-unit-deaf", "the unit reads nothing for 1.3 s", "frames that the bus refuses are dropped and counted; exit 0", unitDeaf, ""},
	{"430-bus-closed", "the bus is closed at the other end", "counted; exit 0", busClosed, ""},
	{"440-flood", "the unit sends as fast as it can", "no lost tick, no allocation; exit 0", flood, ""},
	{"450-card-down", "the interface goes down and up", "counted, the run continues", nil, "CardDownAndUpIsCountedAndTheRunGoesOn"},
	{"460-card-flood", "a card receives as fast as another one sends", "counted, the run continues", nil, "FloodIsCountedAndDoesNotStopTheRun"},

	// The terminal and the disk.
	{"510-terminal-stalled", "nobody reads the terminal", "the run and its heartbeat continue, Ctrl-C ends the run, the report is complete", terminalStalled, ""},
	{"520-pipe-full", "nobody reads standard output", "the same", pipeFull, ""},
	{"530-pipe-closed", "the reader of standard output has ended", "the run continues; exit 0", pipeClosed, ""},
	{"540-disk-full", "the disk has no room for the report", "the run is unharmed; one line, exit 1", diskFull, ""},
	{"550-report-to-a-pipe", "the report goes to a pipe", "the report is complete; exit 0", reportToPipe, ""},
	{"560-record-stalled", "the disk of the record stalls for 2 s", "no lost tick; the record is complete; exit 0", recordStalled, ""},
	{"570-record-stalled-flood", "the disk of the record stalls while the unit sends as fast as it can", "no lost tick; the report and the record count what is missing; exit 1", recordStalledInAFlood, ""},

	// The host.
	{"610-memory-pressure", "another process takes all memory", "no page fault in the target; exit 0", memoryPressure, ""},
	{"620-clock-step", "CLOCK_REALTIME steps by an hour", "no effect", nil, "ClockStepChangesNothing"},
	{"630-cpu-offline", "the CPU of the loop is taken away", "harmless, or a clear stop", nil, "LoopCPUTakenOfflineIsHarmlessOrAClearStop"},
	{"640-budget", "the worst tick takes longer than tick_budget", "refused, exit 3, with the remedy; -besteffort runs", budget, ""},

	// The service manager.
	{"710-ready", "it waits for READY=1", "READY=1 after 100 ticks without a miss; STOPPING=1 with the reason", ready, ""},
	{"720-heartbeat", "it waits for WATCHDOG=1", "WATCHDOG=1 while the loop ticks", heartbeat, ""},
}

// attempts is how often a scenario may run on a host that is too busy.
const attempts = 3

func TestFaultsHaveTheirDocumentedEffect(t *testing.T) {
	for _, s := range scenarios {
		if s.check == nil {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			t.Logf("%s: %s", s.fault, s.effect)
			for try := 1; ; try++ {
				a := &attempt{T: t, dir: t.TempDir(), mark: s.name}
				a.perform(s.check)
				if t.Failed() || len(a.busy) == 0 {
					return
				}
				t.Logf("attempt %d: %s", try, strings.Join(a.busy, "; "))
				if try == attempts {
					t.Errorf("none of %d attempts was in time: %s", attempts, strings.Join(a.busy, "; "))
					return
				}
			}
		})
	}
}

func TestScenariosAreNumberedInOrder(t *testing.T) {
	last := ""
	for _, s := range scenarios {
		if len(s.name) < 5 || s.name[3] != '-' || s.name[:3] <= last {
			t.Errorf("scenario %s: want a name with a number above %s", s.name, last)
		}
		last = s.name[:3]
	}
}

// Scenarios that would disturb this host run in a lab. The test checks that the named subtests
// of TestLabPreemptRT exist.
func TestEveryScenarioIsCheckedHereOrInTheLab(t *testing.T) {
	lab, err := os.ReadFile("../labs/preempt_rt_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range scenarios {
		if (s.check == nil) == (s.lab == "") || s.lab != "" && !strings.Contains(string(lab), `{"`+s.lab+`", `) {
			t.Errorf("scenario %s: neither a check nor a subtest of TestLabPreemptRT: %q", s.name, s.lab)
		}
	}
}
