// How the soak test's processes connect to the daemon: as one of several tenants when the
// connection is encrypted, else as the local user.
#ifndef TESTS_SOAK_CONNECT_H
#define TESTS_SOAK_CONNECT_H

#include "net/rpc/remote.h"
#include <stdbool.h>

#define SOAK_TENANTS 3
#define SOAK_ADMIN SOAK_TENANTS // the number of the driver, which is the administrator

// The tenant's name, such as "ann"; "local" when the connection is not encrypted.
const char *soak_tenant_name(bool tls, unsigned number);

// Connects as this tenant, with the certificates and the token in DIR/pool. An error ends the
// program with a sentence.
struct remote *soak_connect(uv_loop_t *loop, const char *url, const char *dir, unsigned number);
bool soak_url_is_tls(const char *url);

#endif
