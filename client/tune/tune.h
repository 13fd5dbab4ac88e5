// Tuning a kernel for one benchmark case, or for all together: a search of its own, whose run file
// stays, and an entry of the wisdom file that says what was found and how.
//
// The name of the run file follows from everything that decides the search: the problem with this
// case, its sources, the kernel, the class of devices and the options. So the same command finds
// the run of one that was killed, and goes on with it by the rules of `kcast resume`.
#ifndef CLIENT_TUNE_TUNE_H
#define CLIENT_TUNE_TUNE_H

#include "client/problem/problem_dir.h"
#include "client/search/search_start.h"
#include "client/session.h"
#include "client/tune/tune_case.h"
#include "client/tune/wisdom.h"
#include "common/err.h"

struct tune {
    struct session *session;
    const struct search_options *options; // of every search
    const struct problem_dir *dir;        // the problem with all its cases
    const char *kernel_path;              // of the template
    const struct bytes *kernel;           // its text
    const char *device_class;             // that measures
    const char *wisdom;                   // path of the file
    const char *runs;                     // folder of the run files
    bool again;                           // search although the wisdom file has an entry
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
    json_t *entry; // of the wisdom file now; NULL for TUNE_NONE
    char *run;     // path of the run file; NULL for TUNE_KNOWN
    bool resumed;  // the run had been begun before
};

// Tunes for benchmark case `bench`, or TUNE_ALL. ERR_STOPPED when interrupted: the run file is
// kept, ret->run names it. *ret must be released in any case.
MUST_CHECK int tune_one(struct tune_outcome *ret, const struct tune *tune, size_t bench,
                        struct err *err);
void tune_outcome_release(struct tune_outcome *outcome);
const char *tune_result_name(enum tune_result result);

// tune_entry.c: the wisdom file's object for a search, or, for run state NULL, one that is for the same
// thing and has no configuration. path: of the run file. New reference.
json_t *tune_entry(const struct tune *tune, const struct problem *narrowed,
                   const struct run_state *run_state, const char *path);

#endif
