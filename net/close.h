// The end of an nng socket, in bounded time.
#ifndef NET_CLOSE_H
#define NET_CLOSE_H

#include <nng/nng.h>
#include <stdbool.h>

// nng_close, but waits for 0.5 s at most: nng 1.5.2 can wait in it for ever when a message arrives at that
// moment (the callback that has read its length starts to read the rest with an aio that is closed
// already, and nobody is told). Then its contexts are closed, nothing of the caller's is called any
// more, and the rest of the socket is left to the end of the process. Returns whether it is all closed.
bool net_close(nng_socket socket);

#endif
