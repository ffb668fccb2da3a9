// Plant coupled-clutches, written by hand in C for this plant alone: the reference for the speed of
// generated kernels.
//
//	tau -> J1 -- clutch1 -- J2 -- clutch2 -- J3 -- clutch3 -- J4      J = 1 kg·m² each
//
// All torques are parabolas over a substep, so speeds are exactly cubic and angles quartic. Bodies
// that are locked together move as one; each of the eight lock sets has its own equations. Events
// are a slip that reaches zero and a lock that is overloaded. They are located on these polynomials.
// Each clutch makes at most one transition at an event, and the next substep begins there.
#include "hand.h"

#include <math.h>
#include <string.h>

enum { FREE = 2, EVENTS = 64 };

static const double pi = 3.14159265358979323846, period = 1e-3; // s
static const double peak = 1.1, gain = 10, slip0 = 1e-9, tol = 1e-12; // -, N·m, rad/s, s

// balance computes the accelerations and the torques of locked clutches for one power of theta. f
// holds the torques of the other clutches.
static inline void balance(unsigned locked, double t, double *f0, double *f1, double *f2, double a[4]) {
	switch (locked) {
	case 0: a[0] = t + *f0, a[1] = *f1 - *f0, a[2] = *f2 - *f1, a[3] = -*f2; break;
	case 1: a[0] = a[1] = (t + *f1) / 2, a[2] = *f2 - *f1, a[3] = -*f2, *f0 = a[0] - t; break;
	case 2: a[0] = t + *f0, a[1] = a[2] = (*f2 - *f0) / 2, a[3] = -*f2, *f1 = a[1] + *f0; break;
	case 3: a[0] = a[1] = a[2] = (t + *f2) / 3, a[3] = -*f2, *f0 = a[0] - t, *f1 = a[0] + *f0; break;
	case 4: a[0] = t + *f0, a[1] = *f1 - *f0, a[2] = a[3] = -*f1 / 2, *f2 = -a[3]; break;
	case 5: a[0] = a[1] = (t + *f1) / 2, a[2] = a[3] = -*f1 / 2, *f0 = a[0] - t, *f2 = -a[3]; break;
	case 6: a[0] = t + *f0, a[1] = a[2] = a[3] = -*f0 / 3, *f1 = a[1] + *f0, *f2 = -a[3]; break;
	default: a[0] = a[1] = a[2] = a[3] = t / 4, *f0 = a[0] - t, *f1 = a[0] + *f0, *f2 = -a[0]; break;
	}
}

// forces computes all torques and accelerations of the substep in the present modes.
static void forces(hand_kernel *k) {
	const unsigned locked = (k->mode[0] == 0) | (k->mode[1] == 0) << 1 | (k->mode[2] == 0) << 2;
	double d[3], a[4];
	for (int i = 0; i < 3; i++) d[i] = k->mode[i] == FREE ? 0 : k->mode[i];
	for (int j = 0; j < 3; j++) {
		double f0 = d[0] * k->cap[0][j], f1 = d[1] * k->cap[1][j], f2 = d[2] * k->cap[2][j];
		balance(locked, k->torque[j], &f0, &f1, &f2, a);
		k->f[0][j] = f0, k->f[1][j] = f1, k->f[2][j] = f2;
		for (int i = 0; i < 4; i++) k->a[i][j] = a[i];
	}
}

static inline double at(const double q[3], double theta) { return q[0] + theta * (q[1] + theta * q[2]); }

static inline void parabola(double q[3], double a, double b, double e) {
	q[2] = 2 * (a - b) + 2 * (e - b), q[0] = a, q[1] = e - a - q[2];
}

// own returns the value of an input's own source at time t. At a jump it is the value on the side of
// time mid.
static double own(int i, double t, double mid) {
	switch (i) {
	case 0: return sin(2 * pi * 0.2 * t + pi / 2);
	case 1: return mid >= 0.4;
	case 2: return mid >= 0.9;
	default: return 10 * sin(2 * pi * 5 * t);
	}
}

static void inputs(hand_kernel *k, double t, double len) {
	for (int i = 0; i < 4; i++) {
		double a = k->u[i], b = a, e = a;
		if (!k->driven[i]) {
			const double mid = t + len / 2;
			a = own(i, t, mid), b = own(i, mid, mid), e = own(i, t + len, mid);
		}
		if (i == 3) parabola(k->torque, a, b, e);
		else parabola(k->cap[i], gain * (a > 0 ? a : 0), gain * (b > 0 ? b : 0), gain * (e > 0 ? e : 0));
	}
}

static inline double slip(const hand_kernel *k, int i) { return k->w[i + 1] - k->w[i]; }

// resolve_locks releases overloaded locks, the most overloaded first. force is a clutch at its
// capacity, or -1. Then it sets locked bodies to one speed; their speeds differ by rounding only.
static void resolve_locks(hand_kernel *k, double theta, int force) {
	for (int n = 0; n <= 3; n++) {
		int worst = -1;
		double most = 1 + 1e-9;
		forces(k);
		for (int i = 0; i < 3; i++) {
			if (k->mode[i] != 0) continue;
			const double tau = at(k->f[i], theta), r = tau == 0 ? 0 : i == force ? 2 : fabs(tau) / (peak * at(k->cap[i], theta));
			if (r > most) worst = i, most = r;
		}
		if (worst < 0) break;
		k->mode[worst] = at(k->f[worst], theta) > 0 ? 1 : -1;
		k->fresh[worst] = true, force = -1;
	}
	for (int i = 0; i < 4;) {
		int end = i + 1;
		double sum = k->w[i];
		while (end < 4 && k->mode[end - 1] == 0) sum += k->w[end++];
		for (const int n = end - i; i < end; i++) k->w[i] = sum / n;
	}
}

// update_modes adapts the modes to the capacities at the start of a substep.
static void update_modes(hand_kernel *k) {
	bool again = false;
	int before[3];
	memcpy(before, k->mode, sizeof before);
	for (int i = 0; i < 3; i++) {
		const double s = slip(k, i);
		if (!(at(k->cap[i], 0.5) > 0)) k->mode[i] = FREE;
		else if (k->mode[i] == FREE) k->mode[i] = s > slip0 ? 1 : s < -slip0 ? -1 : 0;
		again |= k->mode[i] != before[i] && (k->mode[i] == 0 || before[i] == 0);
		if (fabs(s) > 10 * slip0) k->fresh[i] = false;
	}
	forces(k);
	for (int i = 0; i < 3; i++) again |= k->mode[i] == 0 && fabs(k->f[i][0]) > peak * k->cap[i][0] * (1 + 1e-9);
	if (again) resolve_locks(k, 0, -1);
	int changed = 0;
	for (int i = 0; i < 3; i++) changed += k->mode[i] != before[i];
	k->transitions += changed, k->events += changed > 0;
}

// value returns the value of a cubic.
static inline double value(const double q[4], double x) { return q[0] + x * (q[1] + x * (q[2] + x * q[3])); }

// root returns the first point in [0, 1] at which q becomes negative; 2: none.
static double root(const double q[4]) {
	double a = 0, fa = q[0];
	if (fa < 0) return 0;
	for (int n = 1; n <= 16; n++) {
		double b = n / 16., fb = value(q, b);
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

// may_cross reports whether a curve from a to b with slope r at its start may pass 0 between.
static inline bool may_cross(double a, double b, double r) {
	const double q = b - a - r;
	return r < 0 && q > 0 && a - r * r / (4 * q) <= 0.05 * (q - r);
}

// event returns the first event of clutch i in the substep, a fraction of len; 2: none.
static double event(const hand_kernel *k, int i, double len) {
	const int mode = k->mode[i];
	if (mode == FREE) return 2;
	if (mode != 0) { // the slip, positive
		double q[4], s = mode * slip(k, i), p[3];
		for (int j = 0; j < 3; j++) p[j] = mode * len * (k->a[i + 1][j] - k->a[i][j]);
		q[0] = s + (k->fresh[i] ? slip0 : 0), q[1] = p[0], q[2] = p[1] / 2, q[3] = p[2] / 3;
		const double end = s + q[1] + q[2] + q[3];
		return k->fresh[i] || end <= 0 || may_cross(s, end, p[0]) ? root(q) : 2;
	}
	const double limit = peak * at(k->cap[i], 1), tau = at(k->f[i], 1);
	for (int side = 1; side >= -1; side -= 2) { // reserve of the lock in both directions
		const double *f = k->f[i], *c = k->cap[i];
		if (side * tau > limit * (1 + 1e-9) || may_cross(peak * c[0] - side * f[0], limit - side * tau, peak * c[1] - side * f[1])) {
			double q[4] = {0};
			for (int j = 0; j < 3; j++) q[j] = peak * (1 + 5e-10) * c[j] - side * f[j];
			return root(q);
		}
	}
	return 2;
}

// advance integrates the state up to the fraction theta of a substep.
static void advance(hand_kernel *k, double len, double theta) {
	double dw[4], dphi[4];
	for (int i = 0; i < 4; i++) {
		const double *a = k->a[i], x = theta * len;
		dw[i] = x * (a[0] + theta * (a[1] / 2 + theta * (a[2] / 3)));
		dphi[i] = x * (k->w[i] + x * (a[0] / 2 + theta * (a[1] / 6 + theta * (a[2] / 12))));
	}
	k->phi += dphi[0];
	for (int i = 0; i < 3; i++) k->rel[i] += dphi[i + 1] - dphi[i];
	for (int i = 0; i < 4; i++) k->w[i] += dw[i];
}

// step_to_event advances to the end of a substep or to the first event in it. It returns the time
// advanced, s.
static double step_to_event(hand_kernel *k, double len) {
	double theta = 2;
	int cause = -1;
	for (int i = 0; i < 3; i++) {
		const double e = event(k, i, len);
		if (e < theta) theta = e, cause = i;
	}
	if (cause < 0) {
		advance(k, len, 1);
		return len;
	}
	advance(k, len, theta);
	int before[3], changed = 0, force = k->mode[cause] == 0 ? cause : -1;
	memcpy(before, k->mode, sizeof before);
	for (int i = 0; i < 3; i++)
		if (k->mode[i] != FREE && (i == cause || (!k->fresh[i] && fabs(slip(k, i)) <= 2 * slip0))) k->mode[i] = 0;
	resolve_locks(k, theta, force);
	for (int i = 0; i < 3; i++) changed += k->mode[i] != before[i];
	k->transitions += changed, k->events += changed > 0;
	return theta * len;
}

// next_jump returns the time of the next jump of an input's own source after t, s.
static double next_jump(const hand_kernel *k, double t) {
	return !k->driven[1] && t < 0.4 - tol ? 0.4 : !k->driven[2] && t < 0.9 - tol ? 0.9 : INFINITY;
}

int hand_step(hand_kernel *k, double *y, const double *u) {
	const double t0 = (double)k->tick * period;
	double local = 0;
	memcpy(k->u, u, sizeof k->u);
	k->eta = 1;
	for (int n = 0; n < EVENTS && period - local > tol; n++) {
		const double left = period - local, next = next_jump(k, t0 + local) - t0 - local;
		const double len = next < left ? next : left;
		inputs(k, t0 + local, len);
		update_modes(k);
		const double done = step_to_event(k, len);
		if (done < len && k->eta == 1) k->eta = (local + done) / period;
		local += done;
	}
	k->tick++;
	hand_output(k, y);
	return 0;
}

void hand_output(hand_kernel *k, double *y) {
	const double t = (double)k->tick * period;
	for (int i = 0; i < 4; i++) {
		const double now = k->driven[i] ? k->u[i] : own(i, t, t + tol);
		if (i == 3) parabola(k->torque, now, now, now);
		else parabola(k->cap[i], gain * (now > 0 ? now : 0), gain * (now > 0 ? now : 0), gain * (now > 0 ? now : 0));
	}
	forces(k);
	y[0] = k->phi;
	for (int i = 0; i < 4; i++) y[1 + i] = k->w[i];
	for (int i = 0; i < 3; i++) y[5 + i] = k->rel[i];
	for (int i = 0; i < 3; i++) y[8 + 3 * i] = k->mode[i], y[9 + 3 * i] = slip(k, i), y[10 + 3 * i] = k->f[i][0];
	y[17] = k->eta, y[18] = 0, y[19] = (double)k->events, y[20] = (double)k->transitions, y[21] = 0;
}

void hand_reset(hand_kernel *k) {
	bool driven[4];
	memcpy(driven, k->driven, sizeof driven);
	memset(k, 0, sizeof *k);
	memcpy(k->driven, driven, sizeof driven);
	k->w[0] = 10, k->eta = 1;
	for (int i = 0; i < 3; i++) k->mode[i] = FREE;
}

void hand_create(hand_kernel *k) {
	memset(k, 0, sizeof *k);
	hand_reset(k);
}

void hand_drive(hand_kernel *k, int64_t i, bool on) { k->driven[i] = on; }
bool hand_driven(hand_kernel *k, int64_t i) { return k->driven[i]; }
double hand_own(hand_kernel *k, int64_t i) {
	const double t = (double)k->tick * period + period / 2;
	return own((int)i, t, t);
}
