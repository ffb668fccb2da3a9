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

// tickRoot is the function with which the check begins: the loop that waits for the tick.
const tickRoot = "lockstep/rt.(*Loop).loop"

// tickStack is the largest stack of a tick, bytes. The loop has 64 KB before the first tick:
// rt/run.go.
const tickStack = 16 << 10

// tickJumps lists the functions of a tick with indirect calls, and all functions that they can
// call. The indirect calls are those of model/kernel/calls.go and rt/calls.go.
var tickJumps = map[string][]string{
	tickRoot:                                {"lockstep/sched.(*Timer).Wait", "lockstep/sched.(*Virtual).Wait"},
	"lockstep/rt.(*Loop).Tick":              {"lockstep/sched.(*Timer).Now", "lockstep/sched.(*Virtual).Now", "lockstep/rt.(*Loop).beginPoint"},
	"lockstep/rt.(*Loop).stepAndSend":       {"lockstep/rt.(*Loop).beginPoint"},
	"lockstep/rt.(*Loop).step":              {sequenceCode + "Step", inputsCode + "Advance", faultCode + "DisturbInputs", faultCode + "DisturbSignals"},
	"lockstep/rt.(*Loop).enterChanges":      {sequenceCode + "Changes"},
	"lockstep/rt.(*Loop).enterOffer":        {sequenceCode + "Offered"},
	"lockstep/rt.(*Loop).beginPoint":        {sequenceCode + "Offer"},
	"lockstep/rt.(*Loop).saveState":         {sequenceCode + "SaveState"},
	inputsCode + "announce":                 {sequenceCode + "Change"},
	"lockstep/rt.(*Loop).receive":           {"lockstep/rt.(*Loop).receiveLong"},
	"lockstep/rt.(*Loop).filterAndDecode":   {"lockstep/rt.(*Loop).decodeFrame", "lockstep/rt.(*Loop).decodeCopies"},
	"lockstep/rt.(*Loop).decodeCopies":      {"lockstep/rt.(*Loop).decodeFrame"},
	"lockstep/rt.(*Loop).filter":            {faultCode + "FilterReceived"},
	"lockstep/rt.(*Loop).decodeFrame":       {sigmapCode + "Decode", "lockstep/rt.(*Loop).actsFrom"},
	"lockstep/rt.(*Loop).actsFrom":          {"lockstep/sched.(*Timer).Now", "lockstep/sched.(*Virtual).Now"},
	"lockstep/rt.(*times).now":              {}, // the clock of a simulation, which may give up its processor
	protectionCode + "checksum":             {}, // generated code of a protection, which the command does not have
	"lockstep/rt.(*Loop).superviseMessages": {sigmapCode + "Tick"},
	"lockstep/rt.(*Loop).isDue":             {sigmapCode + "Due"},
	"lockstep/rt.(*Loop).send":              {"lockstep/rt.(*Loop).encodeAndSend", "lockstep/rt.(*Loop).sendHeld", busCode + "Flush"},
	busCode + "RecvAt":                      {busCode + "recvDatagrams", busCode + "recvShared"},
	busCode + "Flush":                       {busCode + "sendImage"},
	busCode + "Send":                        {busCode + "putMessage"},
	"lockstep/rt.(*Loop).resend":            {"lockstep/rt.(*Loop).encodeAndSend"},
	"lockstep/rt.(*Loop).encodeAndSend":     {sigmapCode + "Encode", faultCode + "PrepareCounters", faultCode + "DisturbFrame"},
	faultCode + "Apply":                     {sequenceCode + "TakeSnapshot", sequenceCode + "Carries", sequenceCode + "Restore"},
	faultCode + "updateActive":              {sequenceCode + "Drive"},
	faultCode + "DisturbInputs":             {sequenceCode + "Own"},
	sequenceCode + "Step":                   {kernelCode + "Step", kernelCode + "TakeOver"},
	sequenceCode + "Restore":                {kernelCode + "Reset", kernelCode + "restore", kernelCode + "TakeOver"},
	kernelCode + "Reset":                    {kernelCode + "settle"},
	kernelCode + "TakeOver":                 {kernelCode + "mustSettle", kernelCode + "settle", kernelCode + "resolveModes"},
	kernelCode + "settle":                   {kernelCode + "setSignals", kernelCode + "updateSides", kernelCode + "transmitFastest", kernelCode + "startSubstep"},
	kernelCode + "Step":                     {kernelCode + "stepQuiet"},
	kernelCode + "stepQuiet":                {kernelCode + "holdInputs"},
	kernelCode + "advanceTick":              {kernelCode + "macroStep"},
	kernelCode + "macroStep":                {kernelCode + "updateModes", kernelCode + "microStep"},
	kernelCode + "microStep":                {kernelCode + "updateModes", kernelCode + "resolveModes"},
	kernelCode + "updateModes":              {kernelCode + "startSubstep"},
	kernelCode + "updateForces":             {kernelCode + "evaluateOnSides"},
	kernelCode + "indicatorsMayPass":        {kernelCode + "indicatorTurns"},
	kernelCode + "iterateOnce":              {kernelCode + "evaluateOnSides"},
	kernelCode + "advanceTo":                {kernelCode + "setSignals", kernelCode + "startSubstep", kernelCode + "advanceSubstep", kernelCode + "handleEvent"},
	kernelCode + "endAtZero":                {kernelCode + "setSignals"},
	kernelCode + "firstZero":                {kernelCode + "firstRoot"},
	kernelCode + "countPath":                {kernelCode + "countEdges"},
	kernelCode + "startSubstep":             {kernelCode + "resolveModes"},
	kernelCode + "handleEvent":              {kernelCode + "resolveModes", kernelCode + "handleImpact", kernelCode + "derive"},
	kernelCode + "handleImpact":             {kernelCode + "resolveModes"},
	kernelCode + "advanceSubstep":           {kernelCode + "locateEvent", kernelCode + "stepOverEvents", kernelCode + "countPulses"},
	kernelCode + "locateEventSparse":        {kernelCode + "locateEvent"},
	kernelCode + "restartSubstep":           {kernelCode + "setSignals"},
	kernelCode + "refineExpansion":          {kernelCode + "expandSparse"},
	kernelCode + "expandOnRates":            {kernelCode + "expandLine"},
	kernelCode + "locateEvent":              {kernelCode + "expandSparse", kernelCode + "solveLaws", kernelCode + "predictLaws", kernelCode + "iterateLaws", kernelCode + "mayHoldEvent"},
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
	kernelCode + "setBlockLocks":            {kernelCode + "solveLockTorques"},
	kernelCode + "resolveModes":             {kernelCode + "resolveBlock"},
	kernelCode + "startLaws":                {kernelCode + "setTorques", kernelCode + "setTorquesSparse", kernelCode + "solveInstant", kernelCode + "evaluateDownstream"},
	kernelCode + "updateLaws":               {kernelCode + "solveInstant"},
	kernelCode + "solveInstant":             {kernelCode + "setTorques", kernelCode + "setTorquesSparse"},
	kernelCode + "updateDownstream":         {kernelCode + "evaluateDownstream", kernelCode + "updateSides"},
	kernelCode + "evaluateDownstream":       {kernelCode + "setTorques", kernelCode + "setTorquesSparse"},
	kernelCode + "setTorquesRead":           {kernelCode + "setTorques", kernelCode + "setTorquesSparse"},
	kernelCode + "writePlantOutputs":        {kernelCode + "setTorques", kernelCode + "setTorquesSparse"},
	kernelCode + "locateEventShortened":     {kernelCode + "locateEvent"},
	kernelCode + "repeatUntilConverged":     {kernelCode + "solveLaws", kernelCode + "predictLaws", kernelCode + "iterateLaws"},
	kernelCode + "setSignalsNow":            {kernelCode + "setSignals", kernelCode + "evaluateDownstream"},
	kernelCode + "firstEvent":               {kernelCode + "firstRoot"},
	kernelCode + "firstRoot":                {kernelCode + "refineRoot"},
	kernelCode + "isOfParabola":             {kernelCode + "valueOnLaws"},
	kernelCode + "valueAt":                  {kernelCode + "valueOnLaws"},
	kernelCode + "currentMode":              {kernelCode + "factorise"},
	kernelCode + "currentUnlocked":          {kernelCode + "buildUnlocked"},
}

const (
	kernelCode   = "lockstep/model/kernel.(*Kernel)."
	sequenceCode = "lockstep/model/kernel.(*Sequence)."
	inputsCode   = "lockstep/rt.(*Inputs)."
	busCode      = "lockstep/io/can.(*Bus)."
	sigmapCode   = "lockstep/io/sigmap.(*Map)."

	protectionCode = "lockstep/io/sigmap.(*Protection)."
	faultCode      = "lockstep/rt/fault.(*Set)."
)

// tickMayCall matches the functions outside of tickCode that a tick may call: assembly that moves
// memory, and panics of a broken program.
var tickMayCall = regexp.MustCompile(`^runtime\.(memmove|memclrNoHeapPointers|duffzero|duffcopy|` +
	`panicIndex|panicSlice|panicBounds|panicdivide|panicshift|goPanic|gopanic)`)

// tickCode matches the functions that are disassembled and checked: those of this module, raw
// system calls and package math/bits. A call of any other function is a finding.
const tickCode = `^(main\.|lockstep/|math/bits\.|golang\.org/x/sys/unix\.RawSyscall|syscall\.(RawSyscall|rawSyscall)|internal/runtime/syscall)`

// codeFunction is a disassembled function.
type codeFunction struct {
	calls []string // names of called functions and of functions that it jumps to
	jumps bool     // has a call through a register or memory
	fused []string // FILE:LINE of operations that multiply and add without rounding the product
	frame int      // stack with the return address, bytes; 0: unknown
}

type codeListing map[string]*codeFunction

// disassemble builds a command as for a release and returns its functions.
func disassemble(t *testing.T, command, goarch string) codeListing {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "command")
	build := exec.Command("go", "build", "-trimpath", "-o", bin, command)
	build.Env = append(os.Environ(), "GOARCH="+goarch, "CGO_ENABLED=0", "GOFLAGS=", "GOAMD64=v1")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building %s for %s: %v\n%s", command, goarch, err, out)
	}
	return disassembleFile(t, bin, func(name string) string { return name })
}

// disassembleFile returns the functions of an executable. rename maps their names.
func disassembleFile(t *testing.T, bin string, rename func(string) string) codeListing {
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
			name = rename(name)
			list[name] = &codeFunction{}
		} else if part := strings.FieldsFunc(lines.Text(), func(r rune) bool { return r == '\t' }); len(part) > 3 {
			list[name].add(name, strings.TrimSpace(part[0]), rename(strings.TrimSpace(part[3])))
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

// codeFrame matches the instruction that allocates the frame: on amd64 without the return address
// and the frame pointer, on arm64 with both.
var codeFrame = regexp.MustCompile(`^(?:SUBQ \$(0x[0-9a-f]+), SP|ADDQ \$-(0x[0-9a-f]+), SP|MOVD\.W R30, -(\d+)\(RSP\)|SUB \$(\d+), RSP, R20)$`)

// codeFused matches the instructions of arm64 and of amd64 (GOAMD64=v3) that multiply and add. A
// record then has other bits on other processors.
var codeFused = regexp.MustCompile(`^(FN?M(ADD|SUB)|VFN?M(ADD|SUB))`)

// add adds an instruction of the function with a name, from a line of the source.
func (f *codeFunction) add(name, line, text string) {
	if codeFused.MatchString(text) {
		f.fused = append(f.fused, line)
	}
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

// codeWalk checks a function and all functions that it calls.
type codeWalk struct {
	list     codeListing
	jumps    map[string][]string // targets of indirect calls, as in tickJumps
	path     []string            // call chain from the root
	depth    map[string]int      // stack of the checked functions with their callees, bytes
	findings []string
}

func (w *codeWalk) report(format string, args ...any) {
	chain := strings.ReplaceAll(strings.Join(w.path, " > "), "lockstep/", "")
	w.findings = append(w.findings, chain+": "+fmt.Sprintf(format, args...))
}

// walk checks a function and its callees, and returns the stack that they take, bytes.
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
	for _, line := range f.fused {
		w.report("product not rounded before the sum at %s", line)
	}
	if f.jumps && w.jumps[name] == nil {
		w.report("indirect call, not listed in tickJumps")
	}
	for _, callee := range w.jumps[name] {
		below = max(below, w.walk(callee))
	}
	w.path = w.path[:len(w.path)-1]
	w.depth[name] = max(f.frame, 8) + below
	return w.depth[name]
}

// processors returns the architectures to check: without long tests amd64 only.
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
					t.Errorf("%s has no indirect call in the tick: remove it from tickJumps", name)
				}
			}
			t.Logf("%d functions, at most %d bytes of stack", len(w.depth), stack)
			if stack > tickStack {
				t.Errorf("a tick takes %d bytes of stack, want at most %d", stack, tickStack)
			}
		})
	}
}

func TestCodeWalkFindsForbiddenCalls(t *testing.T) {
	t.Parallel()
	want := map[string]string{
		"deep": "main.deep > main.grows: calls runtime.morestack", "allocates": "runtime.newobject", "appends": "runtime.growslice",
		"storesPointer": "runtime.gcWriteBarrier", "locks": "sync.(*Mutex)", "readsMap": "runtime.mapaccess", "sends": "runtime.chansend",
		"defers": "runtime.deferproc", "asserts": "runtime.typeAssert", "sine": "math.sin", "rounds": "math.Floor", "prints": "fmt.Fprint",
		"blocks": "syscall.Syscall", "indirect": "indirect call", "recurses": "recursion to main.recurses",
		"fuses": "product not rounded before the sum at main.go:",
	}
	for _, goarch := range processors() {
		list := disassemble(t, "./testdata/tickcode", goarch)
		for name, part := range want {
			w := codeWalk{list: list, depth: map[string]int{}}
			w.walk("main." + name)
			if name == "rounds" && goarch == "arm64" || name == "fuses" && goarch == "amd64" {
				continue // arm64 rounds with an instruction, and it alone fuses
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
