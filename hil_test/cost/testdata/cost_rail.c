/* The rail car of plant rail17 by Runge-Kutta of order four with steps of 0.5 ms. rail_test.go
 * compares its time with that of lockstep's step of 5 ms. A wheel whose speed passes zero locks at
 * the end of the step; it turns again when the adhesion exceeds its brake.
 *
 *	cost_rail RUNS [trajectory]
 *
 * prints the time for 5 ms, ns: the mean over 8 s and the worst one, each the minimum of RUNS runs.
 * With "trajectory" it then prints every 20 ms the time, s, the speed of the car and the rim speeds
 * of the four wheels, m/s.
 */
#define _POSIX_C_SOURCE 199309L
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { CAR, BOG = 3, AXLE = 9, Q = 13, V = Q, U = 2 * Q, N = 2 * Q + 4 };

static const double H = 0.0005;
static const double m_car = 32000, I_car = 1.6e6, m_bog = 3000, I_bog = 2500, m_w = 1500, m_red = 100 / (0.46 * 0.46);
static const double k_cx = 9.5, k_cy = 1.0, k_cloc = 0.8, k_bx = 1.28, k_by = 0.25, k_bcar = 0.35, k_bbrk = 1.74;
static const double s2x = 4e6, d2x = 40e3, s2y = 0.6e6, d2y = 30e3, s1x = 15e6, d1x = 60e3, s1y = 1.4e6, d1y = 12e3;
static const double mu0 = 0.1, A = 0.2, vstar = 5, Tsgn = 0.05, F_res = 100, FN0 = 107910;

static int locked[4];
static double adhesion[4], capacity[4];

/* path interpolates a table linearly. */
static double path(const double (*row)[2], int rows, double t) {
	if (t <= row[0][0])
		return row[0][1];
	for (int i = 1; i < rows; i++)
		if (t < row[i][0])
			return row[i - 1][1] + (row[i][1] - row[i - 1][1]) * (t - row[i - 1][0]) / (row[i][0] - row[i - 1][0]);
	return row[rows - 1][1];
}

static double loco(double t) {
	static const double row[][2] = {{0, 0}, {0.1, 1e5}, {1.5, 1e5}, {1.6, 0}};
	return path(row, 4, t);
}

static double brake(int w, double t) {
	static const double row[][2] = {{2.0, 0}, {2.2, 22000}, {3.0, 22000}, {3.2, 0}, {3.7, 0}, {4.2, 7500}};
	return path(row, 6, t - 0.05 * w);
}

static void rate(double *d, const double *x, double t) {
	const double *q = x, *v = x + V, *u = x + U;
	double *a = d + V, f = loco(t);
	memcpy(d, v, Q * sizeof *d);
	memset(a, 0, (N - Q) * sizeof *d);
	a[0] = f / m_car;
	a[2] = f * k_cloc / I_car;
	for (int b = 0; b < 2; b++) {
		const double *p = q + BOG + 3 * b, *r = v + BOG + 3 * b;
		double *c = a + BOG + 3 * b, sx = b ? 1 : -1;
		double fx = s2x * (p[0] - k_bcar * p[2] - q[0] - k_cy * q[2]) + d2x * (r[0] - k_bcar * r[2] - v[0] - k_cy * v[2]);
		double fy = s2y * (p[1] - q[1] - sx * k_cx * q[2]) + d2y * (r[1] - v[1] - sx * k_cx * v[2]);
		a[0] += fx / m_car;
		a[1] += fy / m_car;
		a[2] += (fx * k_cy + sx * k_cx * fy) / I_car;
		c[0] -= fx / m_bog;
		c[1] -= fy / m_bog;
		c[2] += fx * k_bcar / I_bog;
		for (int s = 0; s < 2; s++) {
			int w = 2 * b + s;
			double sw = s ? 1 : -1, fb = brake(w, t), most = fb + F_res, share;
			double wx = s1x * (q[AXLE + w] - p[0] - k_by * p[2]) + d1x * (v[AXLE + w] - r[0] - k_by * r[2]);
			double wy = -s1y * (p[1] + sw * k_bx * p[2]) - d1y * (r[1] + sw * k_bx * r[2]);
			double slip = v[AXLE + w] - u[w], sign = fmax(-1, fmin(1, slip / Tsgn));
			double mu = sign * mu0 * ((1 - A) * exp(-fabs(slip) / vstar) + A), grip;
			if (locked[w]) { /* the block carries what the rail gives */
				grip = mu * (FN0 + wy) / (1 + mu * sw * fb / most);
				share = grip / most;
			} else {
				share = u[w] > 0 ? 1 : -1;
				grip = mu * fmax(0, FN0 + wy - sw * fb * share);
				d[U + w] = (grip - share * most) / m_red;
			}
			adhesion[w] = grip;
			capacity[w] = most;
			a[AXLE + w] = (-grip - wx) / m_w;
			c[0] += wx / m_bog;
			c[1] += (wy - sw * fb * share) / m_bog;
			c[2] += (wx * k_by + sw * k_bx * wy - fb * share * k_bbrk) / I_bog;
		}
	}
}

static void step(double *x, double t) {
	double k1[N], k2[N], k3[N], k4[N], y[N], before[4];
	for (int w = 0; w < 4; w++)
		before[w] = x[U + w];
	rate(k1, x, t);
	for (int w = 0; w < 4; w++)
		if (locked[w] && fabs(adhesion[w]) > capacity[w]) {
			locked[w] = 0;
			before[w] = x[U + w] = copysign(1e-12, adhesion[w]);
			rate(k1, x, t);
		}
	for (int i = 0; i < N; i++)
		y[i] = x[i] + H / 2 * k1[i];
	rate(k2, y, t + H / 2);
	for (int i = 0; i < N; i++)
		y[i] = x[i] + H / 2 * k2[i];
	rate(k3, y, t + H / 2);
	for (int i = 0; i < N; i++)
		y[i] = x[i] + H * k3[i];
	rate(k4, y, t + H);
	for (int i = 0; i < N; i++)
		x[i] += H / 6 * (k1[i] + 2 * k2[i] + 2 * k3[i] + k4[i]);
	for (int w = 0; w < 4; w++)
		if (!locked[w] && before[w] * x[U + w] < 0) {
			locked[w] = 1;
			x[U + w] = 0;
		}
}

enum { TICKS = 1600 };

static double least[TICKS]; /* ns */

static double now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

static void ride(int show) {
	double x[N] = {0};
	for (int w = 0; w < 4; w++)
		locked[w] = 1;
	for (int k = 0; k < TICKS; k++) {
		double begun = now();
		for (int i = 0; i < 10; i++)
			step(x, H * (10 * k + i));
		least[k] = fmin(least[k], now() - begun);
		if (show && k % 4 == 3)
			printf("%g,%.12g,%.12g,%.12g,%.12g,%.12g\n", 10 * H * (k + 1), x[V], x[U], x[U + 1], x[U + 2], x[U + 3]);
	}
	if (!(fabs(x[V]) < 1e3))
		exit(1);
}

int main(int argc, char **argv) {
	double mean = 0, worst = 0;
	for (int k = 0; k < TICKS; k++)
		least[k] = INFINITY;
	for (int n = argc > 1 ? atoi(argv[1]) : 1; n > 0; n--)
		ride(0);
	for (int k = 0; k < TICKS; k++) {
		mean += least[k] / TICKS;
		worst = fmax(worst, least[k]);
	}
	printf("%.1f,%.1f\n", mean, worst);
	if (argc > 2)
		ride(1);
	return 0;
}
