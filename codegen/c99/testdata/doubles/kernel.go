// Package doubles is a sample for the C translator: floating-point numbers. It has the entry points
// of a kernel.
package doubles

// The lengths of u and y.
const M, P = 4, 24

func New() *Kernel {
	k := &Kernel{}
	k.create()
	return k
}

func (k *Kernel) Step(y, u []float64)  { k.step((*[P]float64)(y), (*[M]float64)(u)) }
func (k *Kernel) Output(y []float64)   { k.output((*[P]float64)(y)) }
func (k *Kernel) Reset()               { k.reset() }
func (k *Kernel) Drive(i int, on bool) { k.drive(i, on) }
func (k *Kernel) Driven(i int) bool    { return k.driven(i) }
func (k *Kernel) Own(i int) float64    { return k.own(i) }
func (k *Kernel) Dims() (m, p int)     { return M, P }
