// tcp:// and tls:// urls of daemons and workers.
#ifndef NET_RPC_URL_H
#define NET_RPC_URL_H

#include "common/err.h"
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#define URL_HOST_MAX 256

struct url {
    char host[URL_HOST_MAX]; // without the brackets of an IPv6 address
    uint16_t port;           // 0: any free one (listeners)
    bool tls;                // tls://: encrypted, and both sides show certificates
};

// "tcp://host:port" or "tcp://[v6]:port", or the same with tls. ERR_INVALID says what is wrong.
MUST_CHECK int url_parse(struct url *ret, const char *text, struct err *err);
// Whether the host is this machine and nobody else can reach it: localhost, 127.0.0.0/8, ::1.
bool url_is_loopback(const struct url *url);
// The host as an address, with the port, when it is written as one; false when it is a name.
bool url_address(const struct url *url, struct sockaddr_storage *ret);

#endif
