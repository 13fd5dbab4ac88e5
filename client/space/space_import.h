// Spaces from the files of other tools. docs/spaces.md says what each of them becomes. Pure: from
// memory, no I/O.
#ifndef CLIENT_SPACE_SPACE_IMPORT_H
#define CLIENT_SPACE_SPACE_IMPORT_H

#include "client/space/space.h"
#include "common/err.h"
#include <stddef.h>

#define IMPORT_FILE_MAX ((size_t)256 << 20) // bytes of a file

// What to take, and what to say where a file does not say it. Every text may be NULL.
struct space_import {
    const char *problem;  // the one to take, or the name of a file's only and nameless one
    const char *device;   // the same for the device class
    const char *baseline; // what speedups are against: see each importer
};

// On success *ret (uninitialised before) is a space that space_check accepts and that the caller
// releases; its head's origin says in a sentence what it was made of. ERR_INVALID for what is no
// such file, ERR_LIMIT for too much of something, ERR_CORRUPT from space_check; the sentence begins
// with path. Problems or devices of which the file has several, and none is picked, are
// ERR_INVALID.

// Kernel Tuner (github.com/KernelTuner/kernel_tuner): a cache file, finished or not, or results of
// its T4 format. baseline "NAME=VALUE,…" names one correct configuration by some of its parameters;
// without it the one of median time is taken. A parameter with values that are no numbers gets
// their places in its list (0, 1, …) for numbers; names keep the texts.
MUST_CHECK int space_import_kernel_tuner(struct space *ret, const void *data, size_t len,
                                         const char *path, const struct space_import *how,
                                         struct err *err);

// GPU Forecasters: rows of the evaluation set, the pool for reinforcement learning or the discovery
// pairs, one JSON object per line. The baseline is the anchor that most rows have, or that of the
// row which baseline names. A row with another anchor counts when that anchor is the candidate of a
// row that counts; their log2 speedups add up. The others are left out.
MUST_CHECK int space_import_forecasters(struct space *ret, const void *data, size_t len,
                                        const char *path, const struct space_import *how,
                                        struct err *err);

#endif
