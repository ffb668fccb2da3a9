package faults

import (
	"os"
	"strings"
	"testing"
)

// scenario is one fault and what must follow.
type scenario struct {
	name  string
	fault string
	after string
	check func(*trial)
	lab   string // instead: the fact of TestLabPreemptRT that holds it, with a kernel of its own
}

var scenarios = []scenario{
	// The target stands still for 200 ms, 40 ticks.
	{"010-late-stop", "under overrun: stop", "safe values for 100 ms, then silence; exit 1", lateStop, ""},
	{"020-late-stop-silence", "the same, with policy: silence", "silence at once; exit 1", lateStopSilence, ""},
	{"030-late-safe", "under overrun: safe", "safe values at once and until the end, simulated time follows the clock; exit 1", lateSafe, ""},
	{"040-late-skip", "under overrun: skip 1000", "a gap, then the plant where the clock is; exit 0", lateSkip, ""},
	{"050-late-skip-exceeded", "under overrun: skip 10", "the safe state; exit 1", lateSkipExceeded, ""},
	{"060-late-catchup", "under overrun: catchup 1000", "the frames of the gap, late; exit 0", lateCatchUp, ""},
	{"070-watchdog", "for longer than watchdog: 300 ms", "it is killed, the supervisor sends the safe values; exit 1", watchdog, ""},
	{"080-supervisor-stands-still", "the supervisor stands still for 1 s", "nothing at all; exit 0", supervisorStandsStill, ""},

	// The run is ended.
	{"110-time-over", "its time is over, with planned: safe", "safe values for 100 ms; exit 0", timeOver, ""},
	{"120-ctrl-c", "Ctrl-C, with planned: silence", "silence; exit 0", ctrlCSilence, ""},
	{"130-sigterm", "SIGTERM, with shutdown: safe", "safe values for 100 ms; exit 0", sigterm, ""},
	{"140-sigterm-to-all", "SIGTERM to all processes, as a service manager does", "the same", sigtermToAll, ""},
	{"150-terminal-closed", "SIGHUP", "as Ctrl-C", terminalClosed, ""},
	{"160-ctrl-c-at-once", "Ctrl-C twice at once, as a terminal and its shell say it", "one wish: safe values for 100 ms; exit 0", ctrlCAtOnce, ""},
	{"170-ctrl-c-twice", "Ctrl-C twice, while the target stands still", "it is killed, safe values; exit 1", ctrlCTwice, ""},

	// The target dies.
	{"210-target-sigkill", "SIGKILL of the target", "safe values within two ticks, for 100 ms; exit 1", targetSIGKILL, ""},
	{"220-target-sigsegv", "SIGSEGV of the target", "the same", targetSIGSEGV, ""},
	{"230-target-sigabrt", "SIGABRT of the target", "the same", targetSIGABRT, ""},
	{"240-target-gone-silence", "SIGKILL of the target, with target_gone: silence", "silence; exit 1", targetGoneSilence, ""},
	{"250-non-finite", "a state of the plant is no longer a number", "it is not on the bus; safe values for 100 ms; exit 1", nonFinite, ""},
	{"260-non-finite-silence", "the same, with non_finite: silence", "it is not on the bus; silence; exit 1", nonFiniteSilence, ""},

	// The supervisor dies.
	{"310-supervisor-gone-continue", "under supervisor_gone: continue", "the run goes on; attach takes over, again and again; exit 0", goneContinue, ""},
	{"320-supervisor-gone-safe", "under supervisor_gone: safe after 300 ms", "the plant for 300 ms, then safe values; attach takes over; exit 1", goneSafe, ""},
	{"330-supervisor-gone-stop", "under supervisor_gone: stop after 300 ms", "the plant for 300 ms, safe values for 100 ms, the target ends", goneStop, ""},
	{"340-attach-supervised", "attach to a run that has a supervisor", "refused, exit 3; the run is unharmed", attachSupervised, ""},
	{"350-attach-ended", "attach when all has ended", "refused, exit 3", attachEnded, ""},
	{"360-attached-target-dies", "SIGKILL of the target, attached", "safe values from the attached; exit 1", attachedTargetDies, ""},
	{"370-attach-twice", "two attach at the same time", "one does, the other one is refused, exit 3", attachTwice, ""},
	{"380-orphan-shutdown", "SIGTERM of a target without a supervisor", "safe values for 100 ms, it ends", orphanShutdown, ""},

	// The unit and the bus.
	{"410-unit-silent", "the unit falls silent", "the plant goes on with the last command and says so; exit 0", unitSilent, ""},
	{"420-unit-deaf", "the unit reads nothing for 1.3 s", "what the bus does not take is dropped and counted; exit 0", unitDeaf, ""},
	{"430-bus-closed", "the bus is closed at the other end", "counted; exit 0", busClosed, ""},
	{"440-flood", "the unit sends as fast as it can", "no tick and no memory is lost to it; exit 0", flood, ""},
	{"450-card-down", "the interface goes down and up", "counted, the run goes on", nil, "CardDownAndUpIsCountedAndTheRunGoesOn"},
	{"460-card-flood", "a card receives as fast as another one sends", "counted, the run goes on", nil, "FloodIsCountedAndDoesNotStopTheRun"},

	// The terminal and the disk.
	{"510-terminal-stalled", "nobody reads the terminal", "the run and its heartbeat go on, Ctrl-C ends it, the report is complete", terminalStalled, ""},
	{"520-pipe-full", "nobody reads standard output", "the same", pipeFull, ""},
	{"530-pipe-closed", "the reader of standard output has gone", "the run goes on; exit 0", pipeClosed, ""},
	{"540-disk-full", "there is no room for the report", "the run is unharmed; one line, exit 1", diskFull, ""},
	{"550-report-to-a-pipe", "the report goes to a pipe", "it comes; exit 0", reportToPipe, ""},

	// The host.
	{"610-memory-pressure", "a neighbour takes all memory there is", "no page fault in the target; exit 0", memoryPressure, ""},
	{"620-clock-step", "CLOCK_REALTIME steps by an hour", "nothing", nil, "ClockStepChangesNothing"},
	{"630-cpu-offline", "the CPU of the loop is taken away", "harmless, or a clear stop", nil, "LoopCPUTakenOfflineIsHarmlessOrAClearStop"},
	{"640-budget", "the dearest tick takes longer than tick_budget", "refused, exit 3, with what to do; -besteffort runs", budget, ""},

	// The service manager.
	{"710-ready", "it waits for READY=1", "which comes after 100 ticks without a miss; STOPPING=1 with the reason", ready, ""},
	{"720-heartbeat", "it waits for WATCHDOG=1", "which comes as long as ticks come", heartbeat, ""},
}

// tries is how often a scenario may begin again when the host was too busy for it.
const tries = 3

func TestFaults(t *testing.T) {
	for _, s := range scenarios {
		if s.check == nil {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			t.Logf("%s: %s", s.fault, s.after)
			for try := 1; ; try++ {
				a := &trial{T: t, dir: t.TempDir(), mark: s.name}
				a.try(s.check)
				if t.Failed() || len(a.busy) == 0 {
					return
				}
				t.Logf("try %d: %s", try, strings.Join(a.busy, "; "))
				if try == tries {
					t.Errorf("none of %d tries was in time: %s", tries, strings.Join(a.busy, "; "))
					return
				}
			}
		})
	}
}

func TestTheScenariosAreNumberedInTheirOrder(t *testing.T) {
	last := ""
	for _, s := range scenarios {
		if len(s.name) < 5 || s.name[3] != '-' || s.name[:3] <= last {
			t.Errorf("scenario %s: want a number above %s", s.name, last)
		}
		last = s.name[:3]
	}
}

// TestTheLabHoldsWhatThisHostMustNotSuffer sees to it that the facts of the lab
// that the list names are there.
func TestTheLabHoldsWhatThisHostMustNotSuffer(t *testing.T) {
	lab, err := os.ReadFile("../labs/preempt_rt_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range scenarios {
		if (s.check == nil) == (s.lab == "") || s.lab != "" && !strings.Contains(string(lab), `{"`+s.lab+`", `) {
			t.Errorf("scenario %s: neither a check of its own nor a fact of TestLabPreemptRT: %q", s.name, s.lab)
		}
	}
}
