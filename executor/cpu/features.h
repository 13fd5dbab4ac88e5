// Features of compiled code, read from the output of objdump -d: how many instructions of which
// kind, how wide, in which loops. The compilation calls this. Forecasts are learnt from features,
// so a name never changes its meaning. It must not know who learns from them.
#ifndef EXECUTOR_CPU_FEATURES_H
#define EXECUTOR_CPU_FEATURES_H

#include <stddef.h>

// The name and the meaning of each feature. Instructions are counted as they stand in the object,
// not as they are executed, without kcast_entry and linkage stubs.
#define FEATURES(X)                                                                                \
    X(instructions, "instructions, without padding")                                               \
    X(scalar_fp, "floating-point instructions on one element")                                     \
    X(vector_128, "vector instructions of 128 bits")                                               \
    X(vector_256, "vector instructions of 256 bits")                                               \
    X(vector_512, "vector instructions of 512 bits")                                               \
    X(fma, "fused multiply-adds, any width")                                                       \
    X(fp_mul, "floating-point or vector multiplications")                                          \
    X(fp_add, "floating-point or vector additions and subtractions")                               \
    X(div_sqrt, "divisions, square roots and their estimates")                                     \
    X(converts, "conversions between number formats")                                              \
    X(loads, "instructions that read memory")                                                      \
    X(stores, "instructions that write memory")                                                    \
    X(vector_loads, "loads of vectors")                                                            \
    X(vector_stores, "stores of vectors")                                                          \
    X(spills, "stores to the stack")                                                               \
    X(reloads, "loads from the stack")                                                             \
    X(gathers, "gathers and scatters")                                                             \
    X(shuffles, "permutations, unpacks, blends, inserts, extracts")                                \
    X(broadcasts, "broadcasts")                                                                    \
    X(branches, "jumps")                                                                           \
    X(calls, "calls")                                                                              \
    X(prefetches, "prefetches")                                                                    \
    X(functions, "functions")                                                                      \
    X(loops, "jumps backwards within a function")                                                  \
    X(loop_depth, "deepest nesting of loops")                                                      \
    X(inner_instructions, "instructions in loops of the deepest nesting of their function")        \
    X(inner_fma, "fused multiply-adds in those loops")                                             \
    X(inner_vectors, "vector instructions in those loops")                                         \
    X(inner_loads, "loads in those loops")                                                         \
    X(inner_stores, "stores in those loops")                                                       \
    X(inner_calls, "calls in those loops")                                                         \
    X(entry_bytes, "bytes of the entry function")                                                  \
    X(function_bytes, "bytes of all functions")

enum feature {
#define X(name, text) FEATURE_##name,
    FEATURES(X)
#undef X
        FEATURE_COUNT
};

extern const char *const feature_name[FEATURE_COUNT];

// Computes the features from objdump's output. The text may be any bytes: lines that are not
// understood are skipped, as are instructions after the first FEATURES_INSTRUCTIONS_MAX.
#define FEATURES_INSTRUCTIONS_MAX ((size_t)1 << 20)
void features_read(const char *text, size_t len, double ret[static FEATURE_COUNT]);

#endif
