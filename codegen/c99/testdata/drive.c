// drive executes operations on a kernel and writes the results. Input and output are binary numbers
// in native byte order. An operation is three int64: the operation, an input, on or off; the inputs
// of a step follow as doubles. plants.h includes the kernels and lists them.
//
//	drive NAME            executes operations
//	drive NAME RUNS BLOCK reads the number of ticks and the inputs of all ticks; prints the time per
//	                      step, ns, from the fastest run of each block of BLOCK steps: the mean, and
//	                      that of the slowest block
#define _POSIX_C_SOURCE 199309L // clock_gettime
#include "plants.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { STEP, RESET, OUTPUT, DRIVE, OWN, SAVE, RESTORE };

static void give(const double *y, size_t n) {
	if (fwrite(y, sizeof *y, n, stdout) != n) exit(3);
}

static double seconds(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// clock_time returns the time that reading the clock takes, s.
static double clock_time(void) {
	double least = INFINITY;
	for (int i = 0; i < 1000; i++) {
		double start = seconds();
		least = fmin(least, seconds() - start);
	}
	return least;
}

#define X(name, NAME)                                                                        \
	static int drive_##name(void) {                                                          \
		static name##_kernel k, saved;                                                       \
		double y[NAME##_OUTPUTS] = {0}, u[NAME##_INPUTS + 1];                                \
		int64_t op[3];                                                                       \
		name##_create(&k);                                                                   \
		while (fread(op, sizeof op, 1, stdin) == 1) {                                        \
			switch (op[0]) {                                                                 \
			case STEP:                                                                       \
				if (fread(u, sizeof *u, NAME##_INPUTS, stdin) != NAME##_INPUTS) return 3;    \
				u[NAME##_INPUTS] = name##_step(&k, y, u);                                    \
				give(y, NAME##_OUTPUTS), give(u + NAME##_INPUTS, 1);                         \
				break;                                                                       \
			case RESET: name##_reset(&k); break;                                             \
			case OUTPUT: name##_output(&k, y), give(y, NAME##_OUTPUTS); break;               \
			case DRIVE: name##_drive(&k, op[1], op[2] != 0); break;                          \
			case OWN:                                                                        \
				u[0] = name##_own(&k, op[1]), give(u, 1);                                    \
				u[0] = name##_driven(&k, op[1]), give(u, 1);                                 \
				break;                                                                       \
			case SAVE: memcpy(&saved, &k, sizeof k); break;                                  \
			case RESTORE: memcpy(&k, &saved, sizeof k); break;                               \
			default: return 2;                                                               \
			}                                                                                \
		}                                                                                    \
		return 0;                                                                            \
	}                                                                                        \
	static int time_##name(const double *u, long ticks, long runs, long steps) {             \
		static name##_kernel k;                                                              \
		double y[NAME##_OUTPUTS] = {0}, sum = 0, all = 0, most = 0;                          \
		double *least = malloc((size_t)ticks * sizeof *least);                               \
		if (least == NULL) return 3;                                                         \
		for (long n = 0; n < ticks; n++) least[n] = INFINITY;                                \
		name##_create(&k);                                                                   \
		for (long r = 0; r < runs; r++) {                                                    \
			name##_reset(&k);                                                                \
			for (int64_t i = 0; i < NAME##_INPUTS; i++) name##_drive(&k, i, true);           \
			for (long n = 0; n < ticks;) {                                                   \
				double *block = least + n, start = seconds();                                \
				for (long end = n + steps; n < end && n < ticks; n++) {                      \
					name##_step(&k, y, u + n * NAME##_INPUTS);                               \
				}                                                                            \
				*block = fmin(*block, seconds() - start);                                    \
			}                                                                                \
			sum += y[0];                                                                     \
		}                                                                                    \
		const double clock = clock_time();                                                   \
		for (long n = 0; n < ticks; n += steps) {                                            \
			least[n] -= clock;                                                               \
			all += least[n], most = fmax(most, least[n]);                                    \
		}                                                                                    \
		free(least);                                                                         \
		printf("%.4f %.4f %.17g\n", all / (double)ticks * 1e9, most / (double)steps * 1e9, sum); \
		return 0;                                                                            \
	}                                                                                        \
	static long inputs_##name(void) { return NAME##_INPUTS; }
PLANTS
#undef X

static const struct {
	const char *name;
	int (*drive)(void);
	int (*time)(const double *u, long ticks, long runs, long steps);
	long (*inputs)(void);
} plants[] = {
#define X(name, NAME) {#name, drive_##name, time_##name, inputs_##name},
	PLANTS
#undef X
};

// timed reads the number of ticks and their inputs, and times the steps.
static int timed(size_t i, long runs, long steps) {
	int64_t ticks;
	if (fread(&ticks, sizeof ticks, 1, stdin) != 1) return 3;
	size_t n = (size_t)ticks * (size_t)plants[i].inputs();
	double *u = malloc((n + 1) * sizeof *u);
	if (u == NULL || fread(u, sizeof *u, n, stdin) != n) return 3;
	int result = plants[i].time(u, (long)ticks, runs, steps);
	free(u);
	return result;
}

int main(int argc, char **argv) {
	for (size_t i = 0; argc > 1 && i < sizeof plants / sizeof *plants; i++) {
		if (strcmp(argv[1], plants[i].name) == 0) {
			return argc > 3 ? timed(i, atol(argv[2]), atol(argv[3])) : plants[i].drive();
		}
	}
	return 2;
}
