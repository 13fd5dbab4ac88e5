// Shares of device time and budgets, as people and scripts read them.
#ifndef CLIENT_CMD_SHARE_TABLE_H
#define CLIENT_CMD_SHARE_TABLE_H

#include "proto/messages.h"
#include <jansson.h>
#include <stddef.h>

// The searches of a status: what they are to have, have had of late, hold and wait for.
void share_table_print(const struct share_info *share, size_t count);
json_t *share_table_json(const struct share_info *share, size_t count); // new reference

// The accounts of a budget_list of the daemon at url; NULL: there is one only.
void share_table_print_budgets(const char *url, const struct share_info *account, size_t count,
                               bool json);

#endif
