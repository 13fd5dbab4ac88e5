// Where candidates come from. A generator either has a finite list of points, each of which gives a
// source, or somebody is asked for its candidates (client/forecast/proposer.h), a language model or
// a program, and it has no points. The list is fixed by one text, a template or JSON lines, which
// is stored in the run file when the run starts. Called by strategies, the pipeline and replays. A
// generator knows nothing of outcomes.
#ifndef CLIENT_PROPOSE_GENERATOR_H
#define CLIENT_PROPOSE_GENERATOR_H

#include "client/problem/problem_dir.h"
#include "common/err.h"
#include "common/mem.h"
#include "common/strbuf.h"
#include "proto/messages.h"
#include <stdbool.h>
#include <stddef.h>

#define GENERATOR_POINT_MAX ((size_t)1 << 20)
#define GENERATOR_SOURCE_MAX ((size_t)64 << 20) // bytes of the text
#define GENERATOR_AXIS_MAX 32
#define GENERATOR_COMMAND_MAX 900 // bytes of a command: four of them fit into RUN_STARTED

struct generator;

// Points are numbered from 0. A generator that asks has `free` only.
struct generator_ops {
    // Appends the name or the source of the point.
    void (*name)(const struct generator *generator, size_t point, struct strbuf *out);
    void (*source)(const struct generator *generator, size_t point, struct strbuf *out);
    // Returns how many parameters the point has. *ret is malloc'd, as are the names in it; it is
    // NULL when a generator has no parameters.
    size_t (*params)(const struct generator *generator, size_t point, struct fact **ret);
    // Writes at most max neighbours of the point and returns how many it has written.
    size_t (*neighbours)(const struct generator *generator, size_t point, size_t *out, size_t max);
    // Writes the point's coordinate on each axis, from 0 to 1.
    void (*position)(const struct generator *generator, size_t point, double *out);
    void (*free)(struct generator *generator);
};

// The first member of every generator; the rest belongs to the generator's file.
struct generator {
    const struct generator_ops *ops;
    bool asks;          // Somebody is asked for its candidates; there are no points.
    bool is_files;      // Its candidates are programs that the user has given.
    bool is_opaque;     // Before a point is compiled nothing is known of it but its name.
    size_t point_count; // at least 1, unless asks
    size_t axis_count;  // at most GENERATOR_AXIS_MAX; 0: points have no position and no neighbours
};

// Reads the text of a generator of this kind (a word of --generator) for this problem. For
// "tunable" it is the problem's template. For "pool:DIR" it is the folder's .c files (.cu files for
// a cuda problem) in order of their names, as JSON lines {"name", "source"}. For "pool:FILE.jsonl"
// it is the file. For "llm" and "exec:CMD" it is empty. ERR_USAGE for another kind; ERR_INVALID
// sentences begin with path:line. *ret is the caller's.
MUST_CHECK int generator_read(struct bytes *ret, const char *kind, const struct problem_dir *dir,
                              struct err *err);
// Creates the generator of that text, which is not kept. path names the text in errors.
MUST_CHECK int generator_create(struct generator **ret, const char *kind, const struct bytes *text,
                                const char *path, struct err *err);
void generator_free(struct generator *generator); // NULL is fine

bool generator_is_files(const char *kind); // "pool:DIR" or "pool:FILE.jsonl"
bool generator_is_llm(const char *kind);   // "llm"
// The command of "exec:CMD"; NULL for another kind.
const char *generator_command(const char *kind);
// Whether somebody is asked for the candidates of this kind.
bool generator_asks(const char *kind);

// Whether its points can be told apart before they are compiled.
bool generator_is_comparable(const struct generator *generator);

// generator_tunable.c: the points of a template. Errors are template_parse's.
MUST_CHECK int generator_tunable(struct generator **ret, const struct bytes *text, const char *path,
                                 struct err *err);
// generator_files.c: one point for each JSON line; and the text of generator_read for "pool:"
// followed by path.
MUST_CHECK int generator_files(struct generator **ret, const struct bytes *text, const char *path,
                               struct err *err);
MUST_CHECK int generator_files_read(struct bytes *ret, const char *path,
                                    const struct problem *problem, struct err *err);

#endif
