package network

import (
	"math/rand/v2"
	"testing"

	"lockstep/io/can"
	"lockstep/io/sigmap"
)

// nodePlan is a node with message 2 that hears message 1.
func nodePlan(maps []*sigmap.Map) NodePlan {
	return NodePlan{
		Message: 2, From: []bool{false, true}, Awake: [States]bool{false, true, true, true, true},
		ID: 0x10, IDByte: 0, ControlByte: 1, Cycle: 10, Offset: 3, Repeat: 40, Timeout: 25, Wait: 15,
	}
}

// nmRun steps a node and returns the ticks of its messages and of its changes of mode.
func nmRun(n *Node, p *NodePlan, first, last int64, wanted func(k int64) bool, heard func(k int64) (bool, uint8)) (sent []int64, modes map[int64]Mode) {
	modes = map[int64]Mode{}
	for k := first; k <= last; k++ {
		before := n.Mode
		n.Step(p, k, wanted(k))
		if n.Mode != before {
			modes[k] = n.Mode
		}
		if n.Sends(k) {
			sent = append(sent, k)
			n.Confirm(p, k)
		}
		if frame, control := heard(k); frame {
			n.Receive(control)
		}
	}
	return sent, modes
}

func nobody(int64) (bool, uint8) { return false, 0 }

// The times follow from the parameters: requested from tick 5 to 99, offset 3, cycle 10, repeat 40, timeout 25, wait 15.
func TestNodeKeepsTheNetworkAwakeAndLetsItSleep(t *testing.T) {
	p := nodePlan(nil)
	n := &Node{}
	sent, modes := nmRun(n, &p, 1, 200, func(k int64) bool { return k >= 5 && k < 100 }, nobody)
	if !equal(sent, []int64{8, 18, 28, 38, 48, 58, 68, 78, 88, 98}) {
		t.Errorf("messages at %v", sent)
	}
	want := map[int64]Mode{5: RepeatMessage, 45: NormalOperation, 100: ReadySleep, 98 + 25: PrepareBusSleep, 98 + 25 + 15: BusSleep}
	if len(modes) != len(want) {
		t.Errorf("modes %v, want %v", modes, want)
	}
	for k, m := range want {
		if modes[k] != m {
			t.Errorf("tick %d: %v, want %v", k, modes[k], m)
		}
	}
}

func TestNodeIsWokenByAnotherNodeAndSleepsAfterIt(t *testing.T) {
	p := nodePlan(nil)
	n := &Node{}
	sent, modes := nmRun(n, &p, 1, 300, func(int64) bool { return false }, func(k int64) (bool, uint8) { return k >= 20 && k <= 150 && k%10 == 0, 0 })
	if n.Control() != 0 || !equal(sent, []int64{24, 34, 44, 54}) {
		t.Errorf("messages at %v, control 0x%02X; want those of Repeat Message only, without the bit of an active wake-up", sent, n.Control())
	}
	want := map[int64]Mode{21: RepeatMessage, 61: ReadySleep, 151 + 25: PrepareBusSleep, 151 + 25 + 15: BusSleep}
	for k, m := range want {
		if modes[k] != m {
			t.Errorf("tick %d: %v, want %v", k, modes[k], m)
		}
	}
	if len(modes) != len(want) {
		t.Errorf("modes %v, want %v", modes, want)
	}
}

func TestNodeMarksItsActiveWakeUpUntilTheNetworkSleeps(t *testing.T) {
	p := nodePlan(nil)
	p.Immediate, p.ImmediateCycle = 3, 2
	n, f := &Node{}, can.Frame{Len: 8}
	sent, _ := nmRun(n, &p, 1, 30, func(int64) bool { return true }, nobody)
	if n.Fill(&p, &f); f.Data[0] != 0x10 || f.Data[1] != ActiveWakeup || !equal(sent, []int64{1, 3, 5, 15, 25}) {
		t.Errorf("data % X, messages at %v; want three at once in their own cycle of 2, then the cycle of 10", f.Data[:2], sent)
	}
	_, modes := nmRun(n, &p, 31, 200, func(int64) bool { return false }, nobody)
	if n.Mode != BusSleep || n.Control() != 0 {
		t.Errorf("%v, control 0x%02X after %v; want asleep without the bit", n.Mode, n.Control(), modes)
	}
}

func TestNodeRepeatsItsMessagesOnRequest(t *testing.T) {
	p := nodePlan(nil)
	n := &Node{}
	_, modes := nmRun(n, &p, 1, 200, func(int64) bool { return true }, func(k int64) (bool, uint8) { return k == 100, RepeatMessageRequest })
	if modes[101] != RepeatMessage || modes[141] != NormalOperation {
		t.Errorf("modes %v; want Repeat Message at 101 and Normal Operation at 141", modes)
	}
}

func TestNodeAloneCountsItsTimeouts(t *testing.T) {
	p := nodePlan(nil)
	n := &Node{}
	for k := int64(1); k <= 101; k++ { // a bus that takes no message
		n.Step(&p, k, true)
	}
	if n.Timeouts != 4 || n.Mode != NormalOperation {
		t.Errorf("%d timeouts, %v; want 4 in 101 ticks of a timeout of 25, awake", n.Timeouts, n.Mode)
	}
}

// secondNode is a second implementation: a table of transitions over timers that count down, as a main function of
// AUTOSAR has them.
type secondNode struct {
	p                                    *NodePlan
	mode                                 string
	timeout, repeat, wait, message, fast int64
	heard, asked, sends                  bool
}

func (s *secondNode) restart() {
	s.mode, s.repeat, s.message, s.fast = "repeat", s.p.Repeat, s.p.Offset, 0
}

func (s *secondNode) main(wanted bool) {
	heard, asked := s.heard, s.asked
	s.heard, s.asked, s.sends = false, false, false
	down := func(t *int64) bool { *t--; return *t <= 0 }
	over := map[string]bool{"timeout": down(&s.timeout), "repeat": down(&s.repeat), "wait": down(&s.wait)}
	if s.message > 0 {
		s.message--
	}
	switch s.mode {
	case "sleep", "prepare":
		if wanted || heard {
			if s.restart(); wanted && s.p.Immediate > 0 {
				s.message, s.fast = 0, s.p.Immediate
			}
			s.timeout = s.p.Timeout
		} else if s.mode == "prepare" && over["wait"] {
			s.mode = "sleep"
		}
	default:
		if heard {
			s.timeout, over["timeout"] = s.p.Timeout, false
		}
		next := s.mode
		switch {
		case s.mode == "repeat" && over["repeat"] && wanted:
			next = "normal"
		case s.mode == "repeat" && over["repeat"]:
			next = "ready"
		case s.mode != "repeat" && asked:
			s.restart()
			next = "repeat"
		case s.mode == "normal" && !wanted:
			next = "ready"
		case s.mode == "ready" && wanted:
			next, s.message = "normal", 0
		}
		if s.mode = next; over["timeout"] {
			if s.timeout = s.p.Timeout; s.mode == "ready" {
				s.mode, s.wait = "prepare", s.p.Wait
			}
		}
	}
	if (s.mode == "repeat" || s.mode == "normal") && s.message == 0 {
		s.sends, s.message = true, s.p.Cycle
		if s.fast > 0 {
			if s.fast--; s.fast > 0 {
				s.message = s.p.ImmediateCycle
			}
		}
	}
}

// Random requests, frames and losses, 200 nodes over 2000 ticks each: both implementations agree at every tick.
func TestNodeAgreesWithASecondImplementation(t *testing.T) {
	names := map[Mode]string{BusSleep: "sleep", PrepareBusSleep: "prepare", RepeatMessage: "repeat", NormalOperation: "normal", ReadySleep: "ready"}
	visited := map[Mode]int{}
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 27))
		p := NodePlan{Cycle: 1 + r.Int64N(20), Offset: r.Int64N(10), Repeat: r.Int64N(50), Wait: 1 + r.Int64N(30), Immediate: r.Int64N(4), ImmediateCycle: 1 + r.Int64N(4)}
		p.Timeout = p.Cycle + 1 + r.Int64N(30)
		a, b := &Node{}, &secondNode{p: &p, mode: "sleep"}
		wanted := false
		for k := int64(1); k <= 2000; k++ {
			if r.IntN(60) == 0 {
				wanted = !wanted
			}
			a.Step(&p, k, wanted)
			b.main(wanted)
			visited[a.Mode]++
			if names[a.Mode] != b.mode || a.Sends(k) != b.sends {
				t.Fatalf("seed %d, tick %d: %v, sends %t; the second one %s, sends %t; %+v", seed, k, a.Mode, a.Sends(k), b.mode, b.sends, p)
			}
			if b.sends && r.IntN(10) > 0 { // the bus takes most messages
				a.Confirm(&p, k)
				b.timeout = p.Timeout
			}
			if r.IntN(40) == 0 {
				control := uint8(r.IntN(2))
				a.Receive(control)
				b.heard, b.asked = true, b.asked || control == 1
			}
		}
	}
	for m := range names {
		if visited[m] < 100 {
			t.Errorf("%v was visited %d times: the test proves little", m, visited[m])
		}
	}
}
