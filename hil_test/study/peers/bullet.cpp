// Bullet: a multibody whose links turn relative to each other. A motor acts on a link only if it has
// a collider.
#include <BulletDynamics/Featherstone/btMultiBody.h>
#include <BulletDynamics/Featherstone/btMultiBodyConstraintSolver.h>
#include <BulletDynamics/Featherstone/btMultiBodyDynamicsWorld.h>
#include <BulletDynamics/Featherstone/btMultiBodyJointMotor.h>
#include <BulletDynamics/Featherstone/btMultiBodyLinkCollider.h>
#include <BulletDynamics/MLCPSolvers/btDantzigSolver.h>
#include <BulletDynamics/Featherstone/btMultiBodyMLCPConstraintSolver.h>
#include <btBulletDynamicsCommon.h>

#include "peer.h"

static btMultiBodyDynamicsWorld *world;
static btMultiBody *chain;
static std::vector<btMultiBodyJointMotor *> motors;

// Link i carries body link[i]; the first one turns against the housing. The brake of Friction is on the
// last body, so that its chain runs backward.
static int bodyOf(int link) { return plant->springA < 0 ? link : plant->bodies - 1 - link; }

static int linkOf(int body) { return bodyOf(body); }

static void build() {
	const int n = plant->bodies;
	auto *config = new btDefaultCollisionConfiguration;
	world = new btMultiBodyDynamicsWorld(new btCollisionDispatcher(config), new btDbvtBroadphase,
		new btMultiBodyMLCPConstraintSolver(new btDantzigSolver), config);
	world->setGravity(btVector3(0, 0, 0));
	chain = new btMultiBody(n, 1, btVector3(1, 1, 1), true, false);
	chain->setHasSelfCollision(false), chain->setLinearDamping(0), chain->setAngularDamping(0), chain->useGlobalVelocities(false);
	auto *shape = new btSphereShape(0.1);
	for (int i = 0; i < n; i++) {
		const double J = plant->J[bodyOf(i)];
		chain->setupRevolute(i, 1, btVector3(J, J, J), i - 1, btQuaternion(0, 0, 0, 1), btVector3(1, 0, 0), btVector3(1, 0, 0),
			btVector3(0, 0, 0), true);
	}
	chain->finalizeMultiDof();
	world->addMultiBody(chain);
	for (int i = 0; i < n; i++) {
		auto *collider = new btMultiBodyLinkCollider(chain, i);
		collider->setCollisionShape(shape);
		world->addCollisionObject(collider, 0, 0);
		chain->getLink(i).m_collider = collider;
		const double before = i ? plant->w0[bodyOf(i - 1)] : 0;
		chain->setJointVel(i, plant->w0[bodyOf(i)] - before);
	}
	motors.clear();
	for (int q = 0; q < plant->clutches; q++) {
		const Clutch &c = plant->clutch[q];
		const int link = c.b < 0 ? linkOf(c.a) : std::max(linkOf(c.a), linkOf(c.b));
		auto *motor = new btMultiBodyJointMotor(chain, link, 0, 0);
		motor->finalizeMultiDof();
		world->addMultiBodyConstraint(motor);
		motors.push_back(motor);
	}
}

static double speed(int body) {
	double w = 0;
	for (int i = 0; i <= linkOf(body); i++) w += chain->getJointVel(i);
	return w;
}

static void step(const double *tau, const double *cap) {
	for (int i = 0; i < plant->bodies; i++) chain->addJointTorque(linkOf(i), 0);
	for (int i = 0; i < plant->bodies; i++)
		for (int j = 0; j <= linkOf(i); j++) chain->addJointTorque(j, tau[i]); // a torque on a body turns all links before it
	for (int q = 0; q < plant->clutches; q++) motors[q]->setMaxAppliedImpulse(cap[q] * h);
	world->stepSimulation(h, 0);
}
