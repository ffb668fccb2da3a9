// Plant coupled-clutches, written by hand: see hand.c. It has the functions of a generated kernel, so
// that one program drives both.
#ifndef HAND_H
#define HAND_H

#include <stdbool.h>
#include <stdint.h>

#define HAND_INPUTS 4   // clutch1.f to clutch3.f, tau
#define HAND_OUTPUTS 22 // outputs of the plant coupled-clutches, in its order

typedef struct {
	double w[4];      // speeds of J1 to J4, rad/s
	double phi;       // angle of J1, rad
	double rel[3];    // angles of the clutches, rad
	int mode[3];      // -1 slips backward, 0 locked, 1 slips forward, 2 free
	bool fresh[3];    // clutch broke away and its slip is still near zero
	bool driven[4];   // inputs that follow u
	double u[4];      // inputs, constant over the tick
	double torque[3]; // torque on J1 in a substep, N·m: a parabola in theta, 0 to 1
	double cap[3][3]; // capacity of each clutch, N·m: parabolas in theta
	double f[3][3];   // torque of each clutch, N·m: parabolas in theta
	double a[4][3];   // accelerations, rad/s²: parabolas in theta
	int64_t tick;     // grid points since time 0
	double eta;       // fraction of the tick at the first event; 1: none
	int64_t events, transitions;
} hand_kernel;

void hand_create(hand_kernel *k);
void hand_reset(hand_kernel *k);
int hand_step(hand_kernel *k, double *y, const double *u);
void hand_output(hand_kernel *k, double *y);
void hand_drive(hand_kernel *k, int64_t i, bool on);
bool hand_driven(hand_kernel *k, int64_t i);
double hand_own(hand_kernel *k, int64_t i);

#endif
