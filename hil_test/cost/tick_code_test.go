package cost

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"lockstep/hil_test/lab"
)

// tickRoot is where a tick begins: the loop that waits for it.
const tickRoot = "lockstep/rt.(*Loop).loop"

// tickStack is what a tick may take of the 64 KB of stack that the loop has before
// the first one, bytes: rt/run.go.
const tickStack = 16 << 10

// tickJumps lists the functions of a tick that call through a value, and all that
// can be behind it. Those of the kernel and of
// package sigmap are the indirect calls of model/kernel/calls.go and rt/calls.go.
var tickJumps = map[string][]string{
	tickRoot:                                {"lockstep/sched.(*Timer).Wait", "lockstep/sched.(*Virtual).Wait"},
	"lockstep/rt.(*Loop).Tick":              {"lockstep/sched.(*Timer).Now", "lockstep/sched.(*Virtual).Now", "lockstep/rt.(*Loop).beginPoint"},
	"lockstep/rt.(*Loop).stepAndSend":       {"lockstep/rt.(*Loop).beginPoint"},
	"lockstep/rt.(*Loop).step":              {kernelCode + "Step", faultCode + "DisturbInputs", faultCode + "DisturbSignals"},
	"lockstep/rt.(*Loop).receive":           {faultCode + "FilterReceived"},
	"lockstep/rt.(*Loop).decodeFrame":       {sigmapCode + "Decode"},
	protectionCode + "checksum":             {}, // code made for one protection, which the command has none of
	"lockstep/rt.(*Loop).superviseMessages": {sigmapCode + "Tick"},
	"lockstep/rt.(*Loop).send":              {sigmapCode + "Due", "lockstep/rt.(*Loop).encodeAndSend", "lockstep/rt.(*Loop).sendHeld"},
	"lockstep/rt.(*Loop).resend":            {sigmapCode + "Due", "lockstep/rt.(*Loop).encodeAndSend"},
	"lockstep/rt.(*Loop).encodeAndSend":     {sigmapCode + "Encode", faultCode + "PrepareCounters", faultCode + "DisturbFrame"},
	faultCode + "arrange":                   {kernelCode + "Drive"},
	faultCode + "DisturbInputs":             {kernelCode + "Own"},
	kernelCode + "advanceTick":              {kernelCode + "macroStep"},
	kernelCode + "macroStep":                {kernelCode + "updateModes", kernelCode + "microStep"},
	kernelCode + "microStep":                {kernelCode + "updateModes", kernelCode + "resolveModes"},
	kernelCode + "updateModes":              {kernelCode + "startSubstep"},
	kernelCode + "advanceTo":                {kernelCode + "setSignals", kernelCode + "startSubstep", kernelCode + "advanceSubstep"},
	kernelCode + "countPath":                {kernelCode + "countEdges"},
	kernelCode + "startSubstep":             {kernelCode + "resolveModes"},
	kernelCode + "handleEvent":              {kernelCode + "resolveModes", kernelCode + "handleImpact", kernelCode + "derive"},
	kernelCode + "handleImpact":             {kernelCode + "resolveModes"},
	kernelCode + "advanceSubstep":           {kernelCode + "locateEvent", kernelCode + "stepOverEvents", kernelCode + "countPulses"},
	kernelCode + "locateEventSparse":        {kernelCode + "locateEvent"},
	kernelCode + "restartSubstep":           {kernelCode + "setSignals"},
	kernelCode + "refineExpansion":          {kernelCode + "expandSparse"},
	kernelCode + "locateEvent":              {kernelCode + "expand", kernelCode + "expandLine", kernelCode + "expandSparse", kernelCode + "solveLaws", kernelCode + "predictLaws", kernelCode + "iterateLaws", kernelCode + "mayHoldEvent"},
	kernelCode + "stepOverEvents":           {kernelCode + "resolveModes", kernelCode + "countPulses"},
	kernelCode + "holdClosing":              {kernelCode + "expand", kernelCode + "expandLine", kernelCode + "expandSparse"},
	kernelCode + "setSignalEffect":          {kernelCode + "derive"},
	kernelCode + "setFlow":                  {kernelCode + "derive"},
	kernelCode + "countPulses":              {kernelCode + "expand", kernelCode + "expandLine", kernelCode + "countEdges"},
	kernelCode + "countEdges":               {kernelCode + "refineRoot"},
	kernelCode + "locateEdge":               {kernelCode + "refineRoot"},
	kernelCode + "solveLaws":                {kernelCode + "expand", kernelCode + "expandLine"},
	kernelCode + "predictLaws":              {kernelCode + "expandSparse"},
	kernelCode + "iterateLaws":              {kernelCode + "correctExpansion"},
	kernelCode + "addTerm":                  {kernelCode + "derive"},
	kernelCode + "correctTerm":              {kernelCode + "derive"},
	kernelCode + "setRates":                 {kernelCode + "derive"},
	kernelCode + "slipAcceleration":         {kernelCode + "derive"},
	kernelCode + "projectSlips":             {kernelCode + "solveLockTorques"},
	kernelCode + "setBlockTorques":          {kernelCode + "solveLockTorques"},
	kernelCode + "resolveModes":             {kernelCode + "resolveBlock"},
	kernelCode + "startLaws":                {kernelCode + "setTorques", kernelCode + "setTorquesSparse"},
	kernelCode + "setTorquesRead":           {kernelCode + "setTorques", kernelCode + "setTorquesSparse"},
	kernelCode + "setLoad":                  {kernelCode + "setTorques", kernelCode + "setTorquesSparse"},
	kernelCode + "writePlantOutputs":        {kernelCode + "setTorques", kernelCode + "setTorquesSparse"},
	kernelCode + "locateEventShortened":     {kernelCode + "locateEvent"},
	kernelCode + "halveUntilConverged":      {kernelCode + "solveLaws", kernelCode + "predictLaws", kernelCode + "iterateLaws"},
	kernelCode + "setSignalsNow":            {kernelCode + "setSignals"},
	kernelCode + "firstEvent":               {kernelCode + "firstRoot"},
	kernelCode + "currentMode":              {kernelCode + "factorise"},
	kernelCode + "currentUnlocked":          {kernelCode + "buildUnlocked"},
}

const (
	kernelCode = "lockstep/model/kernel.(*Kernel)."
	sigmapCode = "lockstep/io/sigmap.(*Map)."

	protectionCode = "lockstep/io/sigmap.(*Protection)."
	faultCode      = "lockstep/rt/fault.(*Set)."
)

// tickMayCall is what a tick may call outside of what is disassembled: assembly
// that moves memory, and the ways out of a broken program.
var tickMayCall = regexp.MustCompile(`^runtime\.(memmove|memclrNoHeapPointers|duffzero|duffcopy|` +
	`panicIndex|panicSlice|panicBounds|panicdivide|panicshift|goPanic|gopanic)`)

// tickCode is what is disassembled, and so walked, when a tick calls it: ours,
// system calls that do not tell the scheduler, and functions of bits. A call of
// anything else is a finding.
const tickCode = `^(main\.|lockstep/|math/bits\.|golang\.org/x/sys/unix\.RawSyscall|syscall\.(RawSyscall|rawSyscall)|internal/runtime/syscall)`

// codeFunction is a function as it was disassembled.
type codeFunction struct {
	calls []string // by name; a jump to another function counts
	jumps bool     // it calls through a register or memory
	frame int      // stack, bytes, with the return address; 0 where its head is unknown
}

type codeListing map[string]*codeFunction

// disassemble builds a command as a release is built and reads its functions.
func disassemble(t *testing.T, command, goarch string) codeListing {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "command")
	build := exec.Command("go", "build", "-trimpath", "-o", bin, command)
	build.Env = append(os.Environ(), "GOARCH="+goarch, "CGO_ENABLED=0", "GOFLAGS=", "GOAMD64=v1")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building %s for %s: %v\n%s", command, goarch, err, out)
	}
	return disassembled(t, bin, func(name string) string { return name })
}

// disassembled reads the functions of an executable, under the names that known gives
// them.
func disassembled(t *testing.T, bin string, known func(string) string) codeListing {
	t.Helper()
	dump := exec.Command("go", "tool", "objdump", "-s", tickCode, bin)
	out, err := dump.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := dump.Start(); err != nil {
		t.Fatal(err)
	}
	list, lines := codeListing{}, bufio.NewScanner(out)
	var name string
	for lines.Scan() {
		if head, ok := strings.CutPrefix(lines.Text(), "TEXT "); ok {
			name, _, _ = strings.Cut(head, "(SB)")
			name = known(name)
			list[name] = &codeFunction{}
		} else if part := strings.FieldsFunc(lines.Text(), func(r rune) bool { return r == '\t' }); len(part) > 3 {
			list[name].add(name, known(strings.TrimSpace(part[3])))
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	if err := dump.Wait(); err != nil {
		t.Fatalf("go tool objdump: %v", err)
	}
	return list
}

// codeFrame finds the instruction that takes the frame: on amd64 below the return
// address and the frame pointer, on arm64 with them.
var codeFrame = regexp.MustCompile(`^(?:SUBQ \$(0x[0-9a-f]+), SP|ADDQ \$-(0x[0-9a-f]+), SP|MOVD\.W R30, -(\d+)\(RSP\)|SUB \$(\d+), RSP, R20)$`)

// add takes in one instruction of the function of that name.
func (f *codeFunction) add(name, text string) {
	if m := codeFrame.FindStringSubmatch(text); m != nil && f.frame <= 16 {
		n, _ := strconv.ParseInt(strings.Join(m[1:], ""), 0, 64)
		f.frame += int(n)
	} else if text == "PUSHQ BP" {
		f.frame = 16
	}
	op, to, _ := strings.Cut(text, " ")
	callee, named := strings.CutSuffix(to, "(SB)")
	switch {
	case op == "CALL" && !named:
		f.jumps = true
	case op == "CALL", op == "JMP" && named && callee != name: // a jump to itself follows morestack
		f.calls = append(f.calls, callee)
	}
}

// codeWalk collects what is wrong with the functions that a root calls.
type codeWalk struct {
	list     codeListing
	jumps    map[string][]string
	path     []string       // from the root
	depth    map[string]int // of the functions walked, bytes of stack
	findings []string
}

func (w *codeWalk) report(format string, args ...any) {
	chain := strings.ReplaceAll(strings.Join(w.path, " > "), "lockstep/", "")
	w.findings = append(w.findings, chain+": "+fmt.Sprintf(format, args...))
}

// walk goes through a function and what it calls and returns the stack it takes.
func (w *codeWalk) walk(name string) int {
	if slices.Contains(w.path, name) {
		w.report("recursion to %s", name)
		return 0
	}
	if depth, ok := w.depth[name]; ok {
		return depth
	}
	f, ok := w.list[name]
	if !ok {
		w.report("no function %s in the command", name)
		return 0
	}
	w.path = append(w.path, name)
	below := 0
	for _, callee := range slices.Compact(slices.Sorted(slices.Values(f.calls))) {
		switch {
		case w.list[callee] != nil:
			below = max(below, w.walk(callee))
		case !tickMayCall.MatchString(callee):
			w.report("calls %s", callee)
		}
	}
	if f.jumps && w.jumps[name] == nil {
		w.report("calls through a value, which tickJumps does not know")
	}
	for _, callee := range w.jumps[name] {
		below = max(below, w.walk(callee))
	}
	w.path = w.path[:len(w.path)-1]
	w.depth[name] = max(f.frame, 8) + below
	return w.depth[name]
}

// processors are those whose code is read: go test ./... reads that of amd64 alone.
func processors() []string {
	if lab.LongTests() {
		return []string{"amd64", "arm64"}
	}
	return []string{"amd64"}
}

func TestTickNeitherAllocatesNorLocksNorGrowsTheStack(t *testing.T) {
	t.Parallel()
	for _, goarch := range processors() {
		t.Run(goarch, func(t *testing.T) {
			w := codeWalk{list: disassemble(t, "../../rt/cmd/lockstep", goarch), jumps: tickJumps, depth: map[string]int{}}
			stack := w.walk(tickRoot)
			for _, finding := range w.findings {
				t.Error(finding)
			}
			for name := range tickJumps {
				if _, walked := w.depth[name]; !walked || !w.list[name].jumps {
					t.Errorf("%s calls nothing through a value in the tick: take it out of tickJumps", name)
				}
			}
			t.Logf("%d functions, at most %d bytes of stack", len(w.depth), stack)
			if stack > tickStack {
				t.Errorf("a tick takes %d bytes of stack, %d are for it", stack, tickStack)
			}
		})
	}
}

func TestWhatHasNoPlaceInATickIsFound(t *testing.T) {
	t.Parallel()
	want := map[string]string{
		"deep": "main.deep > main.grows: calls runtime.morestack", "allocates": "runtime.newobject", "appends": "runtime.growslice",
		"storesPointer": "runtime.gcWriteBarrier", "locks": "sync.(*Mutex)", "readsMap": "runtime.mapaccess", "sends": "runtime.chansend",
		"defers": "runtime.deferproc", "asserts": "runtime.typeAssert", "sine": "math.sin", "rounds": "math.Floor", "prints": "fmt.Fprint",
		"blocks": "syscall.Syscall", "indirect": "calls through a value", "recurses": "recursion to main.recurses",
	}
	for _, goarch := range processors() {
		list := disassemble(t, "./testdata/tickcode", goarch)
		for name, part := range want {
			w := codeWalk{list: list, depth: map[string]int{}}
			w.walk("main." + name)
			if name == "rounds" && goarch == "arm64" {
				continue // has an instruction for it
			}
			if found := strings.Join(w.findings, "\n"); !strings.Contains(found, part) {
				t.Errorf("%s: %s: found %q, want %q in it", goarch, name, found, part)
			}
		}
		w := codeWalk{list: list, depth: map[string]int{}}
		if stack := w.walk("main.clean"); len(w.findings) > 0 || stack == 0 {
			t.Errorf("%s: clean: %q, %d bytes of stack", goarch, w.findings, stack)
		}
	}
}
