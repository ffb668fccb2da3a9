// Open Dynamics Engine: free bodies, and an angular motor with a limited torque for each clutch.
#include <ode/ode.h>

#include "peer.h"

static dWorldID world;
static std::vector<dBodyID> bodies;
static std::vector<dJointID> motors;

static void build() {
	static bool once = dInitODE2(0) != 0;
	(void)once;
	if (world) dWorldDestroy(world);
	world = dWorldCreate();
	dWorldSetCFM(world, 1e-14);
	bodies.clear(), motors.clear();
	for (int i = 0; i < plant->bodies; i++) {
		dMass m;
		const double J = plant->J[i];
		dMassSetParameters(&m, 1, 0, 0, 0, J, J, J, 0, 0, 0);
		bodies.push_back(dBodyCreate(world));
		dBodySetMass(bodies[i], &m);
		dBodySetPosition(bodies[i], i, 0, 0);
		dBodySetAngularVel(bodies[i], plant->w0[i], 0, 0);
		dBodySetGyroscopicMode(bodies[i], 0);
	}
	for (int i = 0; i < plant->clutches; i++) {
		const Clutch &c = plant->clutch[i];
		dJointID j = dJointCreateAMotor(world, 0);
		dJointAttach(j, bodies[c.a], c.b < 0 ? 0 : bodies[c.b]);
		dJointSetAMotorMode(j, dAMotorUser);
		dJointSetAMotorNumAxes(j, 1);
		dJointSetAMotorAxis(j, 0, 0, 1, 0, 0);
		dJointSetAMotorParam(j, dParamVel, 0);
		motors.push_back(j);
	}
}

static double speed(int body) { return dBodyGetAngularVel(bodies[body])[0]; }

static void step(const double *tau, const double *cap) {
	for (int i = 0; i < plant->bodies; i++) dBodyAddTorque(bodies[i], tau[i], 0, 0);
	for (int i = 0; i < plant->clutches; i++) dJointSetAMotorParam(motors[i], dParamFMax, cap[i]);
	dWorldStep(world, h);
}
