// Spaces from the files of other tools; docs/spaces.md says what each of them becomes.
// client/cmd/cmd_import.c calls this. Importers work in memory and do no I/O.
#ifndef CLIENT_SPACE_SPACE_IMPORT_H
#define CLIENT_SPACE_SPACE_IMPORT_H

#include "client/space/space.h"
#include "common/err.h"
#include "common/mem.h"
#include <stddef.h>

#define IMPORT_FILE_MAX ((size_t)256 << 20) // bytes of a file, packed or not

// What to take from a file, and what to assume where the file does not say it. Every text may be
// NULL.
struct space_import {
    // The problem to take, or the name of the file's only problem when it names none.
    const char *problem;
    const char *device;   // the same for the device class
    const char *baseline; // what speedups are relative to; each importer says how it is named
};

// Unpacks a file that begins like a gzip file, in place; leaves every other one as it is. ERR_LIMIT
// when it unpacks to more than IMPORT_FILE_MAX, ERR_CORRUPT when it cannot be unpacked; the data is
// then as before.
MUST_CHECK int space_import_unpack(struct bytes *data, const char *path, struct err *err);

// For all importers: *ret is uninitialised before the call. On success it is a space that
// space_check() accepts and that the caller releases; the origin in its head is a sentence about
// what it was made of. ERR_INVALID when the file is not one of the tool's, or when it has several
// problems or devices and none is picked; ERR_LIMIT for too much of something; ERR_CORRUPT from
// space_check(). Sentences begin with path.

// Kernel Tuner (github.com/KernelTuner/kernel_tuner): a cache file, finished or not, or results in
// its T4 format. The baseline "NAME=VALUE,…" names one correct configuration by some of its
// parameters; without it the configuration of median time is taken. A parameter with values that
// are not numbers gets their positions in its list (0, 1, …) as numbers; the names of candidates
// keep the texts.
MUST_CHECK int space_import_kernel_tuner(struct space *ret, const void *data, size_t len,
                                         const char *path, const struct space_import *how,
                                         struct err *err);

// KTT (github.com/HiPerCoRe/KTT): results that it has saved in JSON. Everything else as for Kernel
// Tuner.
MUST_CHECK int space_import_ktt(struct space *ret, const void *data, size_t len, const char *path,
                                const struct space_import *how, struct err *err);

// GPU Forecasters: rows of the evaluation set, of the pool for reinforcement learning, or of the
// discovery pairs, one JSON object on each line. The baseline is the anchor of the row that
// how->baseline names; without it the anchor that most rows have. A row with another anchor counts
// when that anchor is the candidate of a row that counts; then their log2 speedups add up. All
// other rows are left out.
MUST_CHECK int space_import_forecasters(struct space *ret, const void *data, size_t len,
                                        const char *path, const struct space_import *how,
                                        struct err *err);

#endif
