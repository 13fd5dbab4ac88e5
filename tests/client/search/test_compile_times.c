// What compiling is expected to take: the same to the bit as a sum made anew, whatever was asked
// and told before.
#include "client/search/compile_times.h"

#include "common/stats.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
// cmocka.h needs the four above.
#include <cmocka.h>

#define AXES 3
#define POINTS 40
#define KNOWN 300

// A compilation, and what is expected of points.
struct known {
    uint64_t candidate;
    double seconds, position[AXES];
};

struct world {
    struct stats_rng rng;
    double position[POINTS][AXES];
    struct known known[KNOWN];
    size_t count;
    struct compile_times *times;
};

static struct known draw(struct world *world, uint64_t candidate)
{
    struct known ret = {.candidate = candidate, .seconds = exp(stats_rng_normal(&world->rng))};
    for (int axis = 0; axis < AXES; axis++) {
        ret.position[axis] = stats_rng_unit(&world->rng);
    }
    return ret;
}

static int setup(void **state)
{
    static struct world world;
    memset(&world, 0, sizeof(world));
    stats_rng_init(&world.rng, 7, 1);
    for (int i = 0; i < POINTS; i++) {
        memcpy(world.position[i], draw(&world, 0).position, sizeof(world.position[i]));
    }
    world.times = compile_times_create(AXES);
    *state = &world;
    return 0;
}

static int teardown(void **state)
{
    struct world *world = *state;
    compile_times_free(world->times);
    return 0;
}

static void tell(const struct world *world, struct compile_times *times)
{
    compile_times_begin(times);
    for (size_t i = 0; i < world->count; i++) {
        const struct known *known = &world->known[i];
        double *position = compile_times_add(times, known->candidate, known->seconds);
        if (position) {
            memcpy(position, known->position, sizeof(known->position));
        }
    }
}

// Some of the points are asked about, so that each one's sums end elsewhere.
static void assert_as_anew(struct world *world)
{
    struct compile_times *anew = compile_times_create(AXES);
    tell(world, anew);
    tell(world, world->times);
    for (size_t i = 0; i < POINTS; i++) {
        if (stats_rng_below(&world->rng, 3) == 0) {
            assert_true(compile_times_expect(world->times, i, world->position[i]) ==
                        compile_times_expect(anew, i, world->position[i]));
        }
    }
    compile_times_free(anew);
}

static void nothing_is_expected_when_nothing_is_known(void **state)
{
    struct world *world = *state;
    tell(world, world->times);
    assert_true(compile_times_expect(world->times, 0, world->position[0]) == 0);
}

// Near a compilation its time, far from all of them their mean.
static void what_is_near_counts(void **state)
{
    struct world *world = *state;
    world->known[0] = (struct known){.candidate = 1, .seconds = 1, .position = {0, 0, 0}};
    world->known[1] = (struct known){.candidate = 2, .seconds = 3, .position = {0, 1, 1}};
    world->count = 2;
    tell(world, world->times);
    assert_true(fabs(compile_times_expect(world->times, 0, world->known[0].position) - 1) < 0.01);
    assert_true(fabs(compile_times_expect(world->times, 1, world->known[1].position) - 3) < 0.01);
    const double middle[AXES] = {1, 0.5, 0.5};
    assert_true(fabs(compile_times_expect(world->times, 2, middle) - 2) < 1e-9);
}

static void sums_go_on(void **state)
{
    struct world *world = *state;
    for (uint64_t candidate = 1; world->count < KNOWN; candidate++) {
        world->known[world->count++] = draw(world, candidate);
        assert_as_anew(world);
    }
}

// A compilation that ends late is told between others; one may be made again, or be gone.
static void sums_are_made_anew_when_earlier_ones_change(void **state)
{
    struct world *world = *state;
    for (uint64_t candidate = 2; world->count < 100; candidate += 2) {
        world->known[world->count++] = draw(world, candidate);
    }
    assert_as_anew(world);
    memmove(&world->known[21], &world->known[20], 80 * sizeof(world->known[0]));
    world->known[20] = draw(world, world->known[19].candidate + 1);
    world->count++;
    assert_as_anew(world);
    world->known[5].seconds *= 2;
    assert_as_anew(world);
    world->count -= 30;
    assert_as_anew(world);
    for (uint64_t candidate = 1000; world->count < 150; candidate++) {
        world->known[world->count++] = draw(world, candidate);
        assert_as_anew(world);
    }
    world->count = 0;
    assert_as_anew(world);
    world->known[world->count++] = draw(world, 1);
    assert_as_anew(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(nothing_is_expected_when_nothing_is_known, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_near_counts, setup, teardown),
        cmocka_unit_test_setup_teardown(sums_go_on, setup, teardown),
        cmocka_unit_test_setup_teardown(sums_are_made_anew_when_earlier_ones_change, setup,
                                        teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
