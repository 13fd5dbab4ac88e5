// The release, the versions of the wire protocol, and the default addresses. All programs share
// them.
#ifndef COMMON_VERSION_H
#define COMMON_VERSION_H

#define KCAST_VERSION "0.1.0"
#define KCAST_PROTOCOL_MIN 1 // oldest protocol version that this release understands
#define KCAST_PROTOCOL_MAX 1 // newest one, which is sent
#define KCAST_DEFAULT_POOL "tcp://127.0.0.1:7410"   // where a client looks for daemons
#define KCAST_DEFAULT_WORKER "tcp://127.0.0.1:7411" // where a client looks for a worker

#endif
