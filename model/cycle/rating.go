package cycle

import (
	"fmt"
	"math"
	"time"
)

// Vehicle is the vehicle of the energy figures of SAE J2951: its road load is F0 + F1·v + F2·v².
type Vehicle struct {
	Mass float64 // test mass, kg; > 0
	F0   float64 // N
	F1   float64 // N·s/m
	F2   float64 // N·s²/m²
}

// Check returns an error for a vehicle without a positive mass or with a road load that is not finite.
func (v *Vehicle) Check() error {
	if !(v.Mass > 0) || math.IsInf(v.Mass, 0) {
		return fmt.Errorf("cycle: the mass of the vehicle, %g kg, is not positive", v.Mass)
	}
	if load := v.F0 + v.F1 + v.F2; math.IsNaN(load) || math.IsInf(load, 0) {
		return fmt.Errorf("cycle: the road load, %g N, %g N·s/m, %g N·s²/m², is not finite", v.F0, v.F1, v.F2)
	}
	return nil
}

// Rating holds the figures of SAE J2951 (JAN2014), which compare a driven speed with its target. ER, EER and
// the cycle energies are NaN without a Vehicle; a ratio to a target of zero is NaN.
type Rating struct {
	ER    float64 // energy rating, %: cycle energy driven over target, less 100
	DR    float64 // distance rating, %: distance driven over target, less 100
	EER   float64 // energy economy rating, %: 100·(1 - (1+DR)/(1+ER)), with DR and ER as shares
	ASCR  float64 // absolute speed change rating, %: sum of |acceleration| driven over target, less 100
	IWR   float64 // inertial work rating, %: work of positive acceleration driven over target, less 100
	RMSSE float64 // root mean squared speed error, m/s

	Driven, Target float64 // cycle energies: work of the positive tractive force, J
}

// RatePeriod is the period of the samples of SAE J2951.
const RatePeriod = 100 * time.Millisecond

// rotating is the share of the mass for rotating parts: SAE J2951 rates with 1.015 times the test mass.
const rotating = 1.015

// still is the speed up to which SAE J2951 takes the vehicle as standing, m/s.
const still = 0.03

// Rate returns the rating of a driven speed against its target, both in m/s at RatePeriod and of the same
// length. vehicle may be nil.
//
// The algorithm is that of SAE J2951 as EPA publishes it in its ALPHA model (REVS_SAEJ2951): both speeds pass twice
// through a moving average of five samples, speeds up to 0.03 m/s become zero, accelerations are central differences.
func Rate(driven, target []float64, vehicle *Vehicle) Rating {
	if len(driven) != len(target) {
		panic("cycle: lengths differ")
	}
	d, t := smooth(driven), smooth(target)
	a, b := accumulate(d, vehicle), accumulate(t, vehicle)
	r := Rating{
		ER: percent(a.energy, b.energy), DR: percent(a.distance, b.distance), ASCR: percent(a.change, b.change),
		IWR: percent(a.inertial, b.inertial), Driven: a.energy, Target: b.energy,
	}
	r.EER = 100 * (1 - (1+r.DR/100)/(1+r.ER/100))
	sum := 0.0
	for i := range d {
		e := d[i] - t[i]
		sum += float64(e * e)
	}
	r.RMSSE = math.Sqrt(sum / float64(len(d)))
	return r
}

// percent returns by how many percent a exceeds b.
func percent(a, b float64) float64 { return (a - b) / b * 100 }

// smooth returns speeds after the two passes of the filter and the truncation.
func smooth(v []float64) []float64 {
	twice := average(average(v))
	for i, x := range twice {
		if x <= still {
			twice[i] = 0
		}
	}
	return twice
}

// average returns the moving average of five samples; the two samples at each end are zero.
func average(v []float64) []float64 {
	out := make([]float64, len(v))
	for i := 2; i < len(v)-2; i++ {
		out[i] = (v[i-2] + v[i-1] + v[i] + v[i+1] + v[i+2]) / 5
	}
	return out
}

// sums are the sums of a trace.
type sums struct {
	distance float64 // m
	change   float64 // absolute speed change, m/s
	inertial float64 // positive inertial work per mass, J/kg
	energy   float64 // cycle energy, J; NaN without a vehicle
}

// accumulate returns the sums of filtered speeds.
func accumulate(v []float64, vehicle *Vehicle) (s sums) {
	const h = 0.1 // RatePeriod, s
	if vehicle == nil {
		s.energy = math.NaN()
	}
	for i := 1; i < len(v); i++ {
		a := 0.0
		if i < len(v)-1 {
			a = (v[i+1] - v[i-1]) / (2 * h)
		}
		d := float64(v[i] * h)
		s.distance += d
		s.change += float64(math.Abs(a) * h)
		s.inertial += float64(max(a, 0) * d)
		if vehicle != nil {
			load := vehicle.F0 + float64(vehicle.F1*v[i]) + float64(float64(vehicle.F2*v[i])*v[i])
			s.energy += float64(max(load+float64(float64(rotating*vehicle.Mass)*a), 0) * d)
		}
	}
	return s
}
