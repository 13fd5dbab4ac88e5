// The measurement setup: what candidates are measured against, and where. It is one problem with
// its reference and its baseline, and one class of devices. Many jobs share one setup, so there is
// one object for all equal ones: the problem is read once, and what becomes known of reference and
// baseline is known to all. Called by submission, preparation and measure.c. Compiles nothing
// itself.
#ifndef DAEMON_RUN_SETUP_H
#define DAEMON_RUN_SETUP_H

#include "daemon/run/compiler.h"
#include "daemon/state/parts.h"
#include "daemon/store/blob.h"
#include "daemon/store/secret.h"
#include <uthash.h>

struct setups; // all of one daemon

// The reference or the baseline.
struct setup_part {
    struct digest source; // blob; zero when there is none, as in a COMPILE job
    bool python;          // it is recorded; known once the problem has been read
    bool compiled;        // object is set
    struct digest object; // blob
    char *refusal;        // why it cannot be compiled; NULL while no such reason is known
};

struct setup {
    struct setups *table;
    struct digest identity;            // of the three blobs and class_name; the key in the table
    struct digest problem;             // blob of problem.json
    char *class_name;                  // class of devices that is asked for; NULL: any that fits
    struct device_class *device_class; // set when the problem has been read; NULL: see no_class
    char *no_class;         // why no class of devices runs the problem; NULL when one does
    char *name;             // the problem's name, once it has been read, else NULL
    char *header;           // problem/problem.h for candidate and baseline; "" for cuda
    char *glue;             // second translation unit of these; "" for cuda
    char *reference_header; // the same two for the reference
    char *reference_glue;
    struct setup_part reference;
    struct setup_part baseline;
    bool has_hidden; // the problem has hidden cases; known once it has been read
    bool reading;    // the problem's blob is being read
    char *defect;    // why the blob is no valid problem; NULL while no such reason is known
    struct setup_wait *waits; // list of those who wait until the problem has been read
    size_t users;             // references to this object
    double held_s;            // mean seconds that a measurement held a device; 0: none yet
    struct setup *idle_prev;  // list of setups without users, oldest first
    struct setup *idle_next;
    UT_hash_handle hh;
};

// Embedded in what waits for a setup; zeroed before use. on_done is called when the problem has
// been read, and lost is NULL then (the problem may have a defect). Otherwise lost says why it
// could not be read; whoever wants to try again does so after on_done has returned.
struct setup_wait {
    void (*on_done)(struct setup_wait *wait, const char *lost);
    void *owner;          // the waiter's
    enum job_cause cause; // valid during on_done: why it could not be read
    struct setup *setup;  // this and the rest belong to setup.c; NULL: not waiting
    struct setup_wait *prev;
    struct setup_wait *next;
};

// parts outlives the setups; blobs, compiler, devices, executors and secret are used.
struct setups *setups_create(const struct daemon_parts *parts);
// No setup may have a user. NULL is fine.
void setups_free(struct setups *setups);
// Called once a second: reads the problems again that the host could not open.
void setups_tick(struct setups *setups);
// Nobody waits for the host any more: held problems are read a last time now, and those who wait
// are told what comes of it.
void setups_stop(struct setups *setups);

// Visits every blob that a known setup needs. Some are visited more than once, and zero stands for
// a blob that does not exist.
void setups_visit_blobs(const struct setups *setups,
                        void (*visit)(void *owner, const struct digest *digest), void *owner);

// Returns the setup of these three blobs on devices of this class (NULL: any that fits), which has
// one more user then. reference and baseline may be zero.
struct setup *setup_acquire(struct setups *setups, const struct digest *problem,
                            const struct digest *reference, const struct digest *baseline,
                            const char *class_name);
// One user less. NULL is fine.
void setup_release(struct setup *setup);

// Waits until the problem has been read and parsed. Then name or defect is set, and with name
// either device_class or no_class. Returns true when that is so already; on_done is not called
// then.
bool setup_read(struct setup *setup, struct setup_wait *wait);
// on_done will not be called. No effect when it has been called.
void setup_cancel(struct setup_wait *wait);
// How the candidate of this source, or the baseline or the reference that it is measured with, is
// to be compiled. The setup must have been read and have a device_class.
struct compile_input setup_input(const struct setup *setup, enum compile_role role,
                                 const struct digest *candidate);
// Whether its reference is recorded for each candidate anew: it is Python, and there are hidden
// cases, which are the candidate's. The object is then the job's, and not kept here.
bool setup_records_reference(const struct setup *setup);
// Whether its reference or baseline needs no compilation: it has been compiled or refused, or there
// is none.
bool setup_knows(const struct setup *setup, enum compile_role role);
// Stores how its reference or baseline was compiled. May be called more than once.
void setup_learn(struct setup *setup, enum compile_role role, const struct compiled *compiled);
// Why nothing can be measured against it: its reference or baseline does not compile. NULL while
// that is not known.
const char *setup_refusal(const struct setup *setup);
// The seed from which the hidden cases of a candidate of this source follow.
uint64_t setup_hidden_seed(const struct setup *setup, const struct digest *source);
// The objects of reference and baseline are missing from the store, for this candidate. They are
// compiled again when they are needed next.
void setup_forget_objects(struct setup *setup, const struct digest *candidate);

#endif
