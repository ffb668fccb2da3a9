package strictjson

import (
	"encoding/json"
	"math"
)

// Numbers are values as JSON numbers. A value that is not finite is null in JSON, and null is read as NaN.
type Numbers []float64

// MarshalJSON writes numbers that are not finite as null.
func (n Numbers) MarshalJSON() ([]byte, error) {
	list := make([]*float64, len(n))
	for i := range n {
		list[i] = Finite(n[i])
	}
	return json.Marshal(list)
}

// UnmarshalJSON reads null as NaN.
func (n *Numbers) UnmarshalJSON(data []byte) error {
	var list []*float64
	if err := json.Unmarshal(data, &list); err != nil {
		return err
	}
	*n = make(Numbers, len(list))
	for i, v := range list {
		if (*n)[i] = math.NaN(); v != nil {
			(*n)[i] = *v
		}
	}
	return nil
}

// Finite returns a pointer to v, or nil if v is NaN or infinite, which JSON does not have.
func Finite(v float64) *float64 {
	if math.IsInf(v, 0) || math.IsNaN(v) {
		return nil
	}
	return &v
}
