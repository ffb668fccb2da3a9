package bench

import (
	"bytes"
	"path/filepath"

	"lockstep/io/can"
	"lockstep/io/inputfile"
	"lockstep/io/j1939"
	"lockstep/io/sigmap"
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
	content := b.Files[name.Text]
	if b.dir != "" { // a supervisor that takes the run over has no folder of the bench, but this content
		if content.Folder, err = filepath.Abs(b.dir); err != nil {
			return nil, b.Errorf(name, "%w", err)
		}
		b.Files[name.Text] = content
	}
	return diagnosis.Parse(shown, content.Folder, data, b.readAttached)
}

// checkUnit checks that the bench does not send from the address of the unit that the tester asks.
func (b *Bench) checkUnit(bus int, s *diagnosis.Spec, m *sigmap.Map) error {
	if s.Node == nil {
		return nil
	}
	for i := range m.Tx {
		if m.Tx[i].ID&can.EFF != 0 && j1939.ParseID(m.Tx[i].ID).Source == s.Node.Address {
			return b.Errorf(b.Buses[bus].Diagnosis, "bus %q: %s has the unit at address 0x%02X, from which the bench itself sends %s",
				b.Buses[bus].Name.Text, b.Buses[bus].Diagnosis.Text, s.Node.Address, m.Tx[i].Name)
		}
	}
	return nil
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
	b.Files[name] = FileContent{Shown: path, Data: bytes.Clone(data)}
	return data, nil
}
