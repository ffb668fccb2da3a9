// A peer steps CoupledClutches or Friction of the Modelica library on a grid. Each peer is a program:
//
//	PROGRAM PLANT STEP_NS PASSES CPU
//
// It prints the mean time of a step and that of the slowest step, ns, each from the fastest of PASSES
// passes, and then the speeds of all bodies every 5 ms, rad/s. A peer defines build, speed and step, or
// its own tick.
#include <sched.h>
#include <time.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

struct Clutch {
	int a, b;    // bodies; the slip is w_b - w_a; -1: the housing
	double peak; // static over kinetic capacity
};

struct Plant {
	const char *name;
	int bodies;
	double J[4], w0[4]; // kg·m², rad/s
	int clutches;
	Clutch clutch[3];
	int springA, springB; // bodies; -1: no spring
	double c, d;          // N·m/rad, N·m·s/rad
	double end;           // s
	double jumps[2];      // times at which an input jumps, s
};

static const Plant plants[] = {
	{"coupled-clutches", 4, {1, 1, 1, 1}, {10, 0, 0, 0}, 3, {{0, 1, 1.1}, {1, 2, 1.1}, {2, 3, 1.1}}, -1, -1, 0, 0, 1.5, {0.4, 0.9}},
	{"friction", 3, {1, 0.05, 1}, {100, 90, 90}, 2, {{0, 1, 1}, {2, -1, 1}}, 1, 2, 160, 1, 3, {0.5, 0.5}},
};

// torque returns the torque on body 0 at time t, N·m, and capacity the kinetic capacity of clutch i.
// mid is an instant on the side of a jump that counts.
static inline double torque(const Plant &p, double t, double mid) {
	if (p.springA < 0) return 10 * std::sin(2 * M_PI * 5 * t);
	return mid < 0.5 ? 200 * std::sin(100 * t) : 0;
}

static inline double capacity(const Plant &p, int i, double t, double mid) {
	if (p.springA < 0) {
		if (i == 0) return 10 * std::fmax(0, std::sin(2 * M_PI * 0.2 * t + M_PI / 2));
		return 10 * (mid >= (i == 1 ? 0.4 : 0.9));
	}
	return i == 0 ? 80 : 800 * (mid >= 0.5);
}

static const Plant *plant;
static double h;      // step, s
static double spring, lastRate; // twist of the spring, rad; its rate one step ago, rad/s

static void build();
static double speed(int body); // rad/s

static inline double slip(int i) {
	const Clutch &c = plant->clutch[i];
	return (c.b < 0 ? 0 : speed(c.b)) - speed(c.a);
}

// Inputs of a step: the torque on body 0 and the capacities. A peer that takes other inputs than those
// of the middle of the step defines INPUT_AT, a part of the step.
struct Input { double tau, cap[3]; };
static std::vector<Input> inputs;

#ifndef INPUT_AT
#define INPUT_AT 0.5
#endif

// LOCKED is the slip below which a clutch is locked, rad/s.
#ifndef LOCKED
#define LOCKED 1e-6
#endif

// tick takes step k. The peak counts while a clutch is locked. A peer with OWN_TICK has its own.
static void tick(long k);
#ifndef OWN_TICK
static void step(const double *tau, const double *cap); // torques on the bodies; capacities

static void tick(long k) {
	double tau[4] = {inputs[k].tau}, cap[3];
	const bool coupled = plant->springA >= 0;
	for (int i = 0; i < plant->clutches; i++) {
		cap[i] = inputs[k].cap[i];
		if (std::fabs(slip(i)) < LOCKED) cap[i] *= plant->clutch[i].peak;
	}
	const int a = plant->springA, b = plant->springB;
	if (coupled) { // the spring in the middle of the step, with its rate extrapolated from the last one
		const double rate = speed(b) - speed(a), middle = k ? 1.5 * rate - 0.5 * lastRate : rate;
		const double f = plant->c * (spring + h / 4 * (rate + middle)) + plant->d * middle;
		spring += h / 2 * rate, lastRate = rate;
		tau[a] += f, tau[b] -= f;
	}
	step(tau, cap);
	if (coupled) spring += h / 2 * (speed(b) - speed(a));
}
#endif

static double now() {
	timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

int main(int argc, char **argv) {
	if (argc != 5) return 2;
	for (const Plant &p : plants)
		if (!std::strcmp(p.name, argv[1])) plant = &p;
	if (!plant) return 2;
	h = std::atol(argv[2]) * 1e-9;
	cpu_set_t cpu;
	CPU_ZERO(&cpu);
	CPU_SET(std::atoi(argv[4]), &cpu);
	sched_setaffinity(0, sizeof cpu, &cpu);
	const long steps = std::lround(plant->end / h), each = std::lround(5e-3 / h);
	std::vector<double> least(steps, INFINITY);
	double clock = INFINITY, mean = 0, worst = 0;
	for (int i = 0; i < 1000; i++) {
		const double start = now();
		clock = std::fmin(clock, now() - start);
	}
	for (long k = 0; k < steps; k++) {
		const double t = (k + INPUT_AT) * h, side = (k + 0.5) * h;
		Input in = {torque(*plant, t, side), {0}};
		for (int i = 0; i < plant->clutches; i++) in.cap[i] = capacity(*plant, i, t, side);
		inputs.push_back(in);
	}
	std::vector<double> rows;
	for (int pass = 0; pass < std::atoi(argv[3]); pass++) {
		spring = 0, rows.clear();
		build();
		for (long k = 0; k < steps; k++) {
			const double start = now();
			tick(k);
			least[k] = std::fmin(least[k], now() - start - clock);
			for (int i = 0; (k + 1) % each == 0 && i < plant->bodies; i++) rows.push_back(speed(i));
		}
	}
	for (double ns : least) mean += ns / steps, worst = std::fmax(worst, ns);
	std::printf("%.1f %.1f\n", mean, worst);
	for (size_t i = 0; i < rows.size(); i++) std::printf("%.17g%c", rows[i], (i + 1) % plant->bodies ? ' ' : '\n');
}
