// Siconos: Moreau-Jean time stepping, a relay problem per step solved as an affine variational
// inequality (Cao and Ferris).
#include <siconos/numerics/NonSmoothDrivers.h>
#include <siconos/numerics/NumericsMatrix.h>
#include <siconos/numerics/RelayProblem.h>
#include <siconos/numerics/SolverOptions.h>
#include <siconos/numerics/relay_cst.h>

#include "peer.h"

static double w[4], matrix[9], q[3], low[3], high[3], z[3], out[3];
static NumericsMatrix *M;
static SolverOptions *options;

static double sign(int i, int body) { // of a body in the slip of clutch i
	return plant->clutch[i].b == body ? 1 : plant->clutch[i].a == body ? -1 : 0;
}

static void build() {
	const int n = plant->clutches;
	std::memcpy(w, plant->w0, sizeof w), std::memset(z, 0, sizeof z);
	for (int i = 0; i < n; i++)
		for (int j = 0; j < n; j++) {
			double s = 0;
			for (int b = 0; b < plant->bodies; b++) s += sign(i, b) * sign(j, b) / plant->J[b];
			matrix[j * n + i] = s;
		}
	if (!options) options = solver_options_create(SICONOS_RELAY_AVI_CAOFERRIS);
	if (!M) M = NM_create_from_data(NM_DENSE, n, n, matrix);
}

static double speed(int body) { return w[body]; }

static void step(const double *tau, const double *cap) {
	const int n = plant->clutches;
	for (int b = 0; b < plant->bodies; b++) w[b] += h * tau[b] / plant->J[b];
	for (int i = 0; i < n; i++) {
		q[i] = 0, low[i] = -h * cap[i], high[i] = h * cap[i];
		for (int b = 0; b < plant->bodies; b++) q[i] += sign(i, b) * w[b];
	}
	RelayProblem problem = {n, M, q, low, high};
	relay_driver(&problem, z, out, options);
	for (int b = 0; b < plant->bodies; b++)
		for (int i = 0; i < n; i++) w[b] += sign(i, b) * z[i] / plant->J[b];
}
