
// Coupled clutches: four inertias of 1 kg·m² in a row with three clutches between them. Accelerations
// are constant over a tick, so the angles follow exactly from the speeds at both ends.
static inline void slips(double *s, const double *x) { s[0] = x[1] - x[0], s[1] = x[2] - x[1], s[2] = x[3] - x[2]; }

static inline void move(const PLANT_kernel *k, double *restrict x1) {
	double mean[4];
	for (int i = 0; i < 4; i++) x1[i] = k->x[i] + k->by_inputs[i], mean[i] = PERIOD / 2 * (k->x[i] + x1[i]);
	x1[4] = k->x[4] + mean[0];
	for (int i = 0; i < 3; i++) x1[5 + i] = k->x[5 + i] + (mean[i + 1] - mean[i]);
}

static inline void outputs(const PLANT_kernel *k, double *y) {
	y[0] = k->x[4], y[1] = k->x[0], y[2] = k->x[1], y[3] = k->x[2], y[4] = k->x[3];
	y[5] = k->x[5], y[6] = k->x[6], y[7] = k->x[7];
}
