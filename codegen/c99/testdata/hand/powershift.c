
// Powershift gearbox: four shafts. A clutch ties a wheel that meshes with the shaft before to the
// shaft after it.
static inline void slips(double *s, const double *x) {
	s[0] = x[1] + x[0] / 3, s[1] = x[1] + x[0] / 2;
	s[2] = x[2] + x[1] / 4, s[3] = x[2] + x[1] / 3, s[4] = x[2] + x[1] / 2;
	s[5] = x[3] + x[2] / 4, s[6] = x[3] + x[2] / 2, s[7] = x[3] + x[2];
}

static inline void move(const PLANT_kernel *k, double *restrict x1) {
	for (int i = 0; i < STATES; i++) x1[i] = k->by_inputs[i];
	product(x1, STATES, STATES, &phi[k->set][0][0], k->x);
}

static inline void outputs(const PLANT_kernel *k, double *y) {
	for (int i = 0; i < STATES; i++) y[i] = k->x[i];
	y[4] = 250, y[5] = 1500, y[6] = -k->tau[5] - k->tau[6] - k->tau[7];
}
