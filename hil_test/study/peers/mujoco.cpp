// MuJoCo: a hinge per body, and dry friction on the difference of two hinges (tendon) or on a hinge.
#include <mujoco/mujoco.h>

#include <string>

#define LOCKED 2e-5 // a locked clutch creeps
#include "peer.h"

static mjModel *model;
static mjData *data;

static std::string number(double v) {
	char text[32];
	std::snprintf(text, sizeof text, "%.17g", v);
	return text;
}

static void build() {
	if (data) mj_deleteData(data);
	if (model) mj_deleteModel(model);
	// Impedance near one and a stiff reference: the defaults let a locked clutch creep.
	const std::string hard = " solimpfriction='0.9999 0.9999 0.001' solreffriction='" + number(2 * h) + " 1'";
	std::string xml = "<mujoco><option timestep='" + number(h) + "' gravity='0 0 0' solver='Newton' tolerance='1e-15'"
		" iterations='100' integrator='Euler'/><worldbody>", tendons;
	for (int i = 0; i < plant->bodies; i++) {
		std::string friction;
		for (int q = 0; q < plant->clutches; q++)
			if (plant->clutch[q].b < 0 && plant->clutch[q].a == i) friction = " frictionloss='1'" + hard;
		const std::string J = number(plant->J[i]);
		xml += "<body pos='" + number(i) + " 0 0'><joint name='j" + number(i) + "' type='hinge' axis='1 0 0'" + friction +
			"/><inertial pos='0 0 0' mass='1' diaginertia='" + J + " " + J + " " + J + "'/></body>";
	}
	for (int q = 0; q < plant->clutches; q++) {
		const Clutch &c = plant->clutch[q];
		if (c.b >= 0)
			tendons += "<fixed frictionloss='1'" + hard + "><joint joint='j" + number(c.b) + "' coef='1'/><joint joint='j" +
				number(c.a) + "' coef='-1'/></fixed>";
	}
	xml += "</worldbody><tendon>" + tendons + "</tendon></mujoco>";
	static mjVFS vfs;
	mj_defaultVFS(&vfs);
	mj_makeEmptyFileVFS(&vfs, "p.xml", (int)xml.size());
	std::memcpy(vfs.filedata[0], xml.data(), xml.size());
	char error[500];
	model = mj_loadXML("p.xml", &vfs, error, sizeof error);
	if (!model) std::fprintf(stderr, "%s\n", error), std::exit(1);
	mj_deleteVFS(&vfs);
	data = mj_makeData(model);
	for (int i = 0; i < plant->bodies; i++) data->qvel[i] = plant->w0[i];
}

static double speed(int body) { return data->qvel[body]; }

static void step(const double *tau, const double *cap) {
	for (int i = 0; i < plant->bodies; i++) data->qfrc_applied[i] = tau[i];
	for (int q = 0, tendon = 0; q < plant->clutches; q++) {
		const double limit = std::fmax(cap[q], 1e-12); // 0 would take the constraint out
		if (plant->clutch[q].b < 0) model->dof_frictionloss[plant->clutch[q].a] = limit;
		else model->tendon_frictionloss[tendon++] = limit;
	}
	mj_step(model, data);
}
