// A problem folder on disk: problem.json, reference.c, baseline.c and, where they exist, template.c
// and README.md; the sources of a cuda problem are .cu files, of which reference and baseline may
// be reference.py and baseline.py instead. This module finds a folder by path or
// by name, reads it whole and checks that it is complete. Called by every command that names a
// problem. It knows nothing of daemons.
#ifndef CLIENT_PROBLEM_PROBLEM_DIR_H
#define CLIENT_PROBLEM_PROBLEM_DIR_H

#include "common/digest.h"
#include "common/err.h"
#include "common/mem.h"
#include "problem/problem.h"
#include "proto/messages.h"
#include "proto/verdict.h"
#include <stddef.h>

// Owns everything in it.
struct problem_dir {
    char *path;                     // of the folder, without a slash at the end
    struct problem *problem;        // parsed problem.json
    struct bytes json;              // the bytes of problem.json
    struct bytes reference;         // reference.c, .cu or .py
    const char *reference_name;     // of its file
    struct bytes baseline;          // baseline.c, .cu or .py
    const char *baseline_name;      // of its file
    struct bytes template_source;   // template.c or .cu; data is NULL when there is none
    struct bytes readme;            // README.md; data is NULL when there is none
    struct digest json_digest;      // name of the blob with problem.json
    struct digest reference_digest; // name of the blob with the reference
    struct digest baseline_digest;  // name of the blob with the baseline
};

// Loads a problem. `problem` is a path (it contains a slash, or is a folder with a problem.json) or
// a name. A name is looked for in the folders of problem_dir_roots, in order; "cuda/softmax" tells
// problems of the same name apart. The problem's name must equal the folder's. On failure *ret is
// zeroed and the sentence names the file or, for a name that is nowhere, the folders that were
// searched (ERR_NOT_FOUND).
MUST_CHECK int problem_dir_load(struct problem_dir *ret, const char *problem, struct err *err);
void problem_dir_release(struct problem_dir *dir);

// The folders in which names are searched: ./problems, the entries of $KCAST_PROBLEMS (separated by
// colons) and <bindir>/../share/kernelcast/problems. Each is followed by its subfolders that are no
// problems (such as problems/cpu). Folders that do not exist are left out. *ret is for
// problem_dir_free_texts.
void problem_dir_roots(char ***ret, size_t *ret_count);
// The paths of all problem folders (those with a problem.json) in the roots, sorted within each
// root. *ret is for problem_dir_free_texts.
void problem_dir_list(char ***ret, size_t *ret_count);
void problem_dir_free_texts(char **text, size_t count);

// Fills in the job that compiles or measures the source with the digest `candidate` for this
// problem. Compiling is for its features, measuring without any of machine code. The job owns
// nothing that must be freed. The caller may set device_class, which stays
// the caller's, and other options afterwards.
void problem_dir_spec(const struct problem_dir *dir, enum job_kind kind,
                      const struct digest *candidate, struct job_spec *ret);

#endif
