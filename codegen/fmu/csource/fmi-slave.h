/*
 * An instance of the plant for FMI 2 and FMI 3: its phases, values, steps and saved states.
 * fmi2-slave.c or fmi3-slave.c includes this file once, after fmi-plant.h, and defines logError.
 */
#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A shared object exports the names of the standard. Without these macros the names have the
   plant's prefix, so that one program can link several plants. FMPy defines the second macro for
   both versions. */
#if defined FMI2_OVERRIDE_FUNCTION_PREFIX || defined FMI3_OVERRIDE_FUNCTION_PREFIX
#define FMI(function) function
#ifdef _WIN32
#define EXPORT __declspec(dllexport)
#elif defined __GNUC__
#define EXPORT __attribute__((visibility("default")))
#else
#define EXPORT
#endif
#else
#define PASTE(a, b) a##b
#define JOIN(a, b) PASTE(a, b)
#define FMI(function) JOIN(PREFIX, function)
#define EXPORT
#endif

/* Status of a call; both versions of FMI use these numbers. */
enum { OK = 0, ERROR = 3 };

/* Phases of an instance, as bits: a call is allowed in a set of phases. */
enum { INSTANTIATED = 1, INITIALIZING = 2, STEPPING = 4, TERMINATED = 8, FAILED = 16, ANY = 31 };

/* The part of an instance that a saved state contains. */
typedef struct {
	plant_kernel kernel;
	double u[INPUTS + 1]; /* inputs: values set, or last values of the plant's own sources */
	double y[OUTPUTS];
	double start, stop; /* times, s; stop is valid if hasStop is not 0 */
	int64_t tick;       /* grid points since the start */
	int32_t hasStop, phase;
} slaveState;

typedef struct {
	slaveState state;
	void *environment;    /* argument of the importer's logger */
	void (*logger)(void); /* the importer's logger; NULL: none */
	char name[];          /* name of the instance */
} instance;

/* logError passes a line to the importer's logger. */
static void logError(const instance *s, const char *line);

/* fail logs the reason and puts the instance into the phase FAILED. It can then be read, reset, or
   set back to a saved state. */
static int fail(instance *s, const char *format, ...)
{
	char line[512];
	va_list list;
	va_start(list, format);
	vsnprintf(line, sizeof line, format, list);
	va_end(list);
	logError(s, line);
	s->state.phase = FAILED;
	return ERROR;
}

/* checkPhase reports whether a call is allowed in the present phase; otherwise it fails. */
static bool checkPhase(instance *s, int phases, const char *call)
{
	if (s == NULL)
		return false;
	if (s->state.phase & phases)
		return true;
	fail(s, "%s: not allowed while the instance is %s", call,
	       s->state.phase == INSTANTIATED ? "not initialized" : s->state.phase == INITIALIZING ? "being initialized" :
	       s->state.phase == STEPPING ? "stepping" : s->state.phase == TERMINATED ? "terminated" : "failed");
	return false;
}

/* unsupported answers a call for values that the plant does not have; a call for 0 values is OK. */
static int unsupported(instance *s, const char *call, size_t asked)
{
	if (s == NULL)
		return ERROR;
	return asked == 0 ? OK : fail(s, "%s: not supported by this FMU", call);
}

/* checkArrays reports whether the arrays for n values are not NULL; otherwise it fails. */
static bool checkArrays(instance *s, const char *call, size_t n, const void *references, const void *values)
{
	if (n == 0 || (references != NULL && values != NULL))
		return true;
	fail(s, "%s: NULL pointer for %zu values", call, n);
	return false;
}

/* resetInstance returns the plant to its initial state; all inputs follow their own sources. */
static void resetInstance(instance *s)
{
	memset(&s->state, 0, sizeof s->state);
	plant_create(&s->state.kernel);
	plant_output(&s->state.kernel, s->state.y);
	memcpy(s->state.u, plant_input_start, INPUTS * sizeof s->state.u[0]);
	s->state.phase = INSTANTIATED;
}

/* createInstance returns a new instance; NULL without memory. */
static instance *createInstance(const char *name, void *environment, void (*logger)(void))
{
	instance *s = calloc(1, sizeof *s + strlen(name) + 1);
	if (s == NULL)
		return NULL;
	strcpy(s->name, name);
	s->environment = environment;
	s->logger = logger;
	resetInstance(s);
	return s;
}

/* identityError returns the error of an instance name and a token, or NULL. */
static const char *identityError(const char *name, const char *token)
{
	if (name == NULL || name[0] == 0)
		return "the instance has no name";
	if (token == NULL || strcmp(token, TOKEN) != 0)
		return "the token is not " TOKEN ": modelDescription.xml belongs to another FMU";
	return NULL;
}

/* currentTime returns the time of the outputs, s. */
static double currentTime(const instance *s)
{
	return s->state.start + (double)(s->state.tick * PERIOD_NS) / 1e9;
}

/* setTimes sets the start time and the stop time, s. */
static int setTimes(instance *s, double start, bool hasStop, double stop)
{
	if (!(fabs(start) <= DBL_MAX))
		return fail(s, "start time %g s is not finite", start);
	if (hasStop && !(stop >= start))
		return fail(s, "stop time %.9g s is before the start time, %.9g s", stop, start);
	s->state.start = start;
	s->state.hasStop = hasStop;
	s->state.stop = hasStop ? stop : 0;
	return OK;
}

/* getValues reads values by reference: 0 is the time, then the inputs, then the outputs. */
static int getValues(instance *s, const char *call, const uint32_t *reference, size_t n, double *value)
{
	if (!checkPhase(s, ANY, call) || !checkArrays(s, call, n, reference, value))
		return ERROR;
	for (size_t i = 0; i < n; i++) {
		uint32_t r = reference[i];
		if (r > INPUTS + OUTPUTS)
			return fail(s, "%s: value reference %lu is above the largest, %d", call, (unsigned long)r, INPUTS + OUTPUTS);
		value[i] = r == 0 ? currentTime(s) : r <= INPUTS ? s->state.u[r - 1] : s->state.y[r - 1 - INPUTS];
	}
	return OK;
}

static const bool isInteger[OUTPUTS] = INTEGERS;

/* getInteger reads an output whose values are whole numbers, at most INT32_MAX. */
static int getInteger(instance *s, const char *call, uint32_t r, int32_t *value)
{
	if (r <= INPUTS || r > INPUTS + OUTPUTS || !isInteger[r - 1 - INPUTS])
		return fail(s, "%s: value reference %lu is not an integer or an enumeration", call, (unsigned long)r);
	double y = s->state.y[r - 1 - INPUTS];
	*value = y < INT32_MAX ? (int32_t)y : INT32_MAX;
	return OK;
}

/* setValues sets inputs from the next step on. An input follows the plant's own source until it is
   set for the first time. */
static int setValues(instance *s, const char *call, const uint32_t *reference, size_t n, const double *value)
{
	if (!checkPhase(s, INSTANTIATED | INITIALIZING | STEPPING, call) || !checkArrays(s, call, n, reference, value))
		return ERROR;
	for (size_t i = 0; i < n; i++) {
		uint32_t r = reference[i];
		if (r == 0 || r > INPUTS)
			return fail(s, "%s: value reference %lu is not an input; the inputs are 1 to %d", call, (unsigned long)r, INPUTS);
		if (!plant_driven(&s->state.kernel, r - 1))
			plant_drive(&s->state.kernel, r - 1, true);
		s->state.u[r - 1] = value[i];
	}
	return OK;
}

/* failNotFinite fails and names an input that is not finite, or else the state, counted from 1. */
static int failNotFinite(instance *s, int state)
{
	for (int64_t i = 0; i < INPUTS; i++)
		if (plant_driven(&s->state.kernel, i) && !(fabs(s->state.u[i]) <= DBL_MAX))
			return fail(s, "input %s is %g at %.9g s; it must be finite", plant_input_names[i], s->state.u[i], currentTime(s));
	return fail(s, "state %s of the plant is no longer finite after %.9g s", plant_state_names[state - 1], currentTime(s));
}

/* advance steps the plant over length, a whole number of periods. Importers add up step sizes, so
   at and length may differ from the grid by rounding. */
static int advance(instance *s, double at, double length)
{
	const double h = PERIOD_NS / 1e9, ulps = 8 * DBL_EPSILON;
	const double periods = floor(length / h + 0.5);
	if (!(fabs(at - currentTime(s)) <= 1e-3 * h + ulps * fabs(at)))
		return fail(s, "a step starts at %.9g s, but the plant is at %.9g s", at, currentTime(s));
	if (!(periods >= 1 && periods <= 1e15 && fabs(length - periods * h) <= 1e-6 * h + ulps * (fabs(at) + length)))
		return fail(s, "a step of %.9g s is not a whole multiple of the plant's period; use %.9g s", length, periods >= 1 && periods <= 1e15 ? periods * h : h);
	if (s->state.hasStop && !(at + length <= s->state.stop + 1e-3 * h + ulps * fabs(at)))
		return fail(s, "a step ends at %.9g s, after the stop time, %.9g s", at + length, s->state.stop);
	for (int64_t left = (int64_t)periods; left > 0; left--) {
		for (int64_t i = 0; i < INPUTS; i++)
			if (!plant_driven(&s->state.kernel, i))
				s->state.u[i] = plant_own(&s->state.kernel, i);
		const int state = plant_step(&s->state.kernel, s->state.y, s->state.u);
		if (state != 0)
			return failNotFinite(s, state);
		s->state.tick++;
	}
	return OK;
}

/* stateHeader precedes a slaveState in its serialised form. */
typedef struct {
	char hash[sizeof HASH];
	uint64_t size, sum;
} stateHeader;

/* headerOf returns the header of a state. */
static stateHeader headerOf(const void *state)
{
	stateHeader h;
	memset(&h, 0, sizeof h);
	memcpy(h.hash, HASH, sizeof HASH);
	h.size = sizeof(slaveState);
	h.sum = 14695981039346656037u; /* FNV-1a */
	for (size_t i = 0; i < sizeof(slaveState); i++)
		h.sum = (h.sum ^ ((const unsigned char *)state)[i]) * 1099511628211u;
	return h;
}

/* copyState copies a state to *saved. If *saved is NULL, it allocates the memory. */
static int copyState(instance *s, const char *call, const void *state, void **saved)
{
	if (saved == NULL)
		return fail(s, "%s: NULL pointer for a state", call);
	if (*saved == NULL && (*saved = malloc(sizeof(slaveState))) == NULL)
		return fail(s, "%s: no memory for a state of %zu bytes", call, sizeof(slaveState));
	memcpy(*saved, state, sizeof(slaveState));
	return OK;
}

static int getState(instance *s, const char *call, void **saved)
{
	return checkPhase(s, ANY, call) ? copyState(s, call, &s->state, saved) : ERROR;
}

static int setState(instance *s, const char *call, const void *saved)
{
	if (!checkPhase(s, ANY, call))
		return ERROR;
	if (saved == NULL)
		return fail(s, "%s: NULL pointer for a state", call);
	memcpy(&s->state, saved, sizeof s->state);
	return OK;
}

static int freeState(instance *s, void **saved)
{
	if (s == NULL)
		return ERROR;
	if (saved != NULL) {
		free(*saved);
		*saved = NULL;
	}
	return OK;
}

static int sizeOfState(instance *s, const char *call, const void *saved, size_t *size)
{
	if (!checkPhase(s, ANY, call))
		return ERROR;
	if (saved == NULL || size == NULL)
		return fail(s, "%s: NULL pointer for a state or its size", call);
	*size = sizeof(stateHeader) + sizeof(slaveState);
	return OK;
}

static int writeState(instance *s, const char *call, const void *saved, void *bytes, size_t size)
{
	if (!checkPhase(s, ANY, call))
		return ERROR;
	if (saved == NULL || bytes == NULL)
		return fail(s, "%s: NULL pointer for a state or its bytes", call);
	if (size < sizeof(stateHeader) + sizeof(slaveState))
		return fail(s, "%s: %zu bytes are too few for a state; it needs %zu", call, size, sizeof(stateHeader) + sizeof(slaveState));
	const stateHeader h = headerOf(saved);
	memcpy(bytes, &h, sizeof h);
	memcpy((char *)bytes + sizeof h, saved, sizeof(slaveState));
	return OK;
}

static int readState(instance *s, const char *call, const void *bytes, size_t size, void **saved)
{
	if (!checkPhase(s, ANY, call))
		return ERROR;
	if (bytes == NULL)
		return fail(s, "%s: NULL pointer for the bytes of a state", call);
	if (size != sizeof(stateHeader) + sizeof(slaveState))
		return fail(s, "%s: expected %zu bytes for a state, got %zu", call, sizeof(stateHeader) + sizeof(slaveState), size);
	const char *state = (const char *)bytes + sizeof(stateHeader);
	const stateHeader h = headerOf(state);
	if (memcmp(bytes, h.hash, sizeof h.hash) != 0)
		return fail(s, "%s: the state belongs to another plant, or to another version of this plant", call);
	if (memcmp(bytes, &h, sizeof h) != 0)
		return fail(s, "%s: the state is damaged: its checksum differs", call);
	return copyState(s, call, state, saved);
}

/* checkCategories checks the names of log categories. The only one, for errors, is always on. */
static int checkCategories(instance *s, const char *call, size_t n, const char *const *category)
{
	if (!checkPhase(s, ANY, call))
		return ERROR;
	for (size_t i = 0; i < n; i++)
		if (category == NULL || category[i] == NULL || strcmp(category[i], CATEGORY) != 0)
			return fail(s, "%s: unknown log category; the only one is " CATEGORY, call);
	return OK;
}
