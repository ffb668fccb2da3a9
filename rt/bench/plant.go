package bench

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"lockstep/model"
	"lockstep/model/assemble"
	"lockstep/model/kernel"
	"lockstep/model/library"
	"lockstep/model/plantfile"
)

// LoadPlant reads and assembles a plant: the file of that name if there is one,
// the embedded plant otherwise. command is what wants it, for errors.
func LoadPlant(command, name string) (*model.System, error) {
	file, data, err := ReadAny(name)
	if err != nil {
		return nil, err
	}
	switch FileKind(file, data) {
	case "inputs":
		return nil, &KindError{File: name, Kind: "inputs", Err: fmt.Errorf("%s: %s is a file of inputs: lockstep sim PLANT -in %s", command, name, name)}
	case "scenario":
		return nil, &KindError{File: name, Kind: "scenario", Err: fmt.Errorf("%s: %s is a scenario: lockstep sim BENCH -scenario %s", command, name, name)}
	case "sweep":
		return nil, &KindError{File: name, Kind: "sweep", Err: fmt.Errorf("%s: %s is a sweep: lockstep sweep %s", command, name, name)}
	case "database":
		return nil, &KindError{File: file, Kind: "database", Err: fmt.Errorf("%s: %s is a database; %s takes a plant", command, file, command)}
	case "bench":
		return nil, &KindError{File: file, Kind: "bench", Err: fmt.Errorf("%s: %s is a bench: name it with -bench %s", command, file, name)}
	}
	plant, err := plantfile.Load(file, data, library.Elements())
	if err != nil {
		return nil, err
	}
	return assemble.System(plant)
}

// WithFile puts the file of a plant before an error of the kernel that names no place.
func WithFile(file string, err error) error {
	if at := new(kernel.PlaceError); errors.As(err, &at) {
		return err
	}
	return fmt.Errorf("%s: %w", file, err)
}

// OwnLength is how long a plant has something to do by itself: to the last row of
// its tables; a table that still changes there, such as a step, is given 10 s
// more. 10 s if there is nothing.
func OwnLength(sys *model.System, driven []bool, step time.Duration) time.Duration {
	last, changes := 0.0, false
	leaf := func(s *model.Source, delay float64) {
		n := len(s.T)
		if n < 2 || s.Period > 0 || s.T[n-1]+delay < last {
			return
		}
		changed := s.V[n-1] != s.V[n-2]
		changes = changed || changes && s.T[n-1]+delay == last
		last = s.T[n-1] + delay
	}
	for j := range sys.Signals {
		i := slices.IndexFunc(sys.Inputs, func(in model.Input) bool { return in.Signal == j })
		delay := 0.0
		if i >= 0 {
			if driven != nil && driven[i] {
				continue
			}
			delay = sys.Inputs[i].Delay
		}
		s := &sys.Signals[j].Source
		leaf(s, delay)
		for _, factors := range s.Sum {
			for f := range factors {
				leaf(&factors[f], delay)
			}
		}
	}
	if changes || last == 0 {
		last += 10
	}
	return max(step, time.Duration(math.Round(last*1e9)))
}
