// A daemon in simulated time: compiles and measures candidates of spaces by looking up what came of
// them, and takes as long as that took. Several searches share its devices: the next measurement is of
// the search that has used least device time, its most urgent and oldest one.
#ifndef REPLAY_LAB_H
#define REPLAY_LAB_H

#include "client/pool.h"
#include "replay/catalogue.h"
#include "replay/sim.h"
#include <stddef.h>

struct lab;
struct lab_search; // one search's jobs

struct lab_config {
    unsigned devices;       // at least 1
    unsigned compile_slots; // at least 1
};

struct lab *lab_create(struct sim *sim, const struct lab_config *config);
void lab_free(struct lab *lab); // after its searches; NULL is fine

struct lab_search *lab_search_create(struct lab *lab, const struct catalogue *catalogue);
void lab_search_free(struct lab_search *search); // its jobs' callbacks do not run; NULL is fine
// As pool_submit (client/pool.h). The spec's candidate names a candidate of the catalogue, else the job is
// buried.
void lab_submit(struct lab_search *search, const struct job_spec *spec, uint64_t priority,
                pool_callback *callback, void *owner, uint64_t tag);

#endif
