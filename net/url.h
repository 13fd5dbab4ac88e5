// The urls of daemons and workers: tcp://HOST:PORT and tls://HOST:PORT. tls+tcp://, nng's word for
// the latter, is the same. Pure functions on text: no name is looked up and no socket is opened
// here. Every room of net/ and the client use it.
#ifndef NET_URL_H
#define NET_URL_H

#include "common/err.h"
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#define URL_HOST_MAX 256 // bytes, with the NUL at the end

struct url {
    char host[URL_HOST_MAX]; // without the brackets of an IPv6 address
    uint16_t port;           // 0 lets a listener choose any free port
    bool tls;                // tls://: encrypted, and both sides show certificates
};

// Parses "tcp://host:port" or "tcp://[v6]:port", or the same with tls:// or tls+tcp://. ERR_INVALID
// says what is wrong with text; *ret is then unchanged.
MUST_CHECK int url_parse(struct url *ret, const char *text, struct err *err);
// Returns the url as text, malloc'd, in the one way that it is written here: with tcp:// or tls://,
// an IPv6 address in brackets, the port without leading zeros.
char *url_text(const struct url *url);
// Returns whether only this machine can reach the host: localhost, 127.0.0.0/8 or ::1.
bool url_is_loopback(const struct url *url);
// Writes the host and port as a socket address. Returns false, with *ret unchanged, when the host
// is a name and not a numeric address.
bool url_address(const struct url *url, struct sockaddr_storage *ret);

#endif
