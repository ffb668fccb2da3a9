/*
 * The calls of an FMU in one form for VERSION 2 and 3. This file declares them by the text of the
 * standard and shares no text with the FMU.
 */
#include <dlfcn.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char logged[512]; /* last message to the logger */
static int lines;        /* number of messages to the logger */

#define CHECK(what) \
	do \
		if (!(what)) { \
			printf("%s:%d: %s; last message: %s\n", __FILE__, __LINE__, #what, logged); \
			exit(1); \
		} \
	while (0)

static void *object;
static const char *token;
static double period;
static size_t inputs, outputs;

static void *find(const char *name)
{
	void *f = dlsym(object, name);
	if (f == NULL) {
		printf("%s is missing\n", name);
		exit(1);
	}
	return f;
}

/* CALL calls a function of the object, given the types of its result and parameters. */
#define CALL(name, result, parameters) ((result(*) parameters)find(name))

#if VERSION == 2
static void logger(void *environment, const char *instance, int status, const char *category, const char *message, ...)
{
	CHECK(environment == (void *)logged && strcmp(instance, "one") == 0 && strcmp(category, "logStatusError") == 0 && status >= 2);
	snprintf(logged, sizeof logged, "%s", message);
	lines++;
}

typedef struct {
	void (*logger)(void *, const char *, int, const char *, const char *, ...);
	void *(*allocate)(size_t, size_t);
	void (*release)(void *);
	void (*finished)(void *, int);
	void *environment;
} callbacks;

static const callbacks functions = {logger, calloc, free, NULL, logged};

static void *instantiate(const char *name, const char *by)
{
	return CALL("fmi2Instantiate", void *, (const char *, int, const char *, const char *, const callbacks *, int, int))(name, 1, by, NULL, &functions, 0, 0);
}

static int initialize(void *c, double start, bool stops, double stop)
{
	const int status = CALL("fmi2SetupExperiment", int, (void *, int, double, double, int, double))(c, 0, 0, start, stops, stop);
	return status != 0 ? status : CALL("fmi2EnterInitializationMode", int, (void *))(c);
}

static int get(void *c, const uint32_t *r, size_t n, double *v)
{
	return CALL("fmi2GetReal", int, (void *, const unsigned *, size_t, double *))(c, r, n, v);
}

static int getInteger(void *c, const uint32_t *r, int64_t *v)
{
	int whole = 0;
	const int status = CALL("fmi2GetInteger", int, (void *, const unsigned *, size_t, int *))(c, r, 1, &whole);
	*v = whole;
	return status;
}

static int set(void *c, const uint32_t *r, size_t n, const double *v)
{
	return CALL("fmi2SetReal", int, (void *, const unsigned *, size_t, const double *))(c, r, n, v);
}

static int step(void *c, double at, double length)
{
	return CALL("fmi2DoStep", int, (void *, double, double, int))(c, at, length, 0);
}
#define NAMED(name2, name3) "fmi2" name2
#else
static void logger(void *environment, int status, const char *category, const char *message)
{
	CHECK(environment == (void *)logged && strcmp(category, "logStatusError") == 0 && status == 3);
	snprintf(logged, sizeof logged, "%s", message);
	lines++;
}

typedef void log3(void *, int, const char *, const char *);

static void *instantiate(const char *name, const char *by)
{
	return CALL("fmi3InstantiateCoSimulation", void *, (const char *, const char *, const char *, bool, bool, bool, bool, const uint32_t *, size_t, void *, log3 *, void (*)(void)))(name, by, NULL, false, false, false, false, NULL, 0, logged, logger, NULL);
}

static int initialize(void *c, double start, bool stops, double stop)
{
	return CALL("fmi3EnterInitializationMode", int, (void *, bool, double, double, bool, double))(c, false, 0, start, stops, stop);
}

static int get(void *c, const uint32_t *r, size_t n, double *v)
{
	return CALL("fmi3GetFloat64", int, (void *, const uint32_t *, size_t, double *, size_t))(c, r, n, v, n);
}

static int getInteger(void *c, const uint32_t *r, int64_t *v)
{
	return CALL("fmi3GetInt64", int, (void *, const uint32_t *, size_t, int64_t *, size_t))(c, r, 1, v, 1);
}

static int set(void *c, const uint32_t *r, size_t n, const double *v)
{
	return CALL("fmi3SetFloat64", int, (void *, const uint32_t *, size_t, const double *, size_t))(c, r, n, v, n);
}

static int step(void *c, double at, double length)
{
	bool event = true, terminate = true, early = true;
	double reached = -1;
	const int status = CALL("fmi3DoStep", int, (void *, double, double, bool, bool *, bool *, bool *, double *))(c, at, length, false, &event, &terminate, &early, &reached);
	if (status == 0)
		CHECK(!event && !terminate && !early && fabs(reached - at - length) <= 1e-9);
	return status;
}
#define NAMED(name2, name3) "fmi3" name3
#endif

static int plain(void *c, const char *name) { return CALL(name, int, (void *))(c); }
static int exitInitialization(void *c) { return plain(c, NAMED("ExitInitializationMode", "ExitInitializationMode")); }
static int terminate(void *c) { return plain(c, NAMED("Terminate", "Terminate")); }
static int reset(void *c) { return plain(c, NAMED("Reset", "Reset")); }
static void release(void *c) { CALL(NAMED("FreeInstance", "FreeInstance"), void, (void *))(c); }
static int getState(void *c, void **s) { return CALL(NAMED("GetFMUstate", "GetFMUState"), int, (void *, void **))(c, s); }
static int setState(void *c, void *s) { return CALL(NAMED("SetFMUstate", "SetFMUState"), int, (void *, void *))(c, s); }
static int freeState(void *c, void **s) { return CALL(NAMED("FreeFMUstate", "FreeFMUState"), int, (void *, void **))(c, s); }
static int sizeState(void *c, void *s, size_t *n) { return CALL(NAMED("SerializedFMUstateSize", "SerializedFMUStateSize"), int, (void *, void *, size_t *))(c, s, n); }
static int writeState(void *c, void *s, void *to, size_t n) { return CALL(NAMED("SerializeFMUstate", "SerializeFMUState"), int, (void *, void *, void *, size_t))(c, s, to, n); }
static int readState(void *c, const void *from, size_t n, void **s) { return CALL(NAMED("DeSerializeFMUstate", "DeserializeFMUState"), int, (void *, const void *, size_t, void **))(c, from, n, s); }
