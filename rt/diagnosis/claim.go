package diagnosis

import (
	"fmt"
	"math/rand/v2"

	"lockstep/io/can"
	"lockstep/io/j1939"
)

// claim is the claim of a tester's address on SAE J1939. The tester asks nothing before it holds the address, and nothing
// after another node has taken it.
type claim struct {
	j1939.Node
	frame can.Frame
	due   bool // the bus has not taken frame yet
}

// Claim claims the address of a tester on SAE J1939; another tester needs none. Call it on a bus with other nodes
// before the first job, and again when nodes may have joined the bus.
func (s *Station) Claim(now int64) {
	if s.inquirer == nil {
		return
	}
	if s.claim == nil {
		s.claim = &claim{Node: j1939.Node{Name: testerName(), Address: s.inquirer.Address}}
	}
	s.claim.queue(s.claim.Begin(now), true)
}

// testerName returns a NAME of a tester: an off-board diagnostic tool (function 129, SAE J1939, table B11) without a
// manufacturer. Its identity is random, so two testers with one address have different NAMEs, on one host and on two.
func testerName() j1939.Name {
	const function, noManufacturer, identities = 129 << 40, 0x7FF << 21, 1 << 21
	return j1939.Name(function | noManufacturer | rand.N(identities))
}

// err returns the error of the jobs after the address is lost.
func (c *claim) err() error {
	return fmt.Errorf("another node holds the address 0x%02X of the tester: %s; give the tester a free one (j1939: tester)", c.Address, c.Rival.Describe())
}

// queue makes a frame due. It replaces one that the bus has not taken: that says the same, or is out of date.
func (c *claim) queue(f can.Frame, ok bool) {
	if ok {
		c.frame, c.due = f, true
	}
}

func (c *claim) receive(f *can.Frame, now int64) {
	held := c.State != j1939.Lost
	answer, ok := c.Receive(f, now)
	if held && c.State == j1939.Lost {
		c.due = false // the address is another node's now
	}
	c.queue(answer, ok)
}

// Next returns the frame that is to be sent now.
func (c *claim) Next(int64) (can.Frame, bool) { return c.frame, c.due }

// Sent confirms that the bus has taken the frame of Next.
func (c *claim) Sent(now int64) {
	c.due = false
	c.NoteSent(now)
}
