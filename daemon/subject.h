// What candidates are measured against, and where: one problem, its reference and its baseline, one
// class of devices. Many jobs share one subject, so it is interned: the problem is read once,
// reference and baseline are compiled once.
#ifndef DAEMON_SUBJECT_H
#define DAEMON_SUBJECT_H

#include "daemon/blob.h"
#include "daemon/compiler.h"
#include "daemon/secret.h"
#include <uthash.h>

struct subjects;

// One of the two codes that come with the problem.
struct subject_part {
    struct digest source;           // blob; zero when there is none (COMPILE jobs)
    struct compile_request request; // under way when request.task is not NULL
    bool compiled;                  // object counts
    struct digest object;           // blob
    char *refusal; // why it cannot be compiled; NULL while it is not known to be so
};

struct subject {
    struct subjects *table;
    struct digest identity; // of the three and class_name
    struct digest problem;  // blob of problem.json
    char *class_name;       // class that is asked for; NULL: any that fits
    struct device_class
        *device_class; // once the problem was read; NULL: none runs it, see homeless
    char *homeless;    // why there is none, else NULL
    char *name;        // the problem's, once it was read, else NULL
    char *header;      // candidate and baseline: contract/problem.h; "" for cuda, like glue
    char *glue;
    char *reference_header;
    char *reference_glue;
    struct subject_part reference;
    struct subject_part baseline;
    bool reading;               // the blob is being read
    char *defect;               // why the problem is none; NULL while it is not known to be so
    struct subject_wait *waits; // list of those who wait for something about it
    uint64_t round;             // number of times they were told something
    size_t users;               // references
    double held_s;              // mean time that a measurement held a device; 0: none yet
    struct subject *idle_prev;  // subjects without users, oldest first
    struct subject *idle_next;
    UT_hash_handle hh;
};

// Embedded in what waits; zeroed before use. lost is NULL when what was asked for is there (or is
// known to be impossible: see defect and refusal), else why it could not be had this time.
struct subject_wait {
    void (*on_done)(struct subject_wait *wait, const char *lost);
    void (*on_miss)(struct subject_wait *wait); // a part has to be compiled; may be NULL
    void *owner;                                // the waiter's
    struct subject *subject;                    // the table's, as is the rest; NULL: not waiting
    bool parts;                                 // waits for the parts too
    uint64_t round;                             // the subject's when the waiting began
    struct subject_wait *prev;
    struct subject_wait *next;
};

// What is given outlives the subjects.
struct subjects *subjects_create(struct blob_store *blobs, struct compiler *compiler,
                                 const struct devices *devices, const struct secret *secret);
void subjects_free(struct subjects *subjects); // without users; NULL is fine

// Every blob that a known subject needs, some more than once; zero where there is none.
void subjects_visit_blobs(const struct subjects *subjects,
                          void (*visit)(void *owner, const struct digest *digest), void *owner);

// The subject of these three blobs on devices of this class (NULL: any that fits), with one more
// user. reference and baseline may be zero.
struct subject *subject_acquire(struct subjects *subjects, const struct digest *problem,
                                const struct digest *reference, const struct digest *baseline,
                                const char *class_name);
void subject_release(struct subject *subject); // NULL is fine

// Waits until the problem has been read and parsed; then name or defect is set, and with name
// device_class or homeless. Returns true when that is so already (on_done does not run then).
bool subject_read(struct subject *subject, struct subject_wait *wait);
// The same, and until reference and baseline are compiled or refused. Not of a homeless one.
bool subject_compile(struct subject *subject, struct subject_wait *wait);
void subject_cancel(struct subject_wait *wait); // no-op when it is done
// How a candidate of this subject is compiled. The subject must have been read and not be homeless.
struct compile_input subject_candidate(const struct subject *subject, const struct digest *source);
// The seed that the hidden cases of a candidate follow from.
uint64_t subject_hidden_seed(const struct subject *subject, const struct digest *source);
// Objects of the parts are missing from the store: compile again when next asked.
void subject_forget_objects(struct subject *subject);

#endif
