#include "client/search/compile_times.h"

#include "client/propose/generator.h"
#include "common/mem.h"
#include <math.h>
#include <stdlib.h>
#include <uthash.h>

#define NEAR 0.35        // distance within which compilations tell the same
#define FAR_WEIGHT 0.001 // of what is known of compiling a point, far from it
#define POINTS_MAX 65536 // whose sums are kept; with more they begin anew

struct compilation {
    uint64_t candidate;
    double seconds, position[GENERATOR_AXIS_MAX];
};

// What is known of a point: the sums over the first so many compilations.
struct point_sums {
    size_t point; // the key
    size_t count;
    uint64_t edition; // of the compilations that they are of
    double seconds, weights;
    UT_hash_handle hh;
};

struct compile_times {
    size_t axes;
    struct compilation *known; // owned
    size_t count;              // of these
    size_t told, size;         // that stand there; those beyond count were told before
    uint64_t edition;          // grows when one that stands there is replaced
    struct point_sums *sums;   // owned
};

struct compile_times *compile_times_create(size_t axes)
{
    struct compile_times *times = xcalloc(1, sizeof(*times));
    times->axes = axes;
    return times;
}

static void forget_sums(struct compile_times *times)
{
    struct point_sums *sums, *next;
    HASH_ITER (hh, times->sums, sums, next) {
        HASH_DEL(times->sums, sums);
        free(sums);
    }
}

void compile_times_free(struct compile_times *times)
{
    if (!times) {
        return;
    }
    forget_sums(times);
    free(times->known);
    free(times);
}

void compile_times_begin(struct compile_times *times)
{
    times->count = 0;
}

double *compile_times_add(struct compile_times *times, uint64_t candidate, double seconds)
{
    if (times->count < times->told) {
        const struct compilation *there = &times->known[times->count];
        if (there->candidate == candidate && there->seconds == seconds) {
            times->count++;
            return NULL;
        }
        times->edition++;
    }
    if (times->count == times->size) {
        times->size = times->size > 0 ? 2 * times->size : 64;
        times->known = xrealloc(times->known, times->size, sizeof(*times->known));
    }
    struct compilation *known = &times->known[times->count++];
    *known = (struct compilation){.candidate = candidate, .seconds = seconds};
    times->told = times->count;
    return known->position;
}

static void add_compilation(const struct compile_times *times, const struct compilation *known,
                            const double *position, struct point_sums *sums)
{
    double square = 0;
    for (size_t axis = 0; axis < times->axes; axis++) {
        double difference = known->position[axis] - position[axis];
        square += difference * difference;
    }
    double weight = exp(-square / (NEAR * NEAR)) + FAR_WEIGHT;
    sums->seconds += weight * known->seconds;
    sums->weights += weight;
}

double compile_times_expect(struct compile_times *times, size_t point, const double *position)
{
    struct point_sums *sums;
    HASH_FIND(hh, times->sums, &point, sizeof(point), sums);
    if (!sums && HASH_COUNT(times->sums) == POINTS_MAX) {
        forget_sums(times);
    }
    if (!sums) {
        sums = xcalloc(1, sizeof(*sums));
        sums->point = point;
        HASH_ADD(hh, times->sums, point, sizeof(sums->point), sums);
    }
    if (sums->edition != times->edition || sums->count > times->count) {
        sums->edition = times->edition;
        sums->count = 0;
        sums->seconds = sums->weights = 0;
    }
    for (; sums->count < times->count; sums->count++) {
        add_compilation(times, &times->known[sums->count], position, sums);
    }
    return sums->weights > 0 ? sums->seconds / sums->weights : 0;
}
