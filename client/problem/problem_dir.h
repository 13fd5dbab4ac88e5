// A problem folder on disk: problem.json, reference.c, baseline.c and, where there are any, template.c and README.md;
// of a cuda problem the sources are .cu files.
// Finds it by path or by name, reads it whole, checks that it is complete. Knows nothing of daemons.
#ifndef CLIENT_PROBLEM_PROBLEM_DIR_H
#define CLIENT_PROBLEM_PROBLEM_DIR_H

#include "common/digest.h"
#include "common/err.h"
#include "common/mem.h"
#include "problem/problem.h"
#include "proto/messages.h"
#include "proto/verdict.h"
#include <stddef.h>

struct problem_dir {
    char *path;                   // of the folder, without a slash at the end
    struct problem *problem;      // parsed problem.json
    struct bytes json;            // problem.json as it is
    struct bytes reference;       // reference.c or .cu
    struct bytes baseline;        // baseline.c or .cu
    struct bytes template_source; // template.c or .cu; data is NULL when there is none
    struct bytes readme;          // README.md; data is NULL when there is none
    struct digest json_digest, reference_digest, baseline_digest; // names of the blobs
};

// Loads the problem that `problem` names: a path (it holds a slash, or is a folder with a problem.json) or a name, which is
// looked for in the folders of problem_dir_roots, in order; "cuda/softmax" where several have the same one. The problem's name must equal the folder's. On failure *ret is
// zeroed and the sentence names the file, or, for a name that is nowhere, the folders that were searched (ERR_NOT_FOUND).
MUST_CHECK int problem_dir_load(struct problem_dir *ret, const char *problem, struct err *err);
void problem_dir_release(struct problem_dir *dir);

// The folders in which names are searched: ./problems, the entries of $KCAST_PROBLEMS (separated by colons) and
// <bindir>/../share/kernelcast/problems. Also one level below each of them (problems/cpu/sgemm). Existing ones only,
// in order, malloc'd texts in a malloc'd array; free with problem_dir_free_texts.
void problem_dir_roots(char ***ret, size_t *ret_count);
// Paths of all problem folders (those with a problem.json) in the roots, sorted within a root.
void problem_dir_list(char ***ret, size_t *ret_count);
void problem_dir_free_texts(char **text, size_t count);

// The job that compiles or measures `candidate` (digest of a source) for this problem. Owns nothing that must be freed;
// the caller may set device_class (owned by the caller) and the other options afterwards.
void problem_dir_spec(const struct problem_dir *dir, enum job_kind kind,
                      const struct digest *candidate, struct job_spec *ret);

#endif
