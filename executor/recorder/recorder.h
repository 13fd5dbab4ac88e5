// What the files of the library share that is loaded before everything else into the process that
// records a candidate's launches (LD_PRELOAD), beside record.py, which calls it by ctypes. Nothing
// here is trusted by anybody: the candidate's host code runs in the same process. What comes out of
// it is checked by executor/gpu/program/recording.c. The library is built alone, with nothing of
// this tree's.
#ifndef EXECUTOR_RECORDER_RECORDER_H
#define EXECUTOR_RECORDER_RECORDER_H

#define EXPORT __attribute__((visibility("default")))

typedef int result; // CUresult

// Returns a function of the CUDA driver, NULL when there is no driver or no such function.
void *driver(const char *name);

// Keeps a copy of an image that the driver has taken, of which it made this CUmodule or CUlibrary.
void note_image(const void *given, void *handle, int is_library);
// The same for an image that the driver reads from a file itself.
void note_file(const char *path, void *handle);

#endif
