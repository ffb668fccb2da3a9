// PLANT with held inputs, written by hand: see hand.c. It has the functions of a generated kernel, so
// that one program drives both.
#ifndef PLANT_H
#define PLANT_H

#include <stdbool.h>
#include <stdint.h>

#define UPPER_INPUTS INPUTS
#define UPPER_OUTPUTS OUTPUTS

typedef struct {
	double x[STATES];                             // state
	double w[WIDTH];                              // inputs that act on the state, then torques of slipping clutches
	double cap[CLUTCHES];                         // capacity while slipping, N·m
	double tau[CLUTCHES];                         // torque, N·m
	double slip[CLUTCHES];                        // rad/s
	double in[INPUTS];                            // inputs
	double by_inputs[STATES];                     // effect of w over the tick on the state
	double tau_by_inputs[CLUTCHES];               // part of the lock torques that w gives, N·m
	int8_t mode[CLUTCHES];                        // -1 slips backward, 0 locked, 1 slips forward, 2 free
	bool fresh[CLUTCHES];                         // broke away, and the slip is still near zero
	int64_t set;                                  // lock set
	double eta;                                   // fraction of the tick at the first event; 1: none
	int64_t events, transitions;
} PLANT_kernel;

void PLANT_create(PLANT_kernel *k);
void PLANT_reset(PLANT_kernel *k);
int PLANT_step(PLANT_kernel *k, double *y, const double *u);
void PLANT_output(PLANT_kernel *k, double *y);
void PLANT_drive(PLANT_kernel *k, int64_t i, bool on);
bool PLANT_driven(PLANT_kernel *k, int64_t i);
double PLANT_own(PLANT_kernel *k, int64_t i);

#endif
