// The seconds that compiling a point is expected to take: the mean of the compilations that are
// known, each with less weight the farther its point lies (Nadaraya 1964; Watson 1964). A screening
// asks for hundreds of points and a search has thousands of compilations, so that each point's sums
// are kept and go on from where they ended when it is asked for again. They are those of a sum made
// anew, bit for bit. Called by pipeline_screen.c.
#ifndef CLIENT_SEARCH_COMPILE_TIMES_H
#define CLIENT_SEARCH_COMPILE_TIMES_H

#include <stddef.h>
#include <stdint.h>

struct compile_times;

// Positions have so many axes, each of which goes from 0 to 1.
struct compile_times *compile_times_create(size_t axes);
void compile_times_free(struct compile_times *times); // NULL is fine
// Begins to say which compilations are known, from the first on.
void compile_times_begin(struct compile_times *times);
// The next one: of this candidate, greater than the last one's. Sums are made anew when it is not
// the one that stood in this place before; usually it is, or is a new one behind all others.
// Returns where the caller writes its position, before anything else is called; NULL when it stood
// there before.
double *compile_times_add(struct compile_times *times, uint64_t candidate, double seconds);
// Seconds that compiling the point at this position takes; 0 when no compilation is known. point
// tells it from others of the same generator.
double compile_times_expect(struct compile_times *times, size_t point, const double *position);

#endif
