package cost

import (
	"testing"
)

// protectStack is what a protection may take of the stack of a tick, bytes: the
// linker allows all of a chain without checks 800, and an encoder is above it.
const protectStack = 200

func TestProtectionNeitherAllocatesNorGrowsTheStack(t *testing.T) {
	for _, goarch := range processors() {
		list := disassemble(t, "./testdata/tickprotect", goarch)
		for _, root := range []string{"main.sends", "main.judges"} {
			w := codeWalk{list: list, jumps: tickJumps, depth: map[string]int{}}
			stack := w.walk(root) - w.list[root].frame
			for _, finding := range w.findings {
				t.Errorf("%s: %s", goarch, finding)
			}
			t.Logf("%s: %s: %d functions, %d bytes of stack", goarch, root, len(w.depth), stack)
			if stack > protectStack {
				t.Errorf("%s: %s takes %d bytes of stack, %d are for it", goarch, root, stack, protectStack)
			}
		}
	}
}
