// CVODE: BDF with root finding, tolerance 1e-9. Inputs are continuous; the integration starts again at
// each jump of an input and at each event: a slip that reaches zero, a lock at its static capacity.
#include <cvode/cvode.h>
#include <nvector/nvector_serial.h>
#include <sunlinsol/sunlinsol_dense.h>
#include <sunmatrix/sunmatrix_dense.h>

#include <utility>

#define OWN_TICK
#include "peer.h"

static SUNContext context;
static void *solver;
static N_Vector y;
static SUNMatrix jacobian;
static SUNLinearSolver linear;
static int mode[3]; // -1, 1: slips; 0: locked
static double side; // instant that selects the side of a jump

static double signOf(int i, int body) { return plant->clutch[i].b == body ? 1 : plant->clutch[i].a == body ? -1 : 0; }

// solve sets the torques of all clutches and the accelerations. Locks keep their slip: a small linear
// system, by Gauss-Jordan.
static void solve(double t, const double *x, double *tau, double *a) {
	double f[4] = {torque(*plant, t, side)}, g[3][4];
	const int n = plant->clutches;
	if (plant->springA >= 0) {
		const double s = plant->c * x[plant->bodies] + plant->d * (x[plant->springB] - x[plant->springA]);
		f[plant->springA] += s, f[plant->springB] -= s;
	}
	for (int i = 0; i < n; i++) tau[i] = mode[i] ? -mode[i] * capacity(*plant, i, t, side) : 0;
	for (int i = 0; i < n; i++) {
		for (int j = 0; j <= n; j++) g[i][j] = i == j;
		if (mode[i]) {
			g[i][n] = tau[i];
			continue;
		}
		g[i][i] = g[i][n] = 0;
		for (int b = 0; b < plant->bodies; b++) {
			g[i][n] -= signOf(i, b) * f[b] / plant->J[b];
			for (int j = 0; j < n; j++) g[i][j] += signOf(i, b) * signOf(j, b) / plant->J[b];
		}
	}
	for (int i = 0; i < n; i++) {
		const double d = g[i][i];
		for (int j = 0; j <= n; j++) g[i][j] /= d;
		for (int r = 0; r < n; r++) {
			const double q = r == i ? 0 : g[r][i];
			for (int j = 0; j <= n; j++) g[r][j] -= q * g[i][j];
		}
	}
	for (int i = 0; i < n; i++) tau[i] = g[i][n];
	for (int b = 0; b < plant->bodies; b++) {
		a[b] = f[b] / plant->J[b];
		for (int i = 0; i < n; i++) a[b] += signOf(i, b) * tau[i] / plant->J[b];
	}
}

static double slipAt(int i, const double *x) {
	const Clutch &c = plant->clutch[i];
	return (c.b < 0 ? 0 : x[c.b]) - x[c.a];
}

static int rate(realtype t, N_Vector at, N_Vector out, void *) {
	double tau[3];
	const double *x = N_VGetArrayPointer(at);
	double *d = N_VGetArrayPointer(out);
	solve(t, x, tau, d);
	if (plant->springA >= 0) d[plant->bodies] = x[plant->springB] - x[plant->springA];
	return 0;
}

static int roots(realtype t, N_Vector at, realtype *g, void *) {
	double tau[3], a[4];
	const double *x = N_VGetArrayPointer(at);
	solve(t, x, tau, a);
	for (int i = 0; i < plant->clutches; i++)
		g[i] = mode[i] ? slipAt(i, x) : plant->clutch[i].peak * capacity(*plant, i, t, side) - std::fabs(tau[i]);
	return 0;
}

// settle gives each clutch its mode after an event or a jump: at zero slip it locks, and the most
// overloaded lock breaks until none is overloaded.
static void settle(double t, const int *hit) {
	double *x = N_VGetArrayPointer(y), tau[3], a[4];
	bool broken[3] = {false};
	for (int i = 0; i < plant->clutches; i++) {
		const double s = slipAt(i, x);
		if (!mode[i] && hit && hit[i]) broken[i] = true;
		if (mode[i] && (std::fabs(s) < 1e-9 || (hit && hit[i]))) mode[i] = 0;
		else if (mode[i]) mode[i] = s > 0 ? 1 : -1;
	}
	for (int n = 0; n <= plant->clutches; n++) {
		int worst = -1;
		double most = 1;
		solve(t, x, tau, a);
		for (int i = 0; i < plant->clutches; i++) {
			const double limit = plant->clutch[i].peak * capacity(*plant, i, t, side);
			const double r = mode[i] ? 0 : broken[i] ? 2 : std::fabs(tau[i]) > 0 && limit <= 0 ? INFINITY : std::fabs(tau[i]) / limit;
			if (r > most) most = r, worst = i;
		}
		if (worst < 0) break;
		mode[worst] = tau[worst] > 0 ? -1 : 1, broken[worst] = false;
	}
	for (int i = 0; i < plant->clutches; i++) // rounding and tolerance of the slip of a lock; momentum stays
		if (!mode[i]) {
			const Clutch &c = plant->clutch[i];
			const double ja = plant->J[c.a], jb = c.b < 0 ? INFINITY : plant->J[c.b];
			const double w = c.b < 0 ? 0 : (ja * x[c.a] + jb * x[c.b]) / (ja + jb);
			x[c.a] = w;
			if (c.b >= 0) x[c.b] = w;
		}
	CVodeReInit(solver, t, y);
}

static void build() {
	const int n = plant->bodies + (plant->springA >= 0);
	if (!context) SUNContext_Create(nullptr, &context);
	if (solver) CVodeFree(&solver), SUNLinSolFree(linear), SUNMatDestroy(jacobian), N_VDestroy(y);
	y = N_VNew_Serial(n, context);
	double *x = N_VGetArrayPointer(y);
	for (int i = 0; i < n; i++) x[i] = i < plant->bodies ? plant->w0[i] : 0;
	side = 0;
	for (int i = 0; i < plant->clutches; i++) mode[i] = slipAt(i, x) < 0 ? -1 : 1;
	solver = CVodeCreate(CV_BDF, context);
	CVodeInit(solver, rate, 0, y);
	CVodeSStolerances(solver, 1e-9, 1e-9);
	jacobian = SUNDenseMatrix(n, n, context);
	linear = SUNLinSol_Dense(y, jacobian, context);
	CVodeSetLinearSolver(solver, linear, jacobian);
	CVodeRootInit(solver, plant->clutches, roots);
	CVodeSetNoInactiveRootWarn(solver);
	CVodeSetMaxNumSteps(solver, 100000);
	CVodeSetErrHandlerFn(solver, [](int, const char *, const char *, char *, void *) {}, nullptr);
	settle(0, nullptr);
}

static double speed(int body) { return N_VGetArrayPointer(y)[body]; }

static void tick(long k) {
	double t = k * h, end = (k + 1) * h;
	side = t + h / 2;
	for (double jump : plant->jumps)
		if (std::fabs(jump - t) < h / 4) settle(t, nullptr);
	for (int n = 0; n < 100 && t < end; n++) {
		int hit[3];
		CVodeSetStopTime(solver, end);
		if (CVode(solver, end, y, &t, CV_NORMAL) != CV_ROOT_RETURN) break;
		CVodeGetRootInfo(solver, hit);
		settle(t, hit);
	}
}
