// What kind of processor this is, and upper bounds on what one of its cores can do. The probe and
// the harness call this. It must know no problem and no candidate.
#ifndef EXECUTOR_CPU_MACHINE_H
#define EXECUTOR_CPU_MACHINE_H

#include <stddef.h>

// Returns the bytes of the data cache of a level (1, 2, 3; 0 when unknown), or of the last level
// when level is 0 (32 MiB when unknown).
size_t machine_cache_bytes(unsigned level);

// Writes the processor's name as its maker gives it into out; "unknown" when there is none.
void machine_model(char *out, size_t size);

// Returns the widest vector instructions: "avx512", "avx2", "avx", "sse2", "neon",
// "generic".
const char *machine_isa(void);

// Return the f32 operations per second of one core, and the bytes per second of its first-level
// cache. Each is the best of several short runs times a margin, an upper bound that honest code
// does not exceed. Each call takes about 20 ms.
double machine_peak_flops(void);
double machine_peak_bytes(void);

#endif
