#include "net/url.h"

#include "common/mem.h"
#include "common/parse.h"
#include <arpa/inet.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *text;
    bool tls;
} schemes[] = {{"tcp://", false}, {"tls://", true}, {"tls+tcp://", true}};

// Returns the scheme that text begins with, as an index; ARRAY_LEN(schemes) when it is none.
static size_t scheme_of(const char *text)
{
    size_t i = 0;
    while (i < ARRAY_LEN(schemes) && strncmp(text, schemes[i].text, strlen(schemes[i].text)) != 0) {
        i++;
    }
    return i;
}

int url_parse(struct url *ret, const char *text, struct err *err)
{
    size_t scheme = scheme_of(text);
    if (scheme == ARRAY_LEN(schemes)) {
        return err_set(err, ERR_INVALID,
                       "\"%s\" is no url of a daemon or worker; write tcp://HOST:PORT or "
                       "tls://HOST:PORT",
                       text);
    }
    const char *host = text + strlen(schemes[scheme].text);
    const char *host_end = strrchr(host, ':');
    bool bracketed = *host == '[';
    if (!host_end || (bracketed && (host_end == host || host_end[-1] != ']'))) {
        return err_set(err, ERR_INVALID, "\"%s\" has no port; write tcp://HOST:PORT", text);
    }
    const char *port = host_end + 1;
    if (bracketed) {
        host++;
        host_end--;
    }
    size_t len = (size_t)(host_end - host);
    if (len == 0 || len >= URL_HOST_MAX) {
        return err_set(err, ERR_INVALID, "\"%s\" has no usable host; write tcp://HOST:PORT", text);
    }
    uint64_t number = 0;
    int rc = parse_u64(&number, port, 0, UINT16_MAX, "the port", err);
    if (rc < 0) {
        return err_wrap(err, "%s", text);
    }
    *ret = (struct url){.port = (uint16_t)number, .tls = schemes[scheme].tls};
    memcpy(ret->host, host, len);
    return 0;
}

char *url_text(const struct url *url)
{
    bool v6 = strchr(url->host, ':');
    return xasprintf("%s://%s%s%s:%u", url->tls ? "tls" : "tcp", v6 ? "[" : "", url->host,
                     v6 ? "]" : "", url->port);
}

bool url_is_loopback(const struct url *url)
{
    if (strcmp(url->host, "localhost") == 0) {
        return true;
    }
    struct in_addr v4;
    if (inet_pton(AF_INET, url->host, &v4) == 1) {
        return (ntohl(v4.s_addr) >> 24) == 127;
    }
    struct in6_addr v6;
    return inet_pton(AF_INET6, url->host, &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

bool url_address(const struct url *url, struct sockaddr_storage *ret)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                             .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV};
    char port[8];

    (void)snprintf(port, sizeof(port), "%u", url->port);
    struct addrinfo *list = NULL;
    if (getaddrinfo(url->host, port, &hints, &list) != 0) {
        return false;
    }
    memset(ret, 0, sizeof(*ret));
    memcpy(ret, list->ai_addr, list->ai_addrlen);
    freeaddrinfo(list);
    return true;
}
