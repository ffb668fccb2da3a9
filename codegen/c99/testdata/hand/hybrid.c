
// Hybrid drivetrain: engine, motor, ring 3, carrier, wheel, and the twist of the shaft.
static inline void slips(double *s, const double *x) {
	s[0] = x[0] - x[1], s[1] = x[2], s[2] = 3 * x[3] - 2 * x[1], s[3] = x[1] - x[3];
}

static inline void move(const PLANT_kernel *k, double *restrict x1) {
	for (int i = 0; i < STATES; i++) x1[i] = k->by_inputs[i];
	product(x1, STATES, STATES, &phi[k->set][0][0], k->x);
}

static inline void outputs(const PLANT_kernel *k, double *y) {
	const double *x = k->x, out = 0.6 * x[2] + 0.4 * x[3];
	y[0] = x[0], y[1] = x[1], y[2] = x[2], y[3] = out, y[4] = x[4], y[5] = x[5];
	y[6] = 8000 * x[5] + 60 * (out / 2.5 - x[4]);
	for (int i = 0; i < CLUTCHES; i++) y[7 + i] = k->tau[i], y[11 + i] = k->slip[i];
}
