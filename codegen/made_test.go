package codegen

import (
	"os"
	"runtime/debug"
	"sync"
	"testing"
)

// TestMain collects garbage less often: generated files are short-lived.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}

// output is the result of a generation.
type output struct {
	files  Files
	report Report
	err    error
}

// made caches the outputs of this process by job: most tests use the same plants.
var made sync.Map

// generatedGo returns the Go of a job, generated once. Callers must not change the files.
func generatedGo(t testing.TB, j Job) (Files, Report) {
	t.Helper()
	once, _ := made.LoadOrStore(j.Package+" "+j.Command+" "+j.Hash, sync.OnceValue(func() (out output) {
		out.files, out.report, out.err = GenerateGo(j)
		return out
	}))
	out := once.(func() output)()
	if out.err != nil {
		t.Fatalf("%s: %v", j.Command, out.err)
	}
	return out.files, out.report
}

// generatedC returns the C of a job.
func generatedC(t testing.TB, j Job) Files {
	t.Helper()
	files, report := generatedGo(t, j)
	files, _, err := j.TranslateC(files, report)
	if err != nil {
		t.Fatalf("%s: %v", j.Command, err)
	}
	return files
}

// job returns the job that generates the code of a subject.
func (s *subject) job() Job {
	return Job{Tables: s.tables, System: s.system, Hash: HashOf(s.tables), Command: "lockstep gen " + s.name, Package: PackageName(s.name)}
}

// job returns the job of an embedded plant.
func job(t testing.TB, plant string) Job {
	s := load(t, plant)
	return s.job()
}
