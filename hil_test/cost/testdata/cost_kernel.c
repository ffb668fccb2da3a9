// Coupled clutches in C: the reference of TestCostAgainstC, the method of model/kernel for one
// plant. The exact transition matrices of each lock set are computed before the run; inputs are
// parabolas over a substep. The kernel locates a slip that reaches zero and a lock torque that
// reaches the static capacity. Each element makes one transition at the event; then the kernel
// finishes the tick.
//
//	torque -> J1 -- clutch1 -- J2 -- clutch2 -- J3 -- clutch3 -- J4
//
//	cost_kernel PERIOD_NS TICKS RUNS sources|commands [trajectory]
//
// prints the minimum time per step of RUNS runs, ns. With "trajectory" it then prints the outputs
// of every tick: the state, then mode, slip and torque of each clutch. "commands" holds all four
// inputs over each tick, like values from a bus.
#define _POSIX_C_SOURCE 199309L // clock_gettime
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { N = 8, K = 3, M = 1, W = M + K, SETS = 1 << K, DEG = 5, P = N + 3 * K, FREE = 2 };

static const double pi = 3.14159265358979323846;
static const double peak = 1.1, gain = 10, slip0 = 1e-9, tolerance = 1e-12; // -, N·m, rad/s, s
static const double slipRow[K][N] = {{-1, 1}, {0, -1, 1}, {0, 0, -1, 1}}; // s = slipRow·x
static const double act[N][W] = {{1, 1}, {0, -1, 1}, {0, 0, -1, 1}, {0, 0, 0, -1}}; // x' = a·x + act·(tau, friction), J = 1 kg·m²
static const double motion[N][N] = {{0}, {0}, {0}, {0}, {1}, {-1, 1}, {0, -1, 1}, {0, 0, -1, 1}};

// Matrices of one lock set; w(theta) = w0 + w1·theta + w2·theta².
typedef struct {
	double phi[N][N], g0[N][W], g1[N][W], g2[N][W]; // one period
	double a[N][N], b[N][W], p[N][N];               // continuous, and the projection
	double t[K][N], u[K][W];                        // lock torques t·x + u·w
} Set;

static Set sets[SETS], *set;
static double h, x[N], x1[N], xd[N], c[DEG + 1][N], w0[W], w1[W], w2[W], cap[K][3], slip[K], tau[K], in[4];
static int mode[K], fresh[K], held;
static long tick;

static double dot(int n, const double *a, const double *b) {
	double s = 0;
	for (int i = 0; i < n; i++) s += a[i] * b[i];
	return s;
}

static double at(const double *q, double theta) { return fmax(0, q[0] + theta * (q[1] + theta * q[2])); }

// lockInverse inverts slipRow·act of the locked elements by Gauss-Jordan; the rows
// and columns of the others are zero.
static void lockInverse(int kappa, double inv[K][K]) {
	double g[K][K] = {{0}};
	for (int i = 0; i < K; i++)
		for (int j = 0; j < K; j++) {
			int both = (kappa >> i & 1) && (kappa >> j & 1);
			inv[i][j] = i == j;
			for (int q = 0; q < N; q++) g[i][j] += both ? slipRow[i][q] * act[q][M + j] : 0;
			if (!both) g[i][j] = i == j;
		}
	for (int i = 0; i < K; i++) {
		double d = g[i][i];
		for (int j = 0; j < K; j++) g[i][j] /= d, inv[i][j] /= d;
		for (int r = 0; r < K; r++) {
			double f = r == i ? 0 : g[r][i];
			for (int j = 0; j < K; j++) g[r][j] -= f * g[i][j], inv[r][j] -= f * inv[i][j];
		}
	}
	for (int i = 0; i < K; i++)
		if (!(kappa >> i & 1)) inv[i][i] = 0;
}

static void prepare(int kappa) {
	Set *s = &sets[kappa];
	double inv[K][K], lock[K][N] = {{0}}, bin[N][W], power[N][N] = {{0}}, next[N][N];
	double f[4] = {1, 1, 0.5, 1. / 6}, series[4][N][N] = {{{0}}};
	lockInverse(kappa, inv);
	for (int i = 0; i < K; i++)
		for (int j = 0; j < N; j++)
			for (int q = 0; q < K; q++) lock[i][j] += inv[i][q] * slipRow[q][j];
	for (int i = 0; i < N; i++)
		for (int j = 0; j < W; j++) bin[i][j] = j >= M && (kappa >> (j - M) & 1) ? 0 : act[i][j];
	for (int i = 0; i < N; i++)
		for (int j = 0; j < N; j++) {
			s->p[i][j] = power[i][j] = i == j;
			for (int q = 0; q < K; q++) s->p[i][j] -= act[i][M + q] * lock[q][j];
		}
	for (int q = 0; q < N; q++) {
		for (int i = 0; i < N; i++) {
			for (int j = 0; j < N; j++) s->a[i][j] += s->p[i][q] * motion[q][j];
			for (int j = 0; j < W; j++) s->b[i][j] += s->p[i][q] * bin[q][j];
		}
		for (int i = 0; i < K; i++) {
			for (int j = 0; j < N; j++) s->t[i][j] -= lock[i][q] * motion[q][j];
			for (int j = 0; j < W; j++) s->u[i][j] -= lock[i][q] * bin[q][j];
		}
	}
	for (int k = 0; k < 24; k++) { // series[r] = sum (a·h)^k / (k+r)!
		for (int r = 0; r < 4; r++) {
			for (int i = 0; i < N; i++)
				for (int j = 0; j < N; j++) series[r][i][j] += f[r] * power[i][j];
			f[r] /= k + 1 + r;
		}
		memset(next, 0, sizeof next);
		for (int i = 0; i < N; i++)
			for (int q = 0; q < N; q++)
				for (int j = 0; j < N; j++) next[i][j] += power[i][q] * s->a[q][j] * h;
		memcpy(power, next, sizeof power);
	}
	memcpy(s->phi, series[0], sizeof s->phi);
	for (int i = 0; i < N; i++)
		for (int j = 0; j < W; j++)
			for (int q = 0; q < N; q++) {
				s->g0[i][j] += h * series[1][i][q] * s->b[q][j];
				s->g1[i][j] += h * series[2][i][q] * s->b[q][j];
				s->g2[i][j] += 2 * h * series[3][i][q] * s->b[q][j];
			}
}

// sources sets v to the torque, N·m, and the fractions of clutch1..3 at time t. mid is an instant of
// the substep, which selects the side of a jump at t.
static void sources(double t, double mid, double *v) {
	v[0] = 10 * sin(2 * pi * 5 * t);
	v[1] = sin(2 * pi * 0.2 * t + pi / 2);
	v[2] = mid >= 0.4;
	v[3] = mid >= 0.9;
}

static double breakpoint(double t) { return t < 0.4 - tolerance ? 0.4 : t < 0.9 - tolerance ? 0.9 : INFINITY; }

static void parabola(double a, double b, double e, double *q0, double *q1, double *q2) {
	*q0 = a, *q2 = 2 * (a - b) + 2 * (e - b), *q1 = e - a - *q2;
}

static void setTorque(int i) { // torque of a slipping element over the substep
	double d = mode[i] == FREE ? 0 : mode[i];
	w0[M + i] = d * cap[i][0], w1[M + i] = d * cap[i][1], w2[M + i] = d * cap[i][2];
}

static void inputs(double t, double len) {
	double a[4], b[4], e[4], mid = t + len / 2;
	if (held) {
		memcpy(a, in, sizeof in), memcpy(b, in, sizeof in), memcpy(e, in, sizeof in);
	} else {
		sources(t, mid, a), sources(mid, mid, b), sources(t + len, mid, e);
	}
	parabola(a[0], b[0], e[0], w0, w1, w2);
	for (int i = 0; i < K; i++) {
		double *q = cap[i];
		parabola(gain * fmax(0, a[i + 1]), gain * fmax(0, b[i + 1]), gain * fmax(0, e[i + 1]), q, q + 1, q + 2);
		setTorque(i);
	}
}

static void lockTorques(const double *at_x, double theta) {
	double w[W];
	for (int j = 0; j < W; j++) w[j] = w0[j] + theta * (w1[j] + theta * w2[j]);
	for (int i = 0; i < K; i++)
		tau[i] = mode[i] == 0 ? dot(N, set->t[i], at_x) + dot(W, set->u[i], w) : mode[i] == FREE ? 0 : w[M + i];
}

static void selectSet(void) { set = &sets[(mode[0] == 0) | (mode[1] == 0) << 1 | (mode[2] == 0) << 2]; }

// resolveModes releases overloaded locks, the worst first, and projects the state onto the locks.
// force is a lock at its static capacity, or -1.
static void resolveModes(double theta, int force) {
	for (int n = 0; n <= K; n++) {
		int worst = -1;
		double most = 1 + 1e-9;
		selectSet();
		lockTorques(x, theta);
		for (int i = 0; i < K; i++) {
			double r = mode[i] || tau[i] == 0 ? 0 : i == force ? 2 : fabs(tau[i]) / (peak * at(cap[i], theta));
			if (r > most) worst = i, most = r;
		}
		if (worst < 0) break;
		mode[worst] = tau[worst] > 0 ? 1 : -1, fresh[worst] = 1, force = -1;
		setTorque(worst);
	}
	for (int i = 0; i < N; i++) x1[i] = dot(N, set->p[i], x);
	memcpy(x, x1, sizeof x);
	for (int i = 0; i < K; i++) setTorque(i);
}

static void startSubstep(void) { // modes at the start of a substep
	int again = 0;
	for (int i = 0; i < K; i++) {
		int was = mode[i], active = cap[i][0] + cap[i][1] / 2 + cap[i][2] / 4 > (held ? 0 : 1e-12); // N·m: rounding of a sine
		slip[i] = dot(N, slipRow[i], x);
		if (!active) mode[i] = FREE;
		else if (was == FREE) mode[i] = slip[i] > slip0 ? 1 : slip[i] < -slip0 ? -1 : 0;
		again |= was != mode[i] && (was == 0 || mode[i] == 0);
		if (was != mode[i]) setTorque(i);
		if (fabs(slip[i]) > 10 * slip0) fresh[i] = 0;
	}
	selectSet();
	lockTorques(x, 0);
	for (int i = 0; i < K; i++) again |= mode[i] == 0 && fabs(tau[i]) > peak * fmax(0, cap[i][0]) * (1 + 1e-9);
	if (again) resolveModes(0, -1);
}

static void expand(double len) { // Taylor coefficients of x over the substep
	const double *w[3] = {w0, w1, w2};
	memcpy(c[0], x, sizeof x);
	for (int j = 0; j < DEG; j++)
		for (int i = 0; i < N; i++)
			c[j + 1][i] = len / (j + 1) * (dot(N, set->a[i], c[j]) + (j < 3 ? dot(W, set->b[i], w[j]) : 0));
}

static void evaluate(double theta, double *dst) {
	for (int i = 0; i < N; i++) {
		dst[i] = c[DEG][i];
		for (int j = DEG - 1; j >= 0; j--) dst[i] = dst[i] * theta + c[j][i];
	}
}

// dipsBelowZero reports whether a curve from a to b with slope r at its start may reach zero between.
// The vertex of a straight line is anywhere, by rounding.
static int dipsBelowZero(double a, double b, double r) {
	double q = b - a - r;
	return r < 0 && q > 0 && (-r < 2 * q ? a - r * r / (4 * q) : b) <= 0.05 * (q - r);
}

// mayHoldEvent returns the side (+1, -1) on which element i may have an event in the substep, or 0.
static int mayHoldEvent(int i, double len, double tau0) {
	if (mode[i] == FREE) return 0;
	if (mode[i]) {
		double a = mode[i] * slip[i], b = mode[i] * dot(N, slipRow[i], x1);
		return fresh[i] || b <= 0 || dipsBelowZero(a, b, mode[i] * dot(N, slipRow[i], xd) * len) ? mode[i] : 0;
	}
	double limit = peak * at(cap[i], 1), slope = len * dot(N, set->t[i], xd) + dot(W, set->u[i], w1);
	if (fabs(tau[i]) > limit * (1 + 1e-9)) return tau[i] > 0 ? 1 : -1;
	for (int s = 1; s >= -1; s -= 2)
		if (dipsBelowZero(peak * cap[i][0] - s * tau0, limit - s * tau[i], peak * cap[i][1] - s * slope)) return s;
	return 0;
}

static double polynomial(const double *q, double theta) {
	double s = 0;
	for (int j = DEG; j >= 0; j--) s = s * theta + q[j];
	return s;
}

// root returns the first point in [0, 1] where q becomes negative; 2: none.
static double root(const double *q) {
	double a = 0, fa = polynomial(q, 0);
	if (fa < 0) return 0;
	for (int n = 1; n <= 16; n++) {
		double b = n / 16., fb = polynomial(q, b);
		if (fb >= 0) {
			a = b, fa = fb;
			continue;
		}
		for (int k = 0; k < 90; k++) {
			double m = k % 3 == 2 ? a + (b - a) / 2 : b - fb * (b - a) / (fb - fa);
			if (m <= a || m >= b) m = a + (b - a) / 2;
			if (m <= a || m >= b) break;
			double fm = polynomial(q, m);
			if (fm >= 0) a = m, fa = fm;
			else b = m, fb = fm;
		}
		return b;
	}
	return 2;
}

static double firstEvent(int i, int side) { // first event of element i
	double q[DEG + 1] = {0};
	for (int j = 0; j <= DEG; j++) q[j] = mode[i] ? side * dot(N, slipRow[i], c[j]) : -side * dot(N, set->t[i], c[j]);
	if (mode[i]) {
		q[0] += fresh[i] ? slip0 : 0;
		return root(q);
	}
	const double *w[3] = {w0, w1, w2};
	for (int j = 0; j < 3; j++) q[j] += peak * (1 + 5e-10) * cap[i][j] - side * dot(W, set->u[i], w[j]);
	return root(q);
}

// advance steps to the end of the substep or to the first event in it. It returns the time, s.
static double advance(double len) {
	int side[K], any = 0, cause = -1, whole = len == h;
	double tau0[K], theta = 2;
	if (whole) {
		for (int i = 0; i < N; i++)
			x1[i] = dot(N, set->phi[i], x) + dot(W, set->g0[i], w0) + dot(W, set->g1[i], w1) + dot(W, set->g2[i], w2);
	} else {
		expand(len), evaluate(1, x1);
	}
	for (int i = 0; i < N; i++) xd[i] = dot(N, set->a[i], x) + dot(W, set->b[i], w0);
	for (int i = 0; i < K; i++) slip[i] = dot(N, slipRow[i], x);
	memcpy(tau0, tau, sizeof tau);
	lockTorques(x1, 1);
	for (int i = 0; i < K; i++) any |= side[i] = mayHoldEvent(i, len, tau0[i]);
	if (any && whole) expand(len);
	for (int i = 0; any && i < K; i++) {
		double e = side[i] ? firstEvent(i, side[i]) : 2;
		if (e < theta) theta = e, cause = i;
	}
	if (cause < 0) {
		memcpy(x, x1, sizeof x);
		return len;
	}
	evaluate(theta, x);
	int force = mode[cause] == 0 ? cause : -1;
	for (int i = 0; i < K; i++)
		if (mode[i] != FREE && (i == cause || (!fresh[i] && fabs(dot(N, slipRow[i], x)) <= 2 * slip0))) {
			mode[i] = 0;
			setTorque(i);
		}
	resolveModes(theta, force);
	return theta * len;
}

static void step(double *y) {
	double t0 = tick * h, local = 0, now[4];
	for (int n = 0; n < 64 && h - local > tolerance; n++) {
		double left = h - local, next = breakpoint(t0 + local) - t0 - local, len = held ? left : fmin(left, next);
		if (len > h - tolerance) len = h;
		inputs(t0 + local, len);
		startSubstep();
		local += advance(len);
	}
	tick++;
	if (held) memcpy(now, in, sizeof in);
	else sources(tick * h, tick * h + tolerance, now);
	parabola(now[0], now[0], now[0], w0, w1, w2);
	for (int i = 0; i < K; i++) {
		cap[i][0] = gain * fmax(0, now[i + 1]), cap[i][1] = cap[i][2] = 0;
		setTorque(i);
	}
	if (held) {
		selectSet();
		lockTorques(x, 0);
	} else { // a source that changes a mode at the grid time does so in this tick
		startSubstep();
	}
	memcpy(y, x, sizeof x);
	for (int i = 0; i < K; i++) y[N + 3 * i] = mode[i], y[N + 3 * i + 1] = dot(N, slipRow[i], x), y[N + 3 * i + 2] = tau[i];
}

static void reset(void) {
	memset(x, 0, sizeof x);
	x[0] = 10, tick = 0;
	for (int i = 0; i < K; i++) mode[i] = FREE, fresh[i] = 0;
}

static double seconds(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + 1e-9 * t.tv_nsec;
}

int main(int argc, char **argv) {
	if (argc < 5) return 2;
	long ticks = atol(argv[2]), runs = atol(argv[3]);
	double y[P], best = INFINITY, *u = malloc(ticks * sizeof in);
	h = atol(argv[1]) * 1e-9, held = !strcmp(argv[4], "commands");
	for (int i = 0; i < SETS; i++) prepare(i);
	for (long k = 0; k < ticks; k++) sources(k * h, k * h + tolerance, u + 4 * k);
	for (long r = 0; r < runs; r++) {
		reset();
		double start = seconds();
		for (long k = 0; k < ticks; k++) {
			memcpy(in, u + 4 * k, sizeof in);
			step(y);
		}
		best = fmin(best, seconds() - start);
	}
	printf("%.4f\n", best / ticks * 1e9);
	reset();
	for (long k = 0; argc > 5 && k < ticks; k++) {
		memcpy(in, u + 4 * k, sizeof in);
		step(y);
		for (int i = 0; i < P; i++) printf("%.17g%c", y[i], i < P - 1 ? ',' : '\n');
	}
	free(u);
	return 0;
}
