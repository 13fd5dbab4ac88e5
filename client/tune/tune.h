// Tunes a kernel for one benchmark case, or for all cases together. Each case has a search of its
// own, whose run file is kept, and an entry of the wisdom file that says what was found and how.
// Called by `kcast tune`, which has the words for people.
//
// The name of the run file follows from everything that decides the search: the problem with this
// case, its sources, the kernel, the class of devices and the options. So the same command finds
// the run of a search that was killed, and continues it by the rules of `kcast resume`.
#ifndef CLIENT_TUNE_TUNE_H
#define CLIENT_TUNE_TUNE_H

#include "client/problem/problem_dir.h"
#include "client/search/search_start.h"
#include "client/session.h"
#include "client/tune/tune_case.h"
#include "client/tune/wisdom.h"
#include "common/err.h"

// What to tune, and how. Everything in it is the caller's.
struct tune {
    struct session *session;
    const struct search_options *options;     // of every search
    const struct problem_dir *dir;            // the problem with all its cases
    const char *kernel_path;                  // of the template
    const struct bytes *kernel;               // the template's text
    const char *device_class;                 // the devices that measure
    const struct pipeline_capacity *capacity; // of search_check
    const char *wisdom;                       // path of the wisdom file
    const char *runs;                         // folder of the run files
    bool again; // search although the wisdom file has an entry for the case
};

// id, name in --json, meaning
#define TUNE_RESULTS(X)                                                                            \
    X(TUNED, "tuned", "searched, and put into the wisdom file")                                    \
    X(KNOWN, "known", "the wisdom file has it already; nothing was searched")                      \
    X(WORSE, "worse", "searched; what the wisdom file has is faster and stays")                    \
    X(NONE, "none", "searched; no candidate was correct, so there is nothing to keep")

enum tune_result {
#define X(id, name, text) TUNE_##id,
    TUNE_RESULTS(X)
#undef X
};

struct tune_outcome {
    enum tune_result result;
    json_t *entry; // of the wisdom file now; NULL for TUNE_NONE; owned
    char *run;     // path of the run file; NULL for TUNE_KNOWN; owned
    bool resumed;  // the run had been begun before
};

// Tunes for benchmark case `bench`, or TUNE_ALL. ERR_STOPPED when interrupted: the run file is
// kept, and ret->run names it. *ret must be released in any case.
MUST_CHECK int tune_one(struct tune_outcome *ret, const struct tune *tune, size_t bench,
                        struct err *err);
void tune_outcome_release(struct tune_outcome *outcome);
const char *tune_result_name(enum tune_result result);

// tune_entry.c: makes the wisdom file's object for a search, as a new reference. path is the run
// file's. With run_state NULL the object has no configuration and only serves to find an entry for
// the same problem, kernel, device class and shapes.
json_t *tune_entry(const struct tune *tune, const struct problem *narrowed,
                   const struct run_state *run_state, const char *path);

#endif
