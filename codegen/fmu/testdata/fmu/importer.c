/*
 * An importer of FMUs, VERSION 2 or 3.
 *
 *   importer OBJECT TOKEN PERIOD INPUTS OUTPUTS life
 *   importer OBJECT TOKEN PERIOD INPUTS OUTPUTS OTHER TOKEN
 *   importer OBJECT TOKEN PERIOD INPUTS OUTPUTS run <inputs >outputs
 *
 * life makes all calls, valid and invalid. OTHER is the object of another plant, which must refuse
 * a state of the first. run steps over rows of inputs and writes rows of outputs, as doubles in
 * native byte order: the row at the start, then one for each step. Then a second instance starts
 * from the state saved in the middle and repeats the second half. NaN stands for an input that is
 * not set.
 */
#include "calls.h"

/* started returns an instance in step mode at time 0. */
static void *started(void)
{
	void *c = instantiate("one", token);
	CHECK(c != NULL);
	CHECK(initialize(c, 0, false, 0) == 0 && exitInitialization(c) == 0);
	return c;
}

/* fails checks that a call returned an error and that the log message contains words. The instance
   must then refuse a step, give its time, and start again after a reset. */
static void fails(void *c, int status, const char *words)
{
	double time;
	CHECK(status == 3 && lines > 0 && strstr(logged, words) != NULL);
	CHECK(step(c, 0, period) == 3 && strstr(logged, "failed") != NULL);
	CHECK(get(c, (uint32_t[]){0}, 1, &time) == 0);
	CHECK(reset(c) == 0 && initialize(c, 0, false, 0) == 0 && exitInitialization(c) == 0);
	lines = 0;
}

static double reachedBy(void *c)
{
	double t = -1;
	CHECK(get(c, (uint32_t[]){0}, 1, &t) == 0);
	return t;
}

static double *row(void *c)
{
	uint32_t *r = malloc(outputs * sizeof *r);
	double *y = malloc(outputs * sizeof *y);
	for (size_t i = 0; i < outputs; i++)
		r[i] = (uint32_t)(1 + inputs + i);
	CHECK(get(c, r, outputs, y) == 0);
	free(r);
	return y;
}

static void births(void)
{
	CHECK(instantiate("one", "{another}") == NULL && strstr(logged, "token") != NULL);
	CHECK(instantiate("one", NULL) == NULL && strstr(logged, "token") != NULL);
#if VERSION == 2
	CHECK(strcmp(CALL("fmi2GetTypesPlatform", const char *, (void))(), "default") == 0);
	CHECK(strcmp(CALL("fmi2GetVersion", const char *, (void))(), "2.0") == 0);
	CHECK(CALL("fmi2Instantiate", void *, (const char *, int, const char *, const char *, const callbacks *, int, int))("one", 0, token, NULL, &functions, 0, 0) == NULL);
	CHECK(strstr(logged, "co-simulation only") != NULL);
	void *mute = CALL("fmi2Instantiate", void *, (const char *, int, const char *, const char *, const callbacks *, int, int))("one", 1, token, NULL, NULL, 0, 1);
#else
	CHECK(instantiate("", token) == NULL && instantiate(NULL, token) == NULL && strstr(logged, "no name") != NULL);
	CHECK(strcmp(CALL("fmi3GetVersion", const char *, (void))(), "3.0") == 0);
	CHECK(CALL("fmi3InstantiateModelExchange", void *, (const char *, const char *, const char *, bool, bool, void *, log3 *))("one", token, NULL, false, false, logged, logger) == NULL);
	CHECK(strstr(logged, "co-simulation only") != NULL);
	CHECK(CALL("fmi3InstantiateScheduledExecution", void *, (const char *, const char *, const char *, bool, bool, void *, log3 *, void (*)(void *), void (*)(void), void (*)(void)))("one", token, NULL, false, false, logged, logger, NULL, NULL, NULL) == NULL);
	CHECK(CALL("fmi3InstantiateCoSimulation", void *, (const char *, const char *, const char *, bool, bool, bool, bool, const uint32_t *, size_t, void *, log3 *, void (*)(void)))("one", token, NULL, false, false, true, false, NULL, 0, logged, logger, NULL) == NULL);
	CHECK(strstr(logged, "event mode") != NULL);
	void *mute = CALL("fmi3InstantiateCoSimulation", void *, (const char *, const char *, const char *, bool, bool, bool, bool, const uint32_t *, size_t, void *, log3 *, void (*)(void)))("one", token, NULL, false, false, false, true, NULL, 0, logged, NULL, NULL);
#endif
	lines = 0;
	CHECK(mute != NULL && step(mute, 0, period) == 3 && lines == 0); /* without a logger no message */
	release(mute);
	release(NULL);
	CHECK(step(NULL, 0, period) == 3 && get(NULL, NULL, 0, NULL) == 3 && set(NULL, NULL, 0, NULL) == 3 && reset(NULL) == 3);
	CHECK(getState(NULL, NULL) == 3 && setState(NULL, NULL) == 3 && freeState(NULL, NULL) == 3 && readState(NULL, NULL, 0, NULL) == 3);
}

static void steps(void)
{
	void *c = started();
	CHECK(step(c, 0, period) == 0 && reachedBy(c) == period);
	CHECK(step(c, period * (1 + 1e-9), 3 * period) == 0 && reachedBy(c) == 4 * period); /* times may differ by rounding */
	fails(c, step(c, 5 * period, period), "the plant is at");
	fails(c, step(c, 0, 0.5 * period), "not a whole multiple");
	fails(c, step(c, 0, 1.0001 * period), "not a whole multiple");
	CHECK(strstr(logged, "failed") != NULL);
	fails(c, step(c, 0, 0), "; use ");
	fails(c, step(c, 0, -period), "; use ");
	fails(c, step(c, 0, NAN), "; use ");
	fails(c, step(c, 0, INFINITY), "; use ");
	fails(c, step(c, 0, 1e300), "; use ");
	fails(c, step(c, NAN, period), "the plant is at");
	release(c);

	c = instantiate("one", token); /* with a start time and a stop time */
	CHECK(step(c, 0, period) == 3 && strstr(logged, "not initialized") != NULL);
	CHECK(reset(c) == 0 && exitInitialization(c) == 3 && reset(c) == 0 && terminate(c) == 3 && reset(c) == 0);
	CHECK(initialize(c, 1, true, 0) == 3 && strstr(logged, "stop time") != NULL && reset(c) == 0);
	CHECK(initialize(c, NAN, false, 0) == 3 && reset(c) == 0);
	CHECK(initialize(c, 100, true, 100 + 2 * period) == 0 && reachedBy(c) == 100);
	CHECK(step(c, 100, period) == 3 && strstr(logged, "being initialized") != NULL && reset(c) == 0);
	CHECK(initialize(c, 100, true, 100 + 2 * period) == 0 && exitInitialization(c) == 0);
	CHECK(initialize(c, 0, false, 0) == 3 && reset(c) == 0);
	CHECK(initialize(c, 100, true, 100 + 2 * period) == 0 && exitInitialization(c) == 0);
	CHECK(step(c, 100, 2 * period) == 0 && reachedBy(c) == 100 + 2 * period);
	fails(c, step(c, 100 + 2 * period, period), "stop time");
	CHECK(terminate(c) == 0 && step(c, 0, period) == 3 && strstr(logged, "terminated") != NULL);
	release(c);
}

static void values(void)
{
	void *c = started();
	const uint32_t last = (uint32_t)(inputs + outputs);
	double v = 0;
	CHECK(get(c, &last, 1, &v) == 0 && get(c, NULL, 0, NULL) == 0 && set(c, NULL, 0, NULL) == 0);
	fails(c, get(c, (uint32_t[]){last + 1}, 1, &v), "value reference");
	fails(c, get(c, (uint32_t[]){0xffffffff}, 1, &v), "value reference");
	fails(c, get(c, NULL, 1, &v), "NULL");
	fails(c, get(c, &last, 1, NULL), "NULL");
	fails(c, set(c, &last, 1, &v), "not an input");
	fails(c, set(c, (uint32_t[]){0}, 1, &v), "not an input");
	fails(c, set(c, (uint32_t[]){(uint32_t)inputs + 1}, 1, &v), "not an input");
	if (inputs > 0) {
		fails(c, set(c, NULL, 1, &v), "NULL");
		fails(c, set(c, (uint32_t[]){1}, 1, NULL), "NULL");
		v = 0.25;
		CHECK(set(c, (uint32_t[]){1}, 1, &v) == 0 && (v = 0, get(c, (uint32_t[]){1}, 1, &v) == 0) && v == 0.25);
		for (int bad = 0; bad < 3; bad++) { /* an input that is not finite ends the simulation */
			v = (double[]){NAN, INFINITY, -INFINITY}[bad];
			CHECK(step(c, 0, period) == 0 && set(c, (uint32_t[]){1}, 1, &v) == 0);
			const int status = step(c, period, period);
			CHECK(get(c, &last, 1, &v) == 0 && v >= 1); /* the output "fault" */
#if VERSION == 2
			int over = 0;
			CHECK(CALL("fmi2GetBooleanStatus", int, (void *, int, int *))(c, 3, &over) == 0 && over == 1);
#endif
			fails(c, status, "input ");
		}
		CHECK(terminate(c) == 0 && set(c, (uint32_t[]){1}, 1, &v) == 3 && strstr(logged, "terminated") != NULL);
	}
	release(c);
}

static void states(void)
{
	void *c = started(), *s = NULL, *back = NULL, *other = started();
	size_t n = 0;
	CHECK(step(c, 0, 7 * period) == 0 && getState(c, &s) == 0 && s != NULL && sizeState(c, s, &n) == 0 && n > 0);
	char *bytes = calloc(1, n + 1);
	CHECK(writeState(c, s, bytes, n) == 0);
	CHECK(step(c, 7 * period, period) == 0 && setState(c, s) == 0 && reachedBy(c) == 7 * period);
	CHECK(getState(c, &s) == 0); /* reuses the memory */
	CHECK(readState(other, bytes, n, &back) == 0 && setState(other, back) == 0 && reachedBy(other) == 7 * period);
	CHECK(step(c, 7 * period, 9 * period) == 0 && step(other, 7 * period, 9 * period) == 0);
	double *a = row(c), *b = row(other);
	CHECK(memcmp(a, b, outputs * sizeof *a) == 0);
	free(a), free(b);

	CHECK(step(c, 0, period) == 3 && setState(c, s) == 0 && step(c, 7 * period, period) == 0); /* back from a failure */
	fails(c, readState(c, bytes, n - 1, &back), "bytes");
	fails(c, readState(c, bytes, n + 1, &back), "bytes");
	fails(c, readState(c, bytes, 0, &back), "bytes");
	fails(c, readState(c, NULL, n, &back), "NULL");
	fails(c, readState(c, bytes, n, NULL), "NULL");
	fails(c, writeState(c, s, bytes, n - 1), "bytes");
	fails(c, writeState(c, NULL, bytes, n), "NULL");
	fails(c, writeState(c, s, NULL, n), "NULL");
	fails(c, sizeState(c, NULL, &n), "NULL");
	fails(c, sizeState(c, s, NULL), "NULL");
	fails(c, setState(c, NULL), "NULL");
	fails(c, getState(c, NULL), "NULL");
	bytes[0] ^= 1;
	fails(c, readState(c, bytes, n, &back), "another plant");
	bytes[0] ^= 1;
	for (size_t i = 65; i < n; i += 1 + n / 50) { /* a damaged byte is detected */
		bytes[i] ^= 64;
		CHECK(readState(c, bytes, n, &back) == 3 && reset(c) == 0);
		bytes[i] ^= 64;
	}
	CHECK(readState(c, bytes, n, &back) == 0);
	CHECK(freeState(c, &s) == 0 && s == NULL && freeState(c, &s) == 0 && freeState(c, NULL) == 0 && freeState(c, &back) == 0);
	free(bytes);
	release(c);
	release(other);
}

/* excite sets all inputs to values that change at each step and jump every third. */
static void excite(void *c, int at)
{
	for (uint32_t i = 1; i <= inputs; i++) {
		const double v = (at / 3 + (int)i) % 2 ? 1 + 0.01 * at : -0.5;
		CHECK(set(c, &i, 1, &v) == 0);
	}
}

/* drive steps from one grid point to another with changing inputs. */
static void drive(void *c, int from, int to)
{
	for (int at = from; at < to; at++) {
		excite(c, at);
		CHECK(step(c, at * period, period) == 0);
	}
}

/* same reports whether the outputs of two instances have the same bits. */
static bool same(void *a, void *b)
{
	double *one = row(a), *other = row(b);
	const bool alike = memcmp(one, other, outputs * sizeof *one) == 0;
	free(one), free(other);
	return alike;
}

/* orders makes calls in unusual orders that the standard permits, and some that it does not. */
static void orders(void)
{
	void *c = started(), *other = started(), *state = NULL, *later = NULL;
	drive(c, 0, 40); /* two instances are independent */
	for (int at = 0; at < 40; at++)
		drive(other, at, at + 1);
	CHECK(same(c, other));
	excite(c, 40); /* a state saved before a step has the inputs that were set */
	CHECK(getState(c, &state) == 0);
	CHECK(step(c, 40 * period, period) == 0 && getState(c, &later) == 0);
	CHECK(setState(other, state) == 0 && step(other, 40 * period, period) == 0 && same(c, other));
	drive(other, 41, 60);
	CHECK(setState(other, later) == 0 && same(c, other)); /* back to an earlier state */
	drive(c, 41, 80), drive(other, 41, 80);
	CHECK(same(c, other));

	CHECK(setState(c, state) == 0); /* of several values set before a step, the last one holds */
	for (int i = 0; i < 5; i++)
		excite(c, i);
	excite(c, 40);
	CHECK(step(c, 40 * period, period) == 0 && setState(other, later) == 0 && same(c, other));

	CHECK(terminate(c) == 0 && terminate(c) == 3 && strstr(logged, "terminated") != NULL); /* twice */
	CHECK(terminate(c) == 3 && setState(c, state) == 0 && step(c, 40 * period, period) == 0); /* a saved state ends the termination */
	CHECK(terminate(c) == 0 && setState(c, later) == 0 && same(c, other));
	release(c); /* its saved states stay valid for other instances */
	CHECK(setState(other, state) == 0 && step(other, 40 * period, period) == 0);
	CHECK(freeState(other, &state) == 0);

	CHECK(reset(other) == 0 && initialize(other, 0, false, 0) == 0); /* a reset forgets the inputs that were set */
	c = instantiate("one", token);
	CHECK(initialize(c, 0, false, 0) == 0 && same(c, other) && exitInitialization(c) == 0 && exitInitialization(other) == 0);
	CHECK(step(c, 0, 9 * period) == 0 && step(other, 0, 9 * period) == 0 && same(c, other)); /* inputs follow their own sources */
	CHECK(reset(c) == 0 && reset(c) == 0 && exitInitialization(c) == 3);
	release(other); /* in step mode */
	release(c);     /* after a failure */
	CHECK(freeState(NULL, &later) == 3 && later != NULL);
	c = started();
	CHECK(freeState(c, &later) == 0 && later == NULL);
	release(c);
}

/* lacking makes the calls of features that the FMU does not have. */
static void lacking(void)
{
	void *c = started();
	const uint32_t r = 1;
	static char buffer[64];
	const char *category[] = {"logStatusError"}, *unknown[] = {"logAll"}, *null[] = {NULL};
#if VERSION == 2
	const char *type[] = {"Integer", "Boolean", "String"};
#define MANY
#define MORE
#define REAL_ORDER (void *, const uint32_t *, size_t, const int *, void *)
	CHECK(CALL("fmi2SetDebugLogging", int, (void *, int, size_t, const char **))(c, 1, 1, category) == 0);
	CHECK(CALL("fmi2SetDebugLogging", int, (void *, int, size_t, const char **))(c, 1, 0, NULL) == 0);
	fails(c, CALL("fmi2SetDebugLogging", int, (void *, int, size_t, const char **))(c, 1, 1, unknown), "category");
	fails(c, CALL("fmi2SetDebugLogging", int, (void *, int, size_t, const char **))(c, 1, 1, null), "category");
	fails(c, CALL("fmi2SetDebugLogging", int, (void *, int, size_t, const char **))(c, 1, 1, NULL), "category");
	fails(c, CALL("fmi2SetRealInputDerivatives", int, REAL_ORDER)(c, &r, 1, (int[]){1}, buffer), "not supported");
	fails(c, CALL("fmi2GetRealOutputDerivatives", int, REAL_ORDER)(c, &r, 1, (int[]){1}, buffer), "not supported");
	fails(c, CALL("fmi2GetDirectionalDerivative", int, (void *, const uint32_t *, size_t, const uint32_t *, size_t, const double *, double *))(c, &r, 1, &r, 1, (double[]){1}, (void *)buffer), "not supported");
	fails(c, plain(c, "fmi2CancelStep"), "not supported");
	double reached = -1;
	CHECK(step(c, 0, period) == 0);
	CHECK(CALL("fmi2GetRealStatus", int, (void *, int, void *))(c, 2, &reached) == 0 && reached == period);
	CHECK(CALL("fmi2GetRealStatus", int, (void *, int, void *))(c, 0, &reached) == 2);
	int over = 1;
	CHECK(CALL("fmi2GetBooleanStatus", int, (void *, int, void *))(c, 3, &over) == 0 && over == 0);
	CHECK(CALL("fmi2GetBooleanStatus", int, (void *, int, void *))(c, 0, &over) == 2);
	CHECK(CALL("fmi2GetStatus", int, (void *, int, void *))(c, 0, buffer) == 2);
	CHECK(CALL("fmi2GetIntegerStatus", int, (void *, int, void *))(c, 0, buffer) == 2);
	CHECK(CALL("fmi2GetStringStatus", int, (void *, int, void *))(c, 1, buffer) == 2);
	CHECK(CALL("fmi2GetRealStatus", int, (void *, int, void *))(NULL, 2, &reached) == 3);
	CHECK(step(c, period, period) == 0); /* the instance still steps */
#else
	const char *type[] = {"Float32", "Int8", "UInt8", "Int16", "UInt16", "Int32", "UInt32", "Int64", "UInt64", "Boolean", "String"};
#define MANY , size_t
#define MORE , 1
	CHECK(CALL("fmi3SetDebugLogging", int, (void *, bool, size_t, const char **))(c, true, 1, category) == 0);
	fails(c, CALL("fmi3SetDebugLogging", int, (void *, bool, size_t, const char **))(c, true, 1, unknown), "category");
	fails(c, CALL("fmi3SetDebugLogging", int, (void *, bool, size_t, const char **))(c, true, 1, null), "category");
	fails(c, CALL("fmi3GetBinary", int, (void *, const uint32_t *, size_t, size_t *, void *, size_t))(c, &r, 1, (void *)buffer, buffer, 1), "not supported");
	fails(c, CALL("fmi3SetBinary", int, (void *, const uint32_t *, size_t, size_t *, void *, size_t))(c, &r, 1, (void *)buffer, buffer, 1), "not supported");
	double v = 0;
	fails(c, CALL("fmi3GetFloat64", int, (void *, const uint32_t *, size_t, double *, size_t))(c, &r, 1, &v, 2), "values for");
	fails(c, CALL("fmi3SetFloat64", int, (void *, const uint32_t *, size_t, const double *, size_t))(c, &r, 1, &v, 0), "values for");
	const char *of[] = {"EnterEventMode", "EnterConfigurationMode", "ExitConfigurationMode", "EvaluateDiscreteStates", "EnterContinuousTimeMode", "EnterStepMode"};
	const char *vector[] = {"SetContinuousStates", "GetContinuousStateDerivatives", "GetEventIndicators", "GetContinuousStates", "GetNominalsOfContinuousStates"};
	const char *clock[] = {"GetClock", "SetClock", "GetShiftDecimal", "SetShiftDecimal", "SetIntervalDecimal"};
	const char *fraction[] = {"GetShiftFraction", "SetShiftFraction", "SetIntervalFraction", "GetIntervalDecimal"};
	const char *number[] = {"GetNumberOfEventIndicators", "GetNumberOfContinuousStates"};
	const char *derivative[] = {"GetDirectionalDerivative", "GetAdjointDerivative"};
	char name[64];
#define EACH(list, parameters, ...) \
	for (size_t i = 0; i < sizeof list / sizeof list[0]; i++) { \
		snprintf(name, sizeof name, "fmi3%s", list[i]); \
		fails(c, CALL(name, int, parameters)(__VA_ARGS__), name); \
	}
	EACH(of, (void *), c)
	EACH(vector, (void *, void *, size_t), c, buffer, 1)
	EACH(clock, (void *, const uint32_t *, size_t, void *), c, &r, 1, buffer)
	EACH(fraction, (void *, const uint32_t *, size_t, void *, void *), c, &r, 1, buffer, buffer)
	EACH(number, (void *, size_t *), c, (void *)buffer)
	EACH(derivative, (void *, const uint32_t *, size_t, const uint32_t *, size_t, const double *, size_t, double *, size_t), c, &r, 1, &r, 1, &v, 1, (void *)buffer, 1)
	fails(c, CALL("fmi3GetIntervalFraction", int, (void *, const uint32_t *, size_t, void *, void *, void *))(c, &r, 1, buffer, buffer, buffer), "not supported");
	fails(c, CALL("fmi3GetNumberOfVariableDependencies", int, (void *, uint32_t, size_t *))(c, 1, (void *)buffer), "not supported");
	fails(c, CALL("fmi3GetVariableDependencies", int, (void *, uint32_t, void *, void *, void *, void *, size_t))(c, 1, buffer, buffer, buffer, buffer, 1), "not supported");
	fails(c, CALL("fmi3GetOutputDerivatives", int, (void *, const uint32_t *, size_t, const int32_t *, double *, size_t))(c, &r, 1, (void *)buffer, &v, 1), "not supported");
	fails(c, CALL("fmi3UpdateDiscreteStates", int, (void *, bool *, bool *, bool *, bool *, bool *, double *))(c, (void *)buffer, (void *)buffer, (void *)buffer, (void *)buffer, (void *)buffer, &v), "not supported");
	fails(c, CALL("fmi3CompletedIntegratorStep", int, (void *, bool, bool *, bool *))(c, false, (void *)buffer, (void *)buffer), "not supported");
	fails(c, CALL("fmi3SetTime", int, (void *, double))(c, 1), "not supported");
	fails(c, CALL("fmi3ActivateModelPartition", int, (void *, uint32_t, double))(c, 1, 0), "not supported");
	CHECK(CALL("fmi3DoStep", int, (void *, double, double, bool, bool *, bool *, bool *, double *))(c, 0, period, false, NULL, NULL, NULL, NULL) == 3 && reset(c) == 0);
#endif
	for (size_t i = 0; i < sizeof type / sizeof type[0]; i++)
		for (int sets = 0; sets < 2; sets++) {
			char call[64];
			snprintf(call, sizeof call, "fmi%d%s%s", VERSION, sets ? "Set" : "Get", type[i]);
			CHECK(reset(c) == 0);
			CHECK(CALL(call, int, (void *, const uint32_t *, size_t, void *MANY))(c, &r, 1, buffer MORE) == 3 && strstr(logged, call) != NULL);
		}
	release(c);
}

/* foreign checks that another plant's object refuses a state of the first. */
static void foreign(const char *path, const char *its)
{
	void *c = started(), *s = NULL, *back = NULL;
	size_t n = 0;
	CHECK(getState(c, &s) == 0 && sizeState(c, s, &n) == 0);
	char *bytes = malloc(n);
	CHECK(writeState(c, s, bytes, n) == 0 && freeState(c, &s) == 0);
	release(c);
	CHECK((object = dlopen(path, RTLD_NOW | RTLD_LOCAL)) != NULL);
	token = its;
	c = started();
	fails(c, readState(c, bytes, n, &back), "state");
	CHECK(back == NULL);
	free(bytes);
	release(c);
}

/* setRow sets the inputs of a row that are not NaN. */
static void setRow(void *c, const double *u)
{
	for (size_t i = 0; i < inputs; i++)
		if (!isnan(u[i]))
			CHECK(set(c, (uint32_t[]){(uint32_t)(i + 1)}, 1, &u[i]) == 0);
}

/* whole has 1 for each output that is an integer or an enumeration, else 0. */
static const char *whole;

static void put(void *c)
{
	double *y = row(c);
	for (size_t i = 0; i < outputs; i++) {
		const uint32_t r = (uint32_t)(1 + inputs + i);
		int64_t v;
		if (whole[i] == '1')
			CHECK(getInteger(c, &r, &v) == 0 && (double)v == y[i]);
	}
	fwrite(y, sizeof *y, outputs, stdout);
	free(y);
}

static void run(void)
{
	size_t rows = 0, room = 1 << 16;
	double *u = malloc(room * (inputs + 1) * sizeof *u);
	while (rows < room && inputs > 0 && fread(u + rows * inputs, sizeof *u, inputs, stdin) == inputs)
		rows++;
	void *first = started(), *second, *s = NULL;
	char *bytes = NULL;
	size_t n = 0;
	put(first);
	for (size_t i = 0; i < rows; i++) {
		if (i == rows / 2) {
			CHECK(getState(first, &s) == 0 && sizeState(first, s, &n) == 0 && (bytes = malloc(n)) != NULL);
			CHECK(writeState(first, s, bytes, n) == 0 && freeState(first, &s) == 0);
		}
		setRow(first, u + i * inputs);
		CHECK(step(first, (double)i * period, period) == 0);
		put(first);
	}
	release(first);
	second = instantiate("one", token);
	CHECK(readState(second, bytes, n, &s) == 0 && setState(second, s) == 0 && freeState(second, &s) == 0);
	for (size_t i = rows / 2; i < rows; i++) {
		setRow(second, u + i * inputs);
		CHECK(step(second, (double)i * period, period) == 0);
		put(second);
	}
	release(second);
	free(bytes);
	free(u);
}

int main(int argc, char **argv)
{
	CHECK(argc >= 7);
	object = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
	if (object == NULL) {
		printf("%s\n", dlerror());
		return 1;
	}
	token = argv[2];
	period = atof(argv[3]);
	inputs = (size_t)atol(argv[4]);
	outputs = (size_t)atol(argv[5]);
	if (strcmp(argv[6], "run") == 0) {
		CHECK(argc == 8 && strlen(argv[7]) == outputs);
		whole = argv[7];
		run();
		return 0;
	}
	if (strcmp(argv[6], "life") == 0) {
		births();
		steps();
		values();
		states();
		orders();
		lacking();
		return 0;
	}
	CHECK(argc == 8);
	foreign(argv[6], argv[7]);
	return 0;
}
