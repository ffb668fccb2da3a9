// A tick with held inputs of a plant with clutches, written by hand for speed: the yardstick of the
// generated kernels. speed_test.go puts it between two texts: before it, tables of the matrices over a
// whole tick for each lock set, as constants, column by column; after it, what is of one plant.
//
// A tick without an event is x = phi·x + g·w + gc. It holds an event if a slip passes zero or a lock
// torque passes the capacity at its end. Then the state is expanded as a Taylor polynomial, and the
// first event is located. An element locks where its slip is zero, and the most overloaded lock
// breaks.
enum { FREE = 2, EVENTS = 64 };

static const double slip0 = 1e-9, excess = 1e-9; // rad/s, 1

// Of one plant: the slips, phi·x, the outputs but those of clutches.
static inline void slips(double *s, const double *x);
static inline void move(const PLANT_kernel *k, double *restrict x1);
static inline void outputs(const PLANT_kernel *k, double *y);

static inline void product(double *restrict dst, int rows, int columns, const double *restrict a, const double *restrict x) {
	for (int j = 0; j < columns; j++)
		for (int i = 0; i < rows; i++) dst[i] += a[j * rows + i] * x[j];
}

static inline double lock_torque(const PLANT_kernel *k, int i, const double *x) {
	double s = 0;
	for (int j = 0; j < TORQUE_STATES; j++) s += t[k->set][i][j] * x[j];
	return s;
}

static inline void torques(PLANT_kernel *k) {
	for (int i = 0; i < CLUTCHES; i++)
		k->tau[i] = k->mode[i] == 0 ? lock_torque(k, i, k->x) + k->tau_by_inputs[i] : k->w[WIDTH - CLUTCHES + i];
}

static void select_set(PLANT_kernel *k) {
	k->set = 0;
	for (int i = 0; i < CLUTCHES; i++) {
		k->set |= (int64_t)(k->mode[i] == 0) << i;
		k->w[WIDTH - CLUTCHES + i] = k->mode[i] == 0 || k->mode[i] == FREE ? 0 : k->mode[i] * k->cap[i];
	}
	memcpy(k->by_inputs, gc[k->set][0], sizeof k->by_inputs);
	product(k->by_inputs, STATES, WIDTH, &g[k->set][0][0], k->w);
	for (int i = 0; i < CLUTCHES; i++) {
		if (k->mode[i] != 0) continue;
		k->tau_by_inputs[i] = uc[k->set][0][i];
		for (int j = 0; j < WIDTH; j++) k->tau_by_inputs[i] += u[k->set][i][j] * k->w[j];
	}
	torques(k);
}

// resolve breaks overloaded locks, the most overloaded first, and projects the state onto the others.
// force is a lock at its capacity, or -1.
static void resolve(PLANT_kernel *k, int force) {
	double x[STATES] = {0};
	for (int n = 0; n <= CLUTCHES; n++) {
		int worst = -1;
		double most = 1 + excess;
		select_set(k);
		for (int i = 0; i < CLUTCHES; i++) {
			const double r = k->mode[i] || k->tau[i] == 0 ? 0 : i == force ? INFINITY : fabs(k->tau[i]) / (peak[i] * k->cap[i]);
			if (r > most) worst = i, most = r;
		}
		if (worst < 0) break;
		k->mode[worst] = k->tau[worst] > 0 ? 1 : -1, k->fresh[worst] = true, force = -1;
	}
	product(x, STATES, STATES, &p[k->set][0][0], k->x);
	memcpy(k->x, x, sizeof x);
	slips(k->slip, k->x), torques(k);
}

static void count(PLANT_kernel *k, const int8_t *before) {
	int changed = 0;
	for (int i = 0; i < CLUTCHES; i++) changed += k->mode[i] != before[i];
	k->transitions += changed, k->events += changed > 0;
}

// hold takes new inputs: capacities, and the modes at the start of the tick.
static void hold(PLANT_kernel *k, const double *in) {
	int8_t before[CLUTCHES];
	bool again = false;
	memcpy(k->in, in, sizeof k->in), memcpy(before, k->mode, sizeof before);
	for (int j = 0; j < WIDTH - CLUTCHES; j++) k->w[j] = in[act_input[j]];
	for (int i = 0; i < CLUTCHES; i++) {
		k->cap[i] = gain[i] * fmax(0, in[press_input[i]] - offset[i]);
		if (!(k->cap[i] > 0)) k->mode[i] = FREE;
		else if (k->mode[i] == FREE) k->mode[i] = k->slip[i] > slip0 ? 1 : k->slip[i] < -slip0 ? -1 : 0;
		again |= k->mode[i] != before[i] && (k->mode[i] == 0 || before[i] == 0);
	}
	select_set(k);
	for (int i = 0; i < CLUTCHES; i++) again |= k->mode[i] == 0 && fabs(k->tau[i]) > peak[i] * k->cap[i] * (1 + excess);
	if (again) resolve(k, -1);
	count(k, before);
}

static inline double value(const double *q, double theta) {
	double s = q[DEGREE];
	for (int j = DEGREE - 1; j >= 0; j--) s = s * theta + q[j];
	return s;
}

// root returns the first point in [0, 1] at which q becomes negative; 2: none.
static double root(const double *q) {
	double a = 0, fa = q[0];
	if (fa < 0) return 0;
	for (int n = 1; n <= 8; n++) {
		double b = n / 8., fb = value(q, b);
		if (fb >= 0) {
			a = b, fa = fb;
			continue;
		}
		for (int i = 0; i < 90; i++) {
			double m = i % 3 == 2 ? a + (b - a) / 2 : b - fb * (b - a) / (fb - fa);
			if (m <= a || m >= b) m = a + (b - a) / 2;
			if (m <= a || m >= b) break;
			const double fm = value(q, m);
			if (fm >= 0) a = m, fa = fm;
			else b = m, fb = fm;
		}
		return b;
	}
	return 2;
}

// finish takes the part of a tick from local on, whose event is known, in substeps of events.
static void finish(PLANT_kernel *k, double local) {
	for (int n = 0; n < EVENTS && PERIOD - local > 1e-12; n++) {
		double c[DEGREE + 1][STATES], rows[CLUTCHES][DEGREE + 1], theta = 2, len = PERIOD - local;
		int cause = -1;
		memcpy(c[0], k->x, sizeof c[0]);
		for (int j = 0; j < DEGREE; j++) {
			memset(c[j + 1], 0, sizeof c[j + 1]);
			product(c[j + 1], STATES, STATES, &a[k->set][0][0], c[j]);
			if (j == 0) {
				product(c[1], STATES, WIDTH, &b[k->set][0][0], k->w);
				for (int i = 0; i < STATES; i++) c[1][i] += bc[k->set][0][i];
			}
			for (int i = 0; i < STATES; i++) c[j + 1][i] *= len / (j + 1);
		}
		for (int j = 0; j <= DEGREE; j++) {
			double s[CLUTCHES];
			slips(s, c[j]);
			for (int i = 0; i < CLUTCHES; i++) rows[i][j] = s[i];
		}
		for (int i = 0; i < CLUTCHES; i++) {
			double q[DEGREE + 1], e;
			if (k->mode[i] == FREE) continue;
			if (k->mode[i] != 0) {
				for (int j = 0; j <= DEGREE; j++) q[j] = k->mode[i] * rows[i][j];
				q[0] += k->fresh[i] ? slip0 : 0;
			} else {
				double tau1 = 0;
				for (int j = 0; j <= DEGREE; j++) {
					q[j] = lock_torque(k, i, c[j]) + (j == 0 ? k->tau_by_inputs[i] : 0);
					tau1 += q[j];
				}
				const double side = tau1 > 0 ? 1 : -1;
				for (int j = 0; j <= DEGREE; j++) q[j] *= -side;
				q[0] += peak[i] * (1 + excess / 2) * k->cap[i];
			}
			e = root(q);
			if (e < theta) theta = e, cause = i;
		}
		const double at = cause < 0 ? 1 : theta;
		for (int i = 0; i < STATES; i++) {
			double s = c[DEGREE][i];
			for (int j = DEGREE - 1; j >= 0; j--) s = s * at + c[j][i];
			k->x[i] = s;
		}
		local += at * len;
		slips(k->slip, k->x);
		if (cause < 0) break;
		if (k->eta == 1) k->eta = local / PERIOD;
		int8_t before[CLUTCHES];
		memcpy(before, k->mode, sizeof before);
		const int force = k->mode[cause] == 0 ? cause : -1;
		for (int i = 0; i < CLUTCHES; i++)
			if (k->mode[i] != FREE && (i == cause || (!k->fresh[i] && fabs(k->slip[i]) <= 2 * slip0))) k->mode[i] = 0;
		resolve(k, force);
		count(k, before);
	}
	torques(k);
}

static inline void write(const PLANT_kernel *k, double *restrict y) {
	outputs(k, y);
	y += OUTPUTS - 5 - 3 * CLUTCHES;
	for (int i = 0; i < CLUTCHES; i++) y[3 * i] = k->mode[i], y[3 * i + 1] = k->slip[i], y[3 * i + 2] = k->tau[i];
	y += 3 * CLUTCHES;
	y[0] = k->eta, y[1] = 0, y[2] = (double)k->events, y[3] = (double)k->transitions, y[4] = 0;
}

void PLANT_output(PLANT_kernel *k, double *y) { write(k, y); }

int PLANT_step(PLANT_kernel *k, double *y, const double *in) {
	double x1[STATES], s[CLUTCHES], tau[CLUTCHES];
	bool event = false;
	if (memcmp(in, k->in, sizeof k->in) != 0) hold(k, in);
	k->eta = 1;
	move(k, x1);
	slips(s, x1);
	for (int i = 0; i < CLUTCHES; i++) {
		tau[i] = k->tau[i];
		if (k->mode[i] == 0) {
			tau[i] = lock_torque(k, i, x1) + k->tau_by_inputs[i];
			event |= fabs(tau[i]) > peak[i] * k->cap[i];
		} else if (k->mode[i] != FREE) {
			event |= k->fresh[i] || k->mode[i] * s[i] <= 0;
		}
	}
	if (event) {
		finish(k, 0);
		for (int i = 0; i < CLUTCHES; i++) k->fresh[i] &= fabs(k->slip[i]) <= 10 * slip0;
	} else {
		for (int i = 0; i < STATES; i++) k->x[i] = x1[i];
		for (int i = 0; i < CLUTCHES; i++) k->slip[i] = s[i], k->tau[i] = tau[i];
	}
	write(k, y);
	return 0;
}

void PLANT_reset(PLANT_kernel *k) {
	memset(k, 0, sizeof *k);
	memcpy(k->x, x0, sizeof x0);
	for (int i = 0; i < CLUTCHES; i++) k->mode[i] = FREE;
	slips(k->slip, k->x);
	hold(k, in0);
	k->events = k->transitions = 0, k->eta = 1;
}

void PLANT_create(PLANT_kernel *k) { PLANT_reset(k); }

// Inputs always follow u.
void PLANT_drive(PLANT_kernel *k, int64_t i, bool on) { (void)k, (void)i, (void)on; }
bool PLANT_driven(PLANT_kernel *k, int64_t i) { return (void)k, (void)i, true; }
double PLANT_own(PLANT_kernel *k, int64_t i) { return k->in[i]; }
