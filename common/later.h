// A call that the libuv loop makes in its next round: for an answer that is known at once and must
// not come inside the call that asks for it.
#ifndef COMMON_LATER_H
#define COMMON_LATER_H

#include <uv.h>

// Has the loop call run(owner) once, after this call has returned. The loop does not end before.
void later_run(uv_loop_t *loop, void (*run)(void *owner), void *owner);

#endif
