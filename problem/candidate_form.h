// In which form a candidate of a CUDA problem comes. It follows from the source alone, so that
// every program comes to the same conclusion.
#ifndef PROBLEM_CANDIDATE_FORM_H
#define PROBLEM_CANDIDATE_FORM_H

#include <stdbool.h>
#include <stddef.h>

enum candidate_form {
    FORM_SEALED,   // device code with a launch manifest (problem/manifest.h)
    FORM_PYTHON,   // Python, whose launches are recorded
    FORM_LAUNCHER, // CUDA C++ with a host function that launches, which are recorded
};

// A source with a line of a launch manifest ("//@ …") is sealed. Another one is Python when a line
// begins as only Python's do: "import ", "from ", "def ", "class …:" or "@". One that has both
// extern "C" and a launch ("<<<") has a launcher. Everything else is taken for a sealed source,
// which then lacks its manifest.
enum candidate_form candidate_form(const char *source, size_t len);

// The ending of the file that a candidate is written to: "py" for Python, otherwise that of the
// problem's sources, "c" or "cu".
const char *candidate_ending(const char *extension, const char *source, size_t len);
// Whether a file of this name is a candidate for a problem whose sources end so. To a CUDA problem
// Python is as well.
bool candidate_is_file(const char *name, const char *extension);

#endif
