/*
 * An instance of the plant, as far as FMI 2 and FMI 3 have it in common: its life, its
 * values, its steps and its states. It is included once, after fmi-plant.h, by the version
 * that defines say.
 */
#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A shared object exports the standard's names; what is linked into a program has the
   plant's name before them. FMPy defines the second macro for either version. */
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

/* Status of a call, with the numbers of both versions. */
enum { OK = 0, ERROR = 3 };

/* Where an instance is in its life, and in which of these a call is allowed. */
enum { CREATED = 1, INITIALIZING = 2, STEPPING = 4, TERMINATED = 8, FAILED = 16, ANY = 31 };

/* What a saved state holds: all that changes. */
typedef struct {
	plant_kernel kernel;
	double u[INPUTS + 1]; /* as set, or as the plant's own sources gave them last */
	double y[OUTPUTS];
	double start, stop; /* s; stop only where stops is not 0 */
	int64_t tick;       /* grid points since the start */
	int32_t stops, life;
} slaveState;

typedef struct {
	slaveState now;
	void *environment; /* the importer's, for its logger */
	void (*logger)(void);
	char name[]; /* of the instance */
} instance;

/* say gives a line to the importer's logger. */
static void say(const instance *s, const char *line);

/* failed says why and ends what the instance can be used for, but for looking at it,
   going back to a saved state or starting anew. */
static int failed(instance *s, const char *format, ...)
{
	char line[512];
	va_list list;
	va_start(list, format);
	vsnprintf(line, sizeof line, format, list);
	va_end(list);
	say(s, line);
	s->now.life = FAILED;
	return ERROR;
}

/* allowed tells whether a call fits the moment; where not, it fails. */
static bool allowed(instance *s, int lives, const char *call)
{
	if (s == NULL)
		return false;
	if (s->now.life & lives)
		return true;
	failed(s, "%s: not while the instance is %s", call,
	       s->now.life == CREATED ? "not initialized" : s->now.life == INITIALIZING ? "being initialized" :
	       s->now.life == STEPPING ? "stepping" : s->now.life == TERMINATED ? "terminated" : "failed");
	return false;
}

/* refused answers a call for something the plant does not have: it may ask for none. */
static int refused(instance *s, const char *call, size_t asked)
{
	if (s == NULL)
		return ERROR;
	return asked == 0 ? OK : failed(s, "%s: the plant has no such thing", call);
}

/* given tells whether there are arrays for n values; where not, it fails. */
static bool given(instance *s, const char *call, size_t n, const void *references, const void *values)
{
	if (n == 0 || (references != NULL && values != NULL))
		return true;
	failed(s, "%s: NULL for %zu values", call, n);
	return false;
}

/* restart puts the plant at its start; nothing has been set. */
static void restart(instance *s)
{
	memset(&s->now, 0, sizeof s->now);
	plant_create(&s->now.kernel);
	plant_output(&s->now.kernel, s->now.y);
	memcpy(s->now.u, plant_input_start, INPUTS * sizeof s->now.u[0]);
	s->now.life = CREATED;
}

/* create makes an instance; the caller says what went wrong where there is none. */
static instance *create(const char *name, void *environment, void (*logger)(void))
{
	instance *s = calloc(1, sizeof *s + strlen(name) + 1);
	if (s == NULL)
		return NULL;
	strcpy(s->name, name);
	s->environment = environment;
	s->logger = logger;
	restart(s);
	return s;
}

/* misnamed is why no instance can be made under a name and a token, or NULL. */
static const char *misnamed(const char *name, const char *token)
{
	if (name == NULL || name[0] == 0)
		return "the instance has no name";
	if (token == NULL || strcmp(token, TOKEN) != 0)
		return "the token is not " TOKEN ": the description is of another plant";
	return NULL;
}

/* now is the time at which the outputs are, s. */
static double now(const instance *s)
{
	return s->now.start + (double)(s->now.tick * PERIOD_NS) / 1e9;
}

/* setup notes the time of the start, to be counted from, and of the end. */
static int setup(instance *s, double start, bool stops, double stop)
{
	if (!(fabs(start) <= DBL_MAX))
		return failed(s, "start time %g s is not finite", start);
	if (stops && !(stop >= start))
		return failed(s, "stop time %.9g s is before the start time, %.9g s", stop, start);
	s->now.start = start;
	s->now.stops = stops;
	s->now.stop = stops ? stop : 0;
	return OK;
}

/* Value references: time is 0, then come the inputs, then the outputs. */
static int getValues(instance *s, const char *call, const uint32_t *reference, size_t n, double *value)
{
	if (!allowed(s, ANY, call) || !given(s, call, n, reference, value))
		return ERROR;
	for (size_t i = 0; i < n; i++) {
		uint32_t r = reference[i];
		if (r > INPUTS + OUTPUTS)
			return failed(s, "%s: value reference %lu is above the last one, %d", call, (unsigned long)r, INPUTS + OUTPUTS);
		value[i] = r == 0 ? now(s) : r <= INPUTS ? s->now.u[r - 1] : s->now.y[r - 1 - INPUTS];
	}
	return OK;
}

/* setValues sets inputs, which hold from the next step on. An input follows the plant's
   own source until it is set for the first time. */
static int setValues(instance *s, const char *call, const uint32_t *reference, size_t n, const double *value)
{
	if (!allowed(s, CREATED | INITIALIZING | STEPPING, call) || !given(s, call, n, reference, value))
		return ERROR;
	for (size_t i = 0; i < n; i++) {
		uint32_t r = reference[i];
		if (r == 0 || r > INPUTS)
			return failed(s, "%s: value reference %lu is no input; those are 1 to %d", call, (unsigned long)r, INPUTS);
		if (!plant_driven(&s->now.kernel, r - 1))
			plant_drive(&s->now.kernel, r - 1, true);
		s->now.u[r - 1] = value[i];
	}
	return OK;
}

/* broken says why the plant stands still: an input or a state that is no finite number. */
static int broken(instance *s, int state)
{
	for (int64_t i = 0; i < INPUTS; i++)
		if (plant_driven(&s->now.kernel, i) && !(fabs(s->now.u[i]) <= DBL_MAX))
			return failed(s, "input %s is %g at %.9g s", plant_input_names[i], s->now.u[i], now(s));
	return failed(s, "state %s of the plant is no longer finite after %.9g s", plant_state_names[state - 1], now(s));
}

/* advance takes the plant over a step of whole periods. Importers add up steps, which
   rounds; a step that is off by more than that would be another step. */
static int advance(instance *s, double at, double length)
{
	const double h = PERIOD_NS / 1e9, ulps = 8 * DBL_EPSILON;
	const double periods = floor(length / h + 0.5);
	if (!(fabs(at - now(s)) <= 1e-3 * h + ulps * fabs(at)))
		return failed(s, "a step from %.9g s: the plant is at %.9g s", at, now(s));
	if (!(periods >= 1 && periods <= 1e15 && fabs(length - periods * h) <= 1e-6 * h + ulps * (fabs(at) + length)))
		return failed(s, "a step of %.9g s is no whole multiple of the plant's period; %.9g s would fit", length, periods >= 1 && periods <= 1e15 ? periods * h : h);
	if (s->now.stops && !(at + length <= s->now.stop + 1e-3 * h + ulps * fabs(at)))
		return failed(s, "a step to %.9g s: the stop time is %.9g s", at + length, s->now.stop);
	for (int64_t left = (int64_t)periods; left > 0; left--) {
		for (int64_t i = 0; i < INPUTS; i++)
			if (!plant_driven(&s->now.kernel, i))
				s->now.u[i] = plant_own(&s->now.kernel, i);
		const int state = plant_step(&s->now.kernel, s->now.y, s->now.u);
		if (state != 0)
			return broken(s, state);
		s->now.tick++;
	}
	return OK;
}

/* A state given away is a slaveState; written down it has this before it. */
typedef struct {
	char hash[sizeof HASH];
	uint64_t size, sum;
} heading;

static heading headingOf(const void *state)
{
	heading h;
	memset(&h, 0, sizeof h);
	memcpy(h.hash, HASH, sizeof HASH);
	h.size = sizeof(slaveState);
	h.sum = 14695981039346656037u; /* FNV-1a */
	for (size_t i = 0; i < sizeof(slaveState); i++)
		h.sum = (h.sum ^ ((const unsigned char *)state)[i]) * 1099511628211u;
	return h;
}

/* keepState copies a state into *kept, which is made where it is NULL. */
static int keepState(instance *s, const char *call, const void *state, void **kept)
{
	if (kept == NULL)
		return failed(s, "%s: NULL for a state", call);
	if (*kept == NULL && (*kept = malloc(sizeof(slaveState))) == NULL)
		return failed(s, "%s: no memory for a state of %zu bytes", call, sizeof(slaveState));
	memcpy(*kept, state, sizeof(slaveState));
	return OK;
}

static int getState(instance *s, const char *call, void **kept)
{
	return allowed(s, ANY, call) ? keepState(s, call, &s->now, kept) : ERROR;
}

static int setState(instance *s, const char *call, const void *kept)
{
	if (!allowed(s, ANY, call))
		return ERROR;
	if (kept == NULL)
		return failed(s, "%s: NULL for a state", call);
	memcpy(&s->now, kept, sizeof s->now);
	return OK;
}

static int freeState(instance *s, void **kept)
{
	if (s == NULL)
		return ERROR;
	if (kept != NULL) {
		free(*kept);
		*kept = NULL;
	}
	return OK;
}

static int sizeOfState(instance *s, const char *call, const void *kept, size_t *size)
{
	if (!allowed(s, ANY, call))
		return ERROR;
	if (kept == NULL || size == NULL)
		return failed(s, "%s: NULL for a state or its size", call);
	*size = sizeof(heading) + sizeof(slaveState);
	return OK;
}

static int writeState(instance *s, const char *call, const void *kept, void *bytes, size_t size)
{
	if (!allowed(s, ANY, call))
		return ERROR;
	if (kept == NULL || bytes == NULL)
		return failed(s, "%s: NULL for a state or its bytes", call);
	if (size < sizeof(heading) + sizeof(slaveState))
		return failed(s, "%s: %zu bytes for a state of %zu", call, size, sizeof(heading) + sizeof(slaveState));
	const heading h = headingOf(kept);
	memcpy(bytes, &h, sizeof h);
	memcpy((char *)bytes + sizeof h, kept, sizeof(slaveState));
	return OK;
}

static int readState(instance *s, const char *call, const void *bytes, size_t size, void **kept)
{
	if (!allowed(s, ANY, call))
		return ERROR;
	if (bytes == NULL)
		return failed(s, "%s: NULL for the bytes of a state", call);
	if (size != sizeof(heading) + sizeof(slaveState))
		return failed(s, "%s: %zu bytes; a state of this plant has %zu", call, size, sizeof(heading) + sizeof(slaveState));
	const char *state = (const char *)bytes + sizeof(heading);
	const heading h = headingOf(state);
	if (memcmp(bytes, h.hash, sizeof h.hash) != 0)
		return failed(s, "%s: the state is of another plant, or of another version of it", call);
	if (memcmp(bytes, &h, sizeof h) != 0)
		return failed(s, "%s: the state is damaged", call);
	return keepState(s, call, state, kept);
}

/* categories checks the names of log categories: there is one, of errors, always on. */
static int categories(instance *s, const char *call, size_t n, const char *const *category)
{
	if (!allowed(s, ANY, call))
		return ERROR;
	for (size_t i = 0; i < n; i++)
		if (category == NULL || category[i] == NULL || strcmp(category[i], CATEGORY) != 0)
			return failed(s, "%s: the one category is " CATEGORY, call);
	return OK;
}
