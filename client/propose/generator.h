// Where candidates come from: a finite list of points, each of which is a source, fixed when a run
// starts by one text (a template, or JSON lines), which is kept in the run file; or a language model
// that the worker asks for them (client/forecast/proposer.h), and then there are no points.
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

struct generator;

struct generator_ops {
    void (*name)(const struct generator *generator, size_t point, struct strbuf *out);
    void (*source)(const struct generator *generator, size_t point, struct strbuf *out);
    // The parameters of the point, or none. *ret is malloc'd, names included.
    size_t (*params)(const struct generator *generator, size_t point, struct fact **ret);
    // The points beside this one; writes at most max of them, returns how many were written.
    size_t (*neighbours)(const struct generator *generator, size_t point, size_t *out, size_t max);
    // Where the point lies, each axis from 0 to 1.
    void (*position)(const struct generator *generator, size_t point, double *out);
    void (*free)(struct generator *generator);
};

// The head of every generator; the rest belongs to its file.
struct generator {
    const struct generator_ops *ops;
    bool is_llm;        // the worker for its candidates: no points
    size_t point_count; // at least 1 of those that have any
    size_t axis_count;  // at most GENERATOR_AXIS_MAX; 0: points have no place and no neighbours
};

// The text for a --generator of this problem: its template for "tunable"; for "pool:DIR" the
// folder's .c files (.cu files for a cuda problem) in order of their names, for "pool:FILE.jsonl" the file's lines, both as JSON
// lines {"name", "source"}. ERR_USAGE for another kind; ERR_INVALID sentences begin with path:line.
MUST_CHECK int generator_read(struct bytes *ret, const char *kind, const struct problem_dir *dir,
                              struct err *err);
// From that text. path names it in errors.
MUST_CHECK int generator_create(struct generator **ret, const char *kind, const struct bytes *text,
                                const char *path, struct err *err);
void generator_free(struct generator *generator); // NULL is fine

bool generator_is_files(const char *kind);
bool generator_is_llm(const char *kind); // it is "llm", whose text is empty

// gen_tunable.c
MUST_CHECK int generator_tunable(struct generator **ret, const struct bytes *text, const char *path,
                                 struct err *err);
// gen_pool.c
MUST_CHECK int generator_files(struct generator **ret, const struct bytes *text, const char *path,
                               struct err *err);
MUST_CHECK int generator_files_read(struct bytes *ret, const char *path,
                                    const struct problem *problem, struct err *err);

#endif
