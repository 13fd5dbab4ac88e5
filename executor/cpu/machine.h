// What kind of processor this is, and bounds on what one of its cores can do.
#ifndef EXECUTOR_CPU_MACHINE_H
#define EXECUTOR_CPU_MACHINE_H

#include <stddef.h>

// Bytes of the data cache of a level (1, 2, 3), or of the last level (0). Never 0 for level 0 (32
// MiB when unknown).
size_t machine_cache_bytes(unsigned level);

// The processor's name as its maker writes it, into out; "unknown" when it does not say.
void machine_model(char *out, size_t size);

// The widest vector instructions: "avx512", "avx2", "avx", "sse2", "sve", "neon", "generic".
const char *machine_isa(void);

// Floating-point operations of f32 per second of one core, and bytes per second of its first-level
// cache: the best of several short runs, with a margin: upper bounds that honest code does not
// pass. Each takes about 20 ms.
double machine_peak_flops(void);
double machine_peak_bytes(void);

#endif
