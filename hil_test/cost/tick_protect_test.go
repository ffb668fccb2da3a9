package cost

import (
	"testing"
)

// protectStack is the largest stack of a protection in a tick, bytes. The linker allows 800 bytes
// for a chain of functions without stack checks; an encoder above needs the rest.
const protectStack = 200

func TestProtectionNeitherAllocatesNorGrowsTheStack(t *testing.T) {
	for _, goarch := range processors() {
		list := disassemble(t, "./testdata/tickprotect", goarch)
		for _, root := range []string{"main.protects", "main.checks"} {
			w := codeWalk{list: list, jumps: tickJumps, depth: map[string]int{}}
			stack := w.walk(root) - w.list[root].frame
			for _, finding := range w.findings {
				t.Errorf("%s: %s", goarch, finding)
			}
			t.Logf("%s: %s: %d functions, %d bytes of stack", goarch, root, len(w.depth), stack)
			if stack > protectStack {
				t.Errorf("%s: %s takes %d bytes of stack, want at most %d", goarch, root, stack, protectStack)
			}
		}
	}
}
