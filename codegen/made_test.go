package codegen

import (
	"os"
	"runtime/debug"
	"sync"
	"testing"
)

// TestMain has the garbage collected less often: what is generated is short-lived, and the
// tests of a package end soon.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}

// output is what was generated of a job.
type output struct {
	files  Files
	report Report
	err    error
}

// made are the outputs of the jobs of this process, by name and hash: most tests look at the
// same plants.
var made sync.Map

// goOf is the Go of a job, generated once. The files are not to be changed.
func goOf(t testing.TB, j Job) (Files, Report) {
	t.Helper()
	once, _ := made.LoadOrStore(j.Package+" "+j.Command+" "+j.Hash, sync.OnceValue(func() (out output) {
		out.files, out.report, out.err = Go(j)
		return out
	}))
	out := once.(func() output)()
	if out.err != nil {
		t.Fatalf("%s: %v", j.Command, out.err)
	}
	return out.files, out.report
}

// cOf is its C.
func cOf(t testing.TB, j Job) Files {
	t.Helper()
	files, report := goOf(t, j)
	files, _, err := j.InC(files, report)
	if err != nil {
		t.Fatalf("%s: %v", j.Command, err)
	}
	return files
}

// job is what is generated from a subject.
func (s *subject) job() Job {
	return Job{Tables: s.tables, System: s.system, Hash: HashOf(s.tables), Command: "lockstep gen " + s.name, Package: PackageOf(s.name)}
}

// job is what is generated from an embedded plant.
func job(t testing.TB, plant string) Job {
	s := load(t, plant)
	return s.job()
}
