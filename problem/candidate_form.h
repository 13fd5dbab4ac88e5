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
    FORM_PTX,      // PTX with a launch manifest in its comments
    FORM_CUBIN,    // a launch manifest and after it a cubin in base64
};

// What comes after blank lines and lines that begin with "//" decides first: a line that begins
// with ".version" makes it PTX, the first bytes of a cubin in base64 ("f0VMRg", or as they are) a
// cubin. Else a source with a line of a launch manifest ("//@ …") is sealed. Another one is Python
// when a line outside of comments ("/*") begins as only Python's do: "import ", "from ", "def ",
// "class …:" or "@". One that has both extern "C" and a launch ("<<<") has a launcher. Everything
// else is taken for a sealed source, which then lacks its manifest.
enum candidate_form candidate_form(const char *source, size_t len);
// Whether nothing of the form runs on the host, so that it is compiled and not recorded.
bool candidate_is_sealed(enum candidate_form form);
// Where a text's first line begins that is neither blank nor a comment ("//"): len when none is.
size_t candidate_skip_comments(const char *source, size_t len);

// The ending of the file that a candidate is written to: "py" for Python, "ptx" and "cubin",
// otherwise that of the problem's sources, "c" or "cu".
const char *candidate_ending(const char *extension, const char *source, size_t len);
// Whether a file of this name is a candidate for a problem whose sources end so. To a CUDA problem
// Python, PTX and cubins are as well.
bool candidate_is_file(const char *name, const char *extension);

#endif
