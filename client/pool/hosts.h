// The addresses of the daemons that --pool names. tcp:// and tls:// urls stand for themselves.
// dns://NAME:PORT stands for one tcp:// url per address of the name, looked up as often as the
// caller asks, so that a cluster can add and replace hosts behind a name. dns+tls://NAME:PORT is
// the same with tls:// urls, where each daemon must show a certificate for NAME, because the answer
// of a look-up is not trusted. file:PATH stands for the tcp:// and tls:// urls in a file, one a
// line, which is read again as often, so that a cluster's scheduler can write them there. Knows
// nothing of connections.
#ifndef CLIENT_POOL_HOSTS_H
#define CLIENT_POOL_HOSTS_H

#include "common/err.h"
#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

#define HOSTS_MAX 64 // urls; more are left out

struct hosts;

// Parses a list of urls, separated by commas, blanks or ends of lines; empty entries are skipped.
// Reads no file. ERR_INVALID names the entry that is no url. ERR_USAGE when the list is empty.
MUST_CHECK int hosts_create(struct hosts **ret, const char *list, struct err *err);
// Cancels a look-up that is under way. NULL is fine.
void hosts_free(struct hosts *hosts);

// Whether there may be several daemons: more than one entry, a name or a file.
bool hosts_are_several(const struct hosts *hosts);
// Whether hosts may come and go: an entry is a dns:// or dns+tls:// name, or a file.
bool hosts_may_change(const struct hosts *hosts);

struct host {
    const char *url;
    const char *name; // for remote_expect; NULL: the certificate must name the host of the url
};

// Whether the host has the same url and the same name. An address may stand behind two names, of
// which its certificate shows only one.
bool host_is_same(const struct host *host, const char *url, const char *name);

// Receives all urls in the order of the list, each once for each name; they are valid during the
// call. A name that could not be looked up, and a file that is missing or has anything but urls in
// it, stand for the addresses that they had before. why is about the first such entry, or ERR_NONE.
typedef void hosts_callback(void *owner, const struct host *host, size_t count,
                            const struct err *why);
// Looks all names up and reads all files. The callback runs once, on the loop and never inside this
// call. No other look-up may be under way.
void hosts_look_up(struct hosts *hosts, uv_loop_t *loop, hosts_callback *callback, void *owner);
// Whether a look-up is under way.
bool hosts_are_looked_up(const struct hosts *hosts);

#endif
