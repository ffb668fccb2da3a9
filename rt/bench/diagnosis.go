package bench

import (
	"bytes"
	"path/filepath"

	"lockstep/io/inputfile"
	"lockstep/rt/diagnosis"
)

// ReadDiagnosis returns the diagnosis file of a bus; nil: it has none.
func (b *Bench) ReadDiagnosis(bus int) (*diagnosis.Spec, error) {
	name := b.Buses[bus].Diagnosis
	if name.Text == "" {
		return nil, nil
	}
	shown, data, err := b.Read(name, "diagnosis")
	if err != nil {
		return nil, err
	}
	return diagnosis.Parse(shown, b.dir, data, b.readAttached)
}

// readAttached reads a file that a file of the bench names, of any kind, and keeps its content.
func (b *Bench) readAttached(name string) ([]byte, error) {
	if f, ok := b.Files[name]; ok {
		return f.Data, nil
	}
	path := name
	if !filepath.IsAbs(path) {
		path = filepath.Join(b.dir, path)
	}
	data, err := inputfile.Read(path, inputfile.Executable)
	if err != nil {
		return nil, err
	}
	b.Files[name] = FileContent{path, bytes.Clone(data)}
	return data, nil
}
