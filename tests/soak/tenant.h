// Who calls in the soak test, when it is encrypted.
#ifndef TESTS_SOAK_TENANT_H
#define TESTS_SOAK_TENANT_H

#include "net/rpc/remote.h"
#include <stdbool.h>

#define TENANTS 3
#define TENANT_ADMIN TENANTS // the driver

// "ann", …; "local" when it is not encrypted.
const char *tenant_name(bool tls, unsigned number);

// A remote for this tenant with the files of DIR/pool. Failing ends the program with a sentence.
struct remote *tenant_connect(uv_loop_t *loop, const char *url, const char *dir, unsigned number);
bool tenant_is_tls(const char *url);

#endif
