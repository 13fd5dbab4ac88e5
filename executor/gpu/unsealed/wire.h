// What the executor tells the process of an unsealed candidate, and its answer: messages on a
// socket that keeps their borders. executor/recorder/run.py has the same. An answer repeats the
// number of what it answers, so that none can be given before its time; a packed record_reply
// follows when something has failed, and then the process ends.
#ifndef EXECUTOR_GPU_UNSEALED_WIRE_H
#define EXECUTOR_GPU_UNSEALED_WIRE_H

#include <stdint.h>

enum unsealed_what {
    UNSEALED_EMPTY = 1, // queue next to nothing and wait for the GPU
    UNSEALED_BEGIN = 2, // load the candidate
    UNSEALED_CASE = 3,  // the following runs are of this case of the request
    UNSEALED_RUN = 4,   // run the candidate once and wait for the GPU
};

struct unsealed_command {
    uint32_t what;   // enum unsealed_what
    uint32_t number; // of the case
    uint64_t nonce;  // drawn for this command
};

#define UNSEALED_ANSWER_MAX ((size_t)64 << 10) // bytes

#endif
