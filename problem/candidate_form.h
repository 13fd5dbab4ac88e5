// In which form a candidate of a CUDA problem comes. It follows from the source alone, so that
// every program comes to the same conclusion.
#ifndef PROBLEM_CANDIDATE_FORM_H
#define PROBLEM_CANDIDATE_FORM_H

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

#endif
