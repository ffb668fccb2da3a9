package hostinfo

import (
	"errors"
	"io/fs"
	"path"
	"strings"
)

// Tracing is the state of the kernel's tracing.
type Tracing struct {
	Folder    string // path of its files, "/sys/kernel/tracing"
	Tracers   []string
	Instances []TracingInstance // the top first
}

// TracingInstance is a buffer of the kernel's tracing, with a tracer of its own.
type TracingInstance struct {
	Name   string // "": the top
	Tracer string // active tracer; NoTracer: none
}

// NoTracer is the tracer of an instance that traces nothing.
const NoTracer = "nop"

// Errors of ReadTracing.
var (
	ErrTracingHidden = errors.New("only root can read the kernel's tracing")
	ErrNoTracing     = errors.New("the kernel's tracing is not mounted: mount -t tracefs tracefs /sys/kernel/tracing")
)

// ReadTracing reads the state of the kernel's tracing, at the place of tracefs or that of debugfs. The
// error is ErrTracingHidden or ErrNoTracing.
func (f Files) ReadTracing() (*Tracing, error) {
	result := ErrNoTracing
	for _, folder := range []string{"sys/kernel/tracing", "sys/kernel/debug/tracing"} {
		tracers, err := f.ReadFile(path.Join(folder, "available_tracers"))
		if errors.Is(err, fs.ErrPermission) {
			result = ErrTracingHidden
		}
		if err != nil {
			continue
		}
		t := &Tracing{Folder: "/" + folder, Tracers: strings.Fields(tracers)}
		for _, name := range append([]string{""}, f.ReadDir(path.Join(folder, "instances"))...) {
			i := TracingInstance{Name: name}
			i.Tracer = f.Text(path.Join(folder, i.Path("current_tracer")))
			t.Instances = append(t.Instances, i)
		}

		return t, nil
	}

	return nil, result
}

// Path returns the path of a file of the instance below the folder of the tracing.
func (i TracingInstance) Path(file string) string {
	if i.Name == "" {
		return file
	}
	return path.Join("instances", i.Name, file)
}

// Active reports whether the instance has an active tracer.
func (i TracingInstance) Active() bool { return i.Tracer != "" && i.Tracer != NoTracer }
