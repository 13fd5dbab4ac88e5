// What candidates are measured against, and where: one problem, its reference and its baseline, one
// class of devices. Many jobs share one measurement setup, so it is interned: the problem is read once, and
// what is known of reference and baseline is known to all. Compiles nothing itself.
#ifndef DAEMON_RUN_SETUP_H
#define DAEMON_RUN_SETUP_H

#include "daemon/run/compiler.h"
#include "daemon/state/parts.h"
#include "daemon/store/blob.h"
#include "daemon/store/secret.h"
#include <uthash.h>

struct setups;

// One of the two codes that come with the problem.
struct setup_part {
    struct digest source; // blob; zero when there is none (COMPILE jobs)
    bool compiled;        // object counts
    struct digest object; // blob
    char *refusal;        // why it cannot be compiled; NULL while it is not known to be so
};

struct setup {
    struct setups *table;
    struct digest identity; // of the three and class_name
    struct digest problem;  // blob of problem.json
    char *class_name;       // class that is asked for; NULL: any that fits
    struct device_class
        *device_class; // once the problem was read; NULL: none runs it, see homeless
    char *homeless;    // why there is none, else NULL
    char *name;        // the problem's, once it was read, else NULL
    char *header;      // candidate and baseline: problem/problem.h; "" for cuda, like glue
    char *glue;
    char *reference_header;
    char *reference_glue;
    struct setup_part reference;
    struct setup_part baseline;
    bool reading;             // the blob is being read
    char *defect;             // why the problem is none; NULL while it is not known to be so
    struct setup_wait *waits; // list of those who wait until it is read
    size_t users;             // references
    double held_s;            // mean time that a measurement held a device; 0: none yet
    struct setup *idle_prev;  // measurement setups without users, oldest first
    struct setup *idle_next;
    UT_hash_handle hh;
};

// Embedded in what waits; zeroed before use. lost is NULL when the problem has been read (or is
// known to be none: see defect), else why it could not be read this time; who wants to try again
// does so later, not in on_done.
struct setup_wait {
    void (*on_done)(struct setup_wait *wait, const char *lost);
    void *owner;          // the waiter's
    enum job_cause cause; // why it was lost, while on_done runs
    struct setup *setup;  // the table's, as is the rest; NULL: not waiting
    struct setup_wait *prev;
    struct setup_wait *next;
};

// parts outlive the measurement setups; blobs, compiler, devices and secret are used.
struct setups *setups_create(const struct daemon_parts *parts);
void setups_free(struct setups *setups); // without users; NULL is fine

// Every blob that a known measurement setup needs, some more than once; zero where there is none.
void setups_visit_blobs(const struct setups *setups,
                        void (*visit)(void *owner, const struct digest *digest), void *owner);

// The measurement setup of these three blobs on devices of this class (NULL: any that fits), with one more
// user. reference and baseline may be zero.
struct setup *setup_acquire(struct setups *setups, const struct digest *problem,
                            const struct digest *reference, const struct digest *baseline,
                            const char *class_name);
void setup_release(struct setup *setup); // NULL is fine

// Waits until the problem has been read and parsed; then name or defect is set, and with name
// device_class or homeless. Returns true when that is so already (on_done does not run then).
bool setup_read(struct setup *setup, struct setup_wait *wait);
void setup_cancel(struct setup_wait *wait); // no-op when it is done
// How the baseline, the reference or a candidate of this source (NULL for the others) is compiled.
// The measurement setup must have been read and not be homeless.
struct compile_input setup_input(const struct setup *setup, enum compile_role role,
                                 const struct digest *candidate);
// Whether nothing need be asked about its reference or baseline: it is compiled, refused, or there
// is none.
bool setup_knows(const struct setup *setup, enum compile_role role);
// How its reference or baseline was compiled. May be said more than once.
void setup_learn(struct setup *setup, enum compile_role role, const struct compiled *compiled);
// Why nothing can be measured against it: its reference or baseline does not compile. NULL while
// that is not known.
const char *setup_refusal(const struct setup *setup);
// The seed that the hidden cases of a candidate follow from.
uint64_t setup_hidden_seed(const struct setup *setup, const struct digest *source);
// Objects of the parts are missing from the store: compile again when next asked.
void setup_forget_objects(struct setup *setup);

#endif
