package kernel

import (
	"fmt"
	"math"
	"time"
)

// PlaceError is an error that one place of a plant file causes.
type PlaceError struct {
	Place string // FILE:LINE:COL of the element or section
	Err   error
}

func (e *PlaceError) Error() string { return e.Place + ": " + e.Err.Error() }

func (e *PlaceError) Unwrap() error { return e.Err }

// TooFastError refuses a period in which the fastest mode of a plant has too many pieces.
type TooFastError struct {
	Rate    float64       // of the fastest mode, rad/s
	Element string        // that makes it as fast; "": no single one
	Period  time.Duration // refused
	Fit     time.Duration // a period that would do; 0: none is long enough
}

func (e *TooFastError) Error() string {
	name, hint := "", "; none is short enough, is a unit wrong?"
	if e.Element != "" {
		name = fmt.Sprintf(" of %q", e.Element)
	}
	if e.Fit > 0 {
		hint = fmt.Sprintf("; %v would fit", e.Fit)
	}
	return fmt.Sprintf("its fastest mode, %.4g rad/s (%.4g Hz)%s, is too fast for a period of %v%s",
		e.Rate, e.Rate/(2*math.Pi), name, e.Period, hint)
}

// OptionError refuses an option that a plant cannot be stepped with.
type OptionError struct {
	Option  string // "form" or "stepping"
	Value   string
	Element string // that does not allow it; "": a section of the plant
	reason  string
}

func (e *OptionError) Error() string {
	text := fmt.Sprintf("%s %q %s", e.Option, e.Value, e.reason)
	if e.Element != "" {
		text = fmt.Sprintf("element %q: %s", e.Element, text)
	}
	return text
}
