package units

// Port is a scalar at the border of a plant.
type Port struct {
	Name     string
	Unit     string  // SI, spelled as Parse reads it; "1" for a bare number
	Min, Max float64 // accepted range in Unit; ±Inf where there is none
	Beyond   Beyond
}

// Beyond says what a signal carries of an output that is beyond what it can hold.
type Beyond uint8

const (
	Border Beyond = iota // the end of its range: the output was not meant to go there
	Rests                // the same, as meant: a timer that has run out
	Wraps                // a counter: it goes on from the other end
)
