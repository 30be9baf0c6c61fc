#include "base/array.h"
#include "base/buf.h"
#include "base/os.h"
#include "model/incident.h"

#include <inttypes.h>
#include <stdio.h>

void incident_tell_system(const struct incident_head *h, const char *store_path)
{
	const char *rule = h->rule ? h->rule : "", *reason = h->reason ? h->reason : "";
	char id[24], samples[24], lost[24];
	struct buf message = {0};
	struct os_log_field fields[] = {
		{"MESSAGE", NULL}, {"MESSAGE_ID", "aaab2b346fcbe1d8760ef24a7885b14f"},
		{"PRIORITY", "5"}, {"SYSLOG_IDENTIFIER", "recorder"}, {"RECORDER_INCIDENT", id},
		{"RECORDER_UUID", h->uuid}, {"RECORDER_RULE", rule}, {"RECORDER_REASON", reason},
		{"RECORDER_SAMPLES", samples}, {"RECORDER_LOST", lost},
		{"RECORDER_STORE", store_path},
	};

	snprintf(id, sizeof(id), "%" PRId64, h->id);
	snprintf(samples, sizeof(samples), "%" PRIu64, h->samples);
	snprintf(lost, sizeof(lost), "%" PRIu64, h->lost);
	buf_printf(&message, "incident %s: %s", id, reason);
	fields[0].value = buf_text(&message);
	os_system_log(fields, COUNT_OF(fields));
	buf_free(&message);
}
