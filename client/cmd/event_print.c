#include "client/cmd/event_print.h"

#include "client/output.h"
#include "client/report/report_json.h"
#include "client/session.h"
#include "client/show.h"

int event_print(void *owner, struct run_event *event, struct err *err)
{
    struct session *session = owner;
    struct strbuf line = STRBUF_INIT;
    (void)err;
    // With all digits of the numbers, as `kcast export --events` has them.
    show_add_line(&line, show_with_schema(report_json_event_object(event)));
    if (output_write(strbuf_text(&line), line.len, NULL) != 0 && output_is_closed()) {
        session_interrupt(session);
    }
    strbuf_release(&line);
    return 0;
}
