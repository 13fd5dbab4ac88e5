// The framing of kernelcast before it spoke nng's protocol, as far as it takes to tell a caller of
// that time, in words that it understands, that it is too old: a greeting, then frames of a length
// of 4 bytes, little-endian, and a packed message. net/rpc/frames.c cuts such frames for a server,
// and nothing else is done with them.
#ifndef NET_RPC_OLD_FRAMING_H
#define NET_RPC_OLD_FRAMING_H

#include "common/err.h"
#include "common/strbuf.h"
#include <stddef.h>

#define OLD_FRAMING_LENGTH_LEN 4
#define OLD_FRAMING_MAX ((size_t)64 << 10) // bytes of a frame

// "KCAST", two zeros, and a version that is 1. Both sides sent it.
extern const unsigned char old_framing_greeting[8];

// Why a connection of that framing ends.
extern const char old_framing_reason[];

// Returns the length that 4 bytes announce.
size_t old_framing_length(const unsigned char *head);
// Appends a frame that answers `request`, a frame of len bytes without its length, with this error.
void old_framing_refuse(struct strbuf *out, const void *request, size_t len,
                        const struct err *error);

#endif
