package doctor

import (
	"cmp"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

func TestToolsForTracersAreFoundOrNamed(t *testing.T) {
	const tracers = "sys/kernel/tracing/available_tracers"
	tuned := diagnose(t, "tuned", demo, nil)
	tuned.have(t, "rtla", OK, "", "/usr/bin/rtla; tracer timerlat and osnoise")
	tuned.have(t, "hwlatdetect", OK, "", "/usr/sbin/hwlatdetect; tracer hwlat")
	tuned.have(t, "tracing", OK, "", "no tracer is active")

	d := diagnose(t, "tuned", demo, map[string]string{"usr/bin/rtla": gone, "usr/sbin/hwlatdetect": gone, "etc/os-release": "ID=debian"})
	d.have(t, "rtla", Wrong, Now, "not installed", "sudo apt-get install rtla")
	d.have(t, "hwlatdetect", Wrong, Now, "not installed", "sudo apt-get install rt-tests")
	if !d.Fit {
		t.Error("a host without tools is not fit")
	}
	d = diagnose(t, "tuned", demo, map[string]string{"usr/bin/rtla": gone, "etc/os-release": "ID=other"})
	d.have(t, "rtla", Wrong, Now, "install rtla (Debian: sudo apt-get install rtla)")

	d = diagnose(t, "tuned", demo, map[string]string{tracers: "osnoise function nop"})
	d.have(t, "rtla", Wrong, Kernel, "/usr/bin/rtla; this kernel has no tracer timerlat", "CONFIG_TIMERLAT_TRACER=y")
	d.have(t, "hwlatdetect", Wrong, Kernel, "no tracer hwlat", "CONFIG_HWLAT_TRACER=y")

	d = diagnose(t, "tuned", demo, map[string]string{"sys/kernel/tracing": gone})
	d.have(t, "rtla", Unknown, "", "/usr/bin/rtla; the kernel's tracing is not mounted", "mount -t tracefs")
	d.have(t, "tracing", OK, "", "not mounted")
	d = diagnose(t, "tuned", demo, map[string]string{"sys/kernel/tracing": gone, "sys/kernel/debug/tracing/available_tracers": "hwlat nop"})
	d.have(t, "hwlatdetect", OK, "")
}

func TestActiveTracersAreNamedWithTheCommandThatEndsThem(t *testing.T) {
	const tracing, own = "sys/kernel/tracing/", "sys/kernel/tracing/instances/lockstep/current_tracer"
	d := diagnose(t, "tuned", demo, map[string]string{own: "osnoise", tracing + "osnoise/cpus": "3"})
	d.have(t, "tracing", Wrong, Now, "the instance lockstep is on: osnoise records on CPU 3",
		"echo nop | sudo tee /sys/kernel/tracing/instances/lockstep/current_tracer && sudo rmdir /sys/kernel/tracing/instances/lockstep && "+
			"echo DEFAULTS | sudo tee /sys/kernel/tracing/osnoise/options")
	if c := d.Check("tracing"); !d.Fit || c.mark() != "note" {
		t.Errorf("fit %t, tracing is marked %q; a recording does not make a host unfit", d.Fit, c.mark())
	}
	d = diagnose(t, "tuned", demo, map[string]string{own: "nop"})
	d.have(t, "tracing", Wrong, Now, "the instance lockstep is there, its tracer is off", "sudo rmdir /sys/kernel/tracing/instances/lockstep")
	d = diagnose(t, "tuned", demo, map[string]string{tracing + "current_tracer": "function", tracing + "instances/timerlat_hist/current_tracer": "timerlat"})
	d.have(t, "tracing", Wrong, Now, "function is on; timerlat is on in the instance timerlat_hist",
		"tee /sys/kernel/tracing/current_tracer && echo nop | sudo tee /sys/kernel/tracing/instances/timerlat_hist/current_tracer && sudo rmdir ")
	d = diagnose(t, "tuned", demo, map[string]string{tracing + "instances/foo/current_tracer": "nop"})
	d.have(t, "tracing", OK, "", "no tracer is active")
}

// Only root reads the tracing. The thread of this test loses that right, and ends with the test.
func TestTracingThatCannotBeReadIsUnknown(t *testing.T) {
	root := edited(t, "tuned", map[string]string{"sys/kernel/tracing/current_tracer": "nop"})
	if err := os.Chmod(filepath.Join(root, "sys/kernel/tracing"), 0); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(filepath.Join(root, "sys/kernel/tracing"), 0o755)
	if os.Getuid() == 0 {
		for dir := filepath.Dir(root); dir != filepath.Clean(os.TempDir()); dir = filepath.Dir(dir) {
			if err := os.Chmod(dir, 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	type result struct {
		d   Diagnosis
		err error
	}
	done := make(chan result)
	go func() {
		runtime.LockOSThread() // and never unlocks: the thread ends
		err := unix.Setfsuid(cmp.Or(os.Getuid(), 65534))
		var d Diagnosis
		if err == nil {
			d, err = Examine(root, demo)
		}
		done <- result{d, err}
	}()
	r := <-done
	if r.err != nil {
		t.Fatal(r.err)
	}
	r.d.have(t, "rtla", Unknown, "", "only root can read")
	r.d.have(t, "tracing", Unknown, "", "only root can read", "sudo")
}
