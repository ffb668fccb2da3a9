package hiltest

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"lockstep/rt/gen"
)

// generatedJumps are tickJumps of a generated target: the loop's, with the code of its
// signals and its kernel behind them.
func generatedJumps(list codeListing) map[string][]string {
	jumps := map[string][]string{protectionCode + "value": {}} // where nothing is protected
	for name, behind := range tickJumps {
		if strings.HasPrefix(name, kernelCode) {
			continue
		}
		for _, callee := range behind {
			switch {
			case strings.HasPrefix(callee, kernelCode):
				callee = "plant.(*Kernel)." + strings.TrimPrefix(callee, kernelCode)
			case callee == sigmapCode+"Decode", callee == sigmapCode+"Due", callee == sigmapCode+"Encode":
				callee = "main.(*bus0)." + strings.TrimPrefix(callee, sigmapCode)
			case strings.Contains(callee, "Virtual"):
				continue // a target has none
			}
			jumps[name] = append(jumps[name], callee)
		}
	}
	for name := range list {
		if strings.HasPrefix(name, "main.sum") {
			jumps[protectionCode+"value"] = append(jumps[protectionCode+"value"], name)
		}
	}
	return jumps
}

// TestTickOfAGeneratedTargetNeitherAllocatesNorLocksNorGrowsTheStack is the same proof as
// that of the command's own tick.
func TestTickOfAGeneratedTargetNeitherAllocatesNorLocksNorGrowsTheStack(t *testing.T) {
	dir := t.TempDir()
	if err := (gen.Request{Bench: "powershift-bench", Dir: dir}).Run(io.Discard); err != nil {
		t.Fatal(err)
	}
	known := strings.NewReplacer("lockstep/generated/powershift_bench/internal/", "lockstep/", "lockstep/generated/powershift_bench/plant", "plant")
	for _, goarch := range []string{"amd64", "arm64"} {
		bin := filepath.Join(t.TempDir(), "target")
		build := exec.Command("go", "build", "-trimpath", "-o", bin, ".")
		build.Dir, build.Env = dir, append(os.Environ(), "GOARCH="+goarch, "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off", "GOAMD64=v1")
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		list := disassembled(t, bin, known.Replace)
		w := codeWalk{list: list, jumps: generatedJumps(list), depth: map[string]int{}}
		stack := w.walk(tickRoot)
		for _, finding := range w.findings {
			t.Errorf("%s: %s", goarch, finding)
		}
		for _, name := range []string{"main.(*bus0).Decode", "main.(*bus0).Encode", "plant.(*Kernel).Step"} {
			if _, walked := w.depth[name]; !walked {
				t.Errorf("%s: the tick does not reach %s", goarch, name)
			}
		}
		t.Logf("%s: %d functions, at most %d bytes of stack", goarch, len(w.depth), stack)
		if stack > tickStack {
			t.Errorf("%s: a tick takes %d bytes of stack, %d are for it", goarch, stack, tickStack)
		}
	}
}
