// The origin of a URL: its scheme, host and port. A key may be sent again only to the same origin.
// Called by the HTTP client.
#ifndef WORKER_ENDPOINT_ORIGIN_H
#define WORKER_ENDPOINT_ORIGIN_H

#include <stdbool.h>

// Whether two URLs have the same origin. False when one of them is no URL.
bool origin_is_same(const char *a, const char *b);

#endif
