#include "client/problem/problem_blobs.h"

#include "client/pool/daemon_pool.h"
#include "client/problem/problem_dir.h"

void problem_blobs_add(struct daemon_pool *daemon_pool, const struct problem_dir *dir)
{
    daemon_pool_add_blob(daemon_pool, dir->json.data, dir->json.len, NULL);
    daemon_pool_add_blob(daemon_pool, dir->reference.data, dir->reference.len, NULL);
    daemon_pool_add_blob(daemon_pool, dir->baseline.data, dir->baseline.len, NULL);
}
