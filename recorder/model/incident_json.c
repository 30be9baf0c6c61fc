#include "base/json.h"
#include "base/os.h"
#include "model/incident.h"

void json_incident(struct json *j, const struct incident_head *h, bool with_value)
{
	char time[OS_TIME_TEXT_BYTES];

	os_time_text(h->trigger_wall_ns, time);
	json_key_int(j, "id", h->id);
	json_key_str(j, "uuid", h->uuid);
	json_key_str(j, "state", incident_state_text(h->state));
	json_key_str(j, "trigger", h->rule);
	json_key_str(j, "reason", h->reason);
	if (with_value) {
		json_key_num(j, "value", h->value);
		json_key_num(j, "limit", h->limit);
	}
	json_key_str(j, "time_utc", time);
	json_key_num(j, "window_s", (double)(h->t1_ns - h->t0_ns) / 1e9);
	json_key_uint(j, "samples", h->samples);
	json_key_uint(j, "lost", h->lost);
	json_key_uint(j, "bytes", h->stored_bytes);
	json_key_bool(j, "pinned", h->pinned);
}
