// Lets whoever measures on a GPU have a processor first, where compilers keep all of them busy: a
// launch whose host has to wait for one holds the GPU as long. For processes that compile or record
// for GPUs; their children inherit it. It must not know what they do.
#ifndef EXECUTOR_GIVE_WAY_H
#define EXECUTOR_GIVE_WAY_H

// Makes this process and its session yield to others. What is left to them is a tenth of a
// processor at least, which the limit of a compilation's wall time allows for. To be called again
// before each piece of work: it goes on where a call before was told to come again. Where the
// system refuses, nothing changes.
void give_way(void);

#endif
