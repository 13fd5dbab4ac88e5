// The fields of an option table, for the files that implement common/options.h. A value means the
// same wherever it stands. Only options.c and options_ini.c include this.
#ifndef COMMON_OPTIONS_OPTIONS_FIELD_H
#define COMMON_OPTIONS_OPTIONS_FIELD_H

#include "common/options.h"

// Parses text into the field of the row. `what` names the option in the error sentence. A value
// that is refused leaves the field as it was.
MUST_CHECK int options_set_field(const struct option_row *row, void *target, const char *text,
                                 const char *what, struct err *err);

// The row with this name, of len bytes; NULL: there is none.
const struct option_row *options_find_name(const struct option_row *table, const char *name,
                                           size_t len);

#endif
