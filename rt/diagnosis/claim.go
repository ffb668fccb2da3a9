package diagnosis

import (
	"fmt"
	"os"

	"lockstep/io/can"
	"lockstep/io/j1939"
)

// claim is the claim of a tester's address on SAE J1939, with the frames that the bus has not taken yet. The tester
// asks nothing before it holds the address, and nothing after another node has taken it.
type claim struct {
	j1939.Node
	frames []can.Frame
}

// Claim claims the address of a tester on SAE J1939; another tester needs none. Call it on a bus with other nodes
// before the first job, and again when nodes may have joined the bus.
func (s *Station) Claim(now int64) {
	if s.inquirer == nil {
		return
	}
	s.claim = &claim{Node: j1939.Node{Name: testerName(), Address: s.inquirer.Address}}
	s.claim.frames = []can.Frame{s.claim.Begin(now)}
}

// testerName returns the NAME of the tester of this process: an off-board diagnostic tool (function 129, SAE J1939,
// table B11) without a manufacturer. Two processes that use one address have different NAMEs.
func testerName() j1939.Name {
	const function, noManufacturer, identities = 129 << 40, 0x7FF << 21, 1 << 21
	return j1939.Name(function | noManufacturer | os.Getpid()%identities)
}

// err returns the error of the jobs after the address is lost.
func (c *claim) err() error {
	return fmt.Errorf("another node holds the address 0x%02X of the tester: %s; give the tester a free one (j1939: tester)", c.Address, c.Rival.Describe())
}

func (c *claim) receive(f *can.Frame, now int64) {
	if answer, ok := c.Receive(f, now); ok {
		c.frames = append(c.frames, answer)
	}
}

func (c *claim) poll(now int64) {
	if f, ok := c.Poll(now); ok {
		c.frames = append(c.frames, f)
	}
}

// Next returns the frame that is to be sent now.
func (c *claim) Next(int64) (f can.Frame, ok bool) {
	if len(c.frames) == 0 {
		return f, false
	}
	return c.frames[0], true
}

// Sent confirms that the bus has taken the frame of Next.
func (c *claim) Sent(now int64) {
	c.frames = c.frames[1:]
	c.NoteSent(now)
}
