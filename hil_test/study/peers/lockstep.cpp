// The C that lockstep generates. With OWN the inputs are the plant's own waveforms, otherwise they are
// held over a step with their value at INPUT_AT.
#define OWN_TICK
#include "peer.h"

#include "model.h"

static model_kernel kernel;
static double u[MODEL_INPUTS], y[MODEL_OUTPUTS];

static void build() { model_create(&kernel); }

static double speed(int body) { return y[body + (plant->springA < 0)]; }

static void tick(long k) {
#ifndef OWN
	const Input &in = inputs[k];
	const int n = plant->clutches;
	u[plant->springA < 0 ? n : 0] = in.tau;
	for (int i = 0; i < n; i++) u[i + (plant->springA >= 0)] = in.cap[i] / (plant->springA < 0 ? 10 : i ? 800 : 80);
#else
	(void)k;
#endif
	model_step(&kernel, y, u);
}
