// A search of the toy space in simulated time, for tests of searches.
#ifndef TESTS_REPLAY_SIM_FIXTURE_H
#define TESTS_REPLAY_SIM_FIXTURE_H

#include "replay/sim_search.h"
#include "tests/replay/toy.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// cmocka.h needs the four above.
#include <cmocka.h>
#include <stdlib.h>

// A simulation, by default with one device, and a search of the toy space in it.
struct fixture {
    struct recorded_space *recorded;
    struct sim *sim;
    struct sim_daemon *sim_daemon;
    struct sim_search_config config;
    struct sim_search *search;
};

static inline struct fixture *set_up_with(unsigned devices, unsigned compile_slots)
{
    struct fixture *f = xcalloc(1, sizeof(*f));

    f->recorded = make_recorded();
    f->sim = sim_create();
    f->sim_daemon = sim_daemon_create(
        f->sim, &(struct sim_daemon_config){.devices = devices, .compile_slots = compile_slots});
    f->config = (struct sim_search_config){.recorded = f->recorded,
                                           .strategy = "best-of-n",
                                           .policy = "all",
                                           .confidence = 0.9,
                                           .audit = 0.05,
                                           .seed = 1,
                                           .budget_seconds = NAN,
                                           .batch = 8};
    return f;
}

static inline struct fixture *set_up(void)
{
    return set_up_with(1, 2);
}

static inline void start(struct fixture *f)
{
    struct err err = ERR_INIT;

    if (sim_search_create(&f->search, f->sim, f->sim_daemon, &f->config, &err) != 0) {
        fail_msg("%s", err.text);
    }
}

// Advances until the search is done, or so many steps of the simulation at most. Returns the steps.
static inline size_t run(struct fixture *f, size_t most)
{
    size_t steps = 0;
    struct err err = ERR_INIT;

    while (!sim_search_done(f->search) && steps < most) {
        assert_true(sim_step(f->sim));
        if (sim_search_advance(f->search, &err) != 0) {
            fail_msg("%s", err.text);
        }
        steps++;
    }
    return steps;
}

static inline struct search_outcome outcome_of(struct fixture *f)
{
    struct search_outcome outcome;

    (void)run(f, SIZE_MAX);
    sim_search_outcome(f->search, &outcome);
    return outcome;
}

static inline void tear_down(struct fixture *f)
{
    sim_search_free(f->search);
    sim_daemon_free(f->sim_daemon);
    sim_free(f->sim);
    recorded_space_free(f->recorded);
    free(f);
}

#endif
